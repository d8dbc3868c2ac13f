"""SearchIndex: a base generation on disk and this process's overlay of fresh items, searched as one.

The two are folded into a new generation when the overlay grows, and rebuilt when the base is damaged; until lost items
are back, an answer says that it may be incomplete.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from operator import attrgetter
from pathlib import Path

from memfs.dataclass import replace
from memfs.errors import IndexUnavailable, LockTimeout, MemfsError, NotRegularFile, StorageIO
from memfs.fs.lock import reset_on_fork
from memfs.model import Candidate, MemoryItem, Query, Stamp
from memfs.model.ids import stem_of
from memfs.model.time import EARLIEST
from memfs.search.columns import NO_STAMPS, DocumentColumns, StampTable
from memfs.search.documents import Place
from memfs.search.engine import Index, MemoryIndex
from memfs.search.engine import engine as engine_named
from memfs.search.generations import FILES, NOBODY, Generation, Generations, number_of, remove
from memfs.search.terms import (
    SLIP_WEIGHT,
    Asked,
    TermStatistics,
    combine,
    english_terms,
    guesses,
    idf,
    marks,
    misspellings,
    related,
    weights,
)
from memfs.startup import Protocol, TypeVar


class Overlay:
    """Fresh items over a base's stamp table. Not safe for several threads: ``SearchIndex`` holds its lock.

    ``restamped`` are base paths that were looked at again. ``clock`` rises with every change. ``index`` answers
    questions for the items.
    """

    def __init__(self, base: StampTable) -> None:
        self._base = base
        self.index = MemoryIndex()
        self.items: dict[str, MemoryItem] = {}
        self.stamps: dict[str, Stamp] = {}
        self.gone: dict[str, int] = {}
        self.restamped: dict[str, Stamp] = {}
        self._hidden: tuple[int, frozenset[str]] = (0, frozenset())
        self.clock = 0

    def __len__(self) -> int:
        return len(self.stamps) + len(self.gone)

    def view(self) -> StampTable:
        """Base and overlay together as of now."""
        return StampTable(self._base.columns, {**self.restamped, **self.stamps, **dict.fromkeys(self.gone)})

    def restamp(self, path: str, stamp: Stamp) -> None:
        """Give a known path another stamp: its content is what it was."""
        self.clock += 1
        if path in self.stamps:
            self.stamps[path] = stamp
        elif path in self._base and path not in self.gone:
            self.restamped[path] = stamp

    def add(self, item: MemoryItem, stamp: Stamp) -> None:
        """Index an item in place of whatever its path and its id held.

        One that comes back as the base has it is the base's again, so that its words count once.
        """
        is_back = (
            (item.path in self.gone or item.path in self.stamps)
            and self._base.holder(item.id) == self.items.get(item.id, item).path == item.path
            and self._base.blob(item.path) == stamp.blob
        )
        self._drop(item.path)
        self.clock += 1
        self.gone.pop(item.path, None)
        if is_back:
            self.restamped[item.path] = stamp
            return
        self.restamped.pop(item.path, None)
        self.stamps[item.path] = stamp
        self.items[item.id] = item
        self.index.add([item])

    def remove(self, path: str) -> None:
        """Forget a path; one that is not known is ignored."""
        if path in self.stamps or path in self._base:
            self._drop(path)
            self.clock += 1
            self.restamped.pop(path, None)
            if path in self._base:
                self.gone[path] = time.time_ns()

    def snapshot(self) -> Overlay:
        """A copy of what it holds now, for making a generation of it."""
        made = Overlay(self._base)
        made.items, made.stamps, made.gone = dict(self.items), dict(self.stamps), dict(self.gone)
        made.restamped, made.clock = dict(self.restamped), self.clock
        return made

    def rebased(self, base: StampTable, done: Overlay | None = None) -> Overlay:
        """This overlay over another base, less what that base already says.

        Args:
            base: the new base's stamps.
            done: what the new base was made from; without it, whichever of base and overlay looked at a file later is
                believed (the next freshness check corrects what clocks got wrong).
        """
        fresh = Overlay(base)
        for path, stamp in self.stamps.items():
            theirs = base.stamp(path)
            known = theirs is not None and (theirs.blob == stamp.blob or theirs.checked_ns > stamp.checked_ns)
            if known if done is None else done.stamps.get(path) == stamp:
                continue
            if (item := self._item_at(path)) is not None:
                fresh.add(item, stamp)
            else:
                fresh.stamps[path] = stamp
        for path, when in self.gone.items():
            theirs = base.stamp(path)
            over = theirs is None or (theirs.checked_ns > when if done is None else done.gone.get(path) == when)
            if not over:
                fresh.remove(path)
                fresh.gone[path] = when
        fresh.clock = self.clock + 1
        return fresh

    def _drop(self, path: str) -> None:
        """Take a path's item out."""
        if self.stamps.pop(path, None) is not None and (item := self._item_at(path)) is not None:
            del self.items[item.id]
            self.index.remove([item.id])

    def _item_at(self, path: str) -> MemoryItem | None:
        """The item that was added at a path, unless another took its id."""
        item = self.items.get(stem_of(path))
        return item if item is not None and item.path == path else None

    @property
    def hidden(self) -> frozenset[str]:
        """The base ids that the overlay holds, or whose files are gone or have changed."""
        clock, hidden = self._hidden
        if clock != self.clock:
            changed = {stem_of(path) for path in (*self.gone, *self.stamps) if path in self._base}
            hidden = frozenset(changed.union(key for key in self.items if self._base.holder(key) is not None))
            self._hidden = self.clock, hidden
        return hidden


class TermCounts(Protocol):
    """Counts in how many items each term occurs."""

    def statistics(self, wanted: Collection[str]) -> TermStatistics:
        """How many items there are, and in how many each term occurs."""

    def terms(self, beginning: str) -> Iterable[str]:
        """The terms that begin so."""


def asked_of(query: Query, parts: Sequence[TermCounts]) -> Asked:
    """What a query's terms are worth, and their statistics over all parts together.

    A term that no part holds is joined by those that it may be a slip of, and words without a language by their stems
    in those that there are.
    """
    worth = weights(query.text)
    languages = marks(query.text)
    asked = {*worth, *languages} if languages else worth
    shared = combine([part.statistics(asked) for part in parts], asked)
    if there := [code for mark, code in languages.items() if shared.frequencies[mark]]:
        worth = {**guesses(query.text, there), **worth}
        shared = combine([part.statistics(worth) for part in parts], worth)
    unheld = {term: share for term, share in worth.items() if not shared.frequencies[term]}
    foreign = english_terms(query.text) if unheld else frozenset()
    slips = {
        near: share * SLIP_WEIGHT
        for term, share in unheld.items()
        if term not in foreign
        for near in misspellings(term, {known for part in parts for known in part.terms(term[0])})
        if near not in worth
    }
    if slips:
        worth = {**worth, **slips}
        shared = combine([part.statistics(worth) for part in parts], worth)
    return _with_related(query.text, worth, shared, parts) if query.related else (worth, shared)


def _with_related(text: str, worth: Mapping[str, float], shared: TermStatistics, parts: Sequence[TermCounts]) -> Asked:
    """A query's terms with those that mean nearly the same: none counts more than the one it represents."""
    near = related(text, worth)
    counted = combine([part.statistics(near) for part in parts], near)
    frequencies = {**shared.frequencies, **{term: many for term, many in counted.frequencies.items() if many}}
    groups, weights = dict[str, str](), dict(worth)
    for term in near.keys() & frequencies.keys():
        meant, share = near[term]
        rarer = idf(shared.passages, frequencies[meant]) / idf(shared.passages, frequencies[term])
        weights[term] = share * min(1.0, rarer) if frequencies[meant] else share
        groups |= {term: meant, meant: meant}
    return weights, replace(shared, frequencies=frequencies, groups=groups)


class TreeIndex(MemoryIndex):
    """The items of one revision; nothing in it changes. May be used from several threads.

    Scores are those of an index made of nothing but that revision's items.
    """

    @contextmanager
    def held(self) -> Iterator[None]:
        """One state: there is no other."""
        yield

    def asked_of(self, query: Query) -> Asked:
        """What a query's words are worth, and how they are spread over the items."""
        return asked_of(query, [self])

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties by id; see ``memfs.search.engine.Index``."""
        return super().search(query, hidden, asked or asked_of(query, [self]))


Answer = TypeVar("Answer")

_MANY_FILES, _MANY_LEFT, _MANY_AGAIN = 32, 200, 16
_MANY_BYTES = 256 * 1024
_MANY_SOON = 500
_USUAL_SIZE = 10_000
"""How many memories the numbers above are for; where there are more, a fold takes longer in proportion."""
_REBUILD_WAIT = 60.0
_ATTEMPTS = 3


class SearchIndex:
    """The index of one workspace, in one folder of the user's cache.

    Nothing is read, and no engine imported, before it is needed. All methods may be called from several threads; a
    search waits at most for another search or an update, never for a fold.

    Attributes:
        lost: how often a new base generation differed from what was known: until a look at all files that began after
            the last time has ended (``make_good``), no search takes a part of the index for the whole.
    """

    survives_fork = True

    def __init__(self, folder: Path, engine: str) -> None:
        """
        Args:
            folder: made when something is first written; deleting it loses nothing.
            engine: ``memory``, ``whoosh`` or ``sqlite``.

        Raises:
            SettingInvalid: no such engine.
        """
        self._engine = engine_named(engine)
        self._generations = Generations(folder, self._engine)
        self.folder = folder
        self._lock = threading.RLock()
        self._folding = threading.Lock()
        reset_on_fork(self)
        self._current: Generation | None = None
        self._table: StampTable | None = None
        self._index: Index | None = None
        self._facts: Mapping[str, list[int]] = {}
        self._released = False
        self._fresh = Overlay(NO_STAMPS)
        self._named = NOBODY
        self._refused: set[str] = set()
        self.asked_soon = False
        """Whether up to 500 items that come together are cut into terms at once, and not by the first question."""
        self.lost = self._made_good = 0
        self._seen: tuple[tuple[Overlay, int], StampTable] | None = None
        self._asked: tuple[tuple[str, bool, Overlay, int, Index | None], Asked] | None = None

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self._engine.name

    @property
    def generation(self) -> int:
        """The base generation's number, 0 while there is none."""
        return self.base[0]

    @property
    def base(self) -> tuple[int, str]:
        """The base generation's number and its manifest's digest; ``NOBODY`` where there is none to be trusted."""
        with self._lock:
            self._stamps()
            return (self._current.number, self._current.digest) if self._current else NOBODY

    # -- what it holds ----------------------------------------------------------------------------------------------
    def base_stamps(self) -> StampTable:
        """Path to stamp of the base generation: empty where there is no generation, or none to be trusted."""
        with self._lock:
            return self._stamps()

    def stamps(self) -> StampTable:
        """Path to stamp of base and overlay together, as of now."""
        with self._lock:
            self._stamps()
            moment = (self._fresh, self._fresh.clock)
            if self._seen is None or self._seen[0] != moment:
                self._seen = moment, self._fresh.view()
            return self._seen[1]

    def stamp(self, path: str) -> Stamp | None:
        """As that of ``stamps()``, which a writer that changes one file after the other would rebuild each time."""
        with self._lock:
            base, fresh = self._stamps(), self._fresh
            if path in fresh.gone:
                return None
            return fresh.stamps.get(path) or fresh.restamped.get(path) or base.stamp(path)

    def item(self, id: str) -> MemoryItem | None:  # noqa: A002
        """The overlay's own copy of an item; None for one that only the base, or neither, has."""
        with self._lock:
            return self._fresh.items.get(id)

    def restamp(self, path: str, stamp: Stamp) -> None:
        """Note that a known file was looked at again and holds what it held."""
        with self._lock:
            self._stamps()
            self._fresh.restamp(path, stamp)

    def overlay_stamps(self) -> dict[str, Stamp]:
        """Path to stamp of what only the overlay holds."""
        with self._lock:
            return dict(self._fresh.stamps)

    def overlay_size(self) -> int:
        """How many paths differ from the base generation, even if only by their stamp."""
        with self._lock:
            return len(self._fresh) + len(self._fresh.restamped)

    def spares_others(self, asked: bool) -> bool:
        """Whether a fold at the end of a process takes less than those that begin after it would spend on the overlay:
        each reads and cuts into terms again what only the overlay holds, and reads again what was very young when read.

        Args:
            asked: whether the process asked anything; one that only writes leaves the fold to those that do.
        """
        with self._lock:
            size = max(1.0, len(self._stamps()) / _USUAL_SIZE)  # a fold rewrites the whole base
            if not asked:
                return self.overlay_size() > _MANY_LEFT * size
            weight = sum(stamp.size for stamp in self._fresh.stamps.values())
            again = sum(not stamp.racy for stamp in self._fresh.restamped.values())
            return (
                self.overlay_size() > _MANY_FILES * size
                or weight > _MANY_BYTES * size
                or again > _MANY_AGAIN * size
                or (self.generation == 0 and len(self.stamps()) > 0)
            )

    # -- changing and searching -------------------------------------------------------------------------------------
    def update(
        self, added: Iterable[tuple[MemoryItem, Stamp]] = (), removed: Iterable[str] = (), *, later: bool = False
    ) -> None:
        """Make items searchable at once, and paths not. Removals come first, so that a move is one call.

        Of two paths with one id the one added last is found; when it is removed the other must be added again.

        Args:
            later: leave cutting them into terms to ``cut``, or the first question.
        """
        with self._lock:
            self._stamps()
            gone, rows = list(removed), list(added)
            for path in gone:
                self._fresh.remove(path)
            for item, stamp in rows:
                self._fresh.add(item, stamp)
            # an engine that keeps no files folds nothing: there a first question would pay for what was stored
            if not self._engine.stored or (self.asked_soon and not later and len(rows) <= _MANY_SOON):
                self._fresh.index.cut()

    def cut(self) -> None:
        """Cut into terms what was left for later."""
        with self._lock:
            self._fresh.index.cut()

    def search(self, query: Query, *, asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items of base and overlay on one scale, best first, ties by id.

        ``asked`` says what the query's terms are worth, where more than this index is asked.

        Raises:
            IndexUnavailable: the base was damaged after it was opened, or the one that took its place differs from it.
                All files are to be looked at again (``make_good``), and the search repeated.
        """
        with self._lock:
            if self.lost > self._made_good:
                raise _damaged("its base is gone")
            for _ in range(_ATTEMPTS):
                try:
                    parts = self._parts()
                    words = asked or (self._asked_of(query, parts) if query.text else None)
                    found = [one for index, hidden in parts for one in index.search(query, hidden, words)]
                    if len(parts) > 1:
                        found.sort(key=attrgetter("id"))
                        found.sort(
                            key=lambda one: (one.similarity, EARLIEST if one.similarity else one.timestamp),
                            reverse=True,
                        )
                    return found[: query.limit]
                except (IndexUnavailable, StorageIO, NotRegularFile, OSError) as error:
                    damage = error
                switched = self.reload()
                if not switched:
                    self._refuse()
                if self.lost > self._made_good or not switched:
                    break
            raise _damaged(damage) from damage

    @contextmanager
    def held(self) -> Iterator[None]:
        """One state: meanwhile other threads neither change nor search it."""
        with self._lock:
            yield

    def count(self, query: Query) -> int:
        """How many items pass the query's filters, as far as is known."""
        return self._helped(lambda parts: sum(index.count(query, hidden) for index, hidden in parts), 0)

    def has_conversations(self) -> bool:
        """Whether any item has a place in a talk, as far as is known."""
        return self._helped(lambda parts: any(index.has_conversations() for index, _ in parts), False)

    def beside(self, places: Collection[Place], query: Query) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters, similarity 0, as far as is known."""
        return self._helped(lambda parts: [one for index, at in parts for one in index.beside(places, query, at)], [])

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]:
        """The items with these ids that pass the query's filters, similarity 0, as far as is known."""
        return self._helped(lambda parts: [one for index, at in parts for one in index.among(ids, query, at)], [])

    def statistics(self, wanted: Collection[str]) -> TermStatistics:
        """How many items there are, and in how many each term occurs, as far as is known; what was removed or replaced
        may count.
        """
        none = TermStatistics(passages=0, average_length=0.0, frequencies=dict.fromkeys(wanted, 1))
        return self._helped(lambda parts: combine([index.statistics(wanted) for index, _ in parts], wanted), none)

    def terms(self, beginning: str) -> Collection[str]:
        """The terms that begin so, as far as is known."""
        return self._helped(lambda parts: {term for index, _ in parts for term in index.terms(beginning)}, set())

    def _parts(self) -> list[tuple[Index, Collection[str]]]:
        """Base and overlay, as far as there are items in them, each with the ids that the other hides of it."""
        base, fresh = self._opened(), self._fresh
        over: list[tuple[Index, Collection[str]]] = [(fresh.index, ())] if base is None or len(fresh) else []
        return over if base is None else [(base, fresh.hidden), *over]

    def asked_of(self, query: Query) -> Asked:
        """What a query's words are worth, and how they are spread over the items, as far as is known."""
        known = self._helped(lambda parts: self._asked_of(query, parts), None)
        return known or asked_of(query, [self])

    def _asked_of(self, query: Query, parts: Sequence[tuple[Index, Collection[str]]]) -> Asked:
        """As ``asked_of``; the last answer is kept, for who searches asks afterwards."""
        fresh = self._fresh
        moment = query.text, query.related, fresh, fresh.clock, self._index
        if self._asked is None or self._asked[0] != moment:
            self._asked = moment, asked_of(query, [index for index, _ in parts])
        return self._asked[1]

    def _helped(self, ask: Callable[[list[tuple[Index, Collection[str]]]], Answer], otherwise: Answer) -> Answer:
        """What a question brings that a search can do without; of a damaged base the next search says so."""
        with self._lock:
            try:
                return ask(self._parts())
            except (IndexUnavailable, StorageIO, NotRegularFile, OSError):
                return otherwise

    # -- generations ------------------------------------------------------------------------------------------------
    @property
    def worn(self) -> bool:
        """Whether the next fold is better given all items, as far as is known."""
        return self._helped(lambda parts: any(index.worn() for index, _ in parts), False)

    def fold(self, living: Sequence[tuple[MemoryItem, Stamp]] = ()) -> bool:
        """Make a new base generation of base and overlay; false when another thread or process is at it.

        An engine that keeps no files has no base: everything stays in the overlay.

        Searches and updates go on meanwhile; what is updated meanwhile stays in the overlay.

        Args:
            living: all items, where the base is worn: if they are still what base and overlay hold, the new one is made
                of them alone.

        Raises:
            StorageIO: the folder cannot be written; the old generation stays.
        """
        if not self._engine.stored:
            return True
        if not self._folding.acquire(blocking=False):
            return False
        try:
            with self._generations.lock() as held:
                if not held:
                    return False
                self.reload()
                with self._lock:
                    self._stamps()
                    base, changes = self._current, self._fresh.snapshot()
                items, stamps = list(changes.items.values()), {**changes.restamped, **changes.stamps}
                now = changes.view() if living else NO_STAMPS
                # What others changed since the items were gathered is in one of the two alone.
                if living and {item.path: stamp.blob for item, stamp in living} == dict(now.blobs()):
                    base, items, stamps = None, [item for item, _ in living], dict(now)
                if len(changes) or stamps:
                    items.sort(key=attrgetter("path"))  # what is together in a folder takes less
                    self._write(base, items, stamps, changes)
                return True
        finally:
            self._folding.release()

    def rebuild(self, items: Iterable[tuple[MemoryItem, Stamp]]) -> None:
        """Make a new base generation of these items alone; what was in the overlay before is dropped.

        Raises:
            LockTimeout: another process has held the index for a minute.
            StorageIO: the folder cannot be written; the old generation stays.
        """
        if not self._engine.stored:
            with self._lock:
                self._fresh = Overlay(self._stamps())
                self.update(items)
            return
        with self._folding:
            with self._lock:
                self._stamps()
                before, stamps = self._fresh.snapshot(), dict[str, Stamp]()
            with self._generations.lock(_REBUILD_WAIT) as held:
                if not held:
                    raise LockTimeout(
                        "another process is folding the index", path=str(self.folder), hint="try again in a moment"
                    )
                self._write(None, _noted(items, stamps), stamps, before)
                self._made_good = self.lost

    def make_good(self, lost: int) -> None:
        """Note that a look at all files has ended, at whose beginning ``lost`` was this number."""
        self._made_good = max(lost, self._made_good)

    def reload(self) -> bool:
        """Take up the generation another process has made; false when the one named is known already, trusted or not.

        The overlay is kept where it still differs from the new base.
        """
        with self._lock:
            if self._table is None or not self._engine.stored or self._generations.pointer() == self._named:
                return False
            overlay, held = self._fresh, set(self.stamps().blobs())
            self._forget()
            self._fresh = overlay.rebased(self._stamps())
            # its maker may have read a file before it was removed or changed back
            self.lost += held != set(self.stamps().blobs())
            return True

    def close(self) -> None:
        """Release the base's files. What is only in the overlay is found again by the next freshness check."""
        with self._lock:
            self._forget()

    def release(self) -> None:
        """Close the base's files, for a process that forks; what is in memory stays; a question opens them again."""
        with self._lock:
            if self._index is not None:
                self._index.release()
                self._released = True

    def after_fork(self) -> None:
        """Read the base again, and let the next freshness check find what the overlay had."""
        _abandoned.append(self._index)
        self._index = self._seen = self._asked = None
        self._made_good = self.lost
        self._forget()

    # -- inside -----------------------------------------------------------------------------------------------------
    def _refuse(self) -> None:
        """Forget a base that turned out to be damaged, and never open it again."""
        held = len(self.stamps())
        if self._current is not None:
            self._refused.add(self._current.digest)
        self._forget()
        self.lost += bool(held)

    def _stamps(self) -> StampTable:
        if self._table is None:
            # Noted before it is read, and whether or not it can be relied on: only another name is news.
            self._named = self._generations.pointer() if self._engine.stored else NOBODY
            trusted, table = None, NO_STAMPS
            current = self._generations.current() if self._engine.stored else None
            if current is not None and current.digest not in self._refused:
                # it may be removed or damaged this very moment, or written by a program gone wrong
                with suppress(MemfsError, OSError):
                    read, self._facts = StampTable(DocumentColumns.read(current.files)), current.facts()
                    if current.there():
                        trusted, table = current, read
            self._current, self._table, self._fresh = trusted, table, Overlay(table)
        return self._table

    def _opened(self) -> Index | None:
        """The base's engine; None while there is no base."""
        table = self._stamps()
        if self._current is not None and (self._index is None or self._released):
            facts = self._current.facts()  # the files are opened by name: they have to be those that were verified
            if facts != self._facts and self._generations.current() != self._current:
                raise IndexUnavailable("the generation was replaced", path=str(self._current.folder))
            self._facts, self._released = facts, False
        if self._index is None and self._current is not None:
            index = self._engine.open(self._current.files, table.columns)
            try:
                # Asked for a term, the engine opens all its files; then they are the ones the columns belong to if the
                # manifest still is: a folder that was removed may have been made again under the same number.
                index.statistics(("",))
                if not self._current.there():
                    raise IndexUnavailable("the generation is gone", path=str(self._current.folder))
            except BaseException:
                index.close()
                raise
            self._index = index
        return self._index

    def _forget(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = self._table = self._current = self._asked = None
        self._fresh = Overlay(NO_STAMPS)

    def _write(
        self, base: Generation | None, items: Iterable[MemoryItem], stamps: Mapping[str, Stamp], changes: Overlay
    ) -> None:
        """Write, name and take up a generation that begins as ``base``, less what is changed, with these items. What
        was updated since ``changes`` stays in the overlay. Needs the lock.

        Raises:
            StorageIO: the folder cannot be written, or was removed or damaged meanwhile.
        """
        try:
            folder = self._generations.begin(base)
            try:
                with closing(self._engine.open(folder / FILES)) as index:
                    if base is not None and len(self.base_stamps()) and not index.statistics(("",)).passages:
                        raise IndexUnavailable("the generation is gone", path=str(base.folder))
                    index.remove(changes.hidden)
                    index.add(items, stamps)
                    index.flush()
                made = self._generations.publish(folder, base)
            except BaseException:
                if self._generations.pointer()[0] != number_of(folder.name):
                    remove(folder)
                raise
            table, facts = StampTable(DocumentColumns.read(made.files)), made.facts()
        except (FileNotFoundError, IndexUnavailable, NotRegularFile) as error:
            with self._lock:
                if base is not None and self._current is base:
                    self._refuse()
            raise StorageIO(
                f"the index was damaged while it was written: {error}",
                path=str(self.folder),
                hint="it is rebuilt from the files",
            ) from error
        with self._lock:
            before, overlay = self._current, self._fresh
            self._forget()
            self._current, self._table, self._facts = made, table, facts
            self._named = made.number, made.digest
            self._fresh = overlay.rebased(table, changes)
        self._generations.prune({before.number if before is not None else 0, made.number})


# What a parent process reads with: nothing of it is closed in a child, for it may be in the middle of something.
_abandoned: list[Index | None] = []


def _damaged(reason: object) -> IndexUnavailable:
    return IndexUnavailable(f"the index was damaged while in use: {reason}", hint="it is rebuilt from the files")


def _noted(items: Iterable[tuple[MemoryItem, Stamp]], stamps: dict[str, Stamp]) -> Iterator[MemoryItem]:
    """The items, one at a time; their stamps are put into a mapping by path."""
    for item, stamp in items:
        stamps[item.path] = stamp
        yield item

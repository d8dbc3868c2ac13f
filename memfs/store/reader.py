"""Reader: the one way in which items are found and read, whatever holds them.

It reads over a snapshot: the files of a folder as they are now, or those of a revision. Text is what a file says by the
facts about it, or by its bytes, never what the index has; files are checked for changes before the index is asked.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from memfs.catalog.facts import ItemCatalog
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import replace
from memfs.errors import ContentError, CorruptItem, HistoryError, IndexUnavailable, ItemNotFound, MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.lock import reset_on_fork
from memfs.fs.tree import Tree, View, refuse_rot
from memfs.model import Candidate, Freshness, Kind, KindTable, MemoryItem, Problem, Query, Stamp
from memfs.model.ids import of_mount, stem_of
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.query import MOST
from memfs.search.search_index import SearchIndex, TermCounts, TreeIndex
from memfs.search.terms import Asked
from memfs.startup import Generic, Protocol, TypeVar
from memfs.store.index_sync import IndexSync, SyncResult
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, FileWatcher, FlushResult, LoadedItem, below_content


class Readable(Protocol):
    """What questions are answered from: a ``Reader``, or several as one; see there for each."""

    def held(self) -> AbstractContextManager[None]: ...

    def candidates(self, query: Query) -> list[Candidate]: ...

    def asked_of(self, query: Query) -> Asked: ...

    def has_conversations(self) -> bool: ...

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]: ...

    def load_each(self, candidates: Sequence[Candidate]) -> Iterator[LoadedItem | None]: ...

    def unread(self, query: Query) -> list[str]: ...

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult: ...

    def freshness(self) -> Freshness: ...


class Snapshot(Protocol):
    """One state of a memory's files, and what is known of its items; see ``IndexSync`` for each."""

    @property
    def files(self) -> View: ...

    @property
    def kinds(self) -> KindTable: ...

    @property
    def index(self) -> SearchIndex | TreeIndex: ...

    def locate(self, item_id: str) -> str: ...

    def ids(self) -> list[str]: ...

    def count(self) -> int: ...

    def stamp_of(self, path: str) -> Stamp | None: ...

    def stamps_of(self, paths: Iterable[str]) -> dict[str, Stamp]: ...

    def rejected(self, path: str) -> bool: ...

    def rejected_items(self) -> list[str]: ...

    def problems(self) -> list[Problem]: ...

    def freshness(self) -> Freshness: ...


def meant(reference: str, get: Callable[[str], MemoryItem | None], every: Callable[[], Collection[str]]) -> MemoryItem:
    """The item with an id, or with the only id that begins so; ``get`` and ``every`` as a store has them.

    Raises:
        ItemNotFound: naming the nearest id.
    """
    found = get(reference)
    if found is not None:
        return found
    ids = every()
    begun = beginning(reference, ids)
    if len(begun) == 1 and (only := get(begun[0])) is not None:
        return only
    raise not_found(reference, ids)


def beginning(reference: str, ids: Iterable[str]) -> list[str]:
    """The ids that begin so, in order, compared without case."""
    return sorted(one for one in ids if one.casefold().startswith(reference.casefold()))


def path_of(reference: str) -> str:
    """The path below the workspace that a person's path means, whether or not it begins with ``ContextMemory/``."""
    cleaned = reference.removeprefix("./")
    return cleaned if cleaned.startswith((CONTENT + "/", SETTINGS_FILE)) else f"{CONTENT}/{cleaned}"


def in_types(query: Query, kinds: KindTable) -> Query:
    """The query with its layers written out as types."""
    if not query.layers:
        return query
    in_layers = kinds.in_layers(query.layers)
    types = (query.types & in_layers if query.types else in_layers) or frozenset({""})
    return Query(**{name: getattr(query, name) for name in Query.__slots__} | {"types": types})


def not_found(reference: str, ids: Collection[str]) -> ItemNotFound:
    """The error for a name that no item, or more than one of these, answers to."""
    if begun := beginning(reference, ids):
        hint = "it could be " + ", ".join(begun[:5])
    else:
        from difflib import get_close_matches  # wanted only when something is wrong

        names = {one[: len(reference) + 1]: one for one in ids} | {one: one for one in ids}  # most are longer than said
        close = get_close_matches(reference, names, n=1)
        hint = f"did you mean {names[close[0]]!r}?" if close else "'memfs list' shows what there is"
        if (mount := of_mount(reference)) and not any(map(of_mount, ids)):  # asked for where mounts are not looked at
            hint = f"what is mounted is only read and shown: change it in the workspace that {mount!r} names"
    return ItemNotFound(f"no memory is called {reference!r}", hint=hint)


_NOT_IN_IDS = frozenset(" \t\n/:")


class Reader:
    """Finds and reads the items of one snapshot. May be used from several threads.

    Attributes:
        snapshot, files, items, codec, kinds: what it reads, and how.
        asked: whether anything was asked since it was opened.
        notes: what was noticed since then.
    """

    def __init__(self, snapshot: Snapshot, items: ItemCatalog) -> None:
        self.snapshot, self.items, self.codec = snapshot, items, items.codec
        self.files, self.kinds = snapshot.files, snapshot.kinds
        self.asked = False
        self.notes: list[Problem] = []
        self._holding = threading.local()
        self._looked = False

    # -- reading ----------------------------------------------------------------------------------------------------
    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, compared without case; None when there is none.

        Raises:
            ContentError: its file is invalid.
        """
        path = self.locate(item_id)
        if not path:
            self.follow()
            path = self.snapshot.locate(item_id)
        try:
            return self.read(path) if path else None
        except FileNotFoundError:
            return None

    def peek(self, item_id: str) -> MemoryItem | None:
        """As ``get``; None also where its file is invalid at present, as one of the workspace's problems says."""
        try:
            return self.get(item_id)
        except ContentError:
            return None

    def find(self, reference: str) -> MemoryItem:
        """The item a person means: by id, by path, or by the beginning of an id that only one item has.

        Raises:
            ItemNotFound: naming the nearest id.
            ContentError: its file is invalid.
        """
        if "/" in reference or reference.endswith(ITEM_SUFFIXES):
            with contextlib.suppress(FileNotFoundError):
                return self.read(path_of(reference))
        return meant(reference, self.get, self.snapshot.ids)

    def paths_named(self, folder: str, begins: str) -> Iterator[str]:
        """Paths of the files in a kind's folder, and in its months, whose names begin so; nothing else is looked at."""
        self.require_open()
        within = self.files.root / CONTENT / folder
        months = (f"{name}/" for name in io.listed(within) if not name.endswith(ITEM_SUFFIXES))
        places = ((place, name) for place in ("", *months) for name in io.listed(within / place))
        return (f"{CONTENT}/{folder}/{place}{name}" for place, name in places if name.startswith(begins))

    def read(self, path: str) -> MemoryItem:
        """The item in the file at ``path``, below the workspace.

        Raises:
            FileNotFoundError, PathEscape.
            ContentError: it is invalid; as ``CorruptItem``, the disk changed it.
            HistoryUnavailable: git cannot give it.
        """
        content, stamp = self.files.read(path, ITEM_LIMIT), self.snapshot.stamp_of(path)
        try:
            refuse_rot(path, stamp, content, self.files.root)
        except CorruptItem:
            self.refresh([path])
            raise
        if stamp is not None and stamp.blob != content.stamp.blob:  # an edit, which nothing has looked through yet
            from memfs.format.secrets import refuse_file  # what reads only what is known does without

            refuse_file(content.data, path)
        return self.items.read(path, content)

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate; see ``load_each``."""
        return next(self.load_each([candidate]))

    def load_each(self, candidates: Sequence[Candidate]) -> Iterator[LoadedItem | None]:
        """The items behind candidates as their files have them, in order; None for one whose file is no longer what was
        found, is invalid, or cannot be read.

        The catalog is asked once for all; a file whose times do not prove what it holds is read.
        """
        paths = [candidate.path for candidate in candidates if not self.snapshot.rejected(candidate.path)]
        stamps = self.snapshot.stamps_of(paths)
        proven = self.files.proven(stamps)
        known = self.items.known(stamps)
        try:
            for candidate in candidates:
                item = known.get(candidate.path)
                if item is None or candidate.path not in proven:
                    yield self._read_found(candidate.path, stamps.get(candidate.path), item)
                else:
                    yield LoadedItem(item=item, stale=False)
        finally:
            self.items.flush()

    def _read_found(self, path: str, stamp: Stamp | None, known: MemoryItem | None) -> LoadedItem | None:
        """The item in a file that must be read; ``known`` is what the catalog has of the content that it had, whose
        ``stamp`` is None where it holds none at present.
        """
        if stamp is None:
            return None
        try:
            content = self.files.read(path, ITEM_LIMIT)
            if stamp.blob != content.stamp.blob:
                return None
            if stamp.mtime_ns != content.stamp.mtime_ns:  # it may be the item's own time
                known = None
            item = known or self.items.read(path, content, checked=True, keep=True)
            return LoadedItem(item=item, stale=False)
        except HistoryError as error:
            self.note_failure(error)
        except (FileNotFoundError, MemfsError):
            pass
        return None

    def load_all(self, stamps: Mapping[str, Stamp]) -> Iterator[tuple[str, MemoryItem, bool]]:
        """The items in files as the index has them, each with its path, and whether it is of the stamped content; as
        ``load`` gives it where that is unknown. What it would not give is left out.
        """
        self.require_open()
        known = self.items.known(stamps)
        lacking = {path: stamp for path, stamp in stamps.items() if path not in known}
        loaded = dict(zip(lacking, self.load_each([_at(path, stamp) for path, stamp in lacking.items()]), strict=True))
        known.update(self.items.known(lacking))  # what was read is a fact by now
        for path in stamps:
            if path in known:
                yield path, known[path], True
            elif (found := loaded[path]) is not None:
                yield path, found.item, False

    def readable(self, candidates: Iterable[Candidate]) -> list[MemoryItem]:
        """The items behind candidates, as far as their files can be read."""
        return [found.item for found in self.load_each(list(candidates)) if found is not None]

    def select(self, query: Query) -> list[MemoryItem]:
        """The items that pass the query's filters, by text score or else newest first."""
        return self.readable(self.candidates(query))

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read; ``problems`` says why."""
        rejected = self.snapshot.rejected_items()
        typed = in_types(query, self.kinds) if rejected else query
        return [path for path in rejected if self._concerns(typed, path)]

    def _concerns(self, query: Query, path: str) -> bool:
        kind = self.kinds.at(below_content(path))
        typed = kind is not None and (not query.types or kind.name in query.types)
        return typed and (not query.path or f"{path}/".startswith(query.path.rstrip("/") + "/"))

    def locate(self, item_id: str) -> str:
        """The path of the file that holds the id, "" when none does."""
        self.require_open()
        return self.snapshot.locate(item_id)

    def count(self) -> int:
        """How many valid items there are."""
        self.follow()
        return self.snapshot.count()

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:  # noqa: ARG002  what never changes stays
        """Bring the index in step with the given files, or with every file."""
        return SyncResult()

    def follow(self) -> SyncResult:
        """Bring the index in step with what was seen to change; with every file where that is not known for sure."""
        return SyncResult()

    def freshness(self) -> Freshness:
        """The proof of what an answer given now rests on."""
        return self.snapshot.freshness()

    def problems(self) -> list[Problem]:
        """What is wrong with files, and what was noticed since it was opened."""
        return [*self.snapshot.problems(), *self.notes]

    def note_failure(self, error: Exception) -> None:
        """Report what went wrong in the background, once, among the problems."""
        hint = "run git fsck" if isinstance(error, HistoryError) else "memfs tries again by itself"
        found = Problem(path="", code=type(error).__name__, message=str(error), hint=hint)
        if found not in self.notes:
            self.notes.append(found)

    def require_open(self) -> None:
        """Refuse calls after it was closed; a reader that needs no closing refuses none.

        Raises:
            WorkspaceClosed: it was closed.
        """

    # -- asking the index -------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """All that this thread asks within sees one state of the files: as they were when it began.

        Writes of other threads wait for its end, so only the index is to be asked meanwhile.

        Raises:
            IndexUnavailable: the index was found damaged; ``refresh`` makes it good.
        """
        self.look()
        with self.snapshot.index.held():
            self._holding.now = True
            try:
                yield
            finally:
                self._holding.now = False

    def candidates(self, query: Query) -> list[Candidate]:
        """The items that answer a query, best first.

        Raises:
            IndexUnavailable: while it is held, as that says; else it is made good here.
        """
        self._look_now()
        return self._found(query)

    def count_of(self, query: Query) -> int:
        """How many items pass a query's filters, of the files as they were when they were last looked at."""
        self.look_once()
        return self.snapshot.index.count(in_types(query, self.kinds))

    def counted(self) -> TermCounts:
        """The counts of terms over the files as they are now."""
        self._look_now()
        return self.snapshot.index

    def asked_of(self, query: Query) -> Asked:
        """What the words of a query are worth, and how they are spread over the files as they were last looked at."""
        self.require_open()
        return self.snapshot.index.asked_of(query)

    def weighed(self, query: Query, asked: Asked) -> list[Candidate]:
        """As ``candidates``, of the files as ``counted`` saw them, where the words are weighed over more workspaces
        than this one.

        Args:
            asked: what they are worth.

        Raises:
            IndexUnavailable: as ``candidates``.
        """
        return self._found(query, asked)

    def _look_now(self) -> None:
        self.asked = True
        if not getattr(self._holding, "now", False):
            self.look()

    def _found(self, query: Query, asked: Asked | None = None) -> list[Candidate]:
        """What was found, and before all the item whose id is what was asked."""
        query, index = in_types(query, self.kinds), self.snapshot.index
        try:
            found = index.search(query, asked=asked)
        except IndexUnavailable:
            if getattr(self._holding, "now", False):
                raise
            self.refresh()
            found = index.search(query, asked=asked)
        word = query.text.strip()
        named = index.among([word], query) if word and not set(word) & _NOT_IN_IDS else []
        if not named:
            return found
        first = named[0]._replace(similarity=2 * max((one.similarity for one in found), default=0.5))
        return [first, *(one for one in found if one.id != first.id)][: query.limit]

    def every(self, query: Query) -> Iterator[Candidate]:
        """All items that pass a query's filters, each once, the newest first; its text and limit do not count.

        One question gives ``MOST``; the next goes on from the time at which it ended. Where more items than that have
        one and the same time, the rest is looked for by id.
        """
        seen: set[str] = set()
        everything = replace(query, text="", limit=MOST)
        while True:
            page = self.candidates(everything)
            fresh = [one for one in page if one.id not in seen]
            seen.update(one.id for one in fresh)
            yield from fresh
            if len(page) < MOST:
                return
            if not fresh:
                rest = self.among([one for one in self.snapshot.ids() if one not in seen], everything)
                yield from sorted(rest, key=lambda one: one.timestamp, reverse=True)
                return
            everything = replace(everything, until=page[-1].timestamp)

    def known(self, query: Query) -> list[Candidate]:
        """As ``candidates``, of the files as they were when they were last looked at, without looking again.

        For a writer that wants to know what is there already and reads what it found. Before the first look, files
        are looked at once: the index on disk may lack what a process that was killed has written.
        """
        self.asked = True
        self.look_once()
        narrowed = in_types(query, self.kinds)
        try:
            return self.snapshot.index.search(narrowed)
        except IndexUnavailable:
            return self.candidates(query)

    def rarest(self, terms: Collection[str], count: int) -> list[str]:
        """The rarest of these terms, by how few items hold them, rarest first; those that none holds are left out."""
        self.look_once()
        found = self.snapshot.index.statistics(terms).frequencies
        return sorted((term for term in terms if found.get(term)), key=lambda term: found[term])[:count]

    def look_once(self) -> None:
        """Look at the files, unless that was done since the store was opened."""
        self.require_open()
        if not self._looked:
            self.look()

    def look(self) -> None:
        """Look at the files as ``follow`` does; ``look_once`` need not do it again."""
        self.follow()
        self._looked = True

    def has_conversations(self) -> bool:
        """Whether any item has a place in a talk."""
        self.require_open()
        return self.snapshot.index.has_conversations()

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places (session, sequence) that pass the query's filters, similarity 0."""
        self.require_open()
        return self.snapshot.index.beside(places, in_types(query, self.kinds))

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]:
        """The items with these ids that pass the query's filters, similarity 0."""
        self.require_open()
        return self.snapshot.index.among(ids, in_types(query, self.kinds))


def _at(path: str, stamp: Stamp) -> Candidate:
    return Candidate(id=stem_of(path), path=path, similarity=0.0, type="", time=stamp.mtime_ns // 1000)


class ChangeDetector:
    """Detects the changed files of one store. Watching begins with the first look."""

    survives_fork = True

    def __init__(self, index_sync: IndexSync) -> None:
        self._index_sync = index_sync
        self._watcher: FileWatcher | None = None
        self._make: Callable[[], FileWatcher] | None = None
        self._made: Callable[[], FileWatcher] | None = None
        self._turn = threading.RLock()
        reset_on_fork(self)
        self._once = threading.local()

    def watch_with(self, make: Callable[[], FileWatcher]) -> None:
        """Begin to watch with the next ``follow``."""
        self._make = make
        self._index_sync.index.asked_soon = True

    def after_fork(self) -> None:
        """Watch with a watcher of its own: that of the parent sees nothing in a child."""
        self._once = threading.local()
        if self._watcher is not None:
            _abandoned.append(self._watcher)
            self._watcher, self._make = None, self._made

    @property
    def state(self) -> str:
        """``on``, ``off``, or ``degraded`` with the reason."""
        if self._watcher is None:
            return "off"
        return f"degraded: {self._watcher.degraded}" if self._watcher.degraded else "on"

    @contextmanager
    def once(self) -> Iterator[None]:
        """Within, this thread looks once: several calls that would each look need only the first look."""
        if getattr(self._once, "looked", None) is not None:  # within another one
            yield
            return
        self._once.looked = False
        try:
            yield
        finally:
            self._once.looked = None

    def follow(self) -> SyncResult:
        """Look at what was seen to change; at every file where that is not known for sure."""
        if getattr(self._once, "looked", None):
            return SyncResult()
        with self._turn:
            make, self._make = self._make, None
            if make is not None:
                self._watcher, self._made = make(), make
            news = self._news()
            seen = self._watcher.drain() if self._watcher else None
            found = self._look_at(None if make or news is None or seen is None else {*news, *seen})
        if getattr(self._once, "looked", None) is not None:
            self._once.looked = True
        return found

    def refresh(self) -> SyncResult:
        """Look at every file."""
        return self._index_sync.catch_up()

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Within, every file is looked at to bring the index in step; for ``once`` that is this thread's look."""
        with self._turn:
            yield
        if getattr(self._once, "looked", None) is not None:
            self._once.looked = True

    def take_news(self) -> None:
        """Learn what other processes wrote, before deciding where an item is."""
        with self._turn:
            self._look_at(self._news())

    def _look_at(self, paths: set[str] | None) -> SyncResult:
        """Bring the index in step with these files, None: with every file; the next look takes up one that failed."""
        try:
            if paths is None:
                return self.refresh()
            return self._index_sync.refresh(paths) if paths else SyncResult()
        except BaseException:
            if self._watcher is not None:
                self._watcher.give_back(paths)
            raise

    def _news(self) -> set[str] | None:
        """The paths that other processes wrote; None where any file may be among them."""
        return set()

    def close(self) -> None:
        """Stop watching, and do not begin to."""
        with self._turn:  # not while they close: they wait for a thread that may wait for its turn
            watcher, self._watcher, self._make = self._watcher, None, None
        if watcher is not None:
            watcher.close()


# Watchers of a parent process: taking them apart in a child would end what the parent watches with.
_abandoned: list[FileWatcher] = []


_FOLD_AT = 500


def reader_of(engine: str, invisible: bool) -> str:
    """The settings that decide what an index holds (``index_folder``) where a workspace is read as a mount."""
    return f"mounted {engine} {'invisible' if invisible else ''}".strip()


class FolderReader(Reader):
    """Reads the memories of one folder as its files are now, and follows them.

    Nothing below the folder is ever written: no journal, lock, state folder or history; the index is in this user's
    cache.

    Attributes:
        tree, clock: what it reads with.
        index_sync: the snapshot, for its maintenance.
        change_detector: looks at the files before each question.
    """

    def __init__(
        self,
        tree: Tree,
        items: ItemCatalog,
        index_sync: IndexSync,
        clock: Callable[[], datetime],
        change_detector: ChangeDetector | None = None,
    ) -> None:
        super().__init__(index_sync, items)
        self.tree, self.index_sync, self.clock = tree, index_sync, clock
        self.change_detector = change_detector or ChangeDetector(index_sync)
        self._closed = False

    def require_open(self) -> None:
        """Let only calls before ``close`` pass.

        Raises:
            WorkspaceClosed: it was closed.
        """
        self.tree.require_open()

    def locate(self, item_id: str) -> str:
        """See ``Reader.locate``."""
        found = super().locate(item_id)
        self._looked = self._looked or self.index_sync.scanned  # a second look would find nothing else
        return found

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:
        """See ``Reader.refresh``."""
        return self.change_detector.refresh() if paths is None else self.index_sync.catch_up(paths)

    def follow(self) -> SyncResult:
        """See ``Reader.follow``."""
        return self.change_detector.follow()

    def scan_once(self) -> contextlib.AbstractContextManager[None]:
        """Within, ``follow`` looks at the files for the first time only: several questions of this thread, one look."""
        return self.change_detector.once()

    def watch_with(self, make_watcher: Callable[[], FileWatcher], at_once: bool = False) -> None:
        """Rely on something that sees changes, instead of a scan before each recall, from the first recall on."""
        self.require_open()
        self.change_detector.watch_with(make_watcher)
        if at_once:
            self.follow()

    @property
    def watching(self) -> str:
        """``on``, ``off``, or ``degraded`` with the reason."""
        return self.change_detector.state

    def release(self) -> None:
        """Close what a forked child must not share, for a process that is about to fork; it is opened again by need."""
        self.require_open()
        self.index_sync.index.release()
        self.items.close()

    def head(self) -> tuple[str | None, str | None]:
        """The branch and commit checked out at present; nothing where the history is not looked at."""
        return None, None

    def flush(self, adopt: bool | None = None, *, quiet_seconds: float = 0) -> FlushResult:  # noqa: ARG002
        """Nothing is ever to be committed here."""
        return FlushResult()

    def maintain(self) -> None:
        """Fold the index when many files are not in its base; where there is no room for it, the next process scans."""
        self.fold_if_large()

    def fold(self) -> bool:
        """Move fresh items into the base of the index; false if another process is doing so."""
        self.require_open()
        return self.index_sync.fold()

    @property
    def is_fold_due(self) -> bool:
        """Whether enough files are not in the base of the index to be folded into it."""
        return self.index_sync.index.overlay_size() > _FOLD_AT

    def fold_if_large(self) -> None:
        """Fold where that is due. The index is a cache: where there is no room for it, the next process scans."""
        self.require_open()
        if self.is_fold_due:
            with contextlib.suppress(StorageIO):
                self.fold()

    def close(self) -> None:
        """Fold the index, release everything. May be repeated."""
        if self._closed:
            return
        self._closed = True
        with contextlib.ExitStack() as release:
            for part in (self.tree, self.index_sync.index, self.items):
                release.callback(part.close)
            self.change_detector.close()
            if self.index_sync.reassigned or self.index_sync.index.spares_others(self.asked):
                with contextlib.suppress(StorageIO):
                    self.fold()


Extract = TypeVar("Extract")
_MOST_KEPT = 100_000


class Extracts(Generic[Extract]):
    """What is read out of items, kept for those whose content the catalog knows. May be used from several threads."""

    def __init__(self, store: FolderReader, read: Callable[[MemoryItem], Extract]) -> None:
        """``read`` returns what callers share and must not change."""
        self._store, self._read = store, read
        self._kept: dict[str, tuple[str, Extract]] = {}

    def of(self, query: Query) -> list[Extract]:
        """The extracts of all items that pass a query's filters, the newest first; see ``Reader.every``.

        Of a file that is invalid at present, that of its last good version.
        """
        paths, stamps = [one.path for one in self._store.every(query)], self._store.index_sync.index.stamps()
        return self._extracts((path, stamp.blob) for path, stamp in stamps.stamps(paths).items())

    def every(self, kind: Kind) -> list[Extract]:
        """The extracts of all items of a kind, in no order; as ``of``, without asking the index."""
        self._store.follow()
        folder, held = f"{CONTENT}/{kind.folder}/", self._store.index_sync.index.stamps().blobs()
        return self._extracts((path, blob) for path, blob in held if path.startswith(folder))

    def _extracts(self, held: Iterable[tuple[str, str]]) -> list[Extract]:
        if len(self._kept) > _MOST_KEPT:
            self._kept = {}
        kept, blobs, passing = self._kept, dict(held), dict[str, Extract]()
        changed = [path for path, blob in blobs.items() if path not in kept or kept[path][0] != blob]
        lacking = self._store.index_sync.index.stamps().stamps(changed)
        for path in changed:
            kept.pop(path, None)
        for path, item, exact in self._store.load_all(dict(lacking)):
            del lacking[path]
            passing[path] = extract = self._read(item)
            if exact:
                kept[path] = blobs[path], extract
        for path in lacking:  # it changed since the index was asked
            self._store.refresh([path])
            now: MemoryItem | None = None
            with contextlib.suppress(FileNotFoundError, MemfsError):
                now = self._store.read(path)
            if now is not None:
                passing[path] = self._read(now)
        return [
            passing[path] if path in passing else kept[path][1] for path in blobs if path in passing or path in kept
        ]

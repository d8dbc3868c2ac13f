"""Searches the index of one store, and finds items by the names people give them.

Files are checked for changes before the index is asked: those that a watcher saw, else all.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Protocol

from memfs.config_names import SETTINGS_FILE
from memfs.errors import IndexUnavailable, ItemNotFound
from memfs.fs.lock import renewed_in_child
from memfs.model import Candidate, KindTable, MemoryItem, Query
from memfs.model.ids import of_mount
from memfs.model.kinds import nearest
from memfs.model.query import MOST
from memfs.search.engine import Asked, TermStatistics
from memfs.search.merged_search import TermCounts
from memfs.store.index_sync import IndexSync, SyncResult
from memfs.store.parts import CONTENT, ITEM_SUFFIXES
from memfs.store.values import FileWatcher, LoadedItem
from memfs.store.write import FileWriter


class Browsable(Protocol):
    """Lists, finds and loads items; see ``Searcher`` and ``memfs.store.store.Store`` for each."""

    def every(self, query: Query) -> Iterator[Candidate]: ...

    def find(self, reference: str) -> MemoryItem: ...

    def load(self, candidate: Candidate) -> LoadedItem | None: ...


class ItemLookup(Protocol):
    """Reads items by path and by id."""

    def read(self, path: str) -> MemoryItem: ...

    def get(self, item_id: str) -> MemoryItem | None: ...


def find(store: ItemLookup, reference: str, every: Callable[[], Collection[str]]) -> MemoryItem:
    """The item a person means; see ``Store.find``. ``every`` gives the ids there are."""
    if "/" in reference or reference.endswith(ITEM_SUFFIXES):
        with contextlib.suppress(FileNotFoundError):
            return store.read(path_of(reference))
    return meant(reference, store.get, every)


def meant(reference: str, get: Callable[[str], MemoryItem | None], every: Callable[[], Collection[str]]) -> MemoryItem:
    """The item with an id, or with the only id that begins so; ``get`` and ``every`` as a store has them.

    Raises:
        ItemNotFound: naming the nearest id.
    """
    found = get(reference)
    if found is not None:
        return found
    ids = every()
    starting = [item_id for item_id in ids if item_id.casefold().startswith(reference.casefold())]
    if len(starting) == 1 and (only := get(starting[0])) is not None:
        return only
    raise not_found(reference, starting, ids)


_NOT_IN_IDS = frozenset(" \t\n/:")


def path_of(reference: str) -> str:
    """The path below the workspace that a person's path means, whether or not it begins with ``ContextMemory/``."""
    cleaned = reference.removeprefix("./")
    return cleaned if cleaned.startswith((CONTENT + "/", SETTINGS_FILE)) else f"{CONTENT}/{cleaned}"


def in_types(query: Query, kinds: KindTable) -> Query:
    """The query with its layers written out as types."""
    types = query.types
    if query.layers:
        in_layers = kinds.in_layers(query.layers)
        types = (types & in_layers if types else in_layers) or frozenset({""})
    return Query(**{name: getattr(query, name) for name in Query.__slots__} | {"types": types})


def not_found(reference: str, starting: Sequence[str], ids: Iterable[str]) -> ItemNotFound:
    """The error for a name that no item, or more than one, answers to."""
    if starting:
        hint = "it could be " + ", ".join(sorted(starting)[:5])
    else:
        hint = nearest(reference, known := list(ids)) or "memfs list shows what there is"
        if (mount := of_mount(reference)) and not any(map(of_mount, known)):  # asked for where mounts are not looked at
            hint = f"what is mounted is only read and shown: change it in the workspace that {mount!r} names"
    return ItemNotFound(f"no memory is called {reference!r}", hint=hint)


class SearchTarget(Protocol):
    """What can be asked; see ``memfs.search.search_index.SearchIndex`` for each."""

    def held(self) -> AbstractContextManager[None]: ...

    def search(self, query: Query, *, asked: Asked | None = None) -> list[Candidate]: ...

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]: ...

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]: ...

    def talks(self) -> bool: ...

    def statistics(self, terms: Collection[str]) -> TermStatistics: ...

    def terms(self, beginning: str) -> Collection[str]: ...


class IndexHolder(Protocol):
    """What a searcher needs of a store's parts."""

    @property
    def index(self) -> SearchTarget:
        """What is searched."""

    @property
    def kinds(self) -> KindTable:
        """Which types belong to which layer."""


class Searcher:
    """Asks the index of one store. May be used from several threads.

    Attributes:
        asked: whether anything was asked since the store was opened.
    """

    def __init__(self, reading: IndexHolder, detector: ChangeDetector | None = None) -> None:
        """``detector`` looks at the files before each question; None where they never change."""
        self._reading = reading
        self._detector = detector
        self._holding = threading.local()
        self._looked = False
        self.asked = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """All that this thread asks within sees one state of the files: as they were when it began.

        Writes of other threads wait for its end, so only the index is to be asked meanwhile.

        Raises:
            IndexUnavailable: the index was found damaged; ``Store.refresh`` makes it good.
        """
        self._look()
        with self._reading.index.held():
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
        return self._found(query, lambda narrowed: self._reading.index.search(narrowed))

    def counted(self) -> TermCounts:
        """What tells how terms are spread over the files as they are now."""
        self._look_now()
        return self._reading.index

    def weighed(self, query: Query, asked: Asked) -> list[Candidate]:
        """As ``candidates``, of the files as ``counted`` saw them, where the words are weighed over more workspaces
        than this one.

        Args:
            asked: what they are worth.

        Raises:
            IndexUnavailable: as ``candidates``.
        """
        return self._found(query, lambda narrowed: self._reading.index.search(narrowed, asked=asked))

    def _look_now(self) -> None:
        self.asked = True
        if not getattr(self._holding, "now", False):
            self._look()

    def _found(self, query: Query, search: Callable[[Query], list[Candidate]]) -> list[Candidate]:
        narrowed = in_types(query, self._reading.kinds)
        try:
            return self._named_first(narrowed, search(narrowed))
        except IndexUnavailable:
            if getattr(self._holding, "now", False):
                raise
            if self._detector is not None:
                self._detector.refresh()
            return self._named_first(narrowed, search(narrowed))

    def _named_first(self, query: Query, found: list[Candidate]) -> list[Candidate]:
        """What was found, and before all the item whose id is what was asked."""
        word = query.text.strip()
        named = self._reading.index.among([word], query) if word and not set(word) & _NOT_IN_IDS else []
        if not named:
            return found
        first = replace(named[0], similarity=2 * max((one.similarity for one in found), default=0.5))
        return [first, *(one for one in found if one.id != first.id)][: query.limit]

    def every(self, query: Query) -> Iterator[Candidate]:
        """All items that pass a query's filters, each once, the newest first; its text and limit do not count.

        One question gives ``MOST``; the next goes on from the time at which it ended. Of more items than that with one
        and the same time the rest is left out.
        """
        seen: set[str] = set()
        asked = replace(query, text="", limit=MOST)
        while True:
            page = self.candidates(asked)
            fresh = [one for one in page if one.id not in seen]
            seen.update(one.id for one in fresh)
            yield from fresh
            if len(page) < MOST or not fresh:
                return
            asked = replace(asked, until=page[-1].timestamp)

    def known(self, query: Query) -> list[Candidate]:
        """As ``candidates``, of the files as they were when they were last looked at, without looking again.

        For a writer that wants to know what is there already and reads what it found. Where nobody looked yet, files
        are looked at once: the index on disk may lack what a process that was killed has written.
        """
        self.asked = True
        self._look_once()
        narrowed = in_types(query, self._reading.kinds)
        try:
            return self._reading.index.search(narrowed)
        except IndexUnavailable:
            return self.candidates(query)

    def rarest(self, terms: Collection[str], count: int) -> list[str]:
        """Of these terms, so many that the fewest items hold, the rarest first; those that none holds are left out."""
        self._look_once()
        found = self._reading.index.statistics(terms).frequencies
        return sorted((term for term in terms if found.get(term)), key=lambda term: found[term])[:count]

    def _look_once(self) -> None:
        if not self._looked:
            self._look()

    def _look(self) -> None:
        if self._detector is not None:
            self._detector.follow()
        self._looked = True

    def has_conversations(self) -> bool:
        """Whether any item has a place in a talk."""
        return self._reading.index.talks()

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places (session, sequence) that pass the query's filters, similarity 0."""
        return self._reading.index.beside(places, in_types(query, self._reading.kinds))

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]:
        """The items with these ids that pass the query's filters, similarity 0."""
        return self._reading.index.among(ids, in_types(query, self._reading.kinds))


class ChangeDetector:
    """Detects the changed files of one store. Watching begins with the first look."""

    def __init__(self, index_sync: IndexSync, writing: FileWriter | None = None) -> None:
        """``writing`` tells what other processes wrote, and brings home what waits; None where nobody writes."""
        self._index_sync = index_sync
        self._writing = writing
        self._watcher: FileWatcher | None = None
        self._make: Callable[[], FileWatcher] | None = None
        self._made: Callable[[], FileWatcher] | None = None
        self._turn = threading.RLock()
        renewed_in_child(self)
        self._once = threading.local()

    def watch_with(self, make: Callable[[], FileWatcher]) -> None:
        """Begin to watch with the next ``follow``."""
        self._make = make

    def begin_anew_in_child(self) -> None:
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
        """Within, this thread looks once: who asks several that look each is spared all looks but the first."""
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
        found = self._follow()
        if getattr(self._once, "looked", None) is not None:
            self._once.looked = True
        return found

    def refresh(self) -> SyncResult:
        """Look at every file."""
        if self._writing is not None:
            self._writing.bring_home()
        return self._index_sync.catch_up()

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Within, every file is looked at to bring the index in step; for ``once`` that is this thread's look."""
        with self._turn:
            yield
        if getattr(self._once, "looked", None) is not None:
            self._once.looked = True

    def _follow(self) -> SyncResult:
        with self._turn:
            opened = self._open()
            news = self._writing.news() if self._writing is not None else set()
            seen = self._watcher.drain() if self._watcher else None
            if opened or news is None or seen is None:
                return self.refresh()
            try:
                return self._index_sync.refresh({*news, *seen}) if news or seen else SyncResult()
            except BaseException:
                if self._watcher is not None:
                    self._watcher.give_back([*news, *seen])
                raise

    def close(self) -> None:
        """Stop watching, and do not begin to."""
        with self._turn:  # not while they close: they wait for a thread that may wait for its turn
            watcher, self._watcher, self._make = self._watcher, None, None
        if watcher is not None:
            watcher.close()

    def _open(self) -> bool:
        make, self._make = self._make, None
        if make is None:
            return False
        self._watcher, self._made = make(), make
        return True


# Watchers of a parent process: taking them apart in a child would end what the parent watches with.
_abandoned: list[FileWatcher] = []

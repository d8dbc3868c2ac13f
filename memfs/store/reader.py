"""Reader: the one way in which items are found and read, whatever holds them.

It reads over a snapshot: the files of a folder as they are now, or those of a revision. Text comes from a file that was
looked at, never from the index; files are checked for changes before the index is asked.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime

from memfs.errors import CorruptItem, HistoryError, IndexUnavailable, MemfsError, StorageIO
from memfs.format.codec import Codec
from memfs.fs.lock import renewed_in_child
from memfs.fs.tree import Content, Tree, refuse_rot
from memfs.model import Candidate, Freshness, MemoryItem, Problem, Query, Stamp
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.query import MOST
from memfs.model.time import from_timestamp_ns
from memfs.search.engine import Asked
from memfs.search.merged_search import TermCounts
from memfs.store.index_sync import IndexSync, SyncResult
from memfs.store.parts import ITEM_SUFFIXES, below_content
from memfs.store.searcher import ChangeDetector, in_types, meant, path_of
from memfs.store.snapshot import Snapshot
from memfs.store.values import FileWatcher, FlushResult, LoadedItem
from memfs.store.write import FileWriter

_MOST = 2_000
_MOST_BYTES = 4 << 20
_LONGEST = 1 << 16
_FREE = frozenset({"context", "metadata", "data"})
_FIXED = tuple(name for name in MemoryItem.__slots__ if name not in _FREE)


@dataclass(frozen=True, slots=True)
class _RetainedItem:
    item: MemoryItem
    stamp: Stamp
    checked: bool


class ItemDecoder:
    """The items decoded last, at most 2,000 and 4 MiB of bytes. May be used from several threads.

    Equal bytes are not decoded again, and nobody can change what others get.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _RetainedItem] = OrderedDict()
        self._bytes = 0
        self._guard = threading.Lock()
        renewed_in_child(self)

    def item(self, path: str, stamp: Stamp, decode: Callable[[], MemoryItem], *, checked: bool) -> MemoryItem:
        """The item in a file that was just read, decoded again unless the same bytes were.

        Args:
            stamp: taken with the bytes; content and time must be the same, as the time may be part of the item.
            checked: ``decode`` checks the bytes against their schema; an item decoded without that is not enough.
        """
        with self._guard:
            known = self._kept.get(path)
            if known is not None:
                self._kept.move_to_end(path)
        same = known is not None and known.stamp.blob == stamp.blob and known.stamp.mtime_ns == stamp.mtime_ns
        if known is not None and same and (known.checked or not checked):
            return _apart(known.item)
        item = decode()
        if stamp.size <= _LONGEST:
            self._keep(path, _RetainedItem(_apart(item), stamp, checked))
        return item

    def _keep(self, path: str, fresh: _RetainedItem) -> None:
        with self._guard:
            before = self._kept.pop(path, None)
            self._kept[path] = fresh
            self._bytes += fresh.stamp.size - (before.stamp.size if before is not None else 0)
            while len(self._kept) > _MOST or self._bytes > _MOST_BYTES:
                self._bytes -= self._kept.popitem(last=False)[1].stamp.size


def _apart(item: MemoryItem) -> MemoryItem:
    """An equal item that shares nothing that can be changed; not built again, as it was proved when it was decoded."""
    copy = object.__new__(MemoryItem)
    put = object.__setattr__
    for name in _FIXED:
        put(copy, name, getattr(item, name))
    for name in _FREE:
        value = getattr(item, name)
        put(copy, name, deepcopy(value) if value else {})
    return copy


_NOT_IN_IDS = frozenset(" \t\n/:")


class Reader:
    """Finds and reads the items of one snapshot. May be used from several threads.

    Attributes:
        snapshot, files, codec, kinds: what it reads, and how.
        change_detector: looks at the files before each question.
        asked: whether anything was asked since it was opened.
        notes: what was noticed since then.
    """

    def __init__(self, snapshot: Snapshot, codec: Codec, writing: FileWriter | None = None) -> None:
        """``writing``: as for ``ChangeDetector``."""
        self.snapshot, self.codec = snapshot, codec
        self.files, self.kinds = snapshot.files, snapshot.kinds
        self.change_detector = ChangeDetector(snapshot, writing)
        self.asked = False
        self.notes: list[Problem] = []
        self._known = ItemDecoder()
        self._holding = threading.local()
        self._looked = False

    # -- reading ----------------------------------------------------------------------------------------------------
    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, compared without case; None when there is none.

        Raises:
            ContentError: its file is invalid.
        """
        path = self.snapshot.locate(item_id)
        if not path:
            self.follow()
            path = self.snapshot.locate(item_id)
        try:
            return self.read(path) if path else None
        except FileNotFoundError:
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

    def read(self, path: str) -> MemoryItem:
        """The item in the file at ``path``, below the workspace.

        Raises:
            FileNotFoundError, PathEscape.
            ContentError: it is invalid; as ``CorruptItem``, the disk changed it.
            HistoryUnavailable: git cannot give it.
        """
        content = self.files.read(path, ITEM_LIMIT)
        try:
            refuse_rot(path, self.snapshot.stamp_of(path), content, self.files.root)
        except CorruptItem:
            self.snapshot.refresh([path])
            raise
        return self._decoded(path, content)

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate as its file has it; None when the file is no longer what was found, is invalid,
        or cannot be read.
        """
        if self.snapshot.rejected(candidate.path):
            return None
        try:
            content = self.files.read(candidate.path, ITEM_LIMIT)
            stamp = self.snapshot.stamp_of(candidate.path)
            if stamp is None or stamp.blob != content.stamp.blob:
                return None
            return LoadedItem(item=self._decoded(candidate.path, content, checked=True), stale=False)
        except HistoryError as error:
            self.note_failure(error)
            return None
        except (FileNotFoundError, MemfsError):
            return None

    def _decoded(self, path: str, content: Content, checked: bool = False) -> MemoryItem:
        def decode() -> MemoryItem:
            modified = from_timestamp_ns(content.stamp.mtime_ns)
            return self.codec.read(content.data, path, modified, checked=checked)

        return self._known.item(path, content.stamp, decode, checked=not checked)

    def select(self, query: Query) -> list[MemoryItem]:
        """The items that pass the query's filters, by text score or else newest first."""
        loaded = [self.load(candidate) for candidate in self.candidates(query)]
        return [found.item for found in loaded if found is not None]

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

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:
        """Bring the index in step with the given files, or with every file."""
        return self.change_detector.refresh() if paths is None else self.snapshot.catch_up(paths)

    def follow(self) -> SyncResult:
        """Bring the index in step with what was seen to change; with every file where that is not known for sure."""
        return self.change_detector.follow()

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
        """Let only pass who comes before it is closed; what needs no closing is never closed.

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
        self._look()
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
        return self._found(query, lambda narrowed: self.snapshot.index.search(narrowed))

    def counted(self) -> TermCounts:
        """What tells how terms are spread over the files as they are now."""
        self._look_now()
        return self.snapshot.index

    def weighed(self, query: Query, asked: Asked) -> list[Candidate]:
        """As ``candidates``, of the files as ``counted`` saw them, where the words are weighed over more workspaces
        than this one.

        Args:
            asked: what they are worth.

        Raises:
            IndexUnavailable: as ``candidates``.
        """
        return self._found(query, lambda narrowed: self.snapshot.index.search(narrowed, asked=asked))

    def _look_now(self) -> None:
        self.asked = True
        if not getattr(self._holding, "now", False):
            self._look()

    def _found(self, query: Query, search: Callable[[Query], list[Candidate]]) -> list[Candidate]:
        narrowed = in_types(query, self.kinds)
        try:
            return self._named_first(narrowed, search(narrowed))
        except IndexUnavailable:
            if getattr(self._holding, "now", False):
                raise
            self.change_detector.refresh()
            return self._named_first(narrowed, search(narrowed))

    def _named_first(self, query: Query, found: list[Candidate]) -> list[Candidate]:
        """What was found, and before all the item whose id is what was asked."""
        word = query.text.strip()
        named = self.snapshot.index.among([word], query) if word and not set(word) & _NOT_IN_IDS else []
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
        narrowed = in_types(query, self.kinds)
        try:
            return self.snapshot.index.search(narrowed)
        except IndexUnavailable:
            return self.candidates(query)

    def rarest(self, terms: Collection[str], count: int) -> list[str]:
        """Of these terms, so many that the fewest items hold, the rarest first; those that none holds are left out."""
        self._look_once()
        found = self.snapshot.index.statistics(terms).frequencies
        return sorted((term for term in terms if found.get(term)), key=lambda term: found[term])[:count]

    def _look_once(self) -> None:
        self.require_open()
        if not self._looked:
            self._look()

    def _look(self) -> None:
        self.follow()
        self._looked = True

    def has_conversations(self) -> bool:
        """Whether any item has a place in a talk."""
        self.require_open()
        return self.snapshot.index.talks()

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places (session, sequence) that pass the query's filters, similarity 0."""
        self.require_open()
        return self.snapshot.index.beside(places, in_types(query, self.kinds))

    def among(self, ids: Collection[str], query: Query) -> list[Candidate]:
        """The items with these ids that pass the query's filters, similarity 0."""
        self.require_open()
        return self.snapshot.index.among(ids, in_types(query, self.kinds))


_FOLD_AT = 500


def reader_of(engine: str, invisible: bool) -> str:
    """Whose index it is (``index_folder``) where a workspace is read as a mount: settings decide what it holds."""
    return f"mounted {engine} {'invisible' if invisible else ''}".strip()


class FolderReader(Reader):
    """Reads the memories of one folder as its files are now, and follows them.

    Nothing below the folder is ever written: no journal, lock, state folder or history; the index is in this user's
    cache.

    Attributes:
        tree, clock: what it reads with.
        index_sync: the snapshot, for who looks after it.
    """

    def __init__(
        self,
        tree: Tree,
        codec: Codec,
        index_sync: IndexSync,
        clock: Callable[[], datetime],
        writing: FileWriter | None = None,
    ) -> None:
        super().__init__(index_sync, codec, writing)
        self.tree, self.index_sync, self.clock = tree, index_sync, clock
        self._closed = False

    def require_open(self) -> None:
        """Let only pass who comes before ``close``.

        Raises:
            WorkspaceClosed: it was closed.
        """
        self.tree.require_open()

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

    def head(self) -> tuple[str | None, str | None]:
        """The branch and commit checked out at present; nothing where the history is not looked at."""
        return None, None

    def flush(self, adopt: bool | None = None, *, quiet_seconds: float = 0) -> FlushResult:  # noqa: ARG002
        """Nothing is ever to be committed here."""
        return FlushResult()

    def tend(self) -> None:
        """Fold the index when many files are not in its base; where there is no room for it, the next process scans."""
        self.fold_if_large()

    def fold(self) -> bool:
        """Move fresh items into the base of the index; false if another process is doing so."""
        self.require_open()
        self.index_sync.settle()
        return self.index_sync.index.fold()

    def fold_if_large(self, limit: int = _FOLD_AT) -> None:
        """Fold when more than ``limit`` files are not in the base of the index.

        The index is a cache: where there is no room for it, the next process scans.
        """
        self.require_open()
        if self.index_sync.index.overlay_size() > limit:
            with contextlib.suppress(StorageIO):
                self.fold()

    def close(self) -> None:
        """Fold the index, release everything. May be repeated."""
        if self._closed:
            return
        self._closed = True
        with contextlib.ExitStack() as release:
            for part in (self.tree, self.index_sync.index):
                release.callback(part.close)
            self.change_detector.close()
            if self.index_sync.index.spares_others(self.asked):
                with contextlib.suppress(StorageIO):
                    self.fold()

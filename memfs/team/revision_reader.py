"""Read the files and items of a revision, or of the next commit, as if they were in a folder.

Links are left out, and times are those that a checkout at that moment would give. ``PastStore`` is the store of one
revision; its index is made with the first question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, islice

from memfs.config_names import KINDS as KINDS_FILE
from memfs.errors import ContentError, DuplicateId, HistoryError, ItemNotFound, ItemTooLarge, MemfsError
from memfs.format.codec import Codec
from memfs.format.secrets import refuse_file
from memfs.fs.lock import renewed_in_child
from memfs.fs.scan import ScanEntry
from memfs.fs.tree import Content
from memfs.git.objects import FOLDER, REGULAR, TreeEntry
from memfs.git.process import contents, sizes
from memfs.git.repository import Repository
from memfs.model import BUILT_IN, Candidate, Freshness, MemoryItem, Problem, Query
from memfs.model.ids import stem_of
from memfs.model.item import Stamp
from memfs.model.kinds import ITEM_LIMIT
from memfs.search.documents import IndexDocument, document_of, micros
from memfs.search.revision_index import DocumentCache, TreeIndex
from memfs.store.index_sync import SyncResult
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, below_content
from memfs.store.searcher import Searcher, find, in_types
from memfs.store.store import ItemDecoder
from memfs.store.values import LoadedItem

_MANY = 20
_BYTES_AHEAD = 32 << 20


class PastFiles:
    """The files of one commit (``memfs.fs.tree.View``). May be used from several threads.

    Attributes:
        root: the workspace's folder, for those who ask where a view belongs.
        commit: the revision; "" where no commit has the files yet.
        tree: the id of ``ContextMemory`` there, "" where there is none.
    """

    def __init__(
        self,
        repository: Repository,
        commit: str,
        moment: datetime,
        staged: Mapping[str, TreeEntry] | None = None,
    ) -> None:
        """
        Args:
            moment: the time that every file carries.
            staged: what each path names, where no commit says so: the files that the next one will have.
        """
        self._repository = repository
        self.root = repository.workspace
        self.commit = commit
        self._time = micros(moment) * 1000
        self._staged = None if staged is None else _regular(staged)
        top = None if staged is not None else repository.entry(commit, CONTENT)
        self.tree = top.id if top is not None and top.mode == FOLDER else ""

    @cached_property
    def blobs(self) -> Mapping[str, str]:
        """Every file below ``ContextMemory``, by its path: git's id of its content."""
        if self._staged is not None:
            return {path: blob for path, blob in self._staged.items() if path.startswith(f"{CONTENT}/")}
        return self._repository.tree(self.commit, CONTENT)

    def get(self, path: str) -> bytes | None:
        """A file's bytes; None where it is not there."""
        if self._staged is not None:
            return self._repository.blob(self._staged[path]) if path in self._staged else None
        return self._repository.read(self.commit, path)

    def read(self, path: str, limit: int) -> Content:
        """A file's bytes and stamp.

        Raises:
            FileNotFoundError: it is not there.
            ItemTooLarge: it has more bytes than ``limit``.
            HistoryUnavailable: git cannot give it.
        """
        data = self.get(path)
        if data is None:
            raise FileNotFoundError(path)
        return self._content(path, data, limit)

    def content(self, path: str, limit: int) -> bytes:
        """As ``read``, of a path that ``blobs`` names: the bytes alone."""
        return self._content(path, self._repository.blob(self.blobs[path]), limit).data

    def ahead(self, paths: Collection[str], limit: int) -> dict[str, bytes]:
        """The bytes of many files that ``blobs`` names, asked of git together; what cannot be read so is left out.

        Asked one by one each costs a wait, which on a busy machine is most of the time.
        """
        if len(paths) < _MANY:
            return {}
        found: dict[str, bytes] = {}
        try:
            wanted = sizes(self._repository.git, (self.blobs[path] for path in paths))
            total = accumulate(wanted.values())
            fitting = {
                blob: size
                for (blob, size), upto in zip(wanted.items(), total, strict=True)
                if size <= limit and upto <= _BYTES_AHEAD
            }
            found.update(contents(self._repository.git, fitting))
        except HistoryError:  # reading that file alone reports it
            pass
        return {path: found[blob] for path in paths if (blob := self.blobs[path]) in found}

    def _content(self, path: str, data: bytes, limit: int) -> Content:
        if len(data) > limit:
            raise ItemTooLarge(f"{len(data)} bytes, limit {limit}", path=path, hint="split it into several")
        stamp = Stamp(len(data), self._time, self._time, 0, self._repository.blob_id(data), self._time)
        return Content(data, stamp)

    def entry(self, path: str) -> ScanEntry | None:
        """The facts about a name, None where there is no such file."""
        if path not in self.blobs and self.get(path) is None:
            return None
        return ScanEntry(path, 0, self._time, self._time, 0, True)

    def scan(self, folder: str, hidden: bool = False) -> Iterator[ScanEntry]:
        """Every file below a folder of ``ContextMemory``; names that begin with a dot only where ``hidden``."""
        inside = f"{folder}/"
        for path in self.blobs:
            if path.startswith(inside) and (hidden or "/." not in path):
                yield ScanEntry(path, 0, self._time, self._time, 0, True)


def _regular(entries: Mapping[str, TreeEntry]) -> dict[str, str]:
    """Path to content id of what is a file: no link, no submodule."""
    return {path: entry.id for path, entry in entries.items() if entry.mode in REGULAR}


_AT_ONCE = 500
_NEVER = datetime(1, 1, 1, microsecond=1, tzinfo=UTC)
"""Stands for the time of a file that names none."""
_STRAY = ContentError(
    "this folder belongs to no memory type",
    hint="move the file below memories/<type>/, or add the type to kinds.yaml",
)

_BUILT_IN = frozenset(kind.name for kind in BUILT_IN)

Progress = Callable[[int, int], None]


class PastStore(Searcher):
    """Reads the memories of one revision. May be used from several threads.

    Attributes:
        files: every file of the revision.
        codec, kinds: how its items are read, and the types of memory there were.
        now: what counts as the present, and the time of items whose files name none.
    """

    def __init__(
        self,
        files: PastFiles,
        codec: Codec,
        cache: DocumentCache,
        now: datetime,
        progress: Progress | None = None,
    ) -> None:
        """
        Args:
            cache: what is kept of files that other revisions have, too.
            progress: called with how many of how many files were read, where that takes a while.
        """
        self.files, self.codec, self.kinds, self.now = files, codec, codec.kinds, now
        self._cache, self._progress = cache, progress
        self._turn = threading.RLock()
        renewed_in_child(self)
        self._decoded = ItemDecoder()
        self._failures: list[Problem] = []
        super().__init__(self)

    # -- the index --------------------------------------------------------------------------------------------------
    @cached_property
    def _built(self) -> tuple[TreeIndex, dict[str, Problem]]:
        """The index, and by path what is wrong with the files that are not in it.

        Of files that claim one id the oldest gets it, of equally old ones the first by path.
        """
        with self._turn:
            known: tuple[TreeIndex, dict[str, Problem]] | None = self.__dict__.get("_built")
            if known is not None:
                return known
            found = self._documents(self._candidates())
            left = {path: one for path, one in found.items() if isinstance(one, Problem)}
            fit = [one.at(micros(self.now)) for one in found.values() if isinstance(one, IndexDocument)]
            owners: dict[str, IndexDocument] = {}
            for one in sorted(fit, key=lambda one: (one.since, one.row.path)):
                owner = owners.setdefault(one.row.id.casefold(), one)
                if owner is not one:
                    error = DuplicateId(f"the id {one.row.id!r} belongs to {owner.row.path}", hint="rename this file")
                    left[one.row.path] = Problem.of(error, one.row.path)
            return TreeIndex((one, self.files.blobs[one.row.path]) for one in owners.values()), left

    def _candidates(self) -> dict[str, str]:
        """Path to mark of every file that should hold an item: content id and what else decides, in any revision."""
        folders = tuple({f"{CONTENT}/{kind.folder.split('/')[0]}/" for kind in self.kinds})
        endings: dict[str, str] = {}
        found = {}
        for path, blob in self.files.blobs.items():
            if path.startswith(folders) and path.endswith(ITEM_SUFFIXES) and "/." not in path:
                folder = path.rpartition("/")[0]
                if folder not in endings:
                    endings[folder] = self._ending(path)
                found[path] = blob + endings[folder]
        return found

    def _ending(self, path: str) -> str:
        """What decides about the files of a folder beside their bytes: outside of the built-in kinds, all kinds."""
        kind = self.kinds.at(below_content(path))
        built_in = kind is not None and kind.name in _BUILT_IN
        return "" if built_in else f" {self.files.blobs.get(KINDS_FILE, '')}"

    def _documents(self, files: Mapping[str, str]) -> dict[str, IndexDocument | Problem]:
        """What a search needs of each file (path to mark), by path.

        Raises:
            HistoryUnavailable: git cannot give one of them.
        """
        found = self._cache.found(files)
        lacking = iter([path for path in files if path not in found])
        while some := list(islice(lacking, _AT_ONCE)):
            ahead = self.files.ahead(some, ITEM_LIMIT)
            made = {path: self._document(path, ahead.get(path)) for path in some}
            self._cache.keep((path, files[path], one) for path, one in made.items())
            found.update(made)
            if self._progress is not None:
                self._progress(len(found), len(files))
        return found

    def _document(self, path: str, data: bytes | None) -> IndexDocument | Problem:
        """What a search needs of a file, whose bytes may have been read already."""
        try:
            if self.kinds.at(below_content(path)) is None:
                raise _STRAY
            if data is None:
                data = self.files.content(path, ITEM_LIMIT)
            refuse_file(data, path)
            item = self.codec.read(data, path, _NEVER)
        except HistoryError:
            raise
        except MemfsError as error:
            return Problem.of(error, path)
        timed = item.created is not None or item.timestamp != _NEVER
        return document_of(item, len(data), timed)

    @property
    def index(self) -> TreeIndex:
        """What is searched."""
        return self._built[0]

    @property
    def seen(self) -> PastFiles:
        """The files as readers see them."""
        return self.files

    # -- reading ----------------------------------------------------------------------------------------------------
    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, compared without case; None where there was none.

        Raises:
            ContentError: its file was invalid.
        """
        path = self.locate(item_id)
        return self.read(path) if path else None

    def locate(self, item_id: str) -> str:
        """The path of the file that held the id, "" where none did."""
        folded = item_id.casefold()
        path = self.index.paths.get(folded)
        return path or next((one for one in sorted(self._built[1]) if stem_of(one).casefold() == folded), "")

    def ids(self) -> list[str]:
        """The ids of all valid items."""
        return list(self.index.blobs)

    def find(self, reference: str) -> MemoryItem:
        """The item a person means: by id, by path, or by the beginning of an id that only one item had.

        Raises:
            ItemNotFound: naming the nearest id of that revision.
            ContentError: its file was invalid.
        """
        try:
            return find(self, reference, self.ids)
        except ItemNotFound as error:
            raise ItemNotFound(f"{error.message} at {self.files.commit[:10]}", hint=error.hint) from None

    def beginning(self, reference: str) -> str:
        """The path of the only file that should hold an item whose id begins so, "" where there is none."""
        folded = reference.casefold()
        found = [path for path in self._candidates() if stem_of(path).casefold().startswith(folded)]
        return found[0] if len(found) == 1 else ""

    def read(self, path: str) -> MemoryItem:
        """The item in the file at a path below the workspace.

        Raises:
            FileNotFoundError: it was not there.
            ContentError, IdInvalid: it was invalid.
            HistoryUnavailable: git cannot give it.
        """
        return self.codec.read(self.files.read(path, ITEM_LIMIT).data, path, self.now)

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate; None where git cannot give it."""
        try:
            return LoadedItem(item=self._item(candidate), stale=False)
        except (FileNotFoundError, MemfsError) as error:
            if isinstance(error, MemfsError):
                self.note_failure(error)
            return None

    def _item(self, candidate: Candidate) -> MemoryItem:
        """The item, decoded unless it was decoded before: the bytes of a revision never change."""
        blob = self.files.blobs.get(candidate.path)
        if blob is None:
            raise FileNotFoundError(candidate.path)
        stamp = Stamp(0, 0, 0, 0, blob, 0)
        return self._decoded.item(candidate.path, stamp, lambda: self.read(candidate.path), checked=True)

    def select(self, query: Query) -> list[MemoryItem]:
        """The items that pass the query's filters, by text score or else newest first."""
        loaded = [self.load(candidate) for candidate in self.candidates(query)]
        return [found.item for found in loaded if found is not None]

    def unread(self, query: Query) -> list[str]:
        """The files a query could concern that hold no item; ``problems`` says why."""
        left = self._built[1]
        typed = in_types(query, self.kinds)
        return [path for path in left if self._concerns(typed, path)]

    def _concerns(self, query: Query, path: str) -> bool:
        kind = self.kinds.at(below_content(path))
        typed = kind is not None and (not query.types or kind.name in query.types)
        return typed and (not query.path or f"{path}/".startswith(query.path.rstrip("/") + "/"))

    def count(self) -> int:
        """How many valid items there were."""
        return len(self.index)

    def problems(self) -> list[Problem]:
        """What was wrong with its files, and what went wrong while they were read."""
        left = self._built[1]
        return [*(left[path] for path in sorted(left)), *self._failures]

    def note_failure(self, error: Exception) -> None:
        """Report what went wrong behind the scenes, once, among the problems."""
        hint = getattr(error, "hint", None) or "run git fsck"
        found = Problem(path="", code=type(error).__name__, message=str(error), hint=hint)
        if found not in self._failures:
            self._failures.append(found)

    # -- standing ---------------------------------------------------------------------------------------------------
    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:  # noqa: ARG002  what was cannot change
        """Nothing: a revision stays what it is."""
        return SyncResult()

    def follow(self) -> SyncResult:
        """As ``refresh``."""
        return SyncResult()

    def head(self) -> tuple[str | None, str | None]:
        """No branch, and the revision."""
        return None, self.files.commit

    def freshness(self) -> Freshness:
        """The proof of what an answer rests on: the revision alone."""
        return Freshness(head=self.files.commit, dirty=0, indexed=self.files.tree)

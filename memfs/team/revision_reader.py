"""Read the files and items of a revision, or of the next commit, as if they were in a folder.

Links are left out, and times are those that a checkout at that moment would give. ``PastStore`` is the store of one
revision; its index is made with the first question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
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
from memfs.model import BUILT_IN, Candidate, Freshness, KindTable, MemoryItem, Problem, Query
from memfs.model.ids import stem_of
from memfs.model.item import Stamp
from memfs.model.kinds import ITEM_LIMIT
from memfs.search.documents import IndexDocument, IndexRow, Unfit, document_of, micros
from memfs.search.revision_index import DocumentCache, TreeIndex
from memfs.store.index_sync import SyncResult
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, below_content
from memfs.store.searcher import Searcher, in_types, not_found, path_of
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

Progress = Callable[[int, int], None]


class RevisionItems:
    """Reads the items of one revision. May be used from several threads."""

    def __init__(
        self, files: PastFiles, codec: Codec, kinds: KindTable, cache: DocumentCache, moment: datetime
    ) -> None:
        """``moment``: the time of items whose files name none."""
        self._files = files
        self._codec = codec
        self._kinds = kinds
        self._cache = cache
        self._moment = moment
        self._built_in = frozenset(kind.name for kind in BUILT_IN)

    def candidates(self) -> dict[str, str]:
        """Path to mark of every file that should hold an item: content id and what else decides, in any revision."""
        folders = tuple({f"{CONTENT}/{kind.folder.split('/')[0]}/" for kind in self._kinds})
        endings: dict[str, str] = {}
        found = {}
        for path, blob in self._files.blobs.items():
            if path.startswith(folders) and path.endswith(ITEM_SUFFIXES) and "/." not in path:
                folder = path.rpartition("/")[0]
                if folder not in endings:
                    endings[folder] = self._ending(path)
                found[path] = blob + endings[folder]
        return found

    def item(self, path: str) -> MemoryItem:
        """The item in a file.

        Raises:
            FileNotFoundError: it is not there.
            ContentError, IdInvalid: it is invalid.
            HistoryUnavailable: git cannot give it.
        """
        data = self._files.read(path, ITEM_LIMIT).data
        return self._codec.read(data, path, self._moment)

    def stamp(self, path: str) -> Stamp:
        """What tells a file's content from any other.

        Raises:
            FileNotFoundError: it is not there.
        """
        blob = self._files.blobs.get(path)
        if blob is None:
            raise FileNotFoundError(path)
        return Stamp(0, 0, 0, 0, blob, 0)

    def documents(self, files: Mapping[str, str], progress: Progress | None = None) -> dict[str, IndexDocument | Unfit]:
        """What a search needs of each file (path to mark), by path.

        Raises:
            HistoryUnavailable: git cannot give one of them.
        """
        found = self._cache.found(files)
        lacking = iter([path for path in files if path not in found])
        while some := list(islice(lacking, _AT_ONCE)):
            ahead = self._files.ahead(some, ITEM_LIMIT)
            made = {path: self._document(path, ahead.get(path)) for path in some}
            self._cache.keep((path, files[path], one) for path, one in made.items())
            found.update(made)
            if progress is not None:
                progress(len(found), len(files))
        return found

    def _ending(self, path: str) -> str:
        """What decides about the files of a folder beside their bytes: outside of the built-in kinds, all kinds."""
        kind = self._kinds.at(below_content(path))
        built_in = kind is not None and kind.name in self._built_in
        return "" if built_in else f" {self._files.blobs.get(KINDS_FILE, '')}"

    def _document(self, path: str, data: bytes | None) -> IndexDocument | Unfit:
        """What a search needs of a file, whose bytes may have been read already."""
        try:
            if self._kinds.at(below_content(path)) is None:
                raise _STRAY
            if data is None:
                data = self._files.content(path, ITEM_LIMIT)
            refuse_file(data, path)
            item = self._codec.read(data, path, _NEVER)
        except HistoryError:
            raise
        except MemfsError as error:
            return unfit(error, path)
        timed = item.created is not None or item.timestamp != _NEVER
        return document_of(item, len(data), timed)


def unfit(error: MemfsError, path: str) -> Unfit:
    """What an error says of a file."""
    problem = Problem.of(error, path)
    return Unfit(code=problem.code, message=problem.message, line=problem.line, hint=problem.hint)


def problems_of(left: Mapping[str, Unfit]) -> Iterator[Problem]:
    """What is wrong with files, by path."""
    for path in sorted(left):
        one = left[path]
        yield Problem(path=path, code=one.code, message=one.message, line=one.line, hint=one.hint)


@dataclass(frozen=True, slots=True)
class Built:
    """The index of a revision, and by path what is wrong with the files that are not in it."""

    index: TreeIndex
    left: Mapping[str, Unfit]


def built(found: Mapping[str, IndexDocument | Unfit], files: Mapping[str, str], moment: int) -> Built:
    """The index of a revision; of files that claim one id the oldest gets it, of equally old ones the first by path.

    Args:
        found: what a search needs of each file.
        files: path to mark of each.
        moment: the time of items whose files name none, in microseconds.
    """
    left = {path: one for path, one in found.items() if isinstance(one, Unfit)}
    fit = [one.at(moment) for one in found.values() if isinstance(one, IndexDocument)]
    owners: dict[str, IndexDocument] = {}
    for one in sorted(fit, key=lambda one: (one.since, one.row.path)):
        owner = owners.setdefault(one.row.id.casefold(), one)
        if owner is not one:
            left[one.row.path] = _twin(one.row, owner.row)
    return Built(TreeIndex((one, files[one.row.path].partition(" ")[0]) for one in owners.values()), left)


def _twin(row: IndexRow, owner: IndexRow) -> Unfit:
    error = DuplicateId(f"the id {row.id!r} belongs to {owner.path}", hint="rename this file")
    return unfit(error, row.path)


class PastStore:
    """Reads the memories of one revision. May be used from several threads.

    It offers what answers are made from (``memfs.store.reader.Readable``) and what lists are (``Browsable``).

    Attributes:
        files: every file of the revision.
        kinds: the types of memory there were.
        searcher: asks the index, which is made with the first question.
        clock: tells what counts as the present.
    """

    def __init__(
        self,
        files: PastFiles,
        items: RevisionItems,
        kinds: KindTable,
        build: Callable[[], Built],
        clock: Callable[[], datetime],
    ) -> None:
        """``build`` makes the index, or finds it made."""
        self.files = files
        self.kinds = kinds
        self.clock = clock
        self._items = items
        self._build = build
        self._turn = threading.RLock()
        renewed_in_child(self)
        self._decoded = ItemDecoder()
        self._failures: list[Problem] = []
        self.searcher = Searcher(self)

    @cached_property
    def _built(self) -> Built:
        with self._turn:
            found: Built | None = self.__dict__.get("_built")
            return found if found is not None else self._build()

    @property
    def index(self) -> TreeIndex:
        """What is searched."""
        return self._built.index

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
        return self._items.item(path) if path else None

    def locate(self, item_id: str) -> str:
        """The path of the file that held the id, "" where none did."""
        folded = item_id.casefold()
        path = self.index.paths.get(folded)
        return path or next((one for one in sorted(self._built.left) if stem_of(one).casefold() == folded), "")

    def ids(self) -> list[str]:
        """The ids of all valid items."""
        return list(self.index.blobs)

    def find(self, reference: str) -> MemoryItem:
        """The item a person means: by id, by path, or by the beginning of an id that only one item had.

        Raises:
            ItemNotFound: naming the nearest id of that revision.
            ContentError: its file was invalid.
        """
        if "/" in reference or reference.endswith(ITEM_SUFFIXES):
            try:
                return self._items.item(path_of(reference))
            except FileNotFoundError:
                pass
        found = self.get(reference)
        if found is not None:
            return found
        ids = self.ids()
        starting = [item_id for item_id in ids if item_id.casefold().startswith(reference.casefold())]
        if len(starting) == 1 and (only := self.get(starting[0])) is not None:
            return only
        raise self._located(not_found(reference, starting, ids))

    def beginning(self, reference: str) -> str:
        """The path of the only file that should hold an item whose id begins so, "" where there is none."""
        folded = reference.casefold()
        found = [path for path in self._items.candidates() if stem_of(path).casefold().startswith(folded)]
        return found[0] if len(found) == 1 else ""

    def _located(self, error: ItemNotFound) -> ItemNotFound:
        return ItemNotFound(f"{error.message} at {self.files.commit[:10]}", hint=error.hint)

    def read(self, path: str) -> MemoryItem:
        """The item in the file at a path below the workspace.

        Raises:
            FileNotFoundError: it was not there.
            ContentError, IdInvalid: it was invalid.
        """
        return self._items.item(path)

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
        return self._decoded.item(
            candidate.path,
            self._items.stamp(candidate.path),
            lambda: self._items.item(candidate.path),
            checked=True,
        )

    def select(self, query: Query) -> list[MemoryItem]:
        """The items that pass the query's filters, by text score or else newest first."""
        loaded = [self.load(candidate) for candidate in self.searcher.candidates(query)]
        return [found.item for found in loaded if found is not None]

    def unread(self, query: Query) -> list[str]:
        """The files a query could concern that hold no item; ``problems`` says why."""
        left = self._built.left
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
        return [*problems_of(self._built.left), *self._failures]

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

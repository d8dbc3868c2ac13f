"""Ask the memory as it was at a revision: recall, read and count with its files, kinds and ``[recall]`` settings.

The files of a revision are read as if they were in a folder, without links. The time of the
revision counts as the present. Reading the past writes nothing but this user's cache.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from memfs.admin.store_builder import check_format
from memfs.catalog.facts import Catalog, ItemCatalog
from memfs.config import elsewhere, load_kinds
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass
from memfs.errors import ContentError, DuplicateId, HistoryError, ItemTooLarge, MemfsError
from memfs.format.codec import Codec
from memfs.format.secrets import refuse_file
from memfs.fs.lock import reset_on_fork, shared_property
from memfs.fs.tree import Content, FolderScan, ScanEntry
from memfs.git.objects import FOLDER, REGULAR, TreeEntry, walk
from memfs.git.process import contents, sizes
from memfs.git.repository import Repository
from memfs.model import Freshness, KindTable, MemoryItem, Problem
from memfs.model.ids import stem_of
from memfs.model.item import Stamp
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.time import given_time, micros
from memfs.recall.recaller import Helpers, Recaller
from memfs.recall.review import relevance_of
from memfs.search.generations import shared_folder
from memfs.search.search_index import TreeIndex
from memfs.settings import RecallSettings, Settings
from memfs.store.index_sync import creation_order
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, below_content
from memfs.store.reader import Reader

if TYPE_CHECKING:
    from memfs.learning.conventions import Conventions

_MANY = 20
_BYTES_AHEAD = 32 << 20


class RevisionFiles:
    """The files of one commit (``memfs.fs.tree.View``). May be used from several threads.

    Attributes:
        repository: where its objects are.
        root: the workspace's folder, for those who ask where a view belongs.
        commit: the revision; "" for nothing at all.
        time: when every file was changed, in nanoseconds.
    """

    def __init__(self, repository: Repository, commit: str, moment: datetime) -> None:
        """``moment`` is the time that every file carries; without a ``commit`` there is none."""
        self.repository, self.root, self.commit = repository, repository.workspace, commit
        self.time = micros(moment) * 1000

    @cached_property
    def _top(self) -> TreeEntry | None:
        return self.repository.entry(self.commit, CONTENT) if self.commit else None

    @property
    def tree(self) -> str:
        """The id of ``ContextMemory`` there, "" where there was none."""
        return self._top.id if self._top is not None and self._top.mode == FOLDER else ""

    @cached_property
    def entries(self) -> Mapping[str, TreeEntry]:
        """What each path of the workspace's memory and settings names: files, links, submodules."""
        found: dict[str, TreeEntry] = {}
        if self.tree:
            walked = walk(self.repository.read_tree, self.tree, links=True)
            found = {f"{CONTENT}/{os.fsdecode(name)}": entry for name, entry in walked}
        elif self._top is not None:
            found = {CONTENT: self._top}
        settings = self.repository.entry(self.commit, SETTINGS_FILE) if self.commit else None
        if settings is not None and settings.mode != FOLDER:
            found[SETTINGS_FILE] = settings
        return found

    @cached_property
    def blobs(self) -> Mapping[str, str]:
        """Every file below ``ContextMemory``, by its path: git's id of its content."""
        inside = f"{CONTENT}/"
        regular = ((path, entry.id) for path, entry in self.entries.items() if entry.mode in REGULAR)
        return {path: blob for path, blob in regular if path.startswith(inside)}

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return sizes(self.repository.git, (entry.id for entry in self.entries.values() if entry.mode in REGULAR))

    def size(self, path: str) -> int:
        """The size of a file in bytes; 0 for what is no file."""
        entry = self.entries.get(path)
        return self._sizes.get(entry.id, 0) if entry is not None else 0

    def get(self, path: str) -> bytes | None:
        """A file's bytes; None where it is not there."""
        entry = self.entries.get(path)
        return self.repository.blob(entry.id) if entry is not None and entry.mode in REGULAR else None

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
        if len(data) > limit:
            raise ItemTooLarge(f"{len(data)} bytes, limit {limit}", path=path, hint="split it into several")
        return Content(data, self.stamp(self.entries[path].id, len(data)))

    def ahead(self, paths: Collection[str], limit: int) -> dict[str, bytes]:
        """The bytes of many files that ``blobs`` names, asked of git together; what cannot be read so is left out.

        Asked one by one each costs a wait, which on a busy machine is most of the time.
        """
        if len(paths) < _MANY:
            return {}
        found: dict[str, bytes] = {}
        try:
            by_blob = sizes(self.repository.git, (self.blobs[path] for path in paths))
            total = accumulate(by_blob.values())
            fitting = {
                blob: size
                for (blob, size), upto in zip(by_blob.items(), total, strict=True)
                if size <= limit and upto <= _BYTES_AHEAD
            }
            found.update(contents(self.repository.git, fitting))
        except HistoryError:  # reading that file alone reports it
            pass
        return {path: found[blob] for path in paths if (blob := self.blobs[path]) in found}

    def stamp(self, blob: str, size: int = 0) -> Stamp:
        """The stamp of a file with this content."""
        return Stamp(size, self.time, self.time, 0, blob, self.time)

    def entry(self, path: str) -> ScanEntry | None:
        """The facts about a name, None where there is no such file."""
        entry = self.entries.get(path)
        regular = entry is not None and entry.mode in REGULAR
        return ScanEntry(path, 0, self.time, self.time, 0, True) if regular else None

    def proven(self, stamps: Mapping[str, Stamp]) -> set[str]:
        """The files that hold this content: nothing of a revision changes."""
        return {path for path, stamp in stamps.items() if self.blobs.get(path) == stamp.blob}

    def holding_folders(self) -> AbstractContextManager[None]:
        """A revision has no folders that would have to be opened."""
        return nullcontext()

    def scan(self, folder: str, hidden: bool = False) -> Iterator[ScanEntry]:
        """Every file below a folder of ``ContextMemory``; names that begin with a dot only where ``hidden``."""
        inside = f"{folder}/"
        for path in self.blobs:
            if path.startswith(inside) and (hidden or "/." not in path):
                yield ScanEntry(path, 0, self.time, self.time, 0, True)

    def listings(self, folder: str, hidden: bool = False) -> Iterator[FolderScan]:
        """See ``Tree.listings``."""
        yield FolderScan(folder, [], list(self.scan(folder, hidden)))


_AT_ONCE = 500


Progress = Callable[[int, int], None]


class RevisionItems:
    """What is known of the items of one revision (``memfs.store.reader.Snapshot``). Several threads may ask it.

    The index is made with the first question.

    Attributes:
        files: every file of the revision.
        kinds: the types of memory there were.
    """

    def __init__(self, files: RevisionFiles, items: ItemCatalog, progress: Progress | None = None) -> None:
        """
        Args:
            items: reads files, and knows what those say that other revisions have, too.
            progress: called with how many of how many files were read, where that takes a while.
        """
        self.files, self.kinds = files, items.codec.kinds
        self._items, self._progress = items, progress

    # -- the index --------------------------------------------------------------------------------------------------
    @shared_property
    def _built(self) -> tuple[TreeIndex, dict[str, str], dict[str, Problem]]:
        """The index, the path of each item in it by its id, folded, and by path what is wrong with other files.

        Of files that claim one id the oldest gets it, of equally old ones the first by path.
        """
        left: dict[str, Problem] = {}
        owners: dict[str, MemoryItem] = {}
        for item in sorted(self._read(left), key=creation_order):
            owner = owners.setdefault(item.id.casefold(), item)
            if owner is not item:
                error = DuplicateId(f"the id {item.id!r} belongs to {owner.path}", hint="rename this file")
                left[item.path] = Problem.of(error, item.path)
        index = TreeIndex()
        index.add(owners.values())
        index.cut()
        return index, {folded: item.path for folded, item in owners.items()}, left

    def _candidates(self) -> list[str]:
        """The path of every file that should hold an item."""
        folders = tuple({f"{CONTENT}/{kind.folder.split('/')[0]}/" for kind in self.kinds})
        return [
            path
            for path in self.files.blobs
            if path.startswith(folders) and path.endswith(ITEM_SUFFIXES) and "/." not in path
        ]

    def _read(self, left: dict[str, Problem]) -> list[MemoryItem]:
        """The items in the files; what is wrong with a file that holds none is put into ``left``.

        Raises:
            HistoryUnavailable: git cannot give one of them.
        """
        found: list[MemoryItem] = []
        candidates = self._candidates()
        for start in range(0, len(candidates), _AT_ONCE):
            some = candidates[start : start + _AT_ONCE]
            typed = [path for path in some if self.kinds.at(below_content(path))]
            known = self._items.known(self.stamps_of(typed), checked=False)
            ahead = self.files.ahead([path for path in typed if path not in known], ITEM_LIMIT)
            for path in some:
                try:
                    found.append(known.get(path) or self._parsed(path, ahead.get(path)))
                except HistoryError:
                    raise
                except MemfsError as error:
                    left[path] = Problem.of(error, path)
            self._items.flush()
            if self._progress is not None and len(known) < len(typed):
                self._progress(start + len(some), len(candidates))
        return found

    def _parsed(self, path: str, data: bytes | None) -> MemoryItem:
        """The item in a file, whose bytes may have been read already."""
        if self.kinds.at(below_content(path)) is None:
            hint = "move the file below memories/<type>/, or add the type to kinds.yaml"
            raise ContentError("this folder belongs to no memory type", hint=hint)
        if data is None:
            data = self.files.read(path, ITEM_LIMIT).data
        refuse_file(data, path)
        return self._items.parse(path, Content(data, self.files.stamp(self.files.blobs[path], len(data))), keep=True)

    @property
    def index(self) -> TreeIndex:
        """What is searched."""
        return self._built[0]

    # -- asking -----------------------------------------------------------------------------------------------------
    def locate(self, item_id: str) -> str:
        """The path of the file that held the id, compared without case; "" where none did."""
        _, owners, left = self._built
        folded = item_id.casefold()
        return owners.get(folded) or next((one for one in sorted(left) if stem_of(one).casefold() == folded), "")

    def ids(self) -> list[str]:
        """The ids of all valid items."""
        return [stem_of(path) for path in self._built[1].values()]

    def count(self) -> int:
        """How many valid items there were."""
        return len(self._built[1])

    def beginning(self, reference: str) -> str:
        """The path of the only file that should hold an item whose id begins so, "" where there is none."""
        folded = reference.casefold()
        found = [path for path in self._candidates() if stem_of(path).casefold().startswith(folded)]
        return found[0] if len(found) == 1 else ""

    def stamp_of(self, path: str) -> Stamp | None:
        """The stamp of a file, whose bytes never change."""
        blob = self.files.blobs.get(path)
        return self.files.stamp(blob) if blob is not None else None

    def stamps_of(self, paths: Iterable[str]) -> dict[str, Stamp]:
        """The stamps of those files that are there."""
        return {path: stamp for path in paths if (stamp := self.stamp_of(path)) is not None}

    def rejected(self, path: str) -> bool:
        """Whether the file holds no valid item."""
        return path in self._built[2]

    def rejected_items(self) -> list[str]:
        """The paths of the files that should hold an item and hold none; ``problems`` says why."""
        return list(self._built[2])

    def problems(self) -> list[Problem]:
        """What was wrong with the files, by path."""
        left = self._built[2]
        return [left[path] for path in sorted(left)]

    def freshness(self) -> Freshness:
        """The proof of what an answer rests on: the revision alone."""
        return Freshness(head=self.files.commit, dirty=0, indexed=self.files.tree)


_OPEN = 3
_MOUNTS = "mounted workspaces were not asked: each has its own history"
_WORDS = "found by words alone: only memories as they are now have vectors"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Past:
    """The memory at one revision. Reading it writes nothing but this user's cache.

    Attributes:
        commit: the revision, all 40 digits.
        tree: the id of what ``ContextMemory`` was there; equal trees give equal answers when asked at equal times.
            "" where there was none.
        time: when the commit was made; also what counts as the present, unless ``at`` says otherwise.
        now: what counts as the present.
        items: what is known of them.
        store: lists, finds and loads its items.
        recall: answers questions with the full ranking; uses count for nothing and are not counted.
        settings: how recall was set in its ``memfs.toml``.
        notes: what the answers lack that those of today have, in sentences; usually nothing.
    """

    commit: str
    tree: str
    time: datetime
    now: datetime
    items: RevisionItems
    store: Reader
    recall: Recaller
    settings: RecallSettings
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> RevisionFiles:
        """Every file as it was."""
        return self.items.files

    @property
    def kinds(self) -> KindTable:
        """The types of memory there were."""
        return self.items.kinds

    @property
    def conventions(self) -> Conventions:
        """What was agreed on."""
        from memfs.learning.conventions import Conventions

        return Conventions(self.store, lambda: self.now)


class Travel:
    """Goes to revisions of one workspace. May be used from several threads."""

    def __init__(
        self, repository: Repository, settings: Settings, by_meaning: Callable[[], bool] = lambda: False
    ) -> None:
        """
        Args:
            settings: the workspace's at present.
            by_meaning: whether the present is searched by meaning, too.
        """
        self._repository, self._settings, self._by_meaning = repository, settings, by_meaning
        self._turn = threading.RLock()
        reset_on_fork(self)
        self._relevance = cache(lambda: relevance_of(settings.review))
        self._open: OrderedDict[tuple[str, datetime], Past] = OrderedDict()

    def at(self, revision: str, *, now: datetime | None = None, progress: Progress | None = None) -> Past:
        """The memory at a revision.

        Args:
            revision: anything git knows, such as a commit, branch, tag or ``HEAD~3``; a date such as ``2026-03-01``; or
                an age such as ``3 days ago``: the newest commit of the checked out line that is not younger. A day
                means the whole of it, in UTC.
            now: what counts as the present instead of the commit's time, so that two revisions can be compared.
            progress: called with how many of how many files were read, where that takes a while.

        Raises:
            HistoryUnavailable: there is no such revision, or it cannot be read.
            FormatUnsupported: a newer memfs wrote it.
            ContentError, SettingInvalid: its ``kinds.yaml`` or the ``[recall]`` of its ``memfs.toml`` is invalid.
        """
        commit = self._repository.resolve(revision)
        time = self._repository.commit_object(commit).time
        moment = given_time(now) if now is not None else time
        with self._turn:
            past = self._open.get((commit, moment))
            if past is None:
                past = self._opened(RevisionFiles(self._repository, commit, moment), time, moment, progress)
                self._open[commit, moment] = past
            self._open.move_to_end((commit, moment))
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)  # not closed: somebody may still ask it
        return past

    def _opened(self, files: RevisionFiles, time: datetime, now: datetime, progress: Progress | None) -> Past:
        try:
            check_format(files)
            kinds, schemas = load_kinds(files)
            settings: RecallSettings = elsewhere("recall", files.get(SETTINGS_FILE), self._settings)
        except MemfsError as error:
            error.message = f"{error.message} (at {files.commit[:10]})"
            raise
        codec = Codec(schemas, kinds, self._settings.security.allow_invisible)
        known = ItemCatalog(self._catalog, codec)
        items = RevisionItems(files, known, progress)
        store = Reader(items, known)
        helpers = Helpers(relevance=self._relevance)
        recall = Recaller(store, settings.preset, lambda: now, kinds, helpers=helpers)
        notes = (*((_MOUNTS,) if self._settings.mounts else ()), *((_WORDS,) if self._by_meaning() else ()))
        return Past(
            commit=files.commit,
            tree=files.tree,
            time=time,
            now=now,
            items=items,
            store=store,
            recall=recall,
            settings=settings,
            notes=notes,
        )

    # -- what is shared by all revisions ----------------------------------------------------------------------------
    @cached_property
    def _catalog(self) -> Catalog:
        return Catalog(shared_folder(self._repository.common_dir), self._settings.index.texts)

    def close(self) -> None:
        """Release what was opened. May be repeated."""
        with self._turn:
            opened, self._open = self._open, OrderedDict()
        for past in opened.values():
            past.recall.close()  # waits for threads that may need the turn
        with self._turn:
            if "_catalog" in self.__dict__:
                self._catalog.close()

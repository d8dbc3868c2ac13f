"""Store: the only door for durable change to one workspace's memory.

A write is durable on return. Tree, history and index stay in step, also after a kill, and the answer to a read is
proved by the files as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memfs.errors import Conflict, CorruptItem, MemfsError, QuotaExceeded, StorageIO
from memfs.fs import io
from memfs.fs.lock import renewed_in_child
from memfs.fs.operation import FileChange, Operation
from memfs.fs.tree import Content, Tree, View, blob_id, refuse_rot
from memfs.model import Candidate, Freshness, KindTable, MemoryItem, Problem, Query, Stamp
from memfs.model.ids import stem_of
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.time import from_timestamp_ns
from memfs.store.commit_message import because, describe
from memfs.store.commits import CommitTimer, PersonCommits
from memfs.store.hand_edits import HandEdits
from memfs.store.index_sync import IndexSync, Progress, SyncResult
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.store.plan import FilePlan, Planner, PlanOutdated
from memfs.store.recovery import FOLDER
from memfs.store.searcher import ChangeDetector, Searcher, find, in_types
from memfs.store.values import Batch, FileWatcher, FlushResult, LoadedItem, PendingCommit, Storage
from memfs.store.write import FileWriter, sentence, signatures_of

if TYPE_CHECKING:
    from memfs.format.codec import Codec
    from memfs.search.search_index import SearchIndex
    from memfs.store.commits import Committer


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


class Machinery(Protocol):
    """What a workspace is read with; see ``memfs.store.parts.Parts`` for each."""

    @property
    def tree(self) -> Tree: ...

    @property
    def seen(self) -> View: ...

    @property
    def codec(self) -> Codec: ...

    @property
    def index(self) -> SearchIndex: ...

    @property
    def kinds(self) -> KindTable: ...

    @property
    def clock(self) -> Callable[[], datetime]: ...


class StoreReader(Searcher):
    """Finds and reads the items of one workspace. Text comes from a file that was looked at, never from the index.

    ``index_sync`` and ``change_detector`` are parts, for who looks after it; ``notes`` is what was noticed
    since it was opened.
    """

    def __init__(self, parts: Machinery, index_sync: IndexSync, change_detector: ChangeDetector) -> None:
        super().__init__(parts, change_detector)
        self._reading: Machinery = parts
        self._known = ItemDecoder()
        self.index_sync = index_sync
        self.change_detector = change_detector
        self.notes: list[Problem] = []

    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, None when there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        path = self.index_sync.locate(item_id)
        if not path:
            self.follow()
            path = self.index_sync.locate(item_id)
        try:
            return self.read(path) if path else None
        except FileNotFoundError:
            return None

    def find(self, reference: str) -> MemoryItem:
        """The item a person means: by id, by path, or by the beginning of an id that only one item has.

        Raises:
            ItemNotFound: naming the nearest id.
        """
        return find(self, reference, self.index_sync.ids)

    def read(self, path: str) -> MemoryItem:
        """The item in the file at ``path``, below the workspace.

        Raises:
            FileNotFoundError, PathEscape.
            ContentError: it is invalid; as ``CorruptItem``, the disk changed it.
        """
        content = self._reading.seen.read(path, ITEM_LIMIT)
        try:
            refuse_rot(path, self.index_sync.stamp_of(path), content, self._reading.tree.root)
        except CorruptItem:
            self.index_sync.refresh([path])
            raise
        return self._decoded(path, content)

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate as its file has it now; None when the file is no longer what was found, or is
        invalid at present.
        """
        if self.index_sync.rejected(candidate.path):
            return None
        try:
            content = self._reading.seen.read(candidate.path, ITEM_LIMIT)
            stamp = self.index_sync.stamp_of(candidate.path)
            if stamp is None or stamp.blob != content.stamp.blob:
                return None
            return LoadedItem(item=self._decoded(candidate.path, content, checked=True), stale=False)
        except (FileNotFoundError, MemfsError):
            return None

    def _decoded(self, path: str, content: Content, checked: bool = False) -> MemoryItem:
        def decode() -> MemoryItem:
            modified = from_timestamp_ns(content.stamp.mtime_ns)
            return self._reading.codec.read(content.data, path, modified, checked=checked)

        return self._known.item(path, content.stamp, decode, checked=not checked)

    def select(self, query: Query) -> list[MemoryItem]:
        """The items that pass the query's filters, by text score or else newest first."""
        loaded = [self.load(candidate) for candidate in self.candidates(query)]
        return [found.item for found in loaded if found is not None]

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now; ``problems`` says why."""
        rejected = self.index_sync.rejected_items()
        return self.index_sync.unread(in_types(query, self._reading.kinds)) if rejected else []

    def count(self) -> int:
        """How many valid items there are."""
        self.follow()
        return len(self._reading.index.stamps())

    def watch_with(self, make_watcher: Callable[[], FileWatcher], at_once: bool = False) -> None:
        """Rely on something that sees changes, instead of a scan before each recall, from the first recall on."""
        self._reading.tree.require_open()
        self.change_detector.watch_with(make_watcher)
        if at_once:
            self.follow()

    @property
    def watching(self) -> str:
        """``on``, ``off``, or ``degraded`` with the reason."""
        return self.change_detector.state

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:
        """Bring the index in step with the given files, or with every file."""
        return self.change_detector.refresh() if paths is None else self.index_sync.catch_up(paths)

    def follow(self) -> SyncResult:
        """Bring the index in step with what was seen to change; with every file where that is not known for sure."""
        return self.change_detector.follow()

    def problems(self) -> list[Problem]:
        """What is wrong with files at present, and what was noticed since the workspace was opened."""
        return [*self.index_sync.problems(), *self.notes]

    def note_failure(self, error: Exception) -> None:
        """Report what went wrong in the background, once, among the problems."""
        found = Problem(path="", code=type(error).__name__, message=str(error), hint="memfs tries again by itself")
        if found not in self.notes:
            self.notes.append(found)


_FILE = "head"
_LIMIT = 4096


def prove(parts: Parts, index_sync: IndexSync) -> Freshness:
    """HEAD, how many memory files differ from it, and a digest of exactly what is indexed.

    The digest of HEAD's own files is cached beside the index, so that the usual answer, that nothing differs, needs no
    git.
    """
    indexed = dict(parts.index.stamps().blobs())
    digest = _digest(indexed)
    found = parts.repository.head()
    head = found.commit
    if head is None:
        return Freshness(head=None, dirty=None if found.damage else len(indexed), indexed=digest)
    broken = {path: _blob(parts, path) for path in index_sync.rejected_items()}
    present = {**indexed, **{path: blob for path, blob in broken.items() if blob}}
    if _kept(parts, head) == (_digest(present) if broken else digest):
        return Freshness(head=head, dirty=0, indexed=digest)
    items = {path: blob for path, blob in parts.repository.tree(head, CONTENT).items() if index_sync.is_item(path)}
    _keep(parts, head, _digest(items))
    dirty = sum(1 for path, blob in present.items() if items.get(path) != blob)
    dirty += sum(1 for path in items if path not in present)
    return Freshness(head=head, dirty=dirty, indexed=digest)


def _blob(parts: Parts, path: str) -> str:
    """The id of what an invalid file holds, "" where it cannot be read."""
    try:
        return blob_id(parts.seen.read(path, READ_LIMIT).data)
    except (FileNotFoundError, MemfsError):
        return ""


def _digest(blobs: Mapping[str, str]) -> str:
    lines = "".join([f"{path}\0{blobs[path]}\n" for path in sorted(blobs)])
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def _kept(parts: Parts, head: str) -> str:
    """The digest of the items of this very commit, "" when it is not known."""
    try:
        commit, _, digest = io.read_file(parts.index.folder / _FILE, _LIMIT).decode("ascii", "replace").partition(" ")
    except (FileNotFoundError, StorageIO):
        return ""
    return digest if commit == head else ""


def _keep(parts: Parts, head: str, digest: str) -> None:
    with contextlib.suppress(StorageIO, FileNotFoundError):
        io.write_file(parts.index.folder / _FILE, f"{head} {digest}".encode(), durable=False)


_TRACES = (".tmp", "commit.json")
_SECOND_NAME = "index."


def end_interrupted(parts: Parts) -> list[Problem]:
    """End the commit that a killed process began, if there is one and nobody is at work; say so.

    A lock of ours that outlives its process would stop the person's own git, so it does not wait for the next commit.

    It never raises and never waits: the next commit comes this way again.
    """
    aside = parts.repository.state / FOLDER
    if not _traces(parts.repository.state) and not _traces(aside):
        return []
    from memfs.git.commits import recover

    try:
        with parts.commit_lock.hold("end an interrupted commit", timeout=0):
            io.sweep(aside)  # contents that it was about to set aside
            return recover(parts.repository)
    except MemfsError:
        return []


def _traces(folder: Path) -> bool:
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(name.endswith(_TRACES) or name.startswith(_SECOND_NAME) for name in names)


_TRIES = 20
_COMMITTING = ("interval", "each", "batch")
_BY_TIME = ("interval", "each")
_GRACE = 1.0
_FOLD_AT = 500


class Store(StoreReader):
    """Memories of one workspace, durable on return of every write. May be used from several threads.

    ``edit_finder`` and ``writing`` are parts, too, for who looks after it.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        index_sync = IndexSync(parts.seen, parts.codec, parts.kinds, parts.index, parts.repository)
        self.writing = FileWriter(parts, index_sync)
        super().__init__(parts, index_sync, ChangeDetector(index_sync, self.writing))
        self._planner = Planner(parts, index_sync)
        self.edit_finder = HandEdits(parts, index_sync)
        self._people = PersonCommits(parts)
        self._timer = CommitTimer(self._flush_window, parts.policy.interval, self.note_failure)
        self._planning = threading.RLock()
        renewed_in_child(self)
        self.wrote = False  # by anybody who holds this store
        ended = end_interrupted(parts)
        self.notes += [*ended, *self.writing.recover(), *map(Problem.of, parts.journal.damage)]
        self._left = bool(parts.journal.waiting)
        self._closed = False

    @cached_property
    def _committer(self) -> Committer:
        from memfs.store.commits import Committer

        return Committer(self._parts, self.writing, self.edit_finder, self._people)

    # -- writing ------------------------------------------------------------------------------------------------
    def put(
        self,
        item: MemoryItem,
        expected: str | None = None,
        *,
        message: str = "",
        source: str = "",
        critical: bool = False,
        allow_secret: str = "",
    ) -> MemoryItem:
        """Store an item; on return it survives kill -9 and power loss, and recall finds it.

        Args:
            item: without an id it gets one; with the id of a stored item it replaces that one.
            expected: sha256 the caller last read; "" means create only; None means replace whatever is there.
            message: the sentence for the commit; a plain one is made when empty.
            source: which door it came through, for the commit's trailers.
            critical: store it even where its area's quota is full.
            allow_secret: why what looks like a secret may stay; recorded in the item and in the commit.

        Returns:
            The stored item, with ``id``, ``path`` and ``sha256``.

        Raises:
            IdInvalid, IdExists, Conflict, ContentError, StorageIO (as ``QuotaExceeded`` too): nothing was changed.
            WritePending: it could not be carried out whole nor taken back; look whether it is there.
        """
        for _ in range(_TRIES):
            with self._planning:  # threads of this process take turns, so that they outdate nobody's plan
                self._take_news()
                self.adopt_rested()
                try:
                    plans = self._planner.put(item, expected, allow_secret)
                    self._carry_out(plans, message or describe(plans), source, batch=len(plans) > 1, critical=critical)
                    return plans[0].stored(self._parts.durability(plans[0].path))
                except PlanOutdated as outdated:
                    self.index_sync.refresh([outdated.path])
        raise Conflict("the file keeps changing while it is written", hint="try again")

    def delete(
        self, item_id: str, expected: str | None = None, *, reason: str = "", source: str = ""
    ) -> MemoryItem | None:
        """Remove an item from the files and from recall; git keeps its history.

        Returns:
            The item as it was, None where its file was unreadable.

        Raises:
            ItemNotFound, Conflict, StorageIO.
        """
        for _ in range(_TRIES):
            with self._planning:
                self._take_news()
                self.adopt_rested()
                try:
                    plan = self._planner.delete(item_id, expected)
                    self._carry_out([plan], describe([plan]) + because(reason), source)
                    return plan.item
                except PlanOutdated as outdated:
                    self.index_sync.refresh([outdated.path])
        raise Conflict("the file keeps changing while it is removed", hint="try again")

    def _take_news(self) -> None:
        """Learn what other processes wrote, before deciding where an item is."""
        self._parts.require_open()
        news = self.writing.news()
        if news is None:
            self.refresh()
        elif news:
            self.index_sync.refresh(news)

    @contextlib.contextmanager
    def batch(self, message: str, *, source: str = "", critical: bool = False, commit: bool = False) -> Iterator[Batch]:
        """Several writes that happen all or not at all, as exactly one commit; ``critical`` as for ``put``.

        Args:
            commit: commit when the block ends, also where memfs commits only when asked.

        Raises:
            Conflict: when the block ends and a file changed since it was planned; nothing was written.
            QuotaExceeded: when the block ends and there is no room for them; nothing was written.
        """
        self.adopt_rested()
        self._take_news()
        batch = Batch(self._planner)
        yield batch
        self.carry_out(batch.plans, message, source=source, critical=critical)
        if commit:
            self.flush(adopt=False)

    def carry_out(
        self, plans: list[FilePlan], message: str, *, source: str = "", critical: bool = True, alone: bool = True
    ) -> Mapping[str, Stamp]:
        """Write plans as one batch, as a commit of its own unless one plan need not be ``alone``; what a person
        asks to be brought back is ``critical``. Return the stamps of the written files, by path.

        Raises:
            Conflict: a file is not what its plan was made against.
        """
        try:
            return self._carry_out(plans, message, source, batch=alone, critical=critical)
        except PlanOutdated as outdated:
            self.index_sync.refresh([outdated.path])
            raise Conflict(
                "the file changed while the batch was prepared", path=outdated.path, hint="read it again and retry"
            ) from None

    def _carry_out(
        self, plans: list[FilePlan], message: str, source: str, *, batch: bool = False, critical: bool = False
    ) -> Mapping[str, Stamp]:
        io.require_descriptors(str(self._parts.tree.root))
        if self._left and self._overdue(self._parts.journal.operations()):
            self.take_up(at_once=True)
        self.notice_commits()
        branch = self.writing.branch()
        changing = [plan for plan in plans if self.writing.changes(plan, branch)]
        if not changing:
            return {}
        said, signed = sentence(message, source, changing), signatures_of(changing, source)
        gate = self._parts.gate
        gate.prepare()
        try:
            stamps = self.writing.carry_out(changing, said, signed, batch=batch, critical=critical)
        except QuotaExceeded as refused:  # once more, after the occasion that may make room for it
            gate.relieve(refused)
            stamps = self.writing.carry_out(changing, said, signed, batch=batch, critical=critical)
        gate.settle()
        self.wrote = True
        policy = self._parts.policy.commit
        if policy == "interval" or not self.writing.all_home():
            self._timer.opened()
        elif policy == "each" or (policy == "batch" and batch):
            self._committer.flush()
        return stamps

    # -- reading ------------------------------------------------------------------------------------------------
    def unread(self, query: Query) -> list[str]:
        """As ``StoreReader.unread``, and the secondary locations in which writes wait out of reach."""
        self._parts.require_open()
        return [*super().unread(query), *self.writing.missed()]

    def last_good(self, path: str) -> MemoryItem | None:
        """The last good version of an item whose file is invalid at present, None where there is none."""
        self._parts.require_open()
        self.refresh([path])
        return self._last_good(path)

    def _last_good(self, path: str) -> MemoryItem | None:
        """None also where the disk changed it."""
        if self.index_sync.damaged(path) or not self.index_sync.rejected(path):
            return None
        fresh = self._parts.index.item(stem_of(path))
        if fresh is not None and fresh.path == path:
            return fresh
        stamp = self.index_sync.stamp_of(path)
        try:
            data = self._parts.repository.blob(stamp.blob) if stamp else self.index_sync.last_good(path)
            written = from_timestamp_ns(stamp.mtime_ns) if stamp else self._parts.clock()
            return self._parts.codec.read(data, path, written) if data else None
        except MemfsError:
            return None

    def locate(self, item_id: str) -> str:
        """The path of the file that holds the id, "" when none does."""
        self._parts.require_open()
        return self.index_sync.locate(item_id)

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """As ``StoreReader.load``; of an invalid file its last good version."""
        if self.index_sync.rejected(candidate.path):
            item = self._last_good(candidate.path)
            return LoadedItem(item=item, stale=True) if item else None
        return super().load(candidate)

    # -- keeping in step ----------------------------------------------------------------------------------------
    def head(self) -> tuple[str | None, str | None]:
        """The branch and commit checked out at present."""
        head = self._parts.repository.head()
        return head.ref, head.commit

    def looking_once(self) -> contextlib.AbstractContextManager[None]:
        """Within, ``follow`` looks at the files for the first time only: several questions of this thread, one look."""
        return self.change_detector.once()

    def reindex(self, progress: Progress | None = None) -> int:
        """Rebuild the index from the files; return how many items it holds."""
        self.index_sync.rebuild(progress)
        return len(self._parts.index.stamps())

    def fold(self) -> bool:
        """Move fresh items into the base of the index; false if another process is doing so."""
        self._parts.require_open()
        self.index_sync.settle()
        return self._parts.index.fold()

    def fold_if_large(self, limit: int = _FOLD_AT) -> None:
        """Fold when more than ``limit`` files are not in the base of the index.

        The index is a cache: where there is no room for it, the next process scans.
        """
        self._parts.require_open()
        if self._parts.index.overlay_size() > limit:
            with contextlib.suppress(StorageIO):
                self.fold()

    def tend(self) -> None:
        """Do what is due from time to time: commit what others left, fold the index, make a backup."""
        self._take_up_late()
        self.fold_if_large()
        self._parts.gate.tend()

    def problems(self) -> list[Problem]:
        """As ``StoreReader.problems``, and what keeps writes from where they belong."""
        self._parts.require_open()
        return [*super().problems(), *self.writing.problems()]

    def storage(self) -> Storage:
        """The state of the workspace's disk and its secondary location, tried out now."""
        self._parts.require_open()
        return self.writing.storage()

    def freshness(self) -> Freshness:
        """The proof of what an answer given now rests on."""
        return prove(self._parts, self.index_sync)

    # -- history ------------------------------------------------------------------------------------------------
    def flush(
        self,
        adopt: bool | None = None,
        *,
        include_staged: bool = False,
        quiet_seconds: float = 0,
        message: str = "",
        asked: bool = False,
        below: tuple[str, ...] = (),
    ) -> FlushResult:
        """Commit what waits; never fails because git is busy (see ``FlushResult.reason``).

        Args:
            adopt: commit a person's edits too; None means as ``history.adopt`` says.
            include_staged: of those, also the ones the person has staged.
            quiet_seconds: of those, only files unchanged for so long.
            message: for the commit of the person's edits.
            asked: a person asks for the commit, so that it is signed where their ``commit.gpgsign`` says so.
            below: where the person commits, only what was written below these folders; whatever else waits, waits on.
        """
        self._parts.require_open()
        adopting = self._parts.policy.adopt == "auto" if adopt is None else adopt
        flushed = self._committer.flush(
            adopt=adopting,
            include_staged=include_staged,
            quiet_seconds=quiet_seconds,
            message=message,
            asked=asked,
            below=below if self.by_hand else (),
        )
        self.notes.extend(flushed.notes)
        return flushed

    def adopt_rested(self) -> None:
        """Commit what a person edited by hand and let rest, as that person's own, where the policy says so.

        For callers about to write: put, delete and batch do it themselves. Reading never does. Whatever keeps it
        from being done (git is busy, another process commits) fails no write: the next writer does it.
        """
        self._parts.require_open()
        policy = self._parts.policy
        if not policy.adopts or self.change_detector.state != "off":  # who watches does it in the background
            return
        if policy.commit not in _COMMITTING and self._parts.journal.waiting:  # they wait for the session to end
            return
        with self._planning:
            try:
                with self.change_detector.everywhere():
                    found = self.edit_finder.find_rested(policy.rest)
                if found.plans:
                    flushed = self._committer.flush(adopt=True, quiet_seconds=policy.rest, patience=0)
                    self.notes.extend(flushed.notes)
            except MemfsError as error:
                self.note_failure(error)

    def displaced(self) -> list[tuple[str, float, FileChange]]:
        """Waiting writes whose files somebody removed: a name, when it was written (seconds since 1970), the change."""
        self._parts.require_open()
        return self._committer.displaced()

    def pending(self) -> PendingCommit:
        """What waits for its commit, also in the secondary location, and why."""
        self._parts.require_open()
        self.notice_commits(thorough=True)
        journal, secondary = self._parts.journal, self._parts.secondary
        waiting = [*journal.operations(), *(secondary.operations() if secondary else ())]
        own = journal.own | (secondary.journal.own if secondary else set())
        reason = self._parts.repository.busy() if waiting else ""
        left = any(operation.id not in own for operation in waiting)
        late = self._overdue(waiting) if self._parts.policy.commit in _BY_TIME else left
        paths = dict.fromkeys(change.path for operation in waiting for change in operation.changes)
        return PendingCommit(count=len(waiting), reason=reason, paths=tuple(paths), late=late or bool(reason))

    def hand_edits(self, among: Iterable[str] | None = None) -> list[str]:
        """Paths a person changed since the last commit; of ``among`` only, where that is given."""
        self.notice_commits(thorough=among is None)
        return self.edit_finder.changed_paths() if among is None else self.edit_finder.changed_among(among)

    def plan_restore(self, path: str, data: bytes | None) -> FilePlan | None:
        """Plan to bring a file back to given bytes (None: absent); None when it is so already."""
        self._take_news()
        return self._planner.restore(path, data)

    def standing_still(self, purpose: str) -> contextlib.AbstractContextManager[None]:
        """Keep every writer of this workspace out while the block runs; what was interrupted is finished first."""
        self._parts.require_open()
        return self.writing.standing_still(purpose)

    @property
    def by_hand(self) -> bool:
        """Whether the person commits, and memfs only when asked."""
        return self._parts.policy.commit == "manual"

    def notice_commits(self, *, thorough: bool = False) -> None:
        """Where a person commits with git, let go of what waited for its commit and has it now.

        Args:
            thorough: look at every file that waits, also where HEAD has not moved.
        """
        self._parts.require_open()
        self.notes.extend(note for note in self._people.notice(thorough=thorough) if note not in self.notes)

    def _flush_window(self) -> bool:
        home = self.writing.bring_home()
        policy = self._parts.policy.commit
        if policy not in _COMMITTING or (policy != "interval" and not home):
            return home
        flushed = self._committer.flush()
        self._left = False
        self.notes.extend(flushed.notes)
        if policy == "interval":
            self._committer.maintain_if_due()
            self.tend()
        return home and flushed.waiting == 0

    def take_up(self, *, at_once: bool = False) -> int:
        """Commit soon what was left by others, who may have been killed before they could, where the policy says so.

        The first write does so at once where it is overdue: who is always killed within its window would never commit.

        Returns:
            How many commits were made.
        """
        self._parts.require_open()
        self.notice_commits()
        if not self._left or self._parts.policy.commit not in _COMMITTING:
            return 0
        if not at_once:
            self._timer.opened(late=True)
            return 0
        self._left = False
        flushed = self._committer.flush(patience=0)
        self.notes.extend(flushed.notes)
        return len(flushed.commits)

    def _take_up_late(self) -> None:
        """Commit what has waited for so long that who wrote it must have been killed."""
        if self._parts.policy.commit in _BY_TIME and self._overdue(self._parts.journal.operations()):
            self._timer.opened(late=True)

    def _overdue(self, waiting: Sequence[Operation]) -> bool:
        age = self._parts.clock().timestamp() - waiting[0].time if waiting else 0.0
        return abs(age) > self._parts.policy.interval + _GRACE  # below zero once a clock was set back

    def require_open(self) -> None:
        """Let only pass who comes before ``close``.

        Raises:
            WorkspaceClosed: it was closed.
        """
        self._parts.require_open()

    def close(self) -> None:
        """Commit what waits where the policy says so, fold the index, release everything. May be repeated."""
        parts = self._parts
        if self._closed:
            return
        self._closed = True
        with contextlib.ExitStack() as release:
            for part in (parts.tree, self.writing, parts.repository, parts.index):
                release.callback(part.close)
            self._timer.close()
            self.change_detector.close()
            self.writing.bring_home()
            if self.wrote and parts.policy.commit in _COMMITTING:
                self._committer.flush()
            if parts.index.spares_others(self.asked):
                with contextlib.suppress(StorageIO):
                    self.fold()

"""Store: the only door for durable change to one workspace's memory.

A write is durable on return. Tree, history and index stay in step, also after a kill, and the answer to a read is
proved by the files as they are.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from memfs.errors import Conflict, CorruptRecord, FormatUnsupported, GitBusy, MemfsError, QuotaExceeded, StorageIO
from memfs.fs import io
from memfs.fs.executor import Worker
from memfs.fs.lock import reset_on_fork, shared_property
from memfs.model import MemoryItem, Problem, Query, Stamp
from memfs.model.ids import stem_of
from memfs.model.time import from_timestamp_ns
from memfs.startup import TYPE_CHECKING, TypeVar
from memfs.store.index_sync import IndexSync, Progress
from memfs.store.parts import RECOVERED_FOLDER, Backlog, LoadedItem, PendingCommit, PlanOutdated, Storage
from memfs.store.reader import ChangeDetector, FolderReader

if TYPE_CHECKING:
    from memfs.fs.journal import FileChange, Operation
    from memfs.store.commits import Committer
    from memfs.store.hand_edits import HandEdits
    from memfs.store.index_sync import SyncResult
    from memfs.store.parts import FlushResult, Parts
    from memfs.store.plan import Batch, FilePlan
    from memfs.store.write import FileWriter


DocumentBytes = tuple[str, bytes | None, str | None]
"""The path of a document, its bytes to be (None to remove it), and the sha256 the caller last read: "" for a document
that must not be there yet, None to replace whatever is there.
"""

_PATIENCE = 30.0
_PAUSE, _LONGEST_PAUSE = 0.004, 0.1

Result = TypeVar("Result")


def retry_on_conflict(
    attempt: Callable[[], Result], *, tries: int = 0, on: tuple[type[MemfsError], ...] = (Conflict,)
) -> Result:
    """The result of an attempt, which is repeated after growing random pauses where another process was quicker.

    Args:
        attempt: reads what is there again each time, and raises one of ``on`` where another process was quicker.
        tries: the most attempts; 0: as many as half a minute has room for.

    Raises:
        Conflict: others never stopped changing it, or trying again is of no use.
        MemfsError: what the last try raised, where that is another one of ``on``.
    """
    until, tried = time.monotonic() + _PATIENCE, 0
    while True:
        tried += 1
        try:
            return attempt()
        except on as error:
            over = tried == tries if tries else time.monotonic() >= until
            if error.lasting if isinstance(error, Conflict) else over:
                raise
            if over:
                message = f"others keep changing it: {error.message}"
                raise Conflict(message, path=error.path, hint="try again") from error
        from random import random  # which few writes need

        time.sleep(random() * min(_PAUSE * tried, _LONGEST_PAUSE))  # noqa: S311  no secret depends on it


def end_interrupted(parts: Parts) -> list[Problem]:
    """End the commit that a killed process began, if there is one and no other process is committing.

    A lock of ours that outlives its process would stop the person's own git, so this does not wait for the next commit.
    It never raises and never waits: the next commit tries again.

    Returns:
        What was ended.
    """
    aside = parts.repository.state / RECOVERED_FOLDER
    names = [*io.listed(parts.repository.state), *io.listed(aside)]
    if not any(name.endswith((".tmp", "commit.json")) or name.startswith("index.") for name in names):
        return []
    from memfs.git.commits import recover

    try:
        with parts.commit_lock.hold("end an interrupted commit", timeout=0):
            io.sweep(aside)  # contents that it was about to set aside
            return recover(parts.repository)
    except MemfsError:
        return []


_TRIES = 20
_COMMITTING = ("interval", "each", "batch")
_BY_TIME = ("interval", "each")
_GRACE = 1.0
_RETRY_SECONDS, _LATE_SECONDS = 2.0, 0.5


class StoreChangeDetector(ChangeDetector):
    """Detects also what other processes wrote, and fails back before it looks at every file.

    Attributes:
        store: whose files it looks at.
    """

    store: Store

    def refresh(self) -> SyncResult:
        """Look at every file."""
        self.store.fail_back()
        return super().refresh()

    def _news(self) -> set[str] | None:
        news, watcher = self.store.backlog.news(), self._watcher
        if news is None and watcher is not None and watcher.hears_at_once and self.store.backlog.failed_back():
            seen = watcher.drain()  # what is no longer in the journal is among what was heard of the files
            news = None if seen is None else set(seen)
        return news


class Store(FolderReader):
    """Memories of one workspace, durable on return of every write. May be used from several threads.

    Attributes:
        backlog: how much waits in the secondary location.
        wrote: whether anything was written through it.
        commits_later: whether another process commits what this one wrote, within the window.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        index_sync = IndexSync(parts.seen, parts.items, parts.index, parts.repository, parts.journal)
        self.backlog = Backlog(parts)
        detector = StoreChangeDetector(index_sync)
        detector.store = self
        super().__init__(parts.tree, parts.items, index_sync, parts.clock, detector)
        # a window that did not close is tried again: it would leave every later write waiting in silence
        retry = max(parts.policy.interval, _RETRY_SECONDS)
        self._window = Worker("memfs-commit-window", self._flush_window, self.note_failure, again=retry)
        self._planning = threading.RLock()
        reset_on_fork(self)
        self.wrote = False
        self.commits_later = False
        self.resume()

    @cached_property
    def edit_finder(self) -> HandEdits:
        """Finds a person's changes."""
        from memfs.store.hand_edits import HandEdits

        return HandEdits(self._parts, self.index_sync)

    @shared_property
    def writing(self) -> FileWriter:
        """Changes the files: a process that only reads needs nothing of it."""
        from memfs.store.write import FileWriter

        return FileWriter(self._parts, self.index_sync, self.backlog)

    @cached_property
    def _committer(self) -> Committer:
        from memfs.store.commits import Committer

        return Committer(self._parts, self.writing, self.edit_finder)

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

        def put() -> MemoryItem:
            with self._parts.tree.holding_folders():
                plans = self.writing.planner.put(item, expected, allow_secret)
            self._carry_out(plans, message, source, batch=len(plans) > 1, critical=critical)
            stored = plans[0].item
            assert stored is not None  # a put always knows its item
            return stored.replace(durability=self._parts.durability(plans[0].path))

        return self._attempted(put)

    def delete(
        self, item_id: str, expected: str | None = None, *, reason: str = "", source: str = ""
    ) -> MemoryItem | None:
        """Remove an item from the files and from recall; git keeps its history.

        Args:
            expected: sha256 the caller last read; None removes it whatever it says.
            reason: why, for the commit.
            source: which door it came through, for the commit's trailers.

        Returns:
            The item as it was, None where its file was unreadable.

        Raises:
            ItemNotFound, Conflict, StorageIO.
        """

        def delete() -> MemoryItem | None:
            plan = self.writing.planner.delete(item_id, expected)
            self._carry_out([plan], "", source, reason=reason)
            return plan.item

        return self._attempted(delete)

    def put_documents(
        self,
        documents: Sequence[DocumentBytes],
        message: str,
        *,
        source: str = "",
        critical: bool = False,
        alone: bool | None = None,
    ) -> tuple[list[FilePlan], Mapping[str, Stamp]]:
        """Store documents whole, all or none; on return they survive kill -9 and power loss.

        Args:
            documents: each of another path.
            critical: as for ``put``.
            alone: as a commit of its own; by default, where there are several.

        Returns:
            What was carried out, in their order, and the stamps of the files that were written.

        Raises:
            PathEscape, Conflict, ContentError, StorageIO (as ``QuotaExceeded`` too): nothing was changed.
        """

        def put() -> tuple[list[FilePlan], Mapping[str, Stamp]]:
            plans = [self.writing.planner.document(*one) for one in documents]
            batch = len(plans) > 1 if alone is None else alone
            return plans, self._carry_out(plans, message, source, batch=batch, critical=critical)

        return self._attempted(put, documents[0][0] if documents else None)

    def _attempted(self, act: Callable[[], Result], path: str | None = None) -> Result:
        """The result of an act that plans and carries out by what the files are now; it is repeated where one changed
        meanwhile, as nothing was written then.
        """
        for _ in range(_TRIES):
            self._parts.require_open()
            with self._planning:  # threads of this process take turns, so that they outdate no other's plan
                self.change_detector.take_news()
                self.adopt_rested()
                try:
                    return act()
                except PlanOutdated as outdated:
                    self.index_sync.refresh([outdated.path])
        raise Conflict("the file keeps changing while it is written", path=path, hint="try again")

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
        self.change_detector.take_news()
        batch = self.writing.planner.batch()
        yield batch
        self.carry_out(batch.plans, message, source=source, critical=critical)
        if commit:
            self.flush(adopt=False)

    def carry_out(
        self, plans: list[FilePlan], message: str, *, source: str = "", critical: bool = True, alone: bool = True
    ) -> Mapping[str, Stamp]:
        """Write plans as one batch.

        Args:
            message, source: as for ``put``.
            critical: write even where a quota is full, as for what a person asks to have back.
            alone: as a commit of its own; several plans always are.

        Returns:
            The stamps of the written files, by path.

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
        self,
        plans: list[FilePlan],
        message: str,
        source: str,
        *,
        reason: str = "",
        batch: bool = False,
        critical: bool = False,
    ) -> Mapping[str, Stamp]:
        if self._left and self._overdue(self._parts.journal.operations()):
            self.take_up(at_once=True)
        self.notice_commits()
        changing = [plan for plan in plans if self.writing.changes(plan)]
        if not changing:
            return {}
        text, signatures = self.writing.compose(changing, message, source, reason)
        guard = self._parts.quota_guard
        guard.prepare()
        try:
            stamps = self.writing.carry_out(changing, text, signatures, batch=batch, critical=critical)
        except QuotaExceeded as refused:  # once more, after the occasion that may make room for it
            guard.make_room(refused)
            stamps = self.writing.carry_out(changing, text, signatures, batch=batch, critical=critical)
        guard.settle()
        self.wrote = True
        policy = self._parts.policy.commit
        if policy == "interval" or not self.backlog.failed_back():
            self._window.wake(self._parts.policy.interval)
        elif policy == "each" or (policy == "batch" and batch):
            self._committer.flush()
        return stamps

    # -- reading ------------------------------------------------------------------------------------------------
    def unread(self, query: Query) -> list[str]:
        """As ``Reader.unread``, and the secondary locations in which writes wait out of reach."""
        self._parts.require_open()
        return [*super().unread(query), *self.backlog.missed()]

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

    def _read_found(self, path: str, stamp: Stamp | None, known: MemoryItem | None) -> LoadedItem | None:
        """As ``Reader`` does; of an invalid file its last good version."""
        if stamp is None and self.index_sync.rejected(path):
            item = self._last_good(path)
            return LoadedItem(item=item, stale=True) if item else None
        return super()._read_found(path, stamp, known)

    # -- keeping in step ----------------------------------------------------------------------------------------
    def head(self) -> tuple[str | None, str | None]:
        """The branch and commit checked out at present."""
        head = self._parts.repository.head()
        return head.ref, head.commit

    def resume(self) -> None:
        """Finish what a killed process left: when it is opened, and in a forked child that keeps using it."""
        self._parts.require_open()
        ended, journal = end_interrupted(self._parts), self._parts.journal
        try:
            found = self.writing.recover() if journal.unfinished() or self.backlog.waiting() else []
        except (CorruptRecord, FormatUnsupported, StorageIO) as error:  # a write that comes says so, too
            found = [Problem.of(error)]
        self.notes += [*ended, *found, *map(Problem.of, journal.damage)]
        self._left = bool(journal.waiting)

    def release(self) -> None:
        """See ``FolderReader.release``."""
        self.index_sync.flush()
        super().release()
        self._parts.repository.git.close()

    def reindex(self, progress: Progress | None = None) -> int:
        """Rebuild the index from the files; return how many items it holds."""
        self.index_sync.rebuild(progress)
        return len(self._parts.index.stamps())

    def maintain(self) -> None:
        """Do what is due from time to time: commit what others left, fold the index, make a backup."""
        if self._parts.policy.commit in _BY_TIME and self._overdue(self._parts.journal.operations()):
            self._window.wake(min(self._parts.policy.interval, _LATE_SECONDS))  # who wrote it must have been killed
        self.fold_if_large()
        self._parts.quota_guard.maintain()

    def problems(self) -> list[Problem]:
        """As ``Reader.problems``, and what keeps writes from where they belong."""
        self._parts.require_open()
        noticed = self.writing.noticed if "writing" in self.__dict__ else ()
        return [*super().problems(), *noticed, *self.backlog.problems()]

    def fail_back(self) -> bool:
        """Try to bring back what is in the secondary location; whether nothing is left there."""
        self._parts.require_open()
        return self.writing.fail_back() if self.backlog.waiting() else self.backlog.failed_back()

    def storage(self) -> Storage:
        """The state of the workspace's disk and its secondary location, tried out now."""
        from memfs.store.recovery import Health

        self._parts.require_open()
        health = Health(self._parts.tree.root, self._parts.repository.state)
        health.probe()
        secondary, missed = self._parts.secondary, self.backlog.missed()
        reason = secondary.try_out() if secondary else ""
        return Storage(
            reason=health.reason,
            free=health.free(),
            secondary=str(secondary.place) if secondary else next(iter(missed), ""),
            secondary_reason=reason or (f"cannot look into {', '.join(missed)}" if missed else ""),
            waiting=sum(missed.values()) or self.backlog.waiting(),
        )

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
            quiet_seconds: of those, only files unchanged for that long.
            message: for the commit of the person's edits.
            asked: a person asks for the commit, so that it is signed where their ``commit.gpgsign`` says so.
            below: where the person commits, only what was written below these folders; whatever else waits, waits on.
        """
        self._parts.require_open()
        self.index_sync.flush()
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

    def flush_now(self, hint: str, *, adopt: bool = False) -> FlushResult:
        """Commit what waits, for callers who cannot go on before; ``adopt`` as for ``flush``.

        Raises:
            GitBusy: it cannot be committed now.
        """
        flushed = self.flush(adopt=adopt)
        if flushed.reason:
            raise GitBusy(flushed.reason, hint=hint)
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
        """Waiting writes whose files were removed: a name, when it was written (seconds since 1970), the change."""
        self._parts.require_open()
        return self._committer.displaced()

    def pending(self) -> PendingCommit:
        """What waits for its commit, also in the secondary location, and why."""
        self._parts.require_open()
        self.notice_commits(thorough=True)
        journal, secondary = self._parts.journal, self._parts.secondary
        away = secondary.operations() if secondary else ()
        waiting = [*journal.operations(), *away]
        own = journal.own | (secondary.journal.own if secondary else set())
        reason = self._parts.repository.busy() if waiting else ""
        left = any(operation.id not in own for operation in waiting)
        late = (
            self._overdue(waiting) if self._parts.policy.commit in _BY_TIME else left and bool(away or not self.by_hand)
        )
        paths = dict.fromkeys(change.path for operation in waiting for change in operation.changes)
        return PendingCommit(count=len(waiting), reason=reason, paths=tuple(paths), late=late or bool(reason))

    def hand_edits(self, among: Iterable[str] | None = None) -> list[str]:
        """Paths a person changed since the last commit; of ``among`` only, where that is given."""
        self.notice_commits(thorough=among is None)
        return self.edit_finder.changed_paths() if among is None else self.edit_finder.changed_among(among)

    def plan_restore(self, contents: Mapping[str, bytes | None]) -> list[FilePlan]:
        """Plans to bring files back to given bytes (None: absent), of those that are not so already."""
        self._parts.require_open()
        self.change_detector.take_news()
        plans = (self.writing.planner.document(path, data) for path, data in contents.items())
        return [plan._replace(vetted=True) for plan in plans if plan.before != plan.after]

    def exclude_writers(self, purpose: str) -> contextlib.AbstractContextManager[None]:
        """Keep every writer of this workspace out while the block runs; what was interrupted is finished first."""
        self._parts.require_open()
        return self.writing.exclude_writers(purpose)

    @property
    def by_hand(self) -> bool:
        """Whether the person commits, and memfs only when asked."""
        return self._parts.policy.commit == "manual"

    def notice_commits(self, *, thorough: bool = False) -> None:
        """Where a person commits with git, forget the writes that waited for a commit and are in one now.

        Args:
            thorough: look at every file that waits, also where HEAD has not moved.
        """
        self._parts.require_open()
        with contextlib.suppress(MemfsError):  # a write or commit reports what is wrong with the journal
            if self.by_hand and self._parts.journal.operations():  # else nothing waits for a person
                from memfs.store.commits import PersonCommits

                found = PersonCommits(self._parts).notice(thorough=thorough)
                self.notes.extend(note for note in found if note not in self.notes)

    def _flush_window(self) -> bool:
        self.index_sync.flush(cut=True)
        returned = self.fail_back()
        policy = self._parts.policy.commit
        if policy not in _COMMITTING or (policy != "interval" and not returned):
            return returned
        flushed = self._committer.flush()
        self._left = False
        self.notes.extend(flushed.notes)
        if policy == "interval":
            self._committer.maintain_if_due()
            self.maintain()
        return returned and flushed.waiting == 0

    def take_up(self, *, at_once: bool = False, patience: float = 0) -> int:
        """Commit soon what other processes left, which may have been killed first; where the policy says so.

        The first write does so at once where it is overdue: a process that is always killed within its window would
        never commit.

        Args:
            at_once: now, not when the window ends.
            patience: how long, in seconds, to wait for another process that commits right now.

        Returns:
            How many commits were made.
        """
        self._parts.require_open()
        self.notice_commits()
        if not self._left or self._parts.policy.commit not in _COMMITTING:
            return 0
        if not at_once:
            self._window.wake(min(self._parts.policy.interval, _LATE_SECONDS))
            return 0
        self._left = False
        flushed = self._committer.flush(patience=patience)
        self.notes.extend(flushed.notes)
        return len(flushed.commits)

    def _overdue(self, waiting: Sequence[Operation]) -> bool:
        age = self._parts.clock().timestamp() - waiting[0].time if waiting else 0.0
        return abs(age) > self._parts.policy.interval + _GRACE  # below zero once a clock was set back

    def close(self) -> None:
        """Commit what waits where the policy says so, fold the index, release everything. May be repeated."""
        parts = self._parts
        if self._closed:
            return
        self._closed = True
        with contextlib.ExitStack() as release:
            others = (parts.journal, parts.lock, parts.secondary, parts.repository, parts.index, parts.items)
            for part in (parts.tree, *others):
                if part is not None:
                    release.callback(part.close)
            self._window.close()
            self.change_detector.close()
            self.index_sync.flush()
            if self.backlog.waiting():
                self.writing.fail_back()
            if self.wrote and parts.policy.commit in _COMMITTING and not self.commits_later:
                self._committer.flush()
            if self.index_sync.reassigned or parts.index.spares_others(self.asked):
                with contextlib.suppress(StorageIO):
                    self.fold()

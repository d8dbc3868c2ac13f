"""Carries out plans, each of them whole or not at all.

In this order: the lock, what a killed writer left is finished, each file is checked to be what the plan was made
against, the place that takes the write, the journal's record, and only then the files.
No bytes with a secret that was not allowed get that far.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from operator import attrgetter

from memfs import errors
from memfs.dataclass import replace
from memfs.fs import io
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.journal import FileChange, Operation, Writer
from memfs.fs.tree import blob_id
from memfs.model import Problem, Stamp
from memfs.model.ids import stem_of
from memfs.model.state_paths import document_kind
from memfs.model.time import from_timestamp_ns
from memfs.store.failover import later_contents, plan_return
from memfs.store.index_sync import IndexSync
from memfs.store.parts import CONTENT, READ_LIMIT, Backlog, Parts, PlanOutdated, below_content
from memfs.store.plan import FilePlan, Planner, current_signer, describe, index_plans, reason_suffix
from memfs.store.recovery import Health, content_now, put_in_place, redo_all, set_aside, spills, stops_everything, sweep

_SYNC_ONCE_ABOVE = 64
_AT_ONCE = 200


class FileWriter:
    """The one place where memory files change.

    A write is durable in the journal, then in the files, then marked as applied; what a killed process left half
    done is finished.

    Attributes:
        noticed: what was set aside in the course of a write.
    """

    def __init__(self, parts: Parts, index_sync: IndexSync, backlog: Backlog) -> None:
        """``index_sync`` learns of every write before anybody else can write."""
        self._parts, self._index_sync = parts, index_sync
        self.planner = Planner(parts, index_sync)
        self._health = Health(parts.tree.root, parts.repository.state)
        self._backlog = backlog
        self.noticed: list[Problem] = []

    def carry_out(
        self,
        plans: Sequence[FilePlan],
        message: str,
        signatures: Sequence[Writer],
        *,
        batch: bool = False,
        critical: bool = False,
        merges: str = "",
        on: str = "",
    ) -> dict[str, Stamp]:
        """Write files durably: on return they survive kill -9 and power loss, and the index knows of them.

        Where the workspace's own disk refuses, or earlier writes of these files wait in the secondary location, that
        one takes them: the versions of one file stay in order.

        Args:
            merges: the commit whose line of history the plans join with the branch.
            on: the branch they were made on, where they hold on no other; "" on any.
            critical: write even where a quota is full.

        Returns:
            The stamps of the written files, by path.

        Raises:
            QuotaExceeded: there is no room for it; nothing was written.
            PlanOutdated: a file is not what the plan was made against; nothing was written.
            Conflict: a person's edit would be replaced, and the policy is to leave those alone.
            StorageIO: nothing was written; as ``StorageUnavailable``, the secondary location refused, too; as
                ``WritePending``, it may be carried out all the same.
        """
        refuse_secrets(plans)
        secondary = self._parts.secondary
        with self._locked("store") as refused, self._parts.tree.holding_folders():
            refused = refused or self._recover_first()
            self._parts.repository.let_moves_end()
            self._refuse_outdated(plans, refused)
            edits = self._check(plans)
            self._parts.quota_guard.check_room(plans, critical)
            branch = self.branch()
            if on and branch != on:
                raise PlanOutdated("")
            operations = [self._operation(branch, message, signatures, plans, batch=batch, merges=merges)]
            if edits:
                operations.insert(0, self._recording(branch, "Keep an edit made by hand", edits))
            local = [plan.path for plan in plans if self._parts.is_local(plan.path)]
            if local:
                self._hide(local)
            stamps = None
            # the versions of one file stay in order: where the secondary location has some, it takes the next, too
            if refused is None and not (secondary and any(plan.path in secondary.held() for plan in plans)):
                try:
                    stamps = self._on_primary(operations, plans)
                except errors.StorageIO as error:
                    self._health.failed(error)
                    refused = self._health.explained(error, plans)
                    if secondary is None or not spills(refused):
                        raise
            if stamps is None:
                stamps = self._on_secondary(operations, refused)
            index_plans(self._index_sync, plans, stamps)
            if len(local) == len(plans) and not merges and self._parts.journal.latest(plans[0].path) is not None:
                self._parts.journal.drop([operations[-1].id])  # no commit waits for it: its files are all there is
        return stamps

    def compose(self, plans: Sequence[FilePlan], message: str, source: str, reason: str) -> tuple[str, list[Writer]]:
        """The message of the commit of some plans, with the reasons that allow a secret, and who signs it.

        Args:
            message: the sentence, "" for a plain one.
            source: which door they came through.
            reason: why they are written, added to the message in parentheses.

        Raises:
            SecretDetected: message, reason or source hold a secret; nothing can allow that.
        """
        from memfs.format.secrets import refuse_text

        plain, end = describe(plans), reason_suffix(reason) if reason else ""
        refuse_text(message.removeprefix(plain) + end, "message")
        refuse_text(source, "source")
        reasons = allowed_reasons([*map(attrgetter("reason"), plans)])
        return (message or plain) + end + reasons, signatures_of(plans, source)

    def _on_primary(self, operations: Sequence[Operation], plans: Sequence[FilePlan]) -> dict[str, Stamp]:
        """Change the workspace's own files; a removal may take the room that is kept back for it."""
        removal = all(plan.after is None for plan in plans)
        if not removal:
            self._health.require()
        try:
            stamps = self._write(operations, plans)
        except errors.StorageFull:
            if not removal or not self._health.release_space():
                raise
            stamps = self._write(operations, plans)
        with suppress(errors.StorageIO):  # it is written: what it weighs is measured again at times
            self._parts.quota_guard.wrote(plans)
        self._health.reserve_space()
        return stamps

    def _on_secondary(self, operations: Sequence[Operation], refused: errors.StorageIO | None) -> dict[str, Stamp]:
        """Keep a write in the secondary location."""
        secondary = self._parts.secondary
        assert secondary is not None  # only where there is one is a refused write carried on with
        try:
            stamps = secondary.take(operations)
        except (errors.StorageIO, errors.CorruptRecord, errors.FormatUnsupported) as error:
            if isinstance(refused, errors.WritePending):
                raise refused from error
            first = refused.message if refused else "earlier writes of this file wait in the secondary location"
            raise errors.StorageUnavailable(
                f"neither place took the write: {self._parts.tree.root}: {first}; {secondary.place}: {error.message}",
                hint="make room in one of them, or make it writable, and try again; nothing was written",
            ) from error
        self._backlog.note(secondary.folder, len(secondary.journal.waiting))
        return stamps

    @contextmanager
    def _locked(self, purpose: str, timeout: float | None = None) -> Iterator[errors.StorageIO | None]:
        """Hold the locks of both places, as far as both are available; yield why the workspace's own could not.

        With both, a process that cannot take the one still meets the others at the other.

        Raises:
            LockTimeout: naming the holder.
            StorageIO: there is no secondary location, and the lock could not be acquired.
        """
        parts = self._parts
        with ExitStack() as locks:
            refused = None
            try:
                locks.enter_context(parts.lock.hold(purpose, timeout))
            except errors.StorageIO as error:
                if parts.secondary is None or not spills(error):
                    raise
                self._health.failed(error)
                refused = error
            if (secondary := parts.secondary) is not None:
                known = secondary.used = secondary.used or str(secondary.folder) in self._backlog.known()
                secondary.join(locks, purpose, timeout)
                if secondary.failure is None and not known:
                    self._backlog.note(secondary.folder, len(secondary.operations()))
                    secondary.used = True
            yield refused

    def _hide(self, paths: Sequence[str]) -> None:
        """Keep git from showing or adding files that are in no commit: their folder ignores itself."""
        kinds = (self._parts.kinds.at(below_content(path)) for path in paths)
        for folder in dict.fromkeys(kind.folder for kind in kinds if kind is not None):
            path = f"{CONTENT}/{folder}/.gitignore"
            with suppress(errors.MemfsError):
                if self._parts.tree.entry(path) is None:
                    self._parts.tree.write(path, b"*\n", durable=False)

    def _recover_first(self) -> errors.StorageIO | None:
        """Finish what came before; where that cannot be known but another place may take the write, say why."""
        try:
            self._notice(redo_all(self._parts, self._health))
            self._notice(self._bring_home())
        except errors.StorageIO as error:
            if self._parts.secondary is None or not spills(error):
                raise
            self._health.failed(error)
            return error
        return None

    @contextmanager
    def exclude_writers(self, purpose: str) -> Iterator[None]:
        """Keep every writer out while the block runs, with what came before finished: files of one moment.

        Raises:
            StorageIO: what a killed process left half done cannot be finished now.
        """
        with self._locked(purpose):
            self._notice(redo_all(self._parts, self._health))
            if self._parts.journal.unfinished():
                raise errors.StorageIO("a write that was interrupted cannot be finished", hint="see 'memfs status'")
            yield

    def _notice(self, problems: Sequence[Problem]) -> None:
        self.noticed.extend(problem for problem in problems if problem not in self.noticed)

    def fail_back(self) -> bool:
        """Try to bring back what is in the secondary location; whether nothing is left there."""
        self._notice(self.recover())
        return self._backlog.failed_back()

    def changes(self, plan: FilePlan) -> bool:
        """Whether there is something to write: other bytes, or the same while this path waits for another branch."""
        if plan.before != plan.after:
            return True
        branch, secondary = self.branch(), self._parts.secondary
        journals = [self._parts.journal, *([secondary.journal] if secondary else [])]
        return any(journal.waits_elsewhere(plan.path, branch) for journal in journals)

    def branch(self) -> str:
        """The branch that writes go to now; "" where HEAD is detached or cannot be read."""
        try:
            return self._parts.repository.head().ref or ""
        except errors.HistoryError:
            return ""

    def record_edits(self, edits: Sequence[FilePlan], message: str) -> list[FilePlan]:
        """Journal changes a person made, whose files are in place already; return those that are still there."""
        refuse_secrets(edits)
        parts = self._parts
        with parts.lock.hold("record edits"):
            self._notice(redo_all(self._parts, self._health))
            parts.repository.let_moves_end()
            latest = parts.journal.latest
            standing = [one for one in edits if content_now(parts.tree, one.path) == one.new_sha != latest(one.path)]
            if standing:
                operation = self._recording(self.branch(), message, standing, batch=True)
                parts.journal.append([operation])
                parts.journal.mark_applied(operation.id)
        return standing

    # -- recovery -------------------------------------------------------------------------------------------------
    def recover(self) -> list[Problem]:
        """Finish what a killed process left unfinished, and bring back what the secondary location took.

        A journal that cannot be read, or a disk that takes no writes, is reported: reading goes on, and the next write
        says what is wrong.

        Returns:
            What a person changed meanwhile, and what kept it from being finished.
        """
        try:
            unfinished = bool(self._parts.journal.unfinished())
            if not unfinished and not self._backlog.waiting():
                return []
            return self._finish(timeout=None if unfinished else 1.0)
        except errors.LockTimeout:
            if unfinished:
                raise
            return []  # the process that holds the lock for so long brings it home, or the next one does
        except (errors.CorruptRecord, errors.FormatUnsupported, errors.StorageIO) as error:
            return [Problem.of(error)]

    def _finish(self, timeout: float | None) -> list[Problem]:
        """Redo, and bring home for as long as that makes it fewer; others get a turn in between."""
        problems: list[Problem] = []
        waits = self._backlog.waiting()
        while True:
            with self._locked("recover", timeout) as refused:
                if refused is not None:
                    raise refused
                problems += redo_all(self._parts, self._health)
                problems += self._bring_home()
            waited, waits = waits, self._backlog.waiting()
            if not 0 < waits < waited:
                return problems

    # -- bringing home ----------------------------------------------------------------------------------------------
    def _bring_home(self) -> list[Problem]:
        """Carry out what waits in the secondary location, the oldest 200 at a time; nothing while the workspace's disk
        takes no writes. The locks of both places are held.

        Each operation is carried out in order and once. It keeps its id on the way, and is dropped from the secondary
        location only when the workspace's journal has it: a process killed at any point leaves it in one place or in
        both, never in none, and never twice in history. What a person changed meanwhile stays; ours is set aside.
        """
        secondary = self._parts.secondary
        if secondary is None or secondary.failure is not None or not self._backlog.waiting():
            return []
        operations = secondary.operations()
        if operations and not self._health.probe():
            return []
        try:
            return self._bring_in_order(operations)
        finally:
            done = [name for name in secondary.journal.waiting if self._parts.journal.knows(name)]
            with suppress(errors.MemfsError):
                if done:
                    secondary.drop(done)
                    self._backlog.note(secondary.folder, len(secondary.journal.waiting))

    def _bring_in_order(self, operations: Sequence[Operation]) -> list[Problem]:
        later = later_contents(operations)
        stuck: set[str] = set()
        problems: list[Problem] = []
        for operation, contents in list(zip(operations, later, strict=True))[:_AT_ONCE]:
            paths = {change.path for change in operation.changes}
            if stuck & paths:
                stuck |= paths
                continue
            size = sum(2 * len(change.data or b"") for change in operation.changes)
            if size and not self._health.has_room(size):  # a failed try would take the room that is kept for removals
                break
            try:
                kept, plans, found = plan_return(self._parts, operation, contents)
                self._write([kept], plans, came=True)
                with suppress(errors.StorageIO):  # it is home: what it weighs is measured again at times
                    self._parts.quota_guard.wrote(plans)
                self._backlog.came.update(paths)
                problems += found
            except PlanOutdated:
                stuck |= paths
            except errors.StorageIO as error:
                self._health.failed(error)
                if stops_everything(error):
                    break
                stuck |= paths
                problems.append(Problem.of(error))
        return problems

    # -- the files --------------------------------------------------------------------------------------------------
    def _write(
        self, operations: Sequence[Operation], plans: Sequence[FilePlan], came: bool = False
    ) -> dict[str, Stamp]:
        """Carry out the last operation, the journal first, then the files; those before it record what is in place
        already.

        Args:
            came: they come from the secondary location.

        Returns:
            The stamps of the written files, by path.

        Raises:
            PlanOutdated: a file is not what the plan was made against; nothing was written.
            StorageIO: nothing was written; as ``WritePending``, it may be carried out all the same.
        """
        journal, (*recorded, operation) = self._parts.journal, operations
        journal.append(operations, came)
        for edit in recorded:
            journal.mark_applied(edit.id)
        stamps: dict[str, Stamp] = {}
        try:
            if len(plans) > _SYNC_ONCE_ABOVE:
                stamps = self._place_many(plans)
            else:
                for plan in plans:
                    stamp = put_in_place(self._parts.tree, plan.path, plan.after, over=plan.old_sha)
                    stamps |= {plan.path: stamp} if stamp is not None else {}
        except FileChanged as changed:
            undone = self._roll_back(operation, plans)
            if changed.displaced is not None:
                path = changed.args[0]
                lone = FileChange(path=path, old="", new=sha256(changed.displaced), data=changed.displaced)
                self._notice([set_aside(self._parts.repository.state, lone, f"{operation.id}-between")])
            if not undone:
                raise errors.WritePending.of(
                    errors.Conflict("the file changed while it was written", path=changed.args[0])
                ) from None
            raise PlanOutdated(changed.args[0]) from None
        except errors.MemfsError as error:
            if not self._roll_back(operation, plans):
                raise errors.WritePending.of(error) from error
            raise
        journal.mark_applied(operation.id)
        return stamps

    def _place_many(self, plans: Sequence[FilePlan]) -> dict[str, Stamp]:
        """All contents are made durable at once, before the first has its name: no name ever refers to what a power
        cut takes away, with the old content gone.
        """
        tree = self._parts.tree
        staged: dict[str, str] = {}
        stamps: dict[str, Stamp] = {}
        try:
            # By folder, as each has to be opened only once then.
            contents = sorted((plan.path, plan.after, plan.old_sha) for plan in plans if plan.after is not None)
            for path, data, _ in contents:
                staged[path] = tree.stage(path, data)
            self._sync_all(plans)
            for path, data, over in contents:
                try:
                    stamps[path] = tree.place(path, staged[path], data, over)
                except FileNotFoundError:  # the folder was cleaned up
                    stamps[path] = tree.write(path, data, over=over)
                del staged[path]
            for plan in plans:
                if plan.after is None:
                    tree.remove(plan.path, durable=False, over=plan.old_sha)
            self._sync_all(plans)
        finally:
            for path, fresh in staged.items():
                with suppress(errors.MemfsError, FileNotFoundError):
                    tree.unstage(path, fresh)
        return stamps

    def _sync_all(self, plans: Sequence[FilePlan]) -> None:
        """Make all durable, on each file system that their folders are on, as some may be mounted."""
        found: dict[int, str] = {}
        for folder in sorted({plan.path.rpartition("/")[0] for plan in plans}):
            with suppress(FileNotFoundError, NotADirectoryError):
                place = os.path.join(self._parts.tree.root, folder)
                found.setdefault(os.stat(place).st_dev, place)
        for place in found.values():
            io.sync_everything(place)

    def _roll_back(self, operation: Operation, plans: Sequence[FilePlan]) -> bool:
        """Bring back what was replaced already, and take the record back, so that no process carries it out later.

        Returns:
            False where something cannot be brought back: the record stays, and its next holder carries it out
            whole, since half of it would be neither the old nor the new.
        """
        try:
            for plan in reversed(plans):
                with suppress(FileChanged):
                    if plan.old_sha != plan.new_sha and content_now(self._parts.tree, plan.path) == plan.new_sha:
                        put_in_place(self._parts.tree, plan.path, plan.before, over=plan.new_sha)
            # Only with the record is it known whose contents these are: later they would pass for a person's.
            for folder in dict.fromkeys(plan.path.rpartition("/")[0] for plan in plans):
                self._notice(sweep(self._parts, folder, operation))
        except errors.MemfsError:
            return False
        with suppress(errors.StorageIO):
            try:
                self._parts.journal.void(operation.id)
            except errors.StorageFull:
                if not self._health.release_space():
                    return False
                self._parts.journal.void(operation.id)
            return True
        return False

    # -- internal -------------------------------------------------------------------------------------------------
    def _operation(
        self,
        branch: str,
        message: str,
        signatures: Sequence[Writer],
        plans: Sequence[FilePlan],
        *,
        batch: bool = False,
        merges: str = "",
    ) -> Operation:
        return Operation(
            id=os.urandom(8).hex(),
            branch=branch,
            time=self._parts.clock().timestamp(),
            message=message,
            batch=batch,
            writers=tuple(dict.fromkeys(signatures)),
            changes=tuple(FileChange(one.path, one.old_sha, one.new_sha, one.after) for one in plans),
            merges=merges,
        )

    def _recording(self, branch: str, message: str, edits: Sequence[FilePlan], batch: bool = False) -> Operation:
        """The operation for edits that are in place: what was there before is not memfs's to bring back."""
        operation = self._operation(branch, message, [Writer(person=True)], edits, batch=batch)
        return replace(operation, changes=tuple(change._replace(old=change.new) for change in operation.changes))

    def _refuse_outdated(self, plans: Sequence[FilePlan], refused: errors.StorageIO | None) -> None:
        """What others wrote since the plan was made may concern the same ids, in other folders."""
        elsewhere = self._parts.secondary.unseen() if self._parts.secondary else set()
        unseen = set() if refused is not None else self._parts.journal.unseen()  # none of one that cannot be read
        if unseen is not None and elsewhere is not None:
            unseen |= elsewhere
        else:  # a batch that takes long to plan would be outdated for ever by those who write meanwhile
            unseen = set(self._index_sync.refresh().paths())
        ids = {stem_of(path).casefold() for path in unseen if not document_kind(path)}
        for plan in sorted(plans, key=attrgetter("path")):
            taken = stem_of(plan.path).casefold() in ids and not document_kind(plan.path)
            if taken or content_now(self._parts.seen, plan.path) != plan.old_sha:
                raise PlanOutdated(plan.path)

    def _check(self, plans: Sequence[FilePlan]) -> list[FilePlan]:
        edits = []
        for plan in plans:
            if plan.before is None or self._parts.is_local(plan.path) or self._is_ours(plan.path, plan.before):
                continue
            if self._parts.policy.adopt == "leave" and plan.old_sha != plan.expected:
                raise errors.Conflict(
                    "this file was edited by hand and the edit is not committed",
                    current=plan.old_sha,
                    path=plan.path,
                    hint="commit it with git or 'memfs commit', or pass its sha256 as expected",
                    lasting=True,
                )
            from memfs.format.secrets import refuse_file

            try:
                if not plan.reason:
                    refuse_file(plan.before, plan.path)
            except errors.SecretDetected as error:
                error.hint = (
                    "this edit by hand would go into history before it is replaced: correct or remove the file by hand"
                )
                raise
            edits.append(FilePlan(path=plan.path, before=None, after=plan.before, item=None))
        return edits

    def _is_ours(self, path: str, data: bytes) -> bool:
        held = self._parts.secondary.held().get(path) if self._parts.secondary else None
        if held is not None and held.last.new == sha256(data):
            return True
        written = self._parts.journal.latest(path)
        if written is not None:
            return written == sha256(data)
        try:
            return self._parts.repository.head_blob(path) == blob_id(data)
        except errors.HistoryError:
            return False


def signatures_of(plans: Sequence[FilePlan], source: str) -> list[Writer]:
    """Who signs for these plans, or else who wrote what they bring, without repeats; else no one in particular."""
    if (signer := current_signer()) is not None:
        return [Writer(agent=signer.agent, session=signer.session, source=source)]
    found = [
        Writer(agent=plan.item.origin.agent, session=plan.item.origin.session, source=source or plan.item.origin.tool)
        for plan in plans
        if plan.item is not None and plan.speaks
    ]
    return list(dict.fromkeys(found)) or [Writer(source=source)]


_MOST_REASONS = 3


def refuse_secrets(plans: Sequence[FilePlan]) -> None:
    """Refuse bytes with a secret that nothing allows. What history had already may come back.

    Raises:
        SecretDetected: naming the path, the rule and the line.
    """
    from memfs.format.secrets import refuse_file  # what only reads does without

    for plan in plans:
        if plan.after is not None and not plan.vetted and not plan.reason:
            refuse_file(plan.after, plan.path)


def allowed_reasons(reasons: Sequence[str]) -> str:
    """The reasons as they end a commit's message, "" where there are none."""
    found = list(dict.fromkeys(reason for reason in reasons if reason))
    more = f" and {len(found) - _MOST_REASONS} more" if len(found) > _MOST_REASONS else ""
    return f" (secret allowed: {'; '.join(found[:_MOST_REASONS])}{more})" if found else ""


def allow_in_file(parts: Parts, path: str, reason: str) -> bool:
    """Write into an item's file, on a person's behalf, why it may keep what looks like a secret.

    The change is an edit by hand like any other: it is committed with the rest of the file.

    Returns:
        Whether the file was changed: false where it holds nothing that needs a reason.

    Raises:
        FileNotFoundError, ContentError, StorageIO: nothing was changed.
    """
    from memfs.format.secrets import allowed, check_reason

    check_reason(reason)
    with parts.lock.hold("allow a secret"):
        content = parts.tree.read(path, READ_LIMIT)
        item = parts.codec.read(content.data, path, from_timestamp_ns(content.stamp.mtime_ns))
        changed, _ = allowed(item, reason)
        data = parts.codec.write(changed, path, content.data).data
        if data == content.data:
            return False
        parts.tree.write(path, data, over=sha256(content.data))
    return True

"""Writing: carrying out plans so that each is done whole or not at all.

Owns the order of a write: store lock, check of what is there, journal record made durable, files, applied mark. Also
redoes what a killed process left half done. Nothing here decides what an item means.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memfs.errors import (
    Conflict,
    CorruptRecord,
    FormatUnsupported,
    HistoryError,
    ItemTooLarge,
    MemfsError,
    NotRegularFile,
    PathEscape,
    StorageIO,
)
from memfs.files import io
from memfs.files.operation import FileChange, Operation
from memfs.files.placing import FileChanged, sha256
from memfs.files.tree import blob_id
from memfs.model import Problem, Stamp
from memfs.model.ids import stem_of
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.plan import Planned
from memfs.store.setaside import set_aside

_SYNC_ONCE_ABOVE = 64

Learn = Callable[[dict[str, Stamp]], None]


class PlanOutdated(Exception):
    """A file changed between planning and writing; plan again. Never leaves the store."""

    @property
    def path(self) -> str:
        """The file."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Who writes, as it goes into commit trailers; ``person`` marks a hand edit that memfs only records."""

    agent: str = ""
    session: str = ""
    source: str = ""
    person: bool = False

    def fields(self) -> dict[str, str | bool]:
        """As stored in the journal."""
        return {"agent": self.agent, "session": self.session, "source": self.source, "person": self.person}


def _nothing_to_learn(stamps: dict[str, Stamp]) -> None:
    del stamps


class Writing:
    """The one place where memory files change."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.noticed: list[Problem] = []

    def carry_out(
        self,
        plans: Sequence[Planned],
        message: str,
        signatures: Sequence[Signature],
        *,
        batch: bool = False,
        learn: Learn = _nothing_to_learn,
    ) -> None:
        """Write files durably: on return they survive kill -9 and power loss.

        Args:
            learn: told of the stamps of the written files, by path, before anybody else can write.

        Raises:
            PlanOutdated: a file is not what the plan was made against; nothing was written.
            Conflict: a person's edit would be replaced, and the policy is to leave those alone.
            StorageIO: nothing was written.
        """
        parts = self._parts
        with parts.lock.hold("store"), parts.tree.holding_folders():
            self._refuse_outdated(plans)
            edits = self._check(plans)
            branch = self.branch()
            operation = self._operation(branch, message, signatures, plans, batch)
            recorded = self._recording(branch, "Keep an edit made by hand", edits)
            parts.journal.append([recorded, operation] if edits else [operation])
            if edits:
                parts.journal.mark_applied(recorded.id)
            stamps = self._apply(operation, plans)
            parts.journal.mark_applied(operation.id)
            learn(stamps)

    def branch(self) -> str:
        """The branch that writes go to now; "" where HEAD is detached or cannot be read."""
        try:
            return self._parts.repository.head().ref or ""
        except HistoryError:
            return ""

    def record_edits(self, edits: Sequence[Planned], message: str) -> list[Planned]:
        """Journal changes a person made, whose files are in place already; return those that still stand."""
        parts = self._parts
        with parts.lock.hold("record edits"):
            self.noticed.extend(self._redo_all())
            standing = [edit for edit in edits if self._is_still_theirs(edit)]
            if standing:
                operation = self._recording(self.branch(), message, standing, batch=True)
                parts.journal.append([operation])
                parts.journal.mark_applied(operation.id)
        return standing

    def _is_still_theirs(self, edit: Planned) -> bool:
        found = self._sha_now(edit.path)
        return found == edit.new_sha and self._parts.journal.latest(edit.path) != found

    # -- recovery -------------------------------------------------------------------------------------------------
    def recover(self) -> list[Problem]:
        """Finish what a killed process left unfinished; report what a person changed meanwhile.

        A journal that cannot be read is reported too: reading goes on, and the next write says what is wrong.
        """
        try:
            if not self._parts.journal.unfinished():
                return []
            with self._parts.lock.hold("recover"):
                return self._redo_all()
        except (CorruptRecord, FormatUnsupported) as error:
            return [Problem.of(error)]

    def news(self) -> set[str] | None:
        """Paths other processes wrote since this was last asked; None when some may have been missed."""
        try:
            return self._parts.journal.news()
        except (CorruptRecord, FormatUnsupported):
            return None

    def _redo_all(self) -> list[Problem]:
        """Whoever holds the lock knows that the writers of unfinished operations are dead."""
        return [problem for operation in self._parts.journal.unfinished() for problem in self._redo(operation)]

    def _redo(self, operation: Operation) -> list[Problem]:
        problems: list[Problem] = []
        later = self._parts.journal.written_after(operation.id)
        for number, change in enumerate(operation.changes):
            try:
                self._parts.tree.sweep(change.path.rpartition("/")[0])
                done = change.path in later or self._redo_change(change)
            except (PathEscape, NotRegularFile, ItemTooLarge, FileChanged):
                done = False
            except StorageIO as error:
                return [*problems, Problem.of(error, change.path)]
            if not done:
                problems.append(set_aside(self._parts.repository.state, change, f"{operation.id}-{number}"))
        self._parts.journal.mark_applied(operation.id)
        return problems

    def _redo_change(self, change: FileChange) -> bool:
        """Whether the file is, or could be made, what the change says."""
        found = self._sha_now(change.path)
        if found == change.new:
            return True
        if found == change.old or (change.old == "" and found == sha256(b"")):
            self._put_in_place(change.path, change.data, over=found)
            return True
        return False

    # -- internal -------------------------------------------------------------------------------------------------
    def _operation(
        self, branch: str, message: str, signatures: Sequence[Signature], plans: Sequence[Planned], batch: bool
    ) -> Operation:
        return Operation(
            id=secrets.token_hex(8),
            branch=branch,
            time=self._parts.clock().timestamp(),
            message=message,
            batch=batch,
            writers=tuple(signature.fields() for signature in dict.fromkeys(signatures)),
            changes=self._as_changes(plans),
        )

    @staticmethod
    def _as_changes(plans: Sequence[Planned]) -> tuple[FileChange, ...]:
        return tuple(FileChange(path=plan.path, old=plan.old_sha, new=plan.new_sha, data=plan.after) for plan in plans)

    def _recording(self, branch: str, message: str, edits: Sequence[Planned], batch: bool = False) -> Operation:
        """The operation for edits that are in place: what was there before is not memfs's to bring back."""
        operation = self._operation(branch, message, [Signature(person=True)], edits, batch)
        return replace(operation, changes=tuple(replace(change, old=change.new) for change in operation.changes))

    def _refuse_outdated(self, plans: Sequence[Planned]) -> None:
        """What others wrote since the plan was made may concern the same ids, in other folders."""
        self.noticed.extend(self._redo_all())
        unseen = self._parts.journal.unseen()
        if unseen is None:
            raise PlanOutdated(plans[0].path)
        ids = {stem_of(path).casefold() for path in unseen}
        for plan in plans:
            if stem_of(plan.path).casefold() in ids or self._sha_now(plan.path) != plan.old_sha:
                raise PlanOutdated(plan.path)

    def _check(self, plans: Sequence[Planned]) -> list[Planned]:
        edits = []
        for plan in plans:
            if plan.before is None or self._is_ours(plan.path, plan.before):
                continue
            if self._parts.policy.adopt == "leave" and plan.old_sha != plan.expected:
                raise Conflict(
                    "this file was edited by hand and the edit is not committed",
                    current=plan.old_sha,
                    path=plan.path,
                    hint="commit it with git or 'memfs commit', or pass its sha256 as expected",
                )
            edits.append(Planned(path=plan.path, before=None, after=plan.before, item=None))
        return edits

    def _is_ours(self, path: str, data: bytes) -> bool:
        written = self._parts.journal.latest(path)
        if written is not None:
            return written == sha256(data)
        try:
            return self._parts.repository.head_blob(path) == blob_id(data)
        except HistoryError:
            return False

    def _sha_now(self, path: str) -> str:
        try:
            return sha256(self._parts.tree.read(path, READ_LIMIT).data)
        except FileNotFoundError:
            return ""

    def _apply(self, operation: Operation, plans: Sequence[Planned]) -> dict[str, Stamp]:
        durable = len(plans) <= _SYNC_ONCE_ABOVE
        stamps: dict[str, Stamp] = {}
        try:
            for plan in plans:
                stamp = self._put_in_place(plan.path, plan.after, over=plan.old_sha, durable=durable)
                if stamp is not None:
                    stamps[plan.path] = stamp
            if not durable:
                io.sync_everything(str(self._parts.tree.root))
        except FileChanged as changed:
            self._undo(operation, plans)
            if changed.displaced is not None:
                path = changed.args[0]
                lone = FileChange(path=path, old="", new=sha256(changed.displaced), data=changed.displaced)
                self.noticed.append(set_aside(self._parts.repository.state, lone, f"{operation.id}-between"))
            raise PlanOutdated(changed.args[0]) from None
        except MemfsError:
            self._undo(operation, plans)
            raise
        return stamps

    def _put_in_place(self, path: str, data: bytes | None, *, over: str, durable: bool = True) -> Stamp | None:
        if data is None:
            self._parts.tree.remove(path, durable=durable, over=over)
            return None
        return self._parts.tree.write(path, data, durable=durable, over=over)

    def _undo(self, operation: Operation, plans: Sequence[Planned]) -> None:
        """Bring back what was replaced already, and take the record back, so that nobody carries it out later."""
        for plan in reversed(plans):
            with contextlib.suppress(MemfsError, FileChanged):
                if plan.old_sha != plan.new_sha and self._sha_now(plan.path) == plan.new_sha:
                    self._put_in_place(plan.path, plan.before, over=plan.new_sha)
        with contextlib.suppress(StorageIO):
            self._parts.journal.void(operation.id)


def signatures_of(plans: Sequence[Planned], source: str) -> list[Signature]:
    """Who wrote the items of these plans, without repeats."""
    found = [
        Signature(
            agent=plan.item.origin.agent, session=plan.item.origin.session, source=source or plan.item.origin.tool
        )
        for plan in plans
        if plan.item is not None
    ]
    return list(dict.fromkeys(found)) or [Signature(source=source)]

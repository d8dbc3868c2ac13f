"""Writing: carrying out plans so that each is done whole or not at all.

Owns the order of a write: store lock, check of what is there, journal record made durable, files, applied mark. Also
redoes what a killed process left half done. Nothing here decides what an item means.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from memfs.errors import Conflict, MemfsError, StorageIO
from memfs.files import io
from memfs.files.journal import FileChange, Operation
from memfs.files.tree import blob_id, sha256
from memfs.model import Problem, Stamp
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.plan import Planned

_SYNC_ONCE_ABOVE = 64


class PlanOutdated(Exception):
    """A file changed between planning and writing; plan again. Never leaves the store."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one operation did: its id and the stamps of the files it wrote, by path."""

    operation: str
    stamps: dict[str, Stamp]


class Writing:
    """The one place where memory files change."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def carry_out(
        self,
        plans: Sequence[Planned],
        message: str,
        signatures: Sequence[Signature],
        *,
        batch: bool = False,
        known_bytes: frozenset[str] = frozenset(),
    ) -> Written:
        """Write files durably: on return they survive kill -9 and power loss.

        Args:
            known_bytes: sha256 of hand-edited contents the caller has read and means to replace.

        Raises:
            PlanOutdated: a file is not what the plan was made against; nothing was written.
            Conflict: a person's edit would be replaced, and the policy is to leave those alone.
            StorageIO: nothing was written.
        """
        parts = self._parts
        with parts.lock.hold("store"), parts.tree.holding_folders():
            parts.journal.catch_up()
            edits = self._check(plans, known_bytes)
            branch = parts.repository.head().ref or ""
            operation = self._operation(branch, message, signatures, plans, batch)
            recorded = self._operation(branch, "Keep an edit made by hand", [Signature(person=True)], edits, False)
            parts.journal.append([recorded, operation] if edits else [operation])
            if edits:
                parts.journal.mark_applied(recorded.id)
            stamps = self._apply(operation, plans)
            parts.journal.mark_applied(operation.id)
        return Written(operation=operation.id, stamps=stamps)

    def record_edits(self, edits: Sequence[Planned], message: str) -> str:
        """Journal changes a person made, whose files are in place already; return the operation's id."""
        parts = self._parts
        with parts.lock.hold("record edits"):
            parts.journal.catch_up()
            branch = parts.repository.head().ref or ""
            operation = self._operation(branch, message, [Signature(person=True)], edits, True)
            parts.journal.append([operation])
            parts.journal.mark_applied(operation.id)
        return operation.id

    # -- recovery -------------------------------------------------------------------------------------------------
    def recover(self) -> list[Problem]:
        """Finish what a killed process left unfinished; report what a person changed meanwhile."""
        parts = self._parts
        parts.journal.catch_up()
        unfinished = self._unfinished()
        if not unfinished:
            return []
        with parts.lock.hold("recover"):
            parts.journal.catch_up()
            return [problem for operation in self._unfinished() for problem in self._redo(operation)]

    def _unfinished(self) -> list[Operation]:
        journal = self._parts.journal
        return [operation for name, operation in journal.waiting.items() if name not in journal.applied]

    def _redo(self, operation: Operation) -> list[Problem]:
        parts = self._parts
        problems = []
        for change in operation.changes:
            parts.tree.sweep(change.path.rpartition("/")[0])
            found = self._sha_now(change.path)
            if found == change.new:
                continue
            if found == change.old or (change.old == "" and found == sha256(b"")):
                self._put_in_place(change.path, change.data, durable=True)
            else:
                problems.append(self.set_aside(change, operation.id))
        parts.journal.mark_applied(operation.id)
        return problems

    def set_aside(self, change: FileChange, operation_id: str) -> Problem:
        """Keep bytes that are not to be written over a person's change where ``memfs recover`` finds them."""
        folder = self._parts.repository.state / "recovered"
        io.make_private_folder(folder)
        if change.data is not None:
            name = f"{operation_id}-{change.path.replace('/', '%2F')}"
            io.write_file(folder / name[-240:], change.data)
        return Problem(
            path=change.path,
            code="KeptPersonsChange",
            message="this file was changed by hand after memfs wrote it; the hand's version stands",
            hint="memfs recover lists what memfs had written and brings it back",
            severity="warning",
        )

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
            changes=tuple(
                FileChange(path=plan.path, old=plan.old_sha, new=plan.new_sha, data=plan.after) for plan in plans
            ),
        )

    def _check(self, plans: Sequence[Planned], known_bytes: frozenset[str]) -> list[Planned]:
        edits = []
        for plan in plans:
            if self._sha_now(plan.path) != plan.old_sha:
                raise PlanOutdated(plan.path)
            if plan.before is not None and not self._is_ours(plan.path, plan.before):
                if self._parts.policy.adopt == "leave" and plan.old_sha not in known_bytes:
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
        return self._parts.repository.head_blob(path) == blob_id(data)

    def _sha_now(self, path: str) -> str:
        try:
            return sha256(self._parts.tree.read(path, READ_LIMIT).data)
        except FileNotFoundError:
            return ""

    def _apply(self, operation: Operation, plans: Sequence[Planned]) -> dict[str, Stamp]:
        durable = len(plans) <= _SYNC_ONCE_ABOVE
        stamps: dict[str, Stamp] = {}
        done: list[Planned] = []
        try:
            for plan in plans:
                done.append(plan)
                stamp = self._put_in_place(plan.path, plan.after, durable=durable)
                if stamp is not None:
                    stamps[plan.path] = stamp
            if not durable:
                io.sync_everything(str(self._parts.tree.root))
        except MemfsError:
            self._undo(operation, done)
            raise
        return stamps

    def _put_in_place(self, path: str, data: bytes | None, *, durable: bool) -> Stamp | None:
        if data is None:
            self._parts.tree.remove(path, durable=durable)
            return None
        return self._parts.tree.write(path, data, durable=durable)

    def _undo(self, operation: Operation, done: Sequence[Planned]) -> None:
        # A second failure leaves the record: the next open then carries the operation out, whole.
        with contextlib.suppress(StorageIO):
            for plan in reversed(done):
                self._put_in_place(plan.path, plan.before, durable=True)
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

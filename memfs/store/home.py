"""Home: the workspace's own place for writes.

Owns the order in which a write is carried out there: journal record made durable, files, applied mark; and the redoing
of what a killed process left half done. What may be written, and whether here or elsewhere, is decided above it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from memfs.errors import (
    Conflict,
    ItemTooLarge,
    MemfsError,
    NotRegularFile,
    PathEscape,
    StorageFull,
    StorageIO,
    WritePending,
)
from memfs.files import io
from memfs.files.operation import FileChange, Operation
from memfs.files.placing import FileChanged, sha256
from memfs.files.syncfs import one_of_each
from memfs.model import Problem, Stamp
from memfs.store.health import Health
from memfs.store.leftovers import content_now, sweep
from memfs.store.parts import Parts
from memfs.store.plan import Planned, PlanOutdated
from memfs.store.setaside import set_aside

_SYNC_ONCE_ABOVE = 64


class Home:
    """Journal and files of one workspace. Its callers hold the store's lock.

    Attributes:
        noticed: what was set aside in the course of a write.
    """

    def __init__(self, parts: Parts, health: Health) -> None:
        self.noticed: list[Problem] = []
        self._parts = parts
        self._health = health

    def write(self, operations: Sequence[Operation], plans: Sequence[Planned], came: bool = False) -> dict[str, Stamp]:
        """Carry out the last operation; those before it record what is in place already.

        Args:
            came: they come from the secondary location.

        Returns:
            The stamps of the written files, by path.

        Raises:
            PlanOutdated: a file is not what the plan was made against; nothing was written.
            StorageIO: nothing was written; as ``WritePending``, it may be carried out all the same.
        """
        journal = self._parts.journal
        journal.append(operations, came)
        for recorded in operations[:-1]:
            journal.mark_applied(recorded.id)
        stamps = self._apply(operations[-1], plans)
        journal.mark_applied(operations[-1].id)
        return stamps

    def _apply(self, operation: Operation, plans: Sequence[Planned]) -> dict[str, Stamp]:
        try:
            return self._place_many(plans) if len(plans) > _SYNC_ONCE_ABOVE else self._place_each(plans)
        except FileChanged as changed:
            undone = self._undone(operation, plans)
            if changed.displaced is not None:
                path = changed.args[0]
                lone = FileChange(path=path, old="", new=sha256(changed.displaced), data=changed.displaced)
                self.noticed.append(set_aside(self._parts.repository.state, lone, f"{operation.id}-between"))
            if not undone:
                raise WritePending.of(Conflict("the file changed while it was written", path=changed.args[0])) from None
            raise PlanOutdated(changed.args[0]) from None
        except MemfsError as error:
            if not self._undone(operation, plans):
                raise WritePending.of(error) from error
            raise

    def _place_each(self, plans: Sequence[Planned]) -> dict[str, Stamp]:
        found = {plan.path: self._put_in_place(plan.path, plan.after, over=plan.old_sha) for plan in plans}
        return {path: stamp for path, stamp in found.items() if stamp is not None}

    def _place_many(self, plans: Sequence[Planned]) -> dict[str, Stamp]:
        """All contents are made durable at once, before the first has its name: no name ever stands for what a power
        cut takes away, with the old content gone.
        """
        tree = self._parts.tree
        staged: dict[str, str] = {}
        stamps: dict[str, Stamp] = {}
        try:
            for plan in plans:
                if plan.after is not None:
                    staged[plan.path] = tree.stage(plan.path, plan.after)
            self._sync_all(plans)
            for plan in plans:
                if plan.after is None:
                    tree.remove(plan.path, durable=False, over=plan.old_sha)
                else:
                    stamps[plan.path] = self._place(plan.path, staged[plan.path], plan.after, plan.old_sha)
                    del staged[plan.path]
            self._sync_all(plans)
        finally:
            for path, fresh in staged.items():
                with contextlib.suppress(MemfsError, FileNotFoundError):
                    tree.unstage(path, fresh)
        return stamps

    def _place(self, path: str, fresh: str, data: bytes, over: str) -> Stamp:
        try:
            return self._parts.tree.place(path, fresh, data, over)
        except FileNotFoundError:  # somebody cleaned the folder
            return self._parts.tree.write(path, data, over=over)

    def _sync_all(self, plans: Sequence[Planned]) -> None:
        for folder in one_of_each({str((self._parts.tree.root / plan.path).parent) for plan in plans}):
            io.sync_everything(folder)

    def _put_in_place(self, path: str, data: bytes | None, *, over: str) -> Stamp | None:
        if data is None:
            self._parts.tree.remove(path, over=over)
            return None
        return self._parts.tree.write(path, data, over=over)

    def _undone(self, operation: Operation, plans: Sequence[Planned]) -> bool:
        """Bring back what was replaced already, and take the record back, so that nobody carries it out later.

        Returns:
            False where something cannot be brought back: the record stays, and whoever has the lock next carries it out
            whole, since half of it would be neither the old nor the new.
        """
        try:
            for plan in reversed(plans):
                with contextlib.suppress(FileChanged):
                    if plan.old_sha != plan.new_sha and content_now(self._parts.tree, plan.path) == plan.new_sha:
                        self._put_in_place(plan.path, plan.before, over=plan.new_sha)
        except MemfsError:
            return False
        with contextlib.suppress(StorageIO):
            try:
                self._parts.journal.void(operation.id)
            except StorageFull:
                if not self._health.release_ballast():
                    return False
                self._parts.journal.void(operation.id)
            return True
        return False

    # -- recovery -------------------------------------------------------------------------------------------------
    def redo_all(self) -> list[Problem]:
        """Finish what is unfinished: whoever holds the lock knows that its writers are dead."""
        problems = [problem for operation in self._parts.journal.unfinished() for problem in self._redo(operation)]
        if any(problem.code == StorageFull.__name__ for problem in problems) and self._health.release_ballast():
            return self.redo_all()
        return problems

    def _superseded(self, operation: Operation) -> set[str]:
        """The paths that later operations name, those in the secondary location included."""
        later = self._parts.journal.written_after(operation.id)
        secondary = self._parts.secondary
        if secondary is None or operation.id in secondary.journal.waiting:
            return later
        return later | secondary.held().keys()

    def _redo(self, operation: Operation) -> list[Problem]:
        problems: list[Problem] = []
        later, swept = self._superseded(operation), set[str]()
        for number, change in enumerate(operation.changes):
            try:
                folder = change.path.rpartition("/")[0]
                if folder not in swept:
                    problems += sweep(self._parts, folder, operation)
                    swept.add(folder)
                done = change.path in later or self._redo_change(change)
            except (PathEscape, NotRegularFile, ItemTooLarge, FileChanged):
                done = False
            except StorageIO as error:
                return [*problems, Problem.of(error, change.path)]
            try:
                if not done:
                    problems.append(set_aside(self._parts.repository.state, change, f"{operation.id}-{number}"))
            except StorageIO as error:
                return [*problems, Problem.of(error)]
        self._parts.journal.mark_applied(operation.id)
        return problems

    def _redo_change(self, change: FileChange) -> bool:
        """Whether the file is, or could be made, what the change says."""
        found = content_now(self._parts.tree, change.path)
        if found == change.new:
            return True
        if found == change.old or (change.old == "" and found == sha256(b"")):
            self._put_in_place(change.path, change.data, over=found)
            return True
        return False

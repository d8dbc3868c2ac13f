"""Homecoming: what the secondary location took is carried out in the workspace, in order and each operation once.

Owns that rule. An operation keeps its id on the way, and is forgotten there only when the workspace's journal has it:
a process killed at any point leaves it in one place or in both, never in none, and never twice in history.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memfs.errors import HistoryError, ItemTooLarge, MemfsError, NotRegularFile, PathEscape, StorageIO
from memfs.files.operation import FileChange, Operation
from memfs.files.placing import sha256
from memfs.model import Problem
from memfs.store.away import Away
from memfs.store.destination import Write
from memfs.store.health import Health, stops_everything
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.plan import Planned, PlanOutdated
from memfs.store.setaside import set_aside

_AT_ONCE = 200
_DETACHED = "HEAD"


class Homecoming:
    """Brings writes home for one workspace. Its callers hold the locks of both places.

    Attributes:
        came: paths that came home and that nobody was told of yet.
    """

    def __init__(self, parts: Parts, health: Health, write: Write, away: Away) -> None:
        self.came: set[str] = set()
        self._parts = parts
        self._health = health
        self._write = write
        self._away = away

    def waiting(self) -> int:
        """How many operations the secondary location has, be it that it only has to forget them."""
        secondary = self._parts.secondary
        if secondary is None:
            return 0
        secondary.operations()  # reads what others appended
        return len(secondary.journal.waiting)

    def bring(self) -> list[Problem]:
        """Carry out what waits, the oldest 200 at a time; nothing while the workspace's disk takes no writes.

        What a person changed meanwhile stands; ours is set aside, and told.
        """
        secondary = self._parts.secondary
        if secondary is None or secondary.failure is not None or not self.waiting():
            return []
        operations = secondary.operations()
        if operations and not self._health.probe():
            return []
        try:
            return self._bring_in_order(operations)
        finally:
            home = [name for name in secondary.journal.waiting if self._parts.journal.knows(name)]
            with contextlib.suppress(MemfsError):
                if home:
                    secondary.drop(home)
                    self._away.note(secondary.folder, len(secondary.journal.waiting))

    def _bring_in_order(self, operations: Sequence[Operation]) -> list[Problem]:
        later = _later_contents(operations)
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
                problems += self._bring(operation, contents)
            except PlanOutdated:
                stuck |= paths
            except StorageIO as error:
                self._health.failed(error)
                if stops_everything(error):
                    break
                stuck |= paths
                problems.append(Problem.of(error))
        return problems

    def _bring(self, operation: Operation, later: Mapping[str, frozenset[str]]) -> list[Problem]:
        kept: list[FileChange] = []
        plans: list[Planned] = []
        problems: list[Problem] = []
        elsewhere = self._is_elsewhere(operation.branch)
        for number, change in enumerate(operation.changes):
            if not elsewhere and not self._fits(change, later.get(change.path, frozenset()), plans):
                problems.append(set_aside(self._parts.repository.state, change, f"{operation.id}-{number}"))
            else:
                kept.append(change)
        self._write([replace(operation, changes=tuple(kept))], plans)
        with contextlib.suppress(StorageIO):  # it is home: what it weighs is measured again at times
            self._parts.gate.wrote(plans)
        self.came.update(change.path for change in operation.changes)
        return problems

    def _is_elsewhere(self, branch: str) -> bool:
        """Whether it belongs to a branch that is not checked out: then it goes into history, and the files stay."""
        repository = self._parts.repository
        head = repository.head()
        if not branch or head.damage or (head.ref or _DETACHED) == branch:
            return False
        try:
            return repository.ref_commit(branch) is not None
        except HistoryError:
            return False

    def _fits(self, change: FileChange, later: frozenset[str], plans: list[Planned]) -> bool:
        """Whether the file is as the change left or found it, or as a later one found it; plan it where need be."""
        try:
            before = self._parts.tree.read(change.path, READ_LIMIT).data
        except FileNotFoundError:
            before = None
        except (PathEscape, NotRegularFile, ItemTooLarge):
            return False
        found = "" if before is None else sha256(before)
        if found == change.new:
            return True
        if found == change.old or (change.old == "" and not before):
            plans.append(Planned(path=change.path, before=before, after=change.data, item=None))
            return True
        return found in later


def _later_contents(operations: Sequence[Operation]) -> list[Mapping[str, frozenset[str]]]:
    """For each operation: the contents that those after it leave or find, by path."""
    found: list[Mapping[str, frozenset[str]]] = []
    known: dict[str, frozenset[str]] = {}
    for operation in reversed(operations):
        found.append({change.path: known.get(change.path, frozenset()) for change in operation.changes})
        for change in operation.changes:
            known[change.path] = known.get(change.path, frozenset()) | {change.old, change.new}
    return found[::-1]

"""Committing: what waits in the journal becomes git history.

Owns when commits wait, how waiting operations are cut into commits, which branch they go to, and the person's own
edits. How a commit is made is ``memfs.history``'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memfs.errors import GitBusy, HistoryError, LockTimeout, StorageIO
from memfs.files.journal import FileChange, Operation
from memfs.files.tree import sha256
from memfs.history import commits
from memfs.history.commits import Change, Group, Writer
from memfs.model import Problem
from memfs.store.edits import HandEdits
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.values import Flushed
from memfs.store.writing import Writing

_DETACHED = "HEAD"


@dataclass(slots=True)
class _Progress:
    commits: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)


class Committing:
    """Turns waiting operations into commits. One process at a time, under the commit lock."""

    def __init__(self, parts: Parts, writing: Writing, edits: HandEdits) -> None:
        self._parts = parts
        self._writing = writing
        self._edits = edits

    def flush(
        self, *, adopt: bool = False, include_staged: bool = False, quiet_seconds: float = 0, message: str = ""
    ) -> Flushed:
        """Commit what waits, and a person's edits too when ``adopt`` is set.

        It does not raise when git is busy or refuses: the journal keeps everything, and ``reason`` says why it waits.
        """
        try:
            with self._parts.commit_lock.hold("commit", timeout=10):
                return self._flush(adopt, include_staged, quiet_seconds, message)
        except (HistoryError, StorageIO, LockTimeout) as error:
            return Flushed(waiting=self.waiting(), reason=str(error))

    def waiting(self) -> int:
        """How many operations wait for their commit."""
        self._parts.journal.catch_up()
        return len(self._parts.journal.waiting)

    def _flush(self, adopt: bool, include_staged: bool, quiet_seconds: float, message: str) -> Flushed:
        parts = self._parts
        busy = parts.repository.busy()
        if busy:
            raise GitBusy(busy, hint="memfs commits by itself when that is over")
        done = _Progress()
        done.notes.extend(commits.recover(parts.repository))
        done.notes.extend(self._writing.recover())
        adopted: tuple[str, ...] = ()
        if adopt:
            found = self._edits.find(include_staged, quiet_seconds)
            done.skipped.extend(found.staged)
            adopted = tuple(plan.path for plan in found.plans)
            if found.plans:
                self._writing.record_edits(found.plans, message or _edit_message(adopted))
        reasons = self._commit_waiting(done)
        return Flushed(
            commits=tuple(done.commits),
            adopted=adopted,
            skipped=tuple(dict.fromkeys(done.skipped)),
            waiting=self.waiting(),
            reason="; ".join(reasons),
            notes=tuple(done.notes),
        )

    def _commit_waiting(self, done: _Progress) -> list[str]:
        with self._parts.lock.hold("copy what waits"):
            self._parts.journal.catch_up()
            operations = list(self._parts.journal.waiting.values())
        current = self._parts.repository.head().ref or _DETACHED
        reasons = []
        for ref, chosen in self._by_branch(operations, current).items():
            try:
                self._commit(self._without_removed(chosen, done) if ref == current else chosen, ref, done)
                self._settle(chosen, ref)
            except GitBusy as error:
                reasons.append(str(error))
        return reasons

    def _commit(self, operations: Sequence[Operation], ref: str, done: _Progress) -> None:
        groups = windows(operations)
        if groups:
            result = commits.commit(self._parts.repository, groups, ref)
            done.commits.extend(result.commits)
            done.skipped.extend(result.left_staged)

    def _by_branch(self, operations: Iterable[Operation], current: str) -> dict[str, list[Operation]]:
        chosen: dict[str, list[Operation]] = {}
        for operation in operations:
            elsewhere = operation.branch and operation.branch != current
            known = elsewhere and self._parts.repository.ref_commit(operation.branch) is not None
            chosen.setdefault(operation.branch if known else current, []).append(operation)
        return chosen

    def _without_removed(self, operations: Sequence[Operation], done: _Progress) -> list[Operation]:
        """Leave out files that somebody removed after they were written; their bytes are set aside."""
        last: dict[str, tuple[Operation, FileChange]] = {}
        for operation in operations:
            last.update((change.path, (operation, change)) for change in operation.changes)
        removed = set()
        for path, (operation, change) in last.items():
            if change.data is not None and self._parts.tree.entry(path) is None:
                removed.add(path)
                done.notes.append(self._writing.set_aside(change, operation.id))
        if not removed:
            return list(operations)
        return [_reduced(operation, removed) for operation in operations]

    def _settle(self, operations: Sequence[Operation], ref: str) -> None:
        """Forget what is committed; where the branch is not checked out (any more), its files leave the tree."""
        parts = self._parts
        with parts.lock.hold("settle what is committed"):
            head = parts.repository.head()
            if (head.ref or _DETACHED) != ref:
                self._take_out(operations, head.commit)
            parts.journal.drop([operation.id for operation in operations])

    def _take_out(self, operations: Sequence[Operation], commit: str | None) -> None:
        for path, digest in _last_contents(operations).items():
            if commit and self._parts.repository.read(commit, path) is not None:
                continue
            try:
                content = self._parts.tree.read(path, READ_LIMIT)
            except FileNotFoundError:
                continue
            if sha256(content.data) == digest:
                self._parts.tree.remove(path)


def windows(operations: Iterable[Operation]) -> list[Group]:
    """Cut operations, in order, into commits: no path twice, no two writers, each batch alone (design section 5)."""
    cut: list[list[Operation]] = []
    paths: set[str] = set()
    for operation in operations:
        if not operation.changes:
            continue
        touched = {change.path for change in operation.changes}
        last = cut[-1][-1] if cut else None
        if last is None or operation.batch or last.batch or last.writers != operation.writers or touched & paths:
            cut.append([])
            paths = set()
        cut[-1].append(operation)
        paths |= touched
    return [_group(members) for members in cut]


def _group(operations: Sequence[Operation]) -> Group:
    return Group(
        changes=tuple(
            Change(path=change.path, data=change.data) for operation in operations for change in operation.changes
        ),
        message=_message(operations),
        writers=tuple(_writer(fields) for fields in operations[0].writers),
        time=datetime.fromtimestamp(operations[-1].time, UTC),
    )


def _writer(fields: dict[str, object]) -> Writer:
    return Writer(
        agent=str(fields.get("agent") or ""),
        session=str(fields.get("session") or ""),
        source=str(fields.get("source") or ""),
        person=bool(fields.get("person")),
    )


def _message(operations: Sequence[Operation]) -> str:
    sentences = [operation.message for operation in operations]
    if len(sentences) == 1:
        return sentences[0]
    verbs = {sentence.split(" ", 1)[0] for sentence in sentences}
    verb = verbs.pop() if len(verbs) == 1 else "Change"
    return f"{verb} {len(sentences)} memories\n\n" + "\n".join(f"- {sentence}" for sentence in sentences)


def _reduced(operation: Operation, removed: set[str]) -> Operation:
    changes = tuple(change for change in operation.changes if change.path not in removed)
    return Operation(
        id=operation.id,
        branch=operation.branch,
        time=operation.time,
        message=operation.message,
        batch=operation.batch,
        writers=operation.writers,
        changes=changes,
    )


def _last_contents(operations: Iterable[Operation]) -> dict[str, str]:
    return {change.path: change.new for operation in operations for change in operation.changes if change.new}


def _edit_message(paths: Sequence[str]) -> str:
    name = paths[0].rpartition("/")[2].rpartition(".")[0] if len(paths) == 1 else f"{len(paths)} files"
    return f"Edit {name} by hand"

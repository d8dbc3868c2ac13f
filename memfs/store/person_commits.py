"""Finds out which waiting writes a person committed with git.

Goes by the bytes alone: whether a commit was made with ``commit``, ``commit -a``, in part, amended or rebased, what
counts is what HEAD has at a path. Nothing is committed, and no file of the working tree changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from memfs.errors import MemfsError
from memfs.fs.atomic_replace import sha256
from memfs.fs.operation import FileChange, Operation
from memfs.model import Problem
from memfs.store.parts import Parts
from memfs.store.recovery import content_now, keep_replaced, set_aside


@dataclass(slots=True)
class _Versions:
    """What waits for one path, oldest first.

    Attributes:
        names: of each version, as contents that were set aside are called.
        done: how many of the versions, from the first on, need no commit any more.
        displaced: a person's own version is in place of all of them.
    """

    changes: list[FileChange] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    done: int = 0
    displaced: bool = False


class PersonCommits:
    """Notices what a person committed of one workspace."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def notice(self, *, thorough: bool = False) -> list[Problem]:
        """Let go of waiting writes that HEAD holds, or in whose place a person put something else.

        Bytes of theirs that HEAD does not hold are set aside first. One who is at work in the repository, or lacks the
        right to write, leaves everything as it is: the next one notices.

        Args:
            thorough: look also where HEAD has not moved since this was last done, at every file that waits.

        Returns:
            What a person changed after memfs had written it.
        """
        try:
            if not self._wanted(thorough):
                return []
            with self._parts.commit_lock.hold("notice commits", timeout=0):
                return self.notice_locked(thorough=thorough)
        except MemfsError:  # a write or commit reports what is wrong
            return []

    def notice_locked(self, *, thorough: bool = False) -> list[Problem]:
        """As ``notice``, for the holder of the repository's ``commit.lock``.

        Raises:
            StorageIO, LockTimeout: nothing was let go of.
        """
        parts = self._parts
        if not self._wanted(thorough) or parts.repository.busy():
            return []
        with parts.lock.hold("notice commits"):
            operations, head = parts.journal.operations(), parts.repository.head().commit or ""
            if parts.journal.unfinished() or any(operation.merges for operation in operations):
                return []
            moved = head != parts.journal.tip
            versions = _by_path(operations)
            for path, waiting in versions.items():
                self._judge(path, waiting, head, moved)
            notes = list(self._set_aside(versions, head))
            self._let_go(operations, versions, head, moved)
        return notes

    def _wanted(self, thorough: bool) -> bool:
        parts = self._parts
        if parts.policy.commit != "manual" or not parts.journal.operations():
            return False
        head = parts.repository.head()
        return not head.damage and head.commit is not None and (thorough or head.commit != parts.journal.tip)

    def _judge(self, path: str, waiting: _Versions, head: str, moved: bool) -> None:
        """Decide how many of the versions need no commit any more."""
        ids = [self._blob_id(change) for change in waiting.changes]
        committed = self._committed(head, path)
        as_before = not moved or self._digest(committed) == waiting.changes[0].old
        if committed in ids:  # also where a later write took an earlier one back
            waiting.done = len(ids) - ids[::-1].index(committed)
            return
        now = content_now(self._parts.tree, path)
        if now == waiting.changes[-1].new:
            return
        # A person restored what HEAD has, or committed something else and perhaps went on from there.
        if now == self._digest(committed) or not as_before:
            waiting.done, waiting.displaced = len(ids), True

    def _set_aside(self, versions: dict[str, _Versions], head: str) -> Iterator[Problem]:
        state = self._parts.repository.state
        for path, waiting in versions.items():
            held = self._committed(head, path) if waiting.done else None
            for name, change in zip(waiting.names[: waiting.done], waiting.changes, strict=False):
                if change.data is None or self._blob_id(change) == held:
                    continue
                if waiting.displaced:
                    yield set_aside(state, change, name)
                else:
                    keep_replaced(state, path, change.data)

    def _let_go(self, operations: Sequence[Operation], versions: dict[str, _Versions], head: str, moved: bool) -> None:
        gone, reduced = set(), {}
        for operation in operations:
            left = []
            for change in operation.changes:
                waiting = versions[change.path]
                if waiting.done:
                    waiting.done -= 1
                else:
                    left.append(change)
            if not left:
                gone.add(operation.id)
            elif len(left) < len(operation.changes):
                reduced[operation.id] = replace(operation, changes=tuple(left))
        if gone or reduced or moved:
            self._parts.journal.drop(gone, tip=head, reduced=reduced)

    def _committed(self, head: str, path: str) -> str | None:
        entry = self._parts.repository.entry(head, path)
        return entry.id if entry else None

    def _blob_id(self, change: FileChange) -> str | None:
        return None if change.data is None else self._parts.repository.blob_id(change.data)

    def _digest(self, blob: str | None) -> str | None:
        """The sha256 of a committed content, "" for none; None where it cannot be read, which is like no other."""
        if blob is None:
            return ""
        with contextlib.suppress(MemfsError):
            return sha256(self._parts.repository.blob(blob))
        return None


def _by_path(operations: Sequence[Operation]) -> dict[str, _Versions]:
    found: dict[str, _Versions] = {}
    for operation in operations:
        for number, change in enumerate(operation.changes):
            versions = found.setdefault(change.path, _Versions())
            versions.changes.append(change)
            versions.names.append(f"{operation.id}-{number}")
    return found

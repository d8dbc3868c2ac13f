"""Leftovers: temporary files that a killed writer of memfs left, one of which may hold what a person had saved.

Owns telling those bytes from memfs's own, and keeping them when the rest is removed. What a power cut tore has a fresh
name and is not even looked at: what has a holding name was durable before it got it (decision 0044).
"""

from __future__ import annotations

from collections.abc import Sequence

from memfs.errors import HistoryError
from memfs.files.operation import FileChange, Operation
from memfs.files.placing import sha256
from memfs.files.tree import View
from memfs.history.repository import Repository
from memfs.model import Problem
from memfs.model.problem import WARNING
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.setaside import keep_aside


def sweep(parts: Parts, folder: str, operation: Operation) -> list[Problem]:
    """Remove what was left in a folder when an operation was killed; what is neither side of it is set aside first.

    Raises:
        StorageIO: what could not be kept is still there.
    """
    problems: list[Problem] = []

    def look(data: bytes) -> None:
        if any(_is_side(change, data) for change in operation.changes) or _is_known(parts, data):
            return
        path = _place(parts, folder, operation.changes)
        keep_aside(parts.repository.state, path, data, f"{operation.id}-saved-{sha256(data)[:12]}")
        problems.append(_kept(path))

    parts.tree.sweep(folder, look)
    return problems


def _is_known(parts: Parts, data: bytes) -> bool:
    """Whether these bytes are in an earlier write, or in git: a power cut brings back what that write had removed."""
    earlier = (change for operation in parts.journal.operations() for change in operation.changes)
    digest = sha256(data)
    return any(digest in (change.old, change.new) for change in earlier) or _is_in_git(parts.repository, data)


def _is_in_git(repository: Repository, data: bytes) -> bool:
    try:
        return repository.blob(repository.blob_id(data)) == data
    except HistoryError:
        return False


def _is_side(change: FileChange, data: bytes) -> bool:
    """Whether these are the bytes before or after a change, or as many of the latter as could be written."""
    if change.data is not None and change.data.startswith(data):
        return True
    return not data or sha256(data) in (change.old, change.new)


def _place(parts: Parts, folder: str, changes: Sequence[FileChange]) -> str:
    """Which file such bytes were saved in: changes are carried out in order, and the last that was done has them."""
    inside = [change for change in changes if change.path.rpartition("/")[0] == folder]
    done = [change.path for change in inside if content_now(parts.tree, change.path) == change.new]
    return done[-1] if done else inside[0].path


def _kept(path: str) -> Problem:
    return Problem(
        path=path,
        code="KeptPersonsChange",
        message="this file was saved in the very moment of a write that was killed; what was saved is set aside",
        hint="memfs recover lists it and brings it back",
        severity=WARNING,
    )


def content_now(view: View, path: str) -> str:
    """The sha256 of what a file holds now, "" where there is none."""
    try:
        return sha256(view.read(path, READ_LIMIT).data)
    except FileNotFoundError:
        return ""

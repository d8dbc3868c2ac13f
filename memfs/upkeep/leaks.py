"""Leaks: secrets that lie in files of the workspace, or in its last commit, although memfs would not have written them.

Owns finding them and saying what to do. What a secret looks like is ``memfs.files.secrets``'s business; taking one out
of history is that of erasing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from memfs.errors import HistoryError, MemfsError, SecretDetected
from memfs.files.secrets import Finding, find_likely, found_in_file, reason_in_file, secret_error
from memfs.files.tree import blob_id
from memfs.model import Problem
from memfs.model.problem import WARNING
from memfs.store import Store
from memfs.store.edits import ROOT_FILES
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

_LIKELY_SHOWN = 3


class Examined(Protocol):
    """What is looked at: the checker of one workspace."""

    @property
    def store(self) -> Store:
        """Its store."""

    @property
    def parts(self) -> Parts:
        """Its parts."""


def leaks(checker: Examined) -> Iterator[Problem]:
    """Every secret that nothing allows, in the files and in the last commit; and what may be one."""
    known = {(row.path, row.line) for row in checker.store.problems() if row.code == SecretDetected.__name__}
    committed = _committed(checker.parts)
    for path in (*ROOT_FILES, *checker.store.edits.own_paths()):
        data = _read(checker.parts, path)
        if data is None:
            continue
        kept = committed.pop(path, "") == blob_id(data)
        problems = [_in_file(finding, path, kept) for finding in _unallowed(data, path)]
        yield from (problem for problem in problems if kept or (path, problem.line) not in known)
        if not problems:
            yield from _likely(data, path)
        if not kept:
            yield from _in_head(checker.parts, path)
    for path in committed:
        yield from _in_head(checker.parts, path)


def leaking(parts: Parts, paths: Iterable[str]) -> list[str]:
    """Those of the files that hold a secret nothing allows."""
    return [path for path in paths if (data := _read(parts, path)) is not None and _unallowed(data, path)]


def _unallowed(data: bytes, path: str) -> list[Finding]:
    found = found_in_file(data, path)
    return found if found and not reason_in_file(data, path) else []


def _in_file(finding: Finding, path: str, kept: bool) -> Problem:
    problem = Problem.of(secret_error(finding, path))
    if not kept:
        return problem
    return Problem(
        path=path,
        code=problem.code,
        message=f"{problem.message}; git has it already",
        line=problem.line,
        hint="revoke it; 'memfs erase' takes it out of history; or say in the file why it may stay",
    )


def _likely(data: bytes, path: str) -> Iterator[Problem]:
    if reason_in_file(data, path):
        return
    for finding in find_likely(data.decode("utf-8", "replace"))[:_LIKELY_SHOWN]:
        yield Problem(
            path=path,
            code="PossibleSecret",
            message="a long word without any order may be a key or password",
            line=finding.line,
            hint="if it is one, take it out and revoke it",
            severity=WARNING,
        )


def _in_head(parts: Parts, path: str) -> Iterator[Problem]:
    """What the last commit still holds of a file that is gone or another one by now."""
    try:
        head = parts.repository.head().commit
        data = parts.repository.read(head, path) if head else None
    except HistoryError:
        return  # told by the look at history
    for finding in _unallowed(data, path) if data else ():
        yield Problem(
            path=path,
            code="SecretInHistory",
            message=f"the last commit has {finding.what} (rule {finding.rule} at line {finding.line})",
            hint="revoke it; 'memfs erase' takes it out of history",
            severity=WARNING,
        )


def _committed(parts: Parts) -> dict[str, str]:
    """The files of the last commit by path, with their blob ids."""
    try:
        head = parts.repository.head().commit
        found = dict(parts.repository.tree(head, CONTENT)) if head else {}
        for path in ROOT_FILES:
            blob = parts.repository.head_blob(path)
            if blob is not None:
                found[path] = blob
    except HistoryError:
        return {}
    return found


def _read(parts: Parts, path: str) -> bytes | None:
    try:
        return parts.tree.read(path, READ_LIMIT).data
    except (FileNotFoundError, MemfsError):
        return None

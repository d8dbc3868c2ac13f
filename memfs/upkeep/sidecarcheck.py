"""Sidecars under examination: those that a document refers to and that are missing or damaged, and those left over.

Owns what ``memfs check`` says of them, and the removal of what nothing refers to. What a sidecar is, ``sidecars`` of
the store knows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from memfs.errors import HistoryError, LockTimeout, MemfsError
from memfs.history.tips import blobs_at_tips
from memfs.model import Problem
from memfs.model.problem import WARNING
from memfs.model.statepaths import SIDECAR_SUFFIX, document_kind, document_of_sidecar
from memfs.store import sidecars
from memfs.store.parts import CONTENT, READ_LIMIT, Parts
from memfs.upkeep.archiveindex import archive_lock

if TYPE_CHECKING:
    from memfs.upkeep.check import Checker

_YOUNG_NS = 3600 * 10**9


def missing(checker: Checker) -> Iterator[Problem]:
    """References to sidecars that are not here."""
    for path, data in _referring(checker.parts):
        for beside in sidecars.named_in(data, path):
            if checker.parts.tree.entry(beside) is None:
                yield Problem(
                    path=path,
                    code="SidecarMissing",
                    message=f"a value of this document lies in {beside}, which is not here",
                    hint="such files are not in git: copy it from where it was written, or from a backup or checkpoint",
                )


def damaged(checker: Checker) -> Iterator[Problem]:
    """Sidecars whose content is not what their documents say; every byte is read (S18)."""
    parts = checker.parts
    for path, data in _referring(parts):
        if all(parts.tree.entry(beside) is not None for beside in sidecars.named_in(data, path)):
            yield from (Problem.of(error, path) for error in sidecars.verify(parts, data, path))


def left(checker: Checker) -> Iterator[Problem]:
    """Sidecars that no document refers to."""
    for path in unreferred(checker.parts):
        yield Problem(
            path=path,
            code="LeftoverSidecar",
            message="nothing refers to this file: an earlier version of its document did, or a killed writer left it",
            hint="memfs check --fix removes it",
            severity=WARNING,
        )


def remove_left(parts: Parts) -> int:
    """Remove the sidecars that no document refers to; return how many.

    None while iterations go into an archive or come back: sidecars lie there without their documents meanwhile.
    """
    with suppress(LockTimeout), archive_lock(parts).hold("remove sidecars", timeout=0):
        with parts.lock.hold("remove sidecars"):
            found = unreferred(parts)
            for path in found:
                parts.tree.remove(path)
        return len(found)
    return 0


def unreferred(parts: Parts) -> list[str]:
    """Sidecars to which neither a document, nor what waits for its commit, nor the last commit of any branch refers.

    One that is younger than an hour is not among them: its document may be about to be written.
    """
    now = time.time_ns()
    return [
        entry.path
        for entry in parts.tree.scan(CONTENT)
        if entry.regular
        and entry.path.endswith(SIDECAR_SUFFIX)
        and (document := document_of_sidecar(entry.path))
        and not abs(now - entry.mtime_ns) < _YOUNG_NS  # a disk's clock may be ahead
        and not _referred_to(parts, entry.path, document)
    ]


def _referred_to(parts: Parts, sidecar: str, document: str) -> bool:
    """Whether any version of its document that may be needed refers to a sidecar; so too where history is damaged."""
    try:
        return any(sidecar in sidecars.named_in(data, document) for data in _versions(parts, document))
    except HistoryError:
        return True


def _versions(parts: Parts, path: str) -> Iterator[bytes]:
    for operation in parts.journal.operations():
        yield from (change.data for change in operation.changes if change.path == path and change.data is not None)
    with suppress(FileNotFoundError, MemfsError):
        yield parts.seen.read(path, READ_LIMIT).data
    for blob in blobs_at_tips(parts.repository, path):
        yield parts.repository.blob(blob)


def _referring(parts: Parts) -> Iterator[tuple[str, bytes]]:
    for entry in parts.tree.scan(CONTENT):
        if not entry.regular or not document_kind(entry.path):
            continue
        try:
            data = parts.tree.read(entry.path, READ_LIMIT).data
        except (FileNotFoundError, MemfsError):
            continue  # told of as a document
        if sidecars.holds_reference(data):
            yield entry.path, data

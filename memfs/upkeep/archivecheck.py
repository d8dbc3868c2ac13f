"""Checking archives: what is damaged in their indexes and payloads.

Owns what ``memfs check`` says of archives. A payload that is not here is no damage: history has its documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memfs.errors import ArchiveInvalid
from memfs.model import Problem
from memfs.model.statepaths import ARCHIVE
from memfs.store.parts import Parts
from memfs.upkeep.archivefile import damaged as damage_in
from memfs.upkeep.archivefile import verify
from memfs.upkeep.archiveindex import INDEX_LIMIT, INDEX_SUFFIX, Index, decode, payload_path

if TYPE_CHECKING:
    from memfs.upkeep.check import Checker


def indexes(checker: Checker) -> Iterator[Problem]:
    """Indexes of archives that cannot be read."""
    for _, found in _read(checker.parts):
        if isinstance(found, Problem):
            yield found


def payloads(checker: Checker) -> Iterator[Problem]:
    """Payloads that are not what their indexes say, every byte read."""
    for _, found in _read(checker.parts):
        if isinstance(found, Problem):
            continue
        path = payload_path(found.name)
        try:
            fd = checker.parts.tree.open_read(path)
        except FileNotFoundError:
            continue
        try:
            wrong = verify(fd, found.frames, found.members, path)
        finally:
            os.close(fd)
        if wrong:
            reason = "; ".join(f"{name} {why}".strip() for name, why in list(wrong.items())[:3])
            yield Problem.of(damage_in(reason, path), path)


def _read(parts: Parts) -> Iterator[tuple[str, Index | Problem]]:
    for entry in sorted(parts.tree.scan(ARCHIVE)):
        if not entry.regular or not entry.path.endswith(INDEX_SUFFIX):
            continue
        try:
            yield entry.path, decode(parts.tree.read(entry.path, INDEX_LIMIT).data, entry.path)
        except FileNotFoundError:
            continue
        except ArchiveInvalid as error:
            yield entry.path, Problem.of(error, entry.path)

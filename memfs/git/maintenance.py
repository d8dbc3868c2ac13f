"""Packs objects and writes the commit-graph, so that the repository stays small and its log fast.

Nothing is ever pruned. The caller holds ``commit.lock``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from memfs.fs import io
from memfs.git.repository import Repository

PATIENCE = 900.0
# A commit of one item writes six or seven loose objects, spread evenly over 256 folders: this many are 1,000 commits.
LOOSE_DUE = 6000
PACKS_DUE = 40
PACKS_JOINED = 8
_SAMPLED = ("17", "5e", "a3", "d9")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceResult:
    """What maintenance did: loose objects, packs, and bytes on disk, before and after."""

    loose_before: int
    loose_after: int
    packs_before: int
    packs_after: int
    bytes_before: int
    bytes_after: int


def due(repository: Repository) -> bool:
    """Whether about 1,000 commits have gathered since objects were last packed; looks at five folders only."""
    folder = repository.common_dir / "objects"
    loose = sum(len(_names(folder / name)) for name in _SAMPLED) * 256 // len(_SAMPLED)
    packs = sum(name.endswith(".pack") for name in _names(folder / "pack"))
    return loose >= LOOSE_DUE or packs >= PACKS_DUE


def maintain(repository: Repository) -> MaintenanceResult:
    """Pack loose objects, join many packs, write the commit-graph with changed paths; the caller holds ``commit.lock``.

    Raises:
        GitFailed: git refused; the repository is as usable as before.
    """
    loose_before, packs_before, bytes_before = _measure(repository)
    # One pack of all lets git store each version as a difference; what is unreachable is kept, as without joining.
    join = ("-a", "-k") if packs_before >= PACKS_JOINED else ()
    repository.git.run("repack", "-d", "-q", *join, timeout=PATIENCE)
    if repository.head_commit() is not None:
        arguments = ("write", "--reachable", "--changed-paths", "--split", "--no-progress")
        repository.git.run("commit-graph", *arguments, timeout=PATIENCE)
    for name in ("pack", "info", "info/commit-graphs"):
        folder = repository.common_dir / "objects" / name
        if folder.is_dir():
            io.sync_folder(folder)
    loose_after, packs_after, bytes_after = _measure(repository)
    return MaintenanceResult(
        loose_before=loose_before,
        loose_after=loose_after,
        packs_before=packs_before,
        packs_after=packs_after,
        bytes_before=bytes_before,
        bytes_after=bytes_after,
    )


def _measure(repository: Repository) -> tuple[int, int, int]:
    loose = packs = size = 0
    for folder, _, names in os.walk(repository.common_dir / "objects"):
        short = len(os.path.basename(folder)) == 2
        loose += len(names) if short else 0
        packs += sum(name.endswith(".pack") for name in names)
        size += sum(_size(Path(folder) / name) for name in names)
    return loose, packs, size


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []

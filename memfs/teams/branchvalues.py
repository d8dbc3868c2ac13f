"""Branchvalues: how a branch of an agent stands, and what was done with it.

Values alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memfs.store.values import Flushed
    from memfs.teams.merger import Joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """How one branch stands.

    Attributes:
        name: as people name it here; ``branch`` as git does.
        commit: its tip, "" where the branch is gone.
        folder: the workspace in its working tree, to be used as ``MEMFS_WORKSPACE``; None where it has none.
        agent: who works there.
        started: when, as ISO 8601.
        ready: false where making its working tree was interrupted; ``start`` takes it up again.
        ahead: how many commits it has that the checked-out line lacks.
        waiting: how many writes in its working tree are not committed yet.
        quarantined: whether it is not to be read; ``reason`` says why.
    """

    name: str
    branch: str
    commit: str = ""
    folder: Path | None = None
    agent: str = ""
    started: str = ""
    ready: bool = True
    ahead: int = 0
    waiting: int = 0
    quarantined: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchMerged:
    """What a merge of a branch did: what was joined, how its last writes were committed, who still works there.

    Attributes:
        edited: files that were changed there by hand and are not committed: they were left out.
        alive: processes at work in its working tree, as id and name.
        uncommitted: in a dry run, how many writes wait there: they would be committed first, and merged.
    """

    branch: str
    joined: Joined
    flushed: Flushed
    edited: tuple[str, ...] = ()
    alive: tuple[tuple[int, str], ...] = ()
    uncommitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What became of a branch that was dropped.

    Attributes:
        commit: its last one.
        rescue: the ref that keeps it, "" where the checked-out line holds all of it.
        folder: its working tree; ``left`` are the files that stay there.
    """

    branch: str
    commit: str
    rescue: str = ""
    folder: str = ""
    left: tuple[str, ...] = ()

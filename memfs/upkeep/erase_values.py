"""What an erase would do, and what it did.

Owns the values that a person or program is told; holds no text of what is erased but its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs.upkeep.erase_proof import Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an erase would do.

    Attributes:
        reference: what was named.
        paths: the paths it ever had; ``copies``: other paths where the same bytes stood; they go, too.
        versions: how many contents it had, ``loose`` of them in no commit.
        commits, refs: how many commits would be rewritten, how many refs would move.
        waiting: how many writes would be committed first.
        quotes: files that hold a line of it and stay.
        shared: whether memfs did not make the repository, so that rewriting it must be asked for.
        unreachable: where it may be and memfs cannot go.
        backups: those made before, which a new one would replace; ``backups_elsewhere``: those a person has to delete.
        refused: why it could not be done now, "" when nothing stands in the way.
    """

    reference: str
    paths: tuple[str, ...]
    copies: tuple[str, ...]
    versions: int
    loose: int
    commits: int
    refs: int
    waiting: int
    quotes: tuple[str, ...]
    shared: bool
    unreachable: tuple[str, ...]
    refused: str = ""
    backups: tuple[Path, ...] = ()
    backups_elsewhere: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erase did, and the proof.

    Attributes:
        plan: as it was carried out.
        unsigned: how many commits and tags lost their signature, which would be wrong now.
        purged: how many pieces each other place held.
        proof: what was read afterwards, and every hit in it.
        head: HEAD's commit now.
        left: backups made before that no new one could replace; they may hold it until a person deletes them.
    """

    plan: Plan
    unsigned: int
    purged: Mapping[str, int]
    proof: Proof
    head: str | None
    left: tuple[Path, ...] = ()

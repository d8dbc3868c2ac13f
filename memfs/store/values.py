"""What the store is given and what it answers with.

Values and one protocol; nothing happens here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memfs.model import MemoryItem, Problem


class Eyes(Protocol):
    """Something that sees files change while nobody asks (``memfs.watch``)."""

    degraded: str

    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None when it cannot vouch for having seen everything."""

    def give_back(self, paths: list[str]) -> None:
        """Take back paths that could not be looked at."""

    def close(self) -> None:
        """Stop looking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What is not in git yet.

    Attributes:
        count: how many operations.
        reason: why git takes none now, "" when it would.
        paths: the files they change, in order of writing.
        late: whether git takes none now, the window of the policy is over, or others wrote them, who may be gone.
    """

    count: int
    reason: str
    paths: tuple[str, ...] = ()
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """An item read for an answer; ``stale`` when its file is invalid and this is the last good version."""

    item: MemoryItem
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """How the places stand that take writes.

    Attributes:
        reason: why the workspace's disk takes none, "" while it does.
        free: bytes left on it, None where the system does not tell.
        secondary: the secondary location, "" where none is configured.
        secondary_reason: why that takes none, "" while it does.
        waiting: writes that lie there until the workspace's disk takes them.
    """

    reason: str
    free: int | None
    secondary: str
    secondary_reason: str
    waiting: int

    @property
    def state(self) -> str:
        """``ok``; ``degraded`` while the workspace's disk takes no writes; ``fallback`` while writes lie elsewhere."""
        return "fallback" if self.waiting else "degraded" if self.reason else "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """What a flush did.

    Attributes:
        commits: ids of the commits made, oldest first.
        adopted: paths whose hand edits were committed.
        skipped: paths left alone because the person has staged something else for them.
        waiting: operations still in the journal.
        reason: why they wait, "" when nothing does.
        notes: what was noticed, such as bytes that were set aside.
    """

    commits: tuple[str, ...] = ()
    adopted: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    waiting: int = 0
    reason: str = ""
    notes: tuple[Problem, ...] = ()

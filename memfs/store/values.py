"""What the store is given and what it answers with.

Values and one protocol; nothing happens here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memfs.model import MemoryItem


class Eyes(Protocol):
    """Something that sees files change while nobody asks (``memfs.watch``)."""

    degraded: str

    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None when it cannot vouch for having seen everything."""

    def close(self) -> None:
        """Stop looking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What is not in git yet: how many operations, and why they wait ("" when the window is merely open)."""

    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """An item read for an answer; ``stale`` when its file is invalid and this is the last good version."""

    item: MemoryItem
    stale: bool

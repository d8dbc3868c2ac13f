"""Outcome: what one look at files found, and what is remembered of those that cannot be used.

Values only; looking is ``following``'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from memfs.errors import CorruptItem
from memfs.files.tree import blob_id
from memfs.model import MemoryItem, Problem, Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh found: paths that came, changed and went."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Rejected:
    """What is wrong with a file, and the facts it had then: size, times, inode."""

    problem: Problem
    facts: tuple[int, int, int, int]

    @property
    def rot(self) -> bool:
        """Whether the file's facts say nothing of its content, which the disk changed."""
        return self.problem.code == CorruptItem.__name__


class Outcome:
    """What one look at files gathers before the index is told."""

    def __init__(
        self, known: Mapping[str, tuple[str, Stamp]], witness: Mapping[str, tuple[str, Stamp]] | None = None
    ) -> None:
        """``witness``: the stamps by which rot is recognised, where they are not the known ones."""
        self.known = known
        self.witness = known if witness is None else witness
        self.items: list[tuple[MemoryItem, Stamp]] = []
        self.removals: list[str] = []

    def outdated(self, path: str, newest: bytes | None) -> bool:
        """Whether what is known of a file is not what history has of it, so that it cannot be brought back."""
        return newest is not None and self.known[path][1].blob != blob_id(newest)

    def retract(self, path: str) -> None:
        """Take back an item whose id turned out to belong to another file."""
        self.items = [row for row in self.items if row[0].path != path]

    def refreshed(self) -> Refreshed:
        """What came of it, for whoever asked for the look."""
        paths = [item.path for item, _ in self.items]
        return Refreshed(
            added=tuple(path for path in paths if path not in self.known),
            changed=tuple(path for path in paths if path in self.known),
            removed=tuple(self.removals),
        )


def seniority(item: MemoryItem) -> tuple[datetime, str]:
    """By which of two items with one id the older is known."""
    return (item.created or item.timestamp or datetime.max.replace(tzinfo=UTC), item.path)

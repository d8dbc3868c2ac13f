"""Rows: what an index keeps of an item beside its terms, and the filters of a query over them.

Owns the narrowing of an item to a row and the meaning of each filter. Knows nothing of engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memfs.model import Candidate, MemoryItem, Query

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FURTHEST = 1 << 60
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")

Place = tuple[str, int]
"""A session and a sequence number in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The facts of one item that filters and ranking need; ``time`` in microseconds since 1970."""

    id: str
    path: str
    type: str
    time: int
    importance: float
    context: Mapping[str, Any]
    tags: tuple[str, ...]
    agent: str
    session: str
    sequence: int | None
    speaker: str
    role: str
    phase: str
    asks: bool
    pinned: bool

    def candidate(self, similarity: float) -> Candidate:
        """This row as an answer."""
        return Candidate(
            id=self.id,
            path=self.path,
            similarity=similarity,
            type=self.type,
            timestamp=moment(self.time),
            importance=self.importance,
            context=self.context,
            agent=self.agent,
            session=self.session,
            sequence=self.sequence,
            speaker=self.speaker,
            role=self.role,
            asks=self.asks,
            pinned=self.pinned,
        )


def row_of(item: MemoryItem) -> Row:
    """The row of an item; an item without a timestamp stands at its creation, else at 1970."""
    return Row(
        id=item.id,
        path=item.path,
        type=item.type,
        time=micros(item.timestamp or item.created or _EPOCH),
        importance=float(item.importance),
        context=item.context,
        tags=item.tags,
        agent=item.origin.agent,
        session=item.origin.session,
        sequence=_place_in_talk(item),
        speaker=item.origin.speaker,
        role=item.origin.role,
        phase=item.origin.phase,
        asks=item.content.rstrip().endswith(_QUESTION_MARKS),
        pinned=item.pinned,
    )


def _place_in_talk(item: MemoryItem) -> int | None:
    """The sequence number, None where it is none within a session."""
    sequence = item.origin.sequence
    return sequence if item.origin.session and sequence is not None and abs(sequence) <= _FURTHEST else None


def micros(when: datetime) -> int:
    """Microseconds since 1970."""
    return (when - _EPOCH) // _MICROSECOND


def moment(time: int) -> datetime:
    """The point in time of so many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filters of a query, ready to test rows; ``path`` ends in "/" or is empty."""

    types: frozenset[str]
    tags: frozenset[str]
    agents: frozenset[str]
    sessions: frozenset[str]
    phases: frozenset[str]
    since: int | None
    until: int | None
    path: str

    @classmethod
    def of(cls, query: Query) -> Filter:
        """The filters of a query, its layers not looked at."""
        return cls(
            types=query.types,
            tags=query.tags,
            agents=query.agents,
            sessions=query.sessions,
            phases=query.phases,
            since=None if query.since is None else micros(query.since),
            until=None if query.until is None else micros(query.until),
            path=query.path.rstrip("/") + "/" if query.path else "",
        )

    def accepts(self, row: Row) -> bool:
        """Whether a row passes every filter."""
        return (
            (not self.types or row.type in self.types)
            and (self.since is None or row.time >= self.since)
            and (self.until is None or row.time <= self.until)
            and (not self.agents or row.agent in self.agents)
            and (not self.sessions or row.session in self.sessions)
            and (not self.phases or row.phase in self.phases)
            and (not self.tags or self.tags.issubset(row.tags))
            and (not self.path or (row.path + "/").startswith(self.path))
        )

"""The row of an item, the facts of it that filters and ranking need; and the filters of a query."""

from __future__ import annotations

from collections.abc import Mapping

from memfs.dataclass import NamedTuple
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.time import EPOCH, micros
from memfs.startup import Any

_FURTHEST = 1 << 60
_SHORT = 120  # characters; a longer text that ends with a question says something, too
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")

_LISTED = 0, frozenset[str](), frozenset[str]()

Place = tuple[str, int]
"""A session and a sequence number in it."""


class IndexRow(NamedTuple):
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

    def candidate(self, similarity: float = 0.0, *found: Any) -> Candidate:
        """This row as an answer; ``found``: its best passage, the terms that it has, and those that it has not."""
        key, path, kind, time, importance, context, _, *talk, _, asks, pinned = self
        about = kind, time, importance, context, *talk, asks, pinned
        return Candidate._make((key, path, similarity, *about, 0.0, *(found or _LISTED)))


def row_of(item: MemoryItem) -> IndexRow:
    """The row of an item; an item without a timestamp is at its creation, else at 1970."""
    sequence = item.origin.sequence
    in_talk = item.origin.session and sequence is not None and abs(sequence) <= _FURTHEST
    return IndexRow(
        id=item.id,
        path=item.path,
        type=item.type,
        time=micros(item.timestamp or item.created or EPOCH),
        importance=float(item.importance),
        context=item.context,
        tags=item.tags,
        agent=item.origin.agent,
        session=item.origin.session,
        sequence=sequence if in_talk else None,
        speaker=item.origin.speaker,
        role=item.origin.role,
        phase=item.origin.phase,
        asks=len(item.content) <= _SHORT and item.content.rstrip().endswith(_QUESTION_MARKS),
        pinned=item.pinned,
    )


class Filter(NamedTuple):
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

    def accepts(self, row: IndexRow) -> bool:
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


EVERYTHING = Filter.of(Query())
"""What every row passes."""

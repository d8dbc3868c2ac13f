"""Reduces an item's file to what a search needs: its row, its terms, or why it is no item.

A document depends only on the bytes, the path and the analyzer. It can be packed for a cache and unpacked again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from sys import intern
from typing import Any

from memfs.dataclass import NamedTuple
from memfs.model import Candidate, MemoryItem, Problem, Query
from memfs.model.ids import stem_of
from memfs.model.time import EPOCH
from memfs.search import analyzer
from memfs.search.analyzer import WeightedTerms

_MICROSECOND = timedelta(microseconds=1)
_FURTHEST = 1 << 60
_SHORT = 120  # characters; a longer text that ends with a question says something, too
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")

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

    def candidate(self, similarity: float, passage: int = 0) -> Candidate:
        """This row as an answer."""
        key, path, kind, time, importance, context, _, *talk, _, asks, pinned = self
        about = kind, moment(time), importance, context, *talk, asks, pinned
        return Candidate._make((key, path, similarity, *about, 0.0, passage))


def row_of(item: MemoryItem) -> IndexRow:
    """The row of an item; an item without a timestamp is at its creation, else at 1970."""
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
        sequence=_place_in_talk(item),
        speaker=item.origin.speaker,
        role=item.origin.role,
        phase=item.origin.phase,
        asks=len(item.content) <= _SHORT and item.content.rstrip().endswith(_QUESTION_MARKS),
        pinned=item.pinned,
    )


def _place_in_talk(item: MemoryItem) -> int | None:
    """The sequence number, None where it is none within a session."""
    sequence = item.origin.sequence
    return sequence if item.origin.session and sequence is not None and abs(sequence) <= _FURTHEST else None


def micros(when: datetime) -> int:
    """Microseconds since 1970."""
    return (when - EPOCH) // _MICROSECOND


def moment(time: int) -> datetime:
    """The point in time of so many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=time)


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


FORM = 2
_ROW = (
    "type time importance context tags agent session sequence speaker role phase asks pinned".split()  # noqa: SIM905
)


class IndexDocument(NamedTuple):
    """One item as a search sees it.

    Attributes:
        row: its facts; ``time`` is 0 where ``timed`` is false.
        passages: the terms of each passage.
        size: how many bytes its file has.
        since: when it was created, else when it happened, in microseconds; decides between two files of one id.
        timed: whether its file says when it happened.
    """

    row: IndexRow
    passages: tuple[WeightedTerms, ...]
    size: int
    since: int
    timed: bool

    def at(self, moment: int) -> IndexDocument:
        """The same, with this time in microseconds where its file names none."""
        return self if self.timed else self._replace(row=self.row._replace(time=moment), since=moment)


def document_of(item: MemoryItem, size: int, timed: bool) -> IndexDocument:
    """The document of an item in a file of so many bytes."""
    row = row_of(item)
    born = item.created or item.timestamp
    return IndexDocument(
        row=row if timed else row._replace(time=0),
        passages=analyzer.weighted_terms(item),
        size=size,
        since=micros(born) if timed and born is not None else 0,
        timed=timed,
    )


# -- as text --------------------------------------------------------------------------------------------------------
def packed(found: IndexDocument | Problem) -> str:
    """A document as a line of text."""
    if isinstance(found, Problem):
        return _text([found.code, found.message, found.line, found.hint])
    row: dict[str, Any] = {name: getattr(found.row, name) for name in _ROW}
    row["tags"] = list(found.row.tags)
    words = [[_by_weight(terms), length] for terms, length in found.passages]
    return _text([[row[name] for name in _ROW], words, found.size, found.since, found.timed])


def _by_weight(terms: Mapping[str, float]) -> list[list[Any]]:
    found: dict[float, list[str]] = {}
    for term, weight in terms.items():
        found.setdefault(weight, []).append(term)
    return [[weight, " ".join(words)] for weight, words in found.items()]


def unpacked(path: str, values: Any) -> IndexDocument | Problem:
    """The document of the file at a path again, of what its line holds.

    Raises:
        ValueError: it holds something else.
    """
    try:
        if len(values) == 4:
            code, message, line, hint = values
            return Problem(path=path, code=str(code), message=str(message), line=line, hint=str(hint))
        facts, words, size, since, timed = values
        row = dict(zip(_ROW, facts, strict=True))
        row["tags"] = tuple(row["tags"])
        return IndexDocument(
            row=IndexRow(id=stem_of(path), path=path, **row),
            passages=tuple((_terms(terms), int(length)) for terms, length in words),
            size=int(size),
            since=int(since),
            timed=bool(timed),
        )
    except (TypeError, AttributeError, LookupError) as error:
        raise ValueError(f"a document is damaged: {error}") from error


def _terms(words: Iterable[tuple[float, str]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for weight, terms in words:
        found.update(dict.fromkeys(map(intern, terms.split(" ")), float(weight)))
    return found


def _text(values: list[Any]) -> str:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"), default=str)

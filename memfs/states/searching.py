"""Searching: state documents by their words, those of archived iterations too (S15).

Owns which texts of a document are searched, and when its words are noted: at the first search after it came or changed,
so that whoever never searches pays nothing. How words become terms is ``memfs.index.analyzer``' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from memfs.errors import ArchiveInvalid, ContentError, CorruptItem, CorruptRecord, QueryInvalid
from memfs.index import analyzer, question
from memfs.model.query import moment
from memfs.model.shape import Free, Shape
from memfs.model.statequery import Question, Row
from memfs.states.reading import StateReading

_AT_ONCE = 200
_MOST_TEXTS = 20_000
_MOST_CHARACTERS = 1 << 20
_EXCERPT = 200
_TRIES = 4
_UNREADABLE = (ContentError, CorruptItem, CorruptRecord, ArchiveInvalid, FileNotFoundError)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateHit(Shape):
    """A state document that holds words that were asked for.

    Attributes:
        path: where it lies, or lay before it was archived.
        kind: which sort of document it is, such as ``agent_output``.
        score: how well it answers; comparable within one answer only.
        archive: the archive that holds it, "" for one that lies in the tree.
        excerpt: the text in it that answers best, cut to 200 characters.
        document: all it holds.
    """

    path: str
    kind: str
    score: float
    iteration: int | None = None
    timestamp: datetime | None = None
    archive: str = ""
    excerpt: str = ""
    document: Free = field(default_factory=dict)


def search_states(
    reading: StateReading,
    text: str,
    limit: int = 10,
    *,
    kinds: Sequence[str] = (),
    agents: Sequence[str] = (),
    iterations: Sequence[int] = (),
    start: datetime | str | None = None,
    end: datetime | str | None = None,
) -> list[StateHit]:
    """The state documents that hold some of the words of a text, the best first (S15).

    Args:
        text: natural words; one shared stem is enough.
        limit: at most so many.
        kinds, agents, iterations: only these.
        start, end: only documents with a time from and until these.

    Raises:
        QueryInvalid: there is no word in the text, or a time makes no sense.
    """
    terms = list(question.weights(text))
    if not terms:
        raise QueryInvalid("there is no word to search for", field="text", hint="give words of the documents")
    asked = Question(
        kinds=tuple(kinds),
        agents=tuple(agents),
        iterations=tuple(iterations),
        start=moment("start", start),
        end=moment("end", end, end=True),
        limit=max(limit, 0),
    )
    reading.catch_up()
    hits: list[StateHit] = []
    for _ in range(_TRIES):
        _note_words(reading)
        ranked = reading.index.matching(terms, asked)
        scores = {row.path: score for row, score in ranked}
        gathered, stale = reading.documents([row for row, _ in ranked])
        hits = [_hit(one.row, one.values, scores[one.row.path], set(terms)) for one in gathered.documents]
        if not stale:
            break
    return hits


def _note_words(reading: StateReading) -> None:
    """Note the words of every document that came or changed since somebody searched."""
    before: list[Row] = []
    while (rows := reading.index.without_words(_AT_ONCE)) and rows != before:
        reading.index.learn_words([(row, _terms_of(reading, row)) for row in rows])
        before = rows


def _terms_of(reading: StateReading, row: Row) -> str:
    try:
        values = reading.load(row)
    except _UNREADABLE:  # 'memfs check' names it; it is looked at again when it has changed
        return ""
    return " ".join(analyzer.terms("\n".join(_texts(values))[:_MOST_CHARACTERS]))


def _hit(row: Row, values: Mapping[str, Any], score: float, terms: set[str]) -> StateHit:
    facts = row.facts
    texts = list(_texts(values))
    best = max(texts, key=lambda text: len(terms.intersection(analyzer.terms(text[:_MOST_CHARACTERS]))), default="")
    said = " ".join(best.split())
    return StateHit(
        path=facts.path,
        kind=facts.kind,
        score=round(score, 6),
        iteration=facts.iteration,
        timestamp=facts.timestamp,
        archive=row.archive,
        excerpt=said if len(said) <= _EXCERPT else f"{said[: _EXCERPT - 3]}...",
        document=values,
    )


def _texts(values: Any) -> Iterator[str]:
    """The texts in a document, in order; of a very large one the first."""
    return islice(_leaves(values), _MOST_TEXTS)


def _leaves(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += reversed(list(one.values()))
        elif isinstance(one, (list, tuple)):
            waiting += reversed(one)

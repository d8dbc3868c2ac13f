"""Search state documents by their words, and find past states like a given one.

Archived iterations are searched, too. Words are indexed at the first search after a document changed, so that nobody
pays for searches that are never made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from memfs.dataclass import dataclass, field
from memfs.errors import ArchiveInvalid, ContentError, CorruptItem, CorruptRecord, QueryInvalid
from memfs.model.query import moment
from memfs.model.shape import Free, Shape, plain
from memfs.model.state_facts import StateFacts, describe, texts
from memfs.model.state_paths import update_path
from memfs.model.state_query import StateQuery, StateRow
from memfs.model.time import utc_now
from memfs.search import analyzer
from memfs.search.terms import weights
from memfs.state.reader import StateDocument, StateReader

_AT_ONCE = 200
_MOST_TEXTS = 20_000
_MOST_CHARACTERS = 1 << 20
_EXCERPT = 200
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
    reader: StateReader,
    text: str,
    limit: int = 10,
    *,
    kinds: Sequence[str] = (),
    agents: Sequence[str] = (),
    iterations: Sequence[int] = (),
    start: datetime | str | None = None,
    end: datetime | str | None = None,
) -> list[StateHit]:
    """The state documents that hold some of the words of a text, the best first.

    Args:
        text: natural words; one shared stem is enough.
        limit: at most so many.
        kinds, agents, iterations: only these.
        start, end: only documents with a time from and until these.

    Raises:
        QueryInvalid: there is no word in the text, or a time makes no sense.
    """
    terms = list(weights(text))
    if not terms:
        raise QueryInvalid("there is no word to search for", field="text", hint="give words of the documents")
    asked = StateQuery(
        kinds=tuple(kinds),
        agents=tuple(agents),
        iterations=tuple(iterations),
        start=moment("start", start),
        end=moment("end", end, end=True),
        limit=max(limit, 0),
    )
    reader.catch_up()
    scores: dict[str, float] = {}

    def found() -> list[StateRow]:
        _note_words(reader)
        ranked = reader.index.matching(terms, asked)
        scores.update((row.path, score) for row, score in ranked)
        return [row for row, _ in ranked]

    documents = reader.answered(found).documents
    return [_hit(one.row, one.values, scores[one.row.path], set(terms)) for one in documents]


def _note_words(reader: StateReader) -> None:
    """Note the words of every document that came or changed since somebody searched."""
    before: list[StateRow] = []
    while (rows := reader.index.without_words(_AT_ONCE)) and rows != before:
        reader.index.learn_words([(row, _terms_of(reader, row)) for row in rows])
        before = rows


def _terms_of(reader: StateReader, row: StateRow) -> str:
    try:
        values = reader.load(row)
    except _UNREADABLE:  # 'memfs check' names it; it is looked at again when it has changed
        return ""
    return " ".join(analyzer.terms("\n".join(islice(texts(values), _MOST_TEXTS))[:_MOST_CHARACTERS]))


def _hit(row: StateRow, values: Mapping[str, Any], score: float, terms: set[str]) -> StateHit:
    facts = row.facts
    said = islice(texts(values), _MOST_TEXTS)
    best = max(said, key=lambda text: len(terms.intersection(analyzer.terms(text[:_MOST_CHARACTERS]))), default="")
    excerpt = " ".join(best.split())
    return StateHit(
        path=facts.path,
        kind=facts.kind,
        score=round(score, 6),
        iteration=facts.iteration,
        timestamp=facts.timestamp,
        archive=row.archive,
        excerpt=excerpt if len(excerpt) <= _EXCERPT else f"{excerpt[: _EXCERPT - 3]}...",
        document=values,
    )


_NEAREST = 16
_COMPARED = 64
_WORDS_SHARE = 0.3

_Figures = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimilarState(Shape):
    """A past state, and how like it is.

    Attributes:
        path: of the state update.
        score: from 0, nothing alike, to 1, all the same.
        state: the update itself.
    """

    path: str
    score: float
    iteration: int | None = None
    timestamp: datetime | None = None
    state: Free


def find_similar_states(reader: StateReader, state: Mapping[str, Any], limit: int = 5) -> list[SimilarState]:
    """Past states like a given one, the likest first; among equals the newest.

    Compared are those that come nearest in one figure or share words of the focus, whatever their number: among
    thousands one that is a little off in every figure may be passed over.

    Args:
        state: a state update, or as much of one: ``system_statistics``, ``orchestration_state``. Other figures, as in
            a plain mapping, count as those of ``system_statistics``. An update that is stored is not found for itself.
        limit: at most so many.

    Returns:
        Those alike in anything, each with its ``score``.

    Raises:
        QueryInvalid: there is nothing in the state to compare, or it is no mapping.
    """
    given, own = _described(state)
    if not given.fingerprint and not given.words:
        raise QueryInvalid("there is no figure and no focus to compare", field="state", hint="give system_statistics")
    reader.catch_up()
    scores: dict[str, float] = {}

    def found() -> list[StateRow]:
        candidates = _candidates(reader, given, max(limit, 0) + 1)
        ranked = sorted(((likeness(given, row.facts), row) for row in candidates), key=_order)
        scores.update((row.path, score) for score, row in ranked)
        return [row for score, row in ranked if score > 0.0][: max(limit, 0) + 1]

    documents = reader.answered(found).documents
    return [_similar(scores[one.row.path], one) for one in documents if one.values != own][: max(limit, 0)]


def likeness(one: StateFacts, other: StateFacts) -> float:
    """How like another state is to one, from 0 to 1: what the one says nothing of does not count."""
    return _likeness(one.fingerprint, one.words, other.fingerprint, other.words)


def _likeness(mine: _Figures, my_words: Collection[str], theirs: _Figures, their_words: Collection[str]) -> float:
    near = sum(_near(mine[name], theirs[name]) for name in mine.keys() & theirs.keys())
    figures = near / len(mine) if mine else 0.0
    if not my_words:
        return figures
    shared = len(set(my_words) & set(their_words)) / len(set(my_words) | set(their_words))
    return (1 - _WORDS_SHARE) * figures + _WORDS_SHARE * shared if mine else shared


def _near(a: float, b: float) -> float:
    """1 for equal figures, 0 for such as differ by as much as they are large."""
    size = max(abs(a), abs(b))
    return 1.0 if a == b else max(0.0, 1.0 - abs(a - b) / size)


def _described(state: Any) -> tuple[StateFacts, Any]:
    """What a given state is about, and its plain values."""
    values = plain(state)
    if not isinstance(values, Mapping):
        raise QueryInvalid("expected keys and values", field="state", hint="give a state update")
    if "system_statistics" not in values and "orchestration_state" not in values:
        values = {"system_statistics": values}
    path = update_path(0, utc_now())
    return describe(path, values), plain(state)


def _candidates(reader: StateReader, given: StateFacts, wanted: int) -> list[StateRow]:
    """The state updates to be compared as wholes: those most alike in what the index found them by."""
    mine = given.fingerprint
    found = reader.index.near(mine, given.words, max(_NEAREST, wanted))
    scored = sorted(found, key=lambda one: (-_likeness(mine, given.words, one.figures, one.words), -one.moment))
    return reader.index.rows([one.key for one in scored[: max(_COMPARED, 2 * wanted)]])


def _order(scored: tuple[float, StateRow]) -> tuple[float, float, str]:
    score, row = scored
    return -score, -row.facts.moment, row.path


def _similar(score: float, document: StateDocument) -> SimilarState:
    facts = document.facts
    return SimilarState(
        path=facts.path,
        score=round(score, 6),
        iteration=facts.iteration,
        timestamp=facts.timestamp,
        state=document.values,
    )

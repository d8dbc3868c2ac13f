"""Similar states: past states of the system that are like a given one (seed 001, S13).

Owns what likeness is: how near each figure of two state updates is, by its own size, and how many words of their focus
they share. Compared are those that an index of figures and words tells to be near, however many there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memfs.errors import QueryInvalid
from memfs.model.shape import Free, Shape, plain
from memfs.model.statefacts import Facts, describe
from memfs.model.statepaths import update_path
from memfs.model.statequery import Row
from memfs.model.time import utc_now
from memfs.states.reading import Document, StateReading

_NEAREST = 16
_COMPARED = 64
_WORDS_SHARE = 0.3
_TRIES = 3

_Figures = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimilarState(Shape):
    """A past state, and how like it is (S13).

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


def find_similar_states(reading: StateReading, state: Mapping[str, Any], limit: int = 5) -> list[SimilarState]:
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
    reading.catch_up()
    found: list[SimilarState] = []
    for _ in range(_TRIES):
        candidates = _candidates(reading, given, max(limit, 0) + 1)
        ranked = sorted(((likeness(given, row.facts), row) for row in candidates), key=_order)
        best = [(score, row) for score, row in ranked if score > 0.0][: max(limit, 0) + 1]
        scores = {row.path: score for score, row in best}
        gathered, stale = reading.documents([row for _, row in best])
        found = [_similar(scores[one.row.path], one) for one in gathered.documents if one.values != own]
        if not stale:
            break
    return found[: max(limit, 0)]


def likeness(one: Facts, other: Facts) -> float:
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


def _described(state: Any) -> tuple[Facts, Any]:
    """What a given state is about, and its plain values."""
    values = plain(state)
    if not isinstance(values, Mapping):
        raise QueryInvalid("expected keys and values", field="state", hint="give a state update")
    if "system_statistics" not in values and "orchestration_state" not in values:
        values = {"system_statistics": values}
    path = update_path(0, utc_now())
    return describe(path, values), plain(state)


def _candidates(reading: StateReading, given: Facts, wanted: int) -> list[Row]:
    """The state updates to be compared as wholes: those most alike in what the index found them by."""
    mine = given.fingerprint
    found = reading.index.near(mine, given.words, max(_NEAREST, wanted))
    scored = sorted(found, key=lambda one: (-_likeness(mine, given.words, one.figures, one.words), -one.moment))
    return reading.index.rows([one.key for one in scored[: max(_COMPARED, 2 * wanted)]])


def _order(scored: tuple[float, Row]) -> tuple[float, float, str]:
    score, row = scored
    moment = row.facts.timestamp.timestamp() if row.facts.timestamp is not None else float("-inf")
    return -score, -moment, row.path


def _similar(score: float, document: Document) -> SimilarState:
    facts = document.row.facts
    return SimilarState(
        path=facts.path,
        score=round(score, 6),
        iteration=facts.iteration,
        timestamp=facts.timestamp,
        state=document.values,
    )

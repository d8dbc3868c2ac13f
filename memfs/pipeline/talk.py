"""Talk: what an item gains from what was said around it.

Owns the shares that a candidate lends to its neighbours in the same session and that a session lends to its items. In a
conversation the words of a question often stand beside the answer, not in it. Items without a place in a session
neither give nor get anything. The shares were chosen in ``benchmarks/retrieval``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from memfs.model import Candidate

Place = tuple[str, int]
LookUp = Callable[[Collection[Place]], list[Candidate]]

# What an item lends to those that stand so many places after it: most to the very next one, often the answer.
LENT = {1: 0.4, -1: 0.25, 2: 0.25, -2: 0.25}
LENT_BY_ANSWER = 0.5
SESSION_SHARE = 0.4
_SESSION_FADE = 0.6
ASSISTANTS = frozenset({"assistant", "tool"})
_GIVERS = 100


@dataclass(frozen=True, slots=True)
class Shares:
    """What one candidate gained, in the unit of text scores; what its meaning added may be less than nothing."""

    neighbours: float = 0.0
    session: float = 0.0
    meaning: float = 0.0


NOTHING = Shares()


def gathered(found: list[Candidate], look_up: LookUp) -> list[tuple[Candidate, Shares]]:
    """The candidates, joined by their neighbours, with what each gains.

    Args:
        found: what the search found, best first.
        look_up: gives the items at some places, those that pass the query's filters.
    """
    givers = [one for one in found[:_GIVERS] if one.sequence is not None]
    if not givers:
        return [(one, NOTHING) for one in found]
    gained = _lent(givers)
    known = {(one.session, one.sequence) for one in found}
    fresh = look_up([place for place in gained if place not in known])
    sessions = _sessions(found)
    return [(one, _shares(one, gained, sessions)) for one in (*found, *fresh)]


def _lent(givers: Iterable[Candidate]) -> dict[Place, float]:
    gained: dict[Place, float] = {}
    for one in givers:
        for place, share in _places(one):
            gained[place] = gained.get(place, 0.0) + share * one.similarity
    return gained


def _places(one: Candidate) -> Iterator[tuple[Place, float]]:
    assert one.sequence is not None  # only items with a place give
    for step, share in LENT.items():
        answered = step == -1 and one.role in ASSISTANTS
        yield (one.session, one.sequence + step), LENT_BY_ANSWER if answered else share


def _sessions(found: Iterable[Candidate]) -> dict[str, float]:
    """What each session is worth: the score of its best item, and of each further one less."""
    worth: dict[str, float] = {}
    fade: dict[str, float] = {}
    for one in found:  # best first
        if one.sequence is not None:
            share = fade.get(one.session, 1.0)
            worth[one.session] = worth.get(one.session, 0.0) + share * one.similarity
            fade[one.session] = share * _SESSION_FADE
    return worth


def _shares(one: Candidate, gained: dict[Place, float], sessions: dict[str, float]) -> Shares:
    if one.sequence is None:
        return NOTHING
    neighbours = gained.get((one.session, one.sequence), 0.0)
    return Shares(neighbours, SESSION_SHARE * sessions.get(one.session, 0.0))

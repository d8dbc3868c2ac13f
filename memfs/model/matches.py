"""Matches: who took part in a tournament result, who won, and how they are rated since (seed 001).

Owns the shapes in which results are told. Works on the plain mapping a result is and never fails; standings and where
results lie are not its business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_LISTS = (
    "participants", "hypotheses", "hypothesis_ids", "players", "competitors", "contestants", "candidates", "pair",
    "teams",
)  # fmt: skip
_RANKED = ("ranking", "rankings", "standings", "scores", "votes")
_WITHIN = ("matches", "games", "rounds", "pairings", "matchups", "results")
_WINNERS = ("winner", "winners", "winner_id", "winning_hypothesis", "winning_hypothesis_id")
_LOSERS = ("loser", "losers", "loser_id", "losing_hypothesis", "losing_hypothesis_id")
_TOLD = (*_WINNERS, "outcome", "result", "preferred", "decision")
_RATINGS = ("ratings", "ratings_after", "new_ratings", "elo", "elo_ratings")
_IDS = ("id", "hypothesis_id", "hypothesis", "name")
_SIDES = (("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"))
_ONE_SIDE = re.compile(r"(?:(hypothesis|player|participant|candidate|competitor|contestant|idea)_?)?"
                       r"(a|b|1|2|left|right|first|second)(?:_id)?", re.IGNORECASE)  # fmt: skip
_NOBODY = frozenset({"", "draw", "tie", "tied", "none", "null", "nobody", "undecided"})
_OUTCOMES = {"win": True, "won": True, "victory": True, "loss": False, "lost": False, "lose": False, "defeat": False}
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Match:
    """One match: who took part, in the order named, who of them won (nobody in a draw), and ratings after it."""

    participants: tuple[str, ...]
    winners: tuple[str, ...] = ()
    ratings: Mapping[str, float] = field(default_factory=dict)


def matches(result: Mapping[str, Any]) -> tuple[Match, ...]:
    """The matches that a result tells of: mostly one, several where it holds a list of them.

    Participants are those listed (``participants``, ``players`` and the like), both sides (``hypothesis_a`` and
    ``hypothesis_b``), a hypothesis and its ``opponent``, winners and losers, and whoever is rated or ranked. A winner
    is named, or pointed at by its side (``"a"``).

    Args:
        result: a tournament result, of any shape.

    Returns:
        The matches in order; none where nobody is named (S2).
    """
    return tuple(_matches(result, 0))


def participants(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Everybody who took part in a result, each once: of a list of matches also whoever only the whole names."""
    return _once((*_single(result).participants, *(name for one in matches(result) for name in one.participants)))


def names(value: Any) -> list[str]:
    """The names in a value: a text or number, an object with an id, or several of these."""
    found = []
    for one in value if isinstance(value, list | tuple) else (value,):
        name = (
            next((text for key in _IDS if (text := _text(one.get(key)))), "")
            if isinstance(one, Mapping)
            else _text(one)
        )
        if name:
            found.append(name)
    return found


def _matches(result: Mapping[str, Any], depth: int) -> Iterator[Match]:
    inner = [
        one for key in _WITHIN if isinstance(held := result.get(key), list | tuple) for one in held if depth < _DEEPEST
    ]
    found = [match for one in inner for match in _told_as(one, depth + 1)]
    if any(len(match.participants) > 1 for match in found):
        yield from found
    elif (single := _single(result)).participants:
        yield single


def _told_as(one: Any, depth: int) -> Iterator[Match]:
    if isinstance(one, Mapping):
        yield from _matches(one, depth)
    elif isinstance(one, list | tuple):
        yield Match(_once(names(one)))


def _single(result: Mapping[str, Any]) -> Match:
    sides = _sides(result)
    ratings = _ratings(result)
    own, other = names(result.get("hypothesis_id")) or names(result.get("hypothesis")), _first(result, "opponent")
    listed = [name for key in _LISTS for name in _named(result.get(key))]
    known = [*listed, *dict.fromkeys(sides.values()), *(own if other else ()), *other]
    losers = [name for key in _LOSERS for name in names(result.get(key))]
    winners = _winners(result, sides, {*known, *ratings, *losers})
    if other and not winners and (won := _OUTCOMES.get(_told(result))) is not None:
        winners = tuple(own if won else other)
    ranked = [] if known or winners else [name for key in _RANKED for name in _named(result.get(key))]
    return Match(_once((*known, *winners, *losers, *ratings, *ranked)), winners, ratings)


def _sides(result: Mapping[str, Any]) -> dict[str, str]:
    """Both sides of a match by all that points at them; empty unless two that belong together are there."""
    held: dict[str, dict[str, tuple[str, str]]] = {}
    for key, value in result.items():
        if (
            (matched := _ONE_SIDE.fullmatch(str(key)))
            and not isinstance(value, int | float)
            and len(named := names(value)) == 1
        ):
            word, label = (matched[1] or "").casefold(), matched[2].casefold()
            held.setdefault(word, {})[label] = (str(key), named[0])
    found: dict[str, str] = {}
    for sides in held.values():
        for pair in _SIDES:
            if all(label in sides for label in pair):
                for label in pair:
                    key, name = sides[label]
                    found |= dict.fromkeys((key.casefold(), key.casefold().removesuffix("_id"), label), name)
    return found


def _winners(result: Mapping[str, Any], sides: Mapping[str, str], known: set[str]) -> tuple[str, ...]:
    found = []
    for key in _TOLD:
        for name in names(result.get(key)):
            if name in known:
                found.append(name)
            elif pointed := sides.get(name.casefold()):
                found.append(pointed)
            elif key in _WINNERS and name.casefold() not in _NOBODY:
                found.append(name)
    return _once(found)


def _ratings(result: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key in _LISTS:
        held = result.get(key)
        for one in held if isinstance(held, list | tuple) else ():
            if isinstance(one, Mapping) and _number(one.get("rating")):
                rating: float = one["rating"]
                found |= dict.fromkeys(names(one), rating)
    for key in _RATINGS:
        held = result.get(key)
        if isinstance(held, Mapping):
            found |= {str(name): value for name, value in held.items() if name != "" and _number(value)}
    return found


def _named(value: Any) -> list[str]:
    """The names in a list, or by which figures are held."""
    return (
        [str(name) for name in value if name != ""] if isinstance(value, Mapping) and not names(value) else names(value)
    )


def _first(result: Mapping[str, Any], key: str) -> list[str]:
    return names(result.get(f"{key}_id")) or names(result.get(key))


def _told(result: Mapping[str, Any]) -> str:
    return next((text.casefold() for key in ("result", "outcome") if (text := _text(result.get(key)))), "")


def _text(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else ""
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))

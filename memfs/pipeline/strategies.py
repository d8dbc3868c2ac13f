"""Strategies: the ways to order an answer, by name (C5).

Owns the protocol of a strategy, the built-in ones, which are the presets of the ranking, the register of others, and
the time-weighted retrieval of seed 003. The factors that weights refer to belong to ``memfs.pipeline.ranking``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from memfs.errors import QueryInvalid, SettingInvalid
from memfs.model import Hit, Query, Recall
from memfs.model.kinds import nearest
from memfs.model.query import MOST
from memfs.model.time import utc_now
from memfs.pipeline.ranking import FACTORS, PRESETS, Ranked, fresh

_NAME_LIMIT = 60


@runtime_checkable
class Strategy(Protocol):
    """A way to order the answers to a question.

    Attributes:
        weights: the exponent of each factor it uses, by the factor's name; a factor that is not named does not count.
    """

    @property
    def weights(self) -> Mapping[str, float]: ...

    def rerank(self, query: Query, ranked: Sequence[Ranked]) -> Sequence[Ranked]:
        """The candidates in their final order: those given, best first, perhaps fewer, perhaps with other scores."""


Rerank = Callable[[Query, Sequence[Ranked]], Sequence[Ranked]]


def _as_it_is(query: Query, ranked: Sequence[Ranked]) -> Sequence[Ranked]:
    del query
    return ranked


@dataclass(frozen=True, slots=True)
class Weighted:
    """A strategy made of weights, of a function over the ranked candidates, or of both."""

    weights: Mapping[str, float] = field(default_factory=lambda: PRESETS["default"])
    function: Rerank = _as_it_is

    def rerank(self, query: Query, ranked: Sequence[Ranked]) -> Sequence[Ranked]:
        """See ``Strategy``."""
        return self.function(query, ranked)


_BUILT_IN: Mapping[str, Strategy] = MappingProxyType({name: Weighted(weights) for name, weights in PRESETS.items()})
_registered: dict[str, Strategy] = {}
_guard = threading.Lock()


def register_strategy(name: str, strategy: Strategy | Mapping[str, float] | Rerank) -> None:
    """Give a strategy of one's own a name that ``Query.strategy`` may hold, in this process.

    Args:
        name: a name registered before gets the new strategy; those of the presets are taken.
        strategy: an object of the protocol, or only its weights, or only a function ``(query, ranked) -> ranked`` that
            orders what the default weights scored.

    Raises:
        SettingInvalid: the name is taken or none, a weight belongs to no factor, or this is no strategy.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME_LIMIT:
        raise SettingInvalid("a strategy needs a name of at most 60 characters", field="strategy", hint="name it")
    if name in _BUILT_IN:
        raise SettingInvalid(f"the strategy {name!r} is built in", field="strategy", hint="choose another name")
    made = _made(strategy)
    for factor, weight in made.weights.items():
        _check_weight(factor, weight)
    with _guard:
        _registered[name] = made


def unregister_strategy(name: str) -> None:
    """Take a registered strategy's name away; one that is not known is ignored."""
    with _guard:
        _registered.pop(name, None)


def strategy_names() -> tuple[str, ...]:
    """Every name that ``Query.strategy`` may hold now."""
    with _guard:
        return (*_BUILT_IN, *_registered)


def strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        QueryInvalid: there is none; the hint names the nearest.
    """
    with _guard:
        found = _BUILT_IN.get(name) or _registered.get(name)
    if found is None:
        known = strategy_names()
        hint = " ".join(filter(None, (nearest(name, known), f"the strategies are {', '.join(known)}")))
        raise QueryInvalid(f"there is no strategy {name!r}", field="strategy", hint=hint)
    return found


def reranked(chosen: Strategy, query: Query, ranked: Sequence[Ranked]) -> list[Ranked]:
    """What a strategy makes of ranked candidates.

    Raises:
        QueryInvalid: it gave something that was not given to it, or gave something twice.
    """
    found = list(chosen.rerank(query, ranked))
    known = {one.match.candidate.id for one in ranked}
    ids = [one.match.candidate.id for one in found if isinstance(one, Ranked)]
    if len(ids) != len(found) or len(set(ids)) != len(ids) or not known.issuperset(ids):
        hint = "rerank gives back the candidates it was given, each at most once"
        raise QueryInvalid("the strategy gave what it was not given", field="strategy", hint=hint)
    return found


def _made(given: Strategy | Mapping[str, float] | Rerank) -> Strategy:
    if isinstance(given, Mapping):
        return Weighted(dict(given))
    if isinstance(given, Strategy) and not isinstance(given, type):
        return given
    if callable(given) and not isinstance(given, type):
        return Weighted(function=given)
    hint = "give weights by factor, a function (query, ranked) -> ranked, or an object with both"
    raise SettingInvalid(f"this is no strategy: {ascii(given)[:60]}", field="strategy", hint=hint)


def _check_weight(factor: str, weight: object) -> None:
    if factor not in FACTORS:
        hint = nearest(factor, FACTORS) or f"the factors are {', '.join(FACTORS)}"
        raise SettingInvalid(f"there is no factor {factor!r}", field="strategy", hint=hint)
    if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not abs(weight) <= 10:
        raise SettingInvalid(f"{factor}: a weight is a number from -10 to 10", field="strategy", hint="1 is usual")


# -- time-weighted ------------------------------------------------------------------------------------------------
class Searcher(Protocol):
    """Something that answers queries, as ``Workspace.recall`` does."""

    def search(self, query: Query) -> Recall:
        """The answer to a query."""


@dataclass(frozen=True, slots=True)
class TimeWeightedRetrieval:
    """Retrieval that mixes relevance with recency (seed 003, C5)."""

    searcher: Searcher
    clock: Callable[[], datetime] = utc_now

    def retrieve_time_weighted(self, query: str | Query, recency_weight: float = 0.3, limit: int = 10) -> list[Hit]:
        """The best of twice as many hits, by relevance x (1 - weight) + recency x weight.

        Relevance is the hit's score over the best hit's; recency is 1 / (1 + 0.1 x days).

        Raises:
            QueryInvalid: the weight is not between 0 and 1, or the query cannot be understood.
        """
        if not isinstance(recency_weight, (int, float)) or not 0 <= recency_weight <= 1:
            raise QueryInvalid(f"{ascii(recency_weight)[:60]} is no weight", field="recency_weight", hint="0 to 1")
        asked = replace(query, limit=limit) if isinstance(query, Query) else Query(text=query, limit=limit)
        found = self.searcher.search(replace(asked, limit=min(2 * limit, MOST))).hits
        best = max((hit.score for hit in found), default=0.0) or 1.0
        now = self.clock()
        mixed = [_mixed(hit, hit.score / best, recency_weight, now) for hit in found]
        mixed.sort(key=lambda hit: (-hit.score, hit.item.id))
        return mixed[:limit]


def _mixed(hit: Hit, relevance: float, weight: float, now: datetime) -> Hit:
    moment = hit.item.timestamp or hit.item.created or now
    recency = fresh(moment, now)
    score = relevance * (1.0 - weight) + recency * weight
    return replace(hit, score=score, reasons={**hit.reasons, "relevance": relevance, "recency": recency})

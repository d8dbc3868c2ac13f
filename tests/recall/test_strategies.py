"""Strategies: orders by name, one's own among them (C5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from strategy_contract import StrategyContract

from memfs import MemoryItem, Query, QueryInvalid, SettingInvalid, Workspace
from memfs.recall.ranking import (
    PRESETS,
    RankedCandidate,
    Strategy,
    TimeWeightedSearch,
    WeightedStrategy,
    register_strategy,
    strategy,
    strategy_names,
    unregister_strategy,
)

Opened = Callable[..., Workspace]
NOW = datetime(2026, 3, 10, tzinfo=UTC)


def shortest(query: Query, ranked: Sequence[RankedCandidate]) -> list[RankedCandidate]:
    """Ids in the order of the alphabet, backwards."""
    del query
    return [
        replace(one, score=-float(place))
        for place, one in enumerate(sorted(ranked, key=lambda one: one.match.candidate.id, reverse=True))
    ]


@dataclass(frozen=True, slots=True)
class NewestHalf:
    """A strategy as an object: recency alone, and the older half left out."""

    weights = {"recency": 1.0}  # noqa: RUF012  a constant of the class

    def rerank(self, query: Query, ranked: Sequence[RankedCandidate]) -> Sequence[RankedCandidate]:
        """The better half."""
        del query
        return ranked[: len(ranked) // 2]


class TestDefault(StrategyContract):
    """The default preset is a strategy."""

    @pytest.fixture
    def strategy(self) -> Strategy:
        return strategy("default")


class TestLearning(StrategyContract):
    """Seed 002's ranking is a strategy."""

    @pytest.fixture
    def strategy(self) -> Strategy:
        return strategy("learning")


class TestFunction(StrategyContract):
    """A function over ranked candidates is a strategy."""

    @pytest.fixture
    def strategy(self) -> Strategy:
        return WeightedStrategy(function=shortest)


class TestObject(StrategyContract):
    """An object with weights and a function is a strategy."""

    @pytest.fixture
    def strategy(self) -> Strategy:
        return NewestHalf()


@pytest.fixture
def named() -> Iterator[Callable[..., str]]:
    """Registers a strategy for one test."""

    def register(given: Any) -> str:
        register_strategy("mine", given)
        return "mine"

    yield register
    unregister_strategy("mine")


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """Three items about apples: the oldest says it twice."""
    made = opened()
    for number, text in enumerate(("apple apple pie", "apple cake", "apple juice")):
        made.store.put(MemoryItem(text, id=f"a{number}", timestamp=f"2026-03-0{number + 1}"))
    return made


def ids(workspace: Workspace, name: str) -> list[str]:
    """The order of the answer under a strategy."""
    return [hit.item.id for hit in workspace.recaller.search(Query(text="apple", strategy=name)).hits]


def test_a_query_chooses_its_strategy(workspace: Workspace, named: Callable[..., str]) -> None:
    """``Query.strategy`` names a preset or what was registered, be it weights, a function or an object (C5)."""
    assert ids(workspace, "default")[0] == "a0"
    assert ids(workspace, named(shortest)) == ["a2", "a1", "a0"]
    assert ids(workspace, named({"recency": 1.0})) == ["a2", "a1", "a0"]
    assert ids(workspace, named({"recency": -1.0})) == ["a0", "a1", "a2"]
    assert ids(workspace, named(NewestHalf())) == ["a2"]


def test_a_strategy_that_is_not_known_is_refused(workspace: Workspace) -> None:
    """The error names the nearest strategy and all there are."""
    with pytest.raises(QueryInvalid) as caught:
        workspace.recaller.search(Query(text="apple", strategy="time_wieghted"))
    assert caught.value.field == "strategy"
    assert "did you mean 'time_weighted'?" in (caught.value.hint or "")
    assert set(PRESETS) <= set(strategy_names())


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        ("", {}, "needs a name"),
        ("x" * 61, {}, "needs a name"),
        ("default", {}, "built in"),
        ("mine", {"txt": 1.0}, "no factor 'txt'"),
        ("mine", {"text": "much"}, "number from -10 to 10"),
        ("mine", {"text": float("nan")}, "number from -10 to 10"),
        ("mine", {"text": True}, "number from -10 to 10"),
        ("mine", 5, "not a strategy"),
        ("mine", NewestHalf, "not a strategy"),
    ],
)
def test_what_is_not_a_strategy_is_refused(name: str, given: Any, reason: str) -> None:
    """What could not order an answer is refused when it is registered, not when it is asked."""
    with pytest.raises(SettingInvalid, match=reason):
        register_strategy(name, given)
    assert "mine" not in strategy_names()


@pytest.mark.parametrize(
    "broken",
    [
        lambda _query, ranked: [*ranked, *ranked],
        lambda _query, ranked: [one.match for one in ranked],
        lambda _query, ranked: [
            replace(one, match=one.match._replace(candidate=one.match.candidate._replace(id="x"))) for one in ranked
        ],
    ],
    ids=["twice", "another sort", "invented"],
)
def test_a_strategy_may_only_give_what_it_was_given(
    workspace: Workspace, named: Callable[..., str], broken: Any
) -> None:
    """An answer never holds what the index did not find."""
    with pytest.raises(QueryInvalid, match="what it was not given"):
        ids(workspace, named(broken))


@pytest.mark.parametrize(("weight", "first"), [(0.0, "a0"), (1.0, "a2")])
def test_time_weighted_retrieval_mixes_relevance_and_recency(workspace: Workspace, weight: float, first: str) -> None:
    """Relevance x (1 - w) + recency x w, recency 1 / (1 + 0.1 days), from twice as many candidates (C5)."""
    hits = TimeWeightedSearch(workspace.recaller.search, lambda: NOW).retrieve_time_weighted("apple", weight, limit=2)
    assert (len(hits), hits[0].item.id) == (2, first)
    for hit in hits:
        days = (NOW - (hit.item.timestamp or NOW)) / timedelta(days=1)
        relevance = hit.reasons["relevance"]
        assert hit.score == pytest.approx(relevance * (1 - weight) + weight / (1 + 0.1 * days))
        assert 0 < relevance <= 1


def test_time_weighted_retrieval_refuses_other_weights(workspace: Workspace) -> None:
    """A weight is between 0 and 1."""
    with pytest.raises(QueryInvalid, match="not a weight"):
        TimeWeightedSearch(workspace.recaller.search).retrieve_time_weighted("apple", 1.5)

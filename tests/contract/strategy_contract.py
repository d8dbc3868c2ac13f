"""StrategyContract: the tests every ranking strategy must pass.

Authors of a strategy inherit the class in a test and override ``strategy``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memfs.model import Candidate, Query
from memfs.model.time import micros
from memfs.recall.ranking import (
    FACTORS,
    RankCandidate,
    RankedCandidate,
    Ranking,
    Strategy,
    register_strategy,
    reranked,
    strategy,
    unregister_strategy,
)

_NOW = datetime(2026, 3, 1, tzinfo=UTC)


class StrategyContract:
    """What every strategy promises. Subclasses override ``strategy``."""

    @pytest.fixture
    def strategy(self) -> Strategy:
        """The strategy under test."""
        raise NotImplementedError

    @staticmethod
    def _ranked(chosen: Strategy, query: Query, many: int) -> list[RankedCandidate]:
        matches = [
            RankCandidate(
                Candidate(
                    id=f"item-{number}",
                    path=f"ContextMemory/memories/semantic/item-{number}.yaml",
                    similarity=1.0 + number % 3,
                    type="semantic",
                    time=micros(_NOW - timedelta(days=number)),
                )
            )
            for number in range(many)
        ]
        return Ranking(query, chosen.weights, _NOW).ranked(matches)

    def test_its_weights_belong_to_factors(self, strategy: Strategy) -> None:
        """Each weight is a number, and its factor exists."""
        assert set(strategy.weights) <= set(FACTORS)
        assert all(isinstance(weight, (int, float)) for weight in strategy.weights.values())

    @pytest.mark.parametrize("many", [0, 1, 7])
    @pytest.mark.parametrize("text", ["apple", ""])
    def test_it_gives_what_it_was_given(self, strategy: Strategy, many: int, text: str) -> None:
        """Nothing is invented and nothing comes twice; the same question gets the same answer."""
        query = Query(text=text)
        given = self._ranked(strategy, query, many)
        ids = {one.match.candidate.id for one in given}
        once = [one.match.candidate.id for one in reranked(strategy, query, given)]
        again = [one.match.candidate.id for one in reranked(strategy, query, given)]
        assert once == again
        assert set(once) <= ids

    def test_it_can_be_registered(self, strategy: Strategy) -> None:
        """It is found by the name it is given."""
        register_strategy("under test", strategy)
        try:
            assert _named("under test") is strategy
        finally:
            unregister_strategy("under test")


def _named(name: str) -> Strategy:
    return strategy(name)

"""How an agent did after a feedback, against before (S5)."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.model.state_documents import FeedbackEffect
from memfs.state.metrics import FeedbackDelivery, compared, measured


def given(version: str, source: int, iteration: int) -> FeedbackDelivery:
    """That the agent was given a version in an iteration."""
    return FeedbackDelivery(agent="Scout", version=version, from_iteration=source, iteration=iteration)


def windows(several: list[FeedbackDelivery], last: int) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Before and after, by version."""
    return {one.version: (one.before, one.after) for one in compared(several, range(1, last + 1))}


def test_each_feedback_is_compared_with_the_one_before() -> None:
    """Before are the iterations under the feedback before it, after those until the next (S5)."""
    found = windows([given("a", 1, 2), given("a", 1, 3), given("b", 3, 4)], 6)
    assert found == {"a": ((1,), (2, 3)), "b": ((2, 3), (4, 5, 6))}


def test_feedback_given_before_the_next_iteration_counts_for_it() -> None:
    """What is handed out while its own iteration is the newest is for the one after (S5)."""
    assert windows([given("a", 2, 2)], 4) == {"a": ((1, 2), (3, 4))}


def test_at_most_three_iterations_are_compared() -> None:
    """What is far back says little (S5)."""
    assert windows([given("a", 5, 6)], 12) == {"a": ((3, 4, 5), (6, 7, 8))}


def agents(**metrics: dict[int, list[Any]]) -> dict[int, dict[str, Any]]:
    """Entries of Scout by iteration."""
    found: dict[int, dict[str, Any]] = {}
    for name, by in metrics.items():
        for iteration, value in by.items():
            entry = found.setdefault(iteration, {"Scout": {"outputs": value[0], "metrics": {}}})["Scout"]
            (entry if name == "confidence" else entry["metrics"])[name] = value
    return found


PLAN = FeedbackEffect(agent="Scout", version="a", from_iteration=1, before=(1,), after=(2,))


@pytest.mark.parametrize(
    ("metrics", "verdict"),
    [
        ({"confidence": {1: [5, 0.5, 0.1], 2: [5, 0.7, 0.1]}}, "better"),
        ({"error_rate": {1: [5, 0.5, 0.1], 2: [5, 0.7, 0.1]}}, "worse"),
        ({"confidence": {1: [5, 0.5, 0.1], 2: [5, 0.505, 0.1]}}, "no clear change"),
        ({"confidence": {1: [5, 0.5, 0.0], 2: [5, 0.5, 0.0]}}, "no clear change"),
        ({"confidence": {1: [5, 0.5, 0.0], 2: [5, 0.6, 0.0]}}, "better"),
        ({"confidence": {1: [2, 0.5, 0.1], 2: [5, 0.7, 0.1]}}, "too little data"),
        ({"confidence": {1: [5, 0.5, 0.1]}}, "too little data"),
        ({}, "too little data"),
    ],
)
def test_the_verdict_needs_data_and_a_difference(metrics: dict[str, Any], verdict: str) -> None:
    """Better, worse, no clear change, or too little data, and a reason in any case (S5)."""
    effect = measured(PLAN, agents(**metrics))
    assert effect.verdict == verdict
    assert effect.reason


def test_each_metric_is_shown_with_its_counts() -> None:
    """Mean before and after, how many values, and the size of the change (S5)."""
    effect = measured(PLAN, agents(novelty={1: [4, 0.2, 0.1], 2: [6, 0.4, 0.1]}))
    (metric,) = effect.metrics
    assert (metric.metric, metric.before, metric.after, metric.change) == ("novelty", 0.2, 0.4, 0.2)
    assert (metric.n_before, metric.n_after, metric.effect) == (4, 6, 2.0)
    assert (effect.n_before, effect.n_after) == (4, 6)
    assert effect.reason == "novelty went from 0.2 to 0.4 (4 values before and 6 after)"

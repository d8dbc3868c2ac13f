"""What counts as a figure, a strategy, a success, and how figures are summed up (S5, S11)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.state.metrics import (
    combined,
    direction,
    dissimilarity,
    figures,
    key_of,
    less_is_better,
    metrics_of,
    named,
    slope,
    strategies_of,
    success_of,
    summary,
    words_of,
)

FLOATS = st.floats(-1e6, 1e6)


@given(st.lists(st.lists(FLOATS, max_size=8), max_size=5))
def test_a_summary_of_summaries_is_that_of_all_values(lists: list[list[float]]) -> None:
    """The totals of iterations can be computed from their entries alone (S12)."""
    whole, parts = summary(value for values in lists for value in values), combined(map(summary, lists))
    assert whole[0] == parts[0]
    assert parts[1] == pytest.approx(whole[1], rel=1e-6, abs=1e-3)
    assert parts[2] == pytest.approx(whole[2], rel=1e-3, abs=5.0)


def test_a_summary_does_not_depend_on_the_order() -> None:
    """The same documents give the same bytes in whatever order they are found (S12)."""
    values = [random.Random(4).uniform(-1, 1) * 10**place for place in range(-8, 9) for _ in range(5)]
    assert summary(values) == summary(reversed(values))


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], "unknown"),
        ([(1, 5)], "unknown"),
        ([(1, 1), (2, 2), (3, 3)], "rising"),
        ([(1, 3), (2, 2), (3, 1)], "falling"),
        ([(1, 100), (2, 101), (3, 100)], "steady"),
        ([(1, 0), (2, 0)], "steady"),
    ],
)
def test_a_direction_is_a_move_that_matters(points: list[tuple[float, float]], expected: str) -> None:
    """A value rises or falls when it moves by a tenth of its size (S10)."""
    assert direction(points) == expected


def test_the_slope_is_the_change_for_each_iteration() -> None:
    """Gaps between iterations count as such (S10)."""
    assert slope([(1, 1.0), (3, 5.0)]) == 2.0


def test_figures_are_found_by_dotted_name() -> None:
    """Metrics may be nested, or one bare number; what is not a number is passed over (S11)."""
    assert figures({"a": {"b": 1, "c": "x"}, "d": True, "e": 2.5, "f": float("nan")}) == {"a.b": 1.0, "e": 2.5}
    assert figures(0.7) == {"effectiveness": 0.7}
    assert figures("x") == figures(None) == figures([1, 2]) == {}


def test_metrics_of_an_output_come_from_metadata_and_what_it_made() -> None:
    """Metadata wins over the primary output where both name a figure (S11)."""
    results = {"primary_output": {"gain": 1, "text": "x", "deep": {"n": 3}}, "metadata": {"gain": 2, "novelty": 0.4}}
    assert metrics_of(results) == {"gain": 2.0, "novelty": 0.4}
    assert metrics_of({"primary_output": "a text"}) == {}


def test_numbers_that_only_name_something_are_no_metrics() -> None:
    """A seed or the number of an iteration measures nothing (S11)."""
    metadata = {"seed": 4, "iteration": 3, "run.index": 1, "Version": 2, "task_id": 5, "video": 1, "deep": {"seed": 9}}
    assert metrics_of({"metadata": metadata}) == {"video": 1.0}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"strategy": "swap"}, ("swap",)),
        ({"Strategies_used": ["a", {"name": "b"}, 3, "a"]}, ("a", "b")),
        ({"search strategy": "  deep \n first "}, ("deep first",)),
        ({"approach": "x"}, ()),
        ({"strategy": ""}, ()),
    ],
)
def test_strategies_are_found_under_keys_that_say_so(values: dict[str, Any], expected: tuple[str, ...]) -> None:
    """An agent may name one strategy or several (S11)."""
    assert strategies_of(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"success": True}, True),
        ({"succeeded": False, "status": "done"}, False),
        ({"outcome": "Rejected"}, False),
        ({"status": "completed"}, True),
        ({"status": "thinking"}, None),
        ({"success": "yes"}, None),
    ],
)
def test_success_is_what_is_reported_of_it(values: dict[str, Any], expected: bool | None) -> None:
    """A flag, or a word that says how it ended; anything else says nothing (S11)."""
    assert success_of(values) is expected


@pytest.mark.parametrize("name", ["cost", "errorRate", "mean_latency_ms", "tokens.used", "failed runs", "time"])
def test_less_of_a_cost_is_better(name: str) -> None:
    """Metrics that by their name are costs or errors are compared the other way round (S5)."""
    assert less_is_better(name)


@pytest.mark.parametrize("name", ["accuracy", "overtime_score_x", "lossless", "diversity", "costume"])
def test_more_of_anything_else_is_better(name: str) -> None:
    """A word within a word is not that word (S5)."""
    assert not less_is_better(name)


def test_metrics_by_beginning() -> None:
    """Metrics that begin with the word come first; a part that does counts too (S11)."""
    given = dict.fromkeys(("score.improvement", "improvement_rate", "unimprovement", "Improvement"))
    assert named(given, "improvement") == ["Improvement", "improvement_rate", "score.improvement"]


def test_dissimilarity_separates_the_same_from_the_different() -> None:
    """Outputs of the same words have none, those without a word in common have all of it (S11)."""
    same, other = words_of({"text": "alpha beta"}), words_of(["gamma", {"x": "delta"}])
    assert dissimilarity([same, same]) == 0.0
    assert dissimilarity([same, other]) == 1.0
    assert dissimilarity([same]) is None


def test_long_names_stay_apart_as_keys() -> None:
    """A name that is too long for a key keeps its beginning, and two such differ (S12)."""
    one, other = "a" * 900 + "1", "a" * 900 + "2"
    assert key_of("Evolution Agent") == "Evolution Agent"
    assert key_of(one) != key_of(other)
    assert max(len(key_of(one)), len(key_of(other))) <= 256

"""Which patterns a review names, and where they go over the iterations (S10)."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.state.aggregates import PatternName, pattern_text, patterns_of, trends_of


def named(value: Any) -> list[tuple[str, int]]:
    """The patterns of a review that holds this."""
    return [(one.name, one.count) for one in patterns_of({"critique": {"common_patterns": value}})]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["weak controls", "Weak  controls."], [("weak controls", 2)]),
        ([{"pattern": "drift", "occurrences": 4}], [("drift", 4)]),
        ([{"title": "drift"}, "drift"], [("drift", 2)]),
        ({"drift": 3, "echo": {"count": 2, "note": "x"}, "noise": "seen"}, [("drift", 3), ("echo", 2), ("noise", 1)]),
        ({"name": "drift", "frequency": 2.0}, [("drift", 2)]),
        ("drift", [("drift", 1)]),
        ([["a", "b"], None, {}, [], True, 7], [("a", 1), ("b", 1), ("7", 1)]),
        (None, []),
        ([{"name": "x", "count": -3}], [("x", 1)]),
        (["..."], [("...", 1)]),
    ],
)
def test_patterns_come_in_any_form(value: Any, expected: list[tuple[str, int]]) -> None:
    """Strings, objects, and objects by name all name patterns; a second mention adds to the count (S10)."""
    assert named(value) == expected


def test_what_a_review_says_of_a_pattern_is_kept() -> None:
    """Details of an object are reported beside its name (S4, S10)."""
    one = patterns_of({"critique": {"common_patterns": [{"name": "drift", "count": 2, "why": "old data", "at": [1]}]}})
    assert pattern_text(one[0]) == "drift (count: 2, why: old data)"


def reviews(*counts: int) -> dict[int, list[PatternName]]:
    """Reviews of iterations 1, 2, ... that name "drift" so often."""
    return {number: [PatternName("drift", count, {})] * bool(count) for number, count in enumerate(counts, 1)}


@pytest.mark.parametrize(
    ("counts", "direction", "first", "last"),
    [
        ((1, 2, 3), "rising", 1, 3),
        ((3, 2, 0, 0), "falling", 1, 2),
        ((0, 2, 2, 2), "steady", 2, 4),
        ((0, 0, 5), "new", 3, 3),
        ((5,), "new", 1, 1),
    ],
)
def test_a_trend_has_first_last_and_direction(counts: tuple[int, ...], direction: str, first: int, last: int) -> None:
    """An iteration whose review does not name the pattern counts nothing, and pulls it down (S10)."""
    (trend,) = trends_of(reviews(*counts))
    assert (trend.direction, trend.first_seen, trend.last_seen, trend.total) == (direction, first, last, sum(counts))
    assert trend.counts == {number: count for number, count in enumerate(counts, 1) if count}


def test_the_weightiest_pattern_comes_first() -> None:
    """Patterns are ordered by how often they were seen, then by how lately (S10)."""
    given = {
        1: [PatternName("rare", 1, {}), PatternName("often", 9, {})],
        2: [PatternName("late", 1, {}), PatternName("Often!", 1, {})],
    }
    trends = trends_of(given)
    assert [one.name for one in trends] == ["Often!", "late", "rare"]
    assert trends[0].names == ("often", "Often!")

"""Patterns over the iterations of a workspace (S10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memfs.state.aggregates import pattern_trends
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


def review(workspace: Workspace, number: int, patterns: Any) -> None:
    """Store a review of an iteration of its own."""
    workspace.states.iterations.start(number)
    critique = {"common_patterns": patterns}
    workspace.states.recorder.meta_review({"iteration_number": number, "critique": critique})


def test_patterns_are_followed_through_iterations(opened: Opened) -> None:
    """First and last seen, counts by iteration, direction; strings and objects alike (S10)."""
    workspace = opened()
    review(workspace, 1, ["Weak controls", {"name": "analogy", "count": 1}])
    review(workspace, 2, [{"name": "analogy", "count": 3}])
    review(workspace, 5, [{"name": "Analogy", "count": 8, "note": "strong"}, "fresh"])
    report = pattern_trends(workspace.states.reading)
    assert report.iterations == (1, 2, 5)
    found = {one.name: one for one in report.patterns}
    assert list(found) == ["Analogy", "fresh", "Weak controls"]
    analogy = found["Analogy"]
    assert (analogy.first_seen, analogy.last_seen, analogy.direction) == (1, 5, "rising")
    assert analogy.counts == {1: 1, 2: 3, 5: 8}
    assert analogy.details["note"] == "strong"
    assert found["fresh"].direction == "new"
    assert found["Weak controls"].direction == "falling"
    assert report.to_dict()["patterns"][0]["counts"] == {"1": 1, "2": 3, "5": 8}


def test_a_review_that_changes_is_seen_at_once(opened: Opened) -> None:
    """Trends follow the documents, not a cache of them (S10)."""
    workspace = opened()
    review(workspace, 1, ["one"])
    assert [one.name for one in pattern_trends(workspace.states.reading).patterns] == ["one"]
    critique = {"common_patterns": ["two"]}
    workspace.states.recorder.meta_review({"iteration_number": 1, "critique": critique})
    assert [one.name for one in pattern_trends(workspace.states.reading).patterns] == ["two"]


def test_a_review_that_cannot_be_read_is_named(opened: Opened) -> None:
    """The others count all the same (S10)."""
    workspace = opened()
    review(workspace, 1, ["one"])
    folder = workspace.root / "ContextMemory/iterations/iteration_002"
    folder.mkdir()
    (folder / "meta_review.json").write_text("{ half")
    report = pattern_trends(workspace.states.reading)
    assert [one.name for one in report.patterns] == ["one"]
    assert report.iterations == (1,)


def test_no_review_is_no_trend(opened: Opened) -> None:
    """An empty workspace has none (S10)."""
    report = pattern_trends(opened().states.reading)
    assert (report.iterations, report.patterns, report.missing) == ((), (), ())

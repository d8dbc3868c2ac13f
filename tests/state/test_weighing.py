"""The weight that an analysis suggests, within bounds and with reasons (S11)."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.model.state_documents import AgentPoint, Analysis, StrategyOutcome
from memfs.state.metrics import strategies_in, suggested

POINTS = tuple(AgentPoint(iteration=number, outputs=5) for number in (1, 2, 3))


def analysis(**values: Any) -> Analysis:
    """An analysis of an agent that stored fifteen outputs in three iterations."""
    return Analysis(**{"agent": "Scout", "points": POINTS, "outputs": 15, "current_weight": 2.0, **values})


def test_nothing_changes_without_data() -> None:
    """With too few outputs the weight stays, and the reason says so (S11)."""
    weight, reasons = suggested(analysis(points=POINTS[:1], outputs=5), [])
    assert weight == 2.0
    assert reasons == ("the weight stays: too little to judge by (outputs: 5, in iterations: 1)",)
    assert suggested(analysis(), [])[1] == ("the weight stays: nothing speaks for more or less",)


@pytest.mark.parametrize(
    ("values", "peers", "up"),
    [
        ({"improvement_rate": 0.8, "improvement_basis": "ratings of"}, [], True),
        ({"improvement_rate": 0.2, "improvement_basis": "ratings of"}, [], False),
        ({"improvement_rate": 0.2, "improvement_basis": "metric improvement"}, [], True),
        ({"improvement_rate": 0.2, "improvement_basis": "metric improvement"}, [0.4, 0.5], False),
        ({"diversity": 0.1}, [], False),
        ({"strategies": (StrategyOutcome(name="s", uses=4, success_rate=0.9),)}, [], True),
    ],
)
def test_what_speaks_for_more_and_for_less(values: dict[str, Any], peers: list[float], up: bool) -> None:
    """Improvement, diversity and success each move the weight their way (S11)."""
    weight, reasons = suggested(analysis(**values), peers)
    assert (weight > 2.0) is up
    assert reasons


@pytest.mark.parametrize("rate", [-1e30, -1.0, 0.0, 1.0, 1e30])
def test_a_suggestion_is_bounded(rate: float) -> None:
    """However extreme the figures, a weight moves by half at most (S11)."""
    weight, reasons = suggested(analysis(improvement_rate=rate, improvement_basis="ratings", diversity=0.0), [0.5])
    assert 1.0 <= weight <= 3.0
    assert len(reasons) >= 2


def test_few_outputs_make_small_changes() -> None:
    """Evidence counts: five outputs move the weight half as far as ten (S11)."""
    values = {"improvement_rate": 1.0, "improvement_basis": "ratings"}
    points = tuple(AgentPoint(iteration=number, outputs=1) for number in range(5))
    assert suggested(analysis(**values), [])[0] == 2.4
    assert suggested(analysis(**values, points=points, outputs=5), [])[0] == 2.2


def test_an_agent_that_is_off_stays_off() -> None:
    """A weight of 0 is somebody's decision (S11)."""
    weight, reasons = suggested(analysis(improvement_rate=1.0, improvement_basis="ratings", current_weight=0.0), [])
    assert weight == 0.0
    assert "stays so until somebody raises it" in reasons[-1]


def test_strategies_are_ordered_by_what_they_brought() -> None:
    """Those that succeeded most often, then those that improved most; half of the time is successful (S11)."""
    entry = {
        "strategies": {
            "swap": {"uses": 2, "improvement": [2, 0.4, 0.0], "cost": [2, 1.0, 0.0], "successes": [2, 2]},
            "merge": {"uses": 2, "improvement": [2, 0.1, 0.0], "confidence": [2, 0.9, 0.0], "successes": [0, 2]},
            "graft": {"uses": 1, "gain": [2, 12.0, 0.0]},
            "prune": {"uses": 1, "gain": [2, -12.0, 0.0]},
        }
    }
    found = strategies_in([entry, entry])
    assert [(one.name, one.uses, one.success_rate, one.improvement, one.successful) for one in found] == [
        ("swap", 4, 1.0, 0.4, True),
        ("graft", 2, None, 12.0, True),
        ("prune", 2, None, -12.0, False),
        ("merge", 4, 0.0, 0.1, False),
    ]

"""Weighing: the weight that an agent's work suggests, and why (seed 001; S11).

Owns what speaks for more or less weight, and how much of it one analysis may move. Pure: it is told the courses of an
agent and what the others came to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memfs.model.insights import Analysis

MOST = 0.5
"""A suggestion moves a weight by half of it at most."""
_LEAST_OUTPUTS = 3
_ENOUGH_OUTPUTS = 10
_STEP = 0.1
_SMALL = 0.05
_LEVEL = 0.2
_ALIKE = 0.2

Reason = tuple[float, str]


def suggested(analysis: Analysis, peers: Sequence[float]) -> tuple[float, tuple[str, ...]]:
    """The weight that an analysis suggests, and its reasons.

    Args:
        analysis: of the agent, with its current weight.
        peers: the mean improvement of each other agent, on the same basis.
    """
    current = analysis.current_weight
    active = sum(1 for point in analysis.points if point.outputs or point.metrics)
    if active < 2 or max(analysis.outputs, active) < _LEAST_OUTPUTS:
        counted = f"{analysis.outputs} outputs in {active} iterations"
        return current, (f"the weight stays: {counted} are too little to judge by",)
    found = [reason for reason in _reasons(analysis, peers) if reason[0]]
    if not found:
        return current, ("the weight stays: nothing speaks for more or less",)
    evidence = min(1.0, max(analysis.outputs, active) / _ENOUGH_OUTPUTS)
    move = min(max(sum(share for share, _ in found), -MOST), MOST) * evidence
    reasons = [f"{sentence} ({share * 100:+.0f} %)" for share, sentence in found]
    if evidence < 1:
        reasons.append(f"only {analysis.outputs} outputs: the change is made smaller, to {move * 100:+.0f} % in all")
    elif abs(sum(share for share, _ in found)) > MOST:
        reasons.append(f"one suggestion changes a weight by {MOST * 100:.0f} % at most")
    if current <= 0:
        reasons.append("the weight is 0, so that the agent is switched off: it stays so until somebody raises it")
    return round(max(current, 0.0) * (1 + move), 4), tuple(reasons)


def _reasons(analysis: Analysis, peers: Sequence[float]) -> Iterator[Reason]:
    yield from _improvement(analysis, peers)
    yield from _diversity(analysis)
    turns = {"rising": _SMALL, "falling": -_SMALL}
    confidence = analysis.confidence.direction
    if confidence in turns:
        yield turns[confidence], f"its confidence is {confidence}{_course(analysis.confidence.slope)}"
    cost = analysis.cost.direction
    if cost in turns:
        share = -_STEP if cost == "rising" and analysis.improvement.direction != "rising" else -turns[cost]
        yield share, f"what it consumes is {cost}{_course(analysis.cost.slope)}"
    rates = [(one.success_rate, one.uses) for one in analysis.strategies if one.success_rate is not None]
    if rates:
        rate = sum(rate * uses for rate, uses in rates) / sum(uses for _, uses in rates)
        yield round((rate - 0.5) * _LEVEL, 3), f"{rate * 100:.0f} % of what it tried with a named strategy succeeded"


def _improvement(analysis: Analysis, peers: Sequence[float]) -> Iterator[Reason]:
    rate = analysis.improvement_rate
    if rate is None:
        return
    if peers:
        others = sum(peers) / len(peers)
        size = max(abs(rate), abs(others))
        share = round(_LEVEL * (rate - others) / size, 3) if size else 0.0
        compared = "above" if rate > others else "below"
        yield (
            min(max(share, -_LEVEL), _LEVEL),
            f"its improvement rate, {rate:.3g}, is {compared} the others' {others:.3g}",
        )
    elif analysis.improvement_basis.startswith("ratings"):
        yield round((rate - 0.5) * 2 * _LEVEL, 3), f"{rate * 100:.0f} % of its hypotheses are rated above their parents"
    else:
        yield (_STEP if rate > 0 else -_STEP if rate < 0 else 0.0), f"its improvement rate is {rate:.3g}"
    turns = {"rising": _STEP, "falling": -_STEP}
    if analysis.improvement.direction in turns:
        slope = _course(analysis.improvement.slope)
        yield turns[analysis.improvement.direction], f"its improvement rate is {analysis.improvement.direction}{slope}"


def _diversity(analysis: Analysis) -> Iterator[Reason]:
    if analysis.diversity is None:
        return
    if 0 <= analysis.diversity < _ALIKE:
        yield -_STEP, f"its outputs are much alike: diversity {analysis.diversity:.2f}"
    turns = {"rising": _SMALL, "falling": -_SMALL}
    if analysis.diversity_course.direction in turns:
        slope = _course(analysis.diversity_course.slope)
        yield (
            turns[analysis.diversity_course.direction],
            f"its diversity is {analysis.diversity_course.direction}{slope}",
        )


def _course(slope: float) -> str:
    return f" by {slope:+.3g} an iteration"

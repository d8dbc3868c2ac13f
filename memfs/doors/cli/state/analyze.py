"""``state analyze``: how an agent did, and the weight that this suggests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.output import Table, Text, count, styled

if TYPE_CHECKING:
    from memfs.model.insights import Analysis, Course
    from memfs.workspace import Workspace


def _text(analysis: Analysis) -> Text:
    outputs = count(analysis.outputs, "output")
    yield f"{styled(analysis.agent, bold=True)}  {outputs}, {_span(analysis.iterations)}"
    rows = (
        ("improvement", analysis.improvement_rate, analysis.improvement, analysis.improvement_basis),
        ("diversity", analysis.diversity, analysis.diversity_course, analysis.diversity_basis),
        ("confidence", analysis.confidence.mean, analysis.confidence, "mean of its outputs"),
        ("cost", analysis.cost.mean, analysis.cost, "consumed in an iteration"),
    )
    yield Table([(f"  {name}", _figure(value), _course(course), basis) for name, value, course, basis in rows], (3,))
    for one in analysis.strategies[:8]:
        works = "works" if one.successful else "does not stand out"
        yield f"  strategy {one.name}: {_figure(one.score)} in {count(one.uses, 'use')}, {works}"
    told = [effect for effect in analysis.feedback if any(one.effect is not None for one in effect.metrics)]
    for effect in told:
        yield f"  feedback of iteration {effect.from_iteration}: {effect.verdict}; {effect.reason}"
    if silent := len(analysis.feedback) - len(told):
        yield f"  {'further ' if told else ''}feedback of {count(silent, 'iteration')}: too little data to compare"
    weights = f"{analysis.current_weight:g} -> {analysis.suggested_weight:g}"
    yield f"  suggested weight  {styled(weights, bold=True)}  ({analysis.weight_source})"
    for reason in analysis.reasons:
        yield f"    {reason}"


def _span(numbers: Sequence[int]) -> str:
    if len(numbers) > 1:
        return f"iterations {numbers[0]} to {numbers[-1]}"
    return f"iteration {numbers[0]}" if numbers else "no iterations"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _course(course: Course) -> str:
    return course.direction if course.n > 1 else ""


@verb("analyze", text=_text)
@click.argument("agent", metavar="AGENT")
@click.option(
    "--iterations", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many to look at."
)
def analyze(workspace: Workspace, agent: str, iterations: int) -> Analysis:
    """Show how an agent did over the last iterations: improvement, diversity, confidence, cost, what strategies and
    feedback brought, and the weight that this suggests, with its reasons.

    Nothing is changed: who steers the agents decides about weights.

    Examples:
        memfs state analyze "Evolution Agent"
        memfs state analyze Scout --iterations 20
    """
    return workspace.states.analysis.analyze(agent, iterations)

"""``feedback-for``, ``analyze``, ``trends`` and ``aggregates``: what the state of many iterations says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.commit_report import land
from memfs.doors.cli.filters import as_of, as_of_json, note_past, state_at
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, print_table, print_text, styled

if TYPE_CHECKING:
    from memfs.model.insights import Analysis, Course, FeedbackEffect, PatternTrend
    from memfs.workspace import Workspace


@verb(
    "feedback-for",
    example='memfs feedback-for "Evolution Agent"\nmemfs feedback-for Scout --effect --json',
)
@click.argument("agent", metavar="AGENT")
@click.option("--no-record", is_flag=True, help="Only look: do not record that the agent was given it.")
@click.option("--effect", is_flag=True, help="Show instead how the agent did after each feedback, against before.")
@click.pass_context
def feedback_for(ctx: click.Context, agent: str, no_record: bool, effect: bool, as_json: bool) -> None:
    """Print what the newest meta-review has to say to an agent, ready for its prompt.

    What reviewers wrote stands in it as quoted data. That the agent was given this version is recorded once in an
    iteration, so that its effect can be measured later.
    """
    if effect and no_record:
        raise click.UsageError("--effect and --no-record exclude each other", ctx)
    with opened(ctx) as workspace:
        if effect:
            _show_effects(workspace.states.feedback.effectiveness(agent), as_json)
            return
        workspace.repository.require_readable()
        given = workspace.states.feedback.for_agent(agent, record=not no_record)
        reason = land(workspace, None).reason if given.recorded else ""
    if as_json:
        print_json(given.to_dict())
    elif given.text:
        print_text(given.text.rstrip("\n"))
    for remark in given.remarks:
        note(remark)
    if not given.text and not given.version and not as_json:
        note("there is no meta-review yet")
    if reason:
        note(f"recorded; its commit waits: {reason}")


def _show_effects(effects: tuple[FeedbackEffect, ...], as_json: bool) -> None:
    if as_json:
        print_json({"effects": [one.to_dict() for one in effects]})
        return
    rows = [(f"iteration {one.from_iteration}", one.version, one.verdict, one.reason) for one in effects]
    print_table(rows, dim=(1,))
    note(count(len(effects), "feedback") + ("" if effects else "; none was given to this agent yet"))


@verb("analyze", example='memfs analyze "Evolution Agent"\nmemfs analyze Scout --iterations 20')
@click.argument("agent", metavar="AGENT")
@click.option(
    "--iterations", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many to look at."
)
@click.pass_context
def analyze(ctx: click.Context, agent: str, iterations: int, as_json: bool) -> None:
    """Show how an agent did over the last iterations, and the weight that this suggests, with its reasons.

    Nothing is changed: who steers the agents decides about weights.
    """
    with opened(ctx) as workspace:
        analysis = workspace.states.analysis.analyze(agent, iterations)
    if as_json:
        print_json(analysis.to_dict())
        return
    _tell(analysis)


def _tell(analysis: Analysis) -> None:
    outputs = clean(count(analysis.outputs, "output"))
    print_raw(f"{styled(analysis.agent, bold=True)}  {outputs}, {_span(analysis.iterations)}")
    rows = (
        ("improvement", analysis.improvement_rate, analysis.improvement, analysis.improvement_basis),
        ("diversity", analysis.diversity, analysis.diversity_course, analysis.diversity_basis),
        ("confidence", analysis.confidence.mean, analysis.confidence, "mean of its outputs"),
        ("cost", analysis.cost.mean, analysis.cost, "consumed in an iteration"),
    )
    print_table(
        [(f"  {name}", _figure(value), _course(course), basis) for name, value, course, basis in rows], dim=(3,)
    )
    for one in analysis.strategies[:8]:
        works = "works" if one.successful else "does not stand out"
        print_raw(f"  strategy {one.name}: {_figure(one.score)} in {count(one.uses, 'use')}, {works}")
    told = [effect for effect in analysis.feedback if any(one.effect is not None for one in effect.metrics)]
    for effect in told:
        print_raw(f"  feedback of iteration {effect.from_iteration}: {effect.verdict}; {effect.reason}")
    if silent := len(analysis.feedback) - len(told):
        print_raw(f"  {'further ' if told else ''}feedback of {count(silent, 'iteration')}: too little data to compare")
    weights = f"{analysis.current_weight:g} -> {analysis.suggested_weight:g}"
    print_raw(f"  suggested weight  {styled(weights, bold=True)}  ({clean(analysis.weight_source)})")
    for reason in analysis.reasons:
        print_raw(f"    {reason}")


def _span(numbers: Sequence[int]) -> str:
    if len(numbers) > 1:
        return f"iterations {numbers[0]} to {numbers[-1]}"
    return f"iteration {numbers[0]}" if numbers else "no iterations"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _course(course: Course) -> str:
    return course.direction if course.n > 1 else ""


@verb("trends", example="memfs trends\nmemfs trends --limit 5 --json")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="So many patterns at most.")
@as_of
@click.pass_context
def trends(ctx: click.Context, limit: int, as_of: str | None, as_json: bool) -> None:
    """Show the patterns that meta-reviews name, the weightiest first: when they were seen, and where they go."""
    from memfs.state.trends import pattern_trends

    with opened(ctx) as workspace, state_at(workspace, as_of) as (then, past):
        report = pattern_trends(then.states.reading)
    for sentence in report.missing:
        note(sentence)
    if as_json:
        shown = [one.to_dict() for one in report.patterns[:limit]]
        print_json({**report.to_dict(), "patterns": shown, **as_of_json(past)})
        return
    print_table([_row(one) for one in report.patterns[:limit]], dim=(1,))
    left = len(report.patterns) - limit
    more = f"; {left} more, see --limit" if left > 0 else ""
    note(
        f"{count(len(report.patterns), 'pattern')} in the reviews of {count(len(report.iterations), 'iteration')}{more}"
    )
    note_past(past)


def _row(one: PatternTrend) -> tuple[str, ...]:
    seen = f"{one.first_seen}" if one.first_seen == one.last_seen else f"{one.first_seen}-{one.last_seen}"
    return f"{one.total:>5}", f"iterations {seen}", one.direction, one.name


@verb("aggregates", example="memfs aggregates\nmemfs aggregates --rebuild")
@click.option("--rebuild", is_flag=True, help="Make them anew from the documents alone.")
@click.pass_context
def aggregates(ctx: click.Context, rebuild: bool, as_json: bool) -> None:
    """Bring the three files in ContextMemory/aggregates up to date, and say which of them changed.

    They follow from the documents of the iterations, archived ones included: --rebuild gives the same bytes as bringing
    them up to date, unless somebody edited them.
    """
    with opened(ctx) as workspace:
        made = workspace.states.aggregates
        changed = made.rebuild() if rebuild else made.update()
        reason = land(workspace, None).reason if changed else ""
        facts = _facts(workspace)
    if as_json:
        print_json({"changed": changed, **facts})
        return
    print_table([(f"  {path}", "changed" if path in changed else "as it was") for path in facts["paths"]], dim=(1,))
    if not facts["paths"]:
        note("there is nothing to sum up yet")
    if reason:
        note(f"stored; its commit waits: {reason}")


def _facts(workspace: Workspace) -> dict[str, Any]:
    from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path

    paths = [path for path in map(aggregate_path, AGGREGATE_NAMES) if workspace.states.files.exists(path)]
    return {"paths": paths, "behind": workspace.states.aggregates.behind()}

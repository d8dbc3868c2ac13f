"""``iteration``: start, close and show the rounds of work of a multi-agent system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.commit_report import land
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, print_table
from memfs.errors import IterationInvalid
from memfs.model.time import format_time

if TYPE_CHECKING:
    from memfs.state.iterations import Iteration
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


@verb(
    "iteration",
    example="memfs iteration start\nmemfs iteration close\nmemfs iteration show 3\nmemfs iteration list --json",
)
@click.argument("action", type=click.Choice(["start", "close", "show", "list"]))
@click.argument("number", required=False, type=click.IntRange(1), metavar="[N]")
@as_of
@click.pass_context
def iteration(ctx: click.Context, action: str, number: int | None, as_of: str | None, as_json: bool) -> None:
    """Start, close and show the rounds of work in which a multi-agent system stores its state.

    Without N, 'start' opens the one after the newest, 'close' closes the newest open one and sums it up, and 'show'
    shows the newest. 'list' names all of them, archived ones too.
    """
    if action == "list" and number is not None:
        raise click.UsageError("'list' takes no number", ctx)
    if as_of is not None and action != "list":
        raise click.UsageError(f"'{action}' takes no --as-of", ctx)
    with opened(ctx) as workspace:
        if action == "list":
            past = past_at(workspace, as_of) if as_of is not None else None
            _list(workspace.states.iterations.list() if past is None else past.iterations(), past, as_json)
            return
        found = _done(workspace, action, number)
        reason = "" if action == "show" else land(workspace, None).reason
    if as_json:
        print_json({"iteration": _json(found)})
    else:
        _tell(found, action)
    if reason:
        note(f"stored; its commit waits: {reason}")


def _done(workspace: Workspace, action: str, number: int | None) -> Iteration:
    iterations = workspace.states.iterations
    if action == "start":
        return iterations.start(number)
    if action == "close":
        return iterations.close(number)
    if number is None:
        number = workspace.states.reading.latest_iteration()
    if number is None:
        raise IterationInvalid("there is no iteration yet", hint="'memfs iteration start' opens one")
    return iterations.show(number)


def _list(found: list[Iteration], past: Past | None, as_json: bool) -> None:
    if as_json:
        print_json({"iterations": [_json(one) for one in found], **as_of_json(past)})
        return
    print_table([_row(one) for one in found], dim=(2,))
    note_past(past)
    note(count(len(found), "iteration") + ("" if found else "; 'memfs iteration start' opens one"))


def _row(one: Iteration) -> tuple[str, ...]:
    status = "archived" if one.archive else one.status
    return f"{one.number:>5}", status, _time(one.opened), count(sum(one.counts.values()), "document")


def _tell(one: Iteration, action: str) -> None:
    verb_of = {"start": "is open", "close": "is closed"}
    print_raw(f"Iteration {one.number} {verb_of.get(action, 'is archived' if one.archive else f'is {one.status}')}")
    rows = [("opened", _time(one.opened)), ("closed", _time(one.closed))]
    rows += [(kind.replace("_", " "), f"{number:,}") for kind, number in sorted(one.counts.items())]
    print_table([(f"  {name}", value) for name, value in rows if value], dim=(0,))
    if one.statistics and action != "start":
        _tell_statistics(one.statistics)


def _tell_statistics(statistics: Mapping[str, Any]) -> None:
    """What closing summed up; the values come from a file, and may be anything."""
    for name in ("duration_seconds", "mean_confidence", "resource_consumed"):
        if isinstance(value := statistics.get(name), int | float):
            print_raw(f"  {name.replace('_', ' ')}: {value:,.2f}")
    agents = statistics.get("agents")
    rows = [
        (f"  {clean(str(name))}", *(f"{figures[key]:,.6g} {word}" if key in figures else "" for key, word in _SHOWN))
        for name, figures in (agents.items() if isinstance(agents, Mapping) else ())
        if isinstance(figures, Mapping) and all(isinstance(figures.get(key, 0), int | float) for key, _ in _SHOWN)
    ]
    print_table(rows)


_SHOWN = (("outputs", "outputs"), ("mean_confidence", "confidence"), ("resource_consumed", "consumed"))


def _json(one: Iteration) -> dict[str, Any]:
    return {
        "number": one.number,
        "status": one.status,
        "opened": _time(one.opened) or None,
        "closed": _time(one.closed) or None,
        "archive": one.archive or None,
        "counts": dict(one.counts),
        "statistics": dict(one.statistics),
    }


def _time(moment: Any) -> str:
    return format_time(moment) if moment is not None else ""

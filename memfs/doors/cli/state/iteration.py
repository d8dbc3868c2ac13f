"""Start, close and show the rounds of work in which a multi-agent system stores its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.filters import as_of, state_at
from memfs.doors.cli.options import land
from memfs.doors.cli.output import Note, Table, Text, count, time_text
from memfs.doors.cli.parser import Actions
from memfs.errors import IterationInvalid

if TYPE_CHECKING:
    from memfs.model.state_query import Iteration
    from memfs.workspace import Workspace

_SHOWN = (("outputs", "outputs"), ("mean_confidence", "confidence"), ("resource_consumed", "consumed"))


def _text(one: Iteration) -> Text:
    yield f"Iteration {one.number} is {_status(one)}"
    rows = [("opened", time_text(one.opened) or ""), ("closed", time_text(one.closed) or "")]
    rows += [(kind.replace("_", " "), f"{number:,}") for kind, number in sorted(one.counts.items())]
    yield Table([(f"  {name}", value) for name, value in rows if value], dim=(0,))
    yield from _statistics_text(one.statistics)


def _statistics_text(statistics: Mapping[str, Any]) -> Text:
    """What closing summed up; the values come from a file, and may be anything."""
    for name in ("duration_seconds", "mean_confidence", "resource_consumed"):
        if isinstance(value := statistics.get(name), int | float):
            yield f"  {name.replace('_', ' ')}: {value:,.2f}"
    agents = statistics.get("agents")
    yield Table([
        (f"  {name}", *(f"{figures[key]:,.6g} {word}" if key in figures else "" for key, word in _SHOWN))
        for name, figures in (agents.items() if isinstance(agents, Mapping) else ())
        if isinstance(figures, Mapping) and all(isinstance(figures.get(key, 0), int | float) for key, _ in _SHOWN)
    ])  # fmt: skip


def _list_text(found: tuple[Iteration, ...]) -> Text:
    yield Table(
        [
            (f"{one.number:>5}", _status(one), time_text(one.opened) or "", count(sum(one.counts.values()), "document"))
            for one in found
        ],
        dim=(2,),
    )
    yield Note(count(len(found), "iteration") + ("" if found else "; 'memfs state iteration start' opens one"))


def _status(one: Iteration) -> str:
    return "archived" if one.archive else one.status


_number = click.argument("number", required=False, type=click.IntRange(1), metavar="[N]")


@verb("start", text=_text, key="iteration")
@_number
def start(workspace: Workspace, number: int | None) -> Iteration:
    """Open iteration N, by default the one after the newest.

    Examples:
        memfs state iteration start
    """
    found = workspace.states.iterations.start(number)
    land(workspace)
    return found


@verb("close", text=_text, key="iteration")
@_number
def close(workspace: Workspace, number: int | None) -> Iteration:
    """Close iteration N, by default the newest open one, and sum it up.

    Examples:
        memfs state iteration close
    """
    found = workspace.states.iterations.close(number)
    land(workspace)
    return found


@verb("show", text=_text, key="iteration")
@_number
def show(workspace: Workspace, number: int | None) -> Iteration:
    """Show iteration N, by default the newest.

    Examples:
        memfs state iteration show
        memfs state iteration show 3
    """
    number = number or workspace.states.reading.latest_iteration()
    if number is None:
        raise IterationInvalid("there is no iteration yet", hint="'memfs state iteration start' opens one")
    return workspace.states.iterations.show(number)


@verb("list", text=_list_text, key="iterations")
@as_of
def list_(workspace: Workspace, as_of: str | None) -> tuple[Iteration, ...]:
    """List all iterations, archived ones too.

    Examples:
        memfs state iteration list --json
    """
    return tuple(state_at(workspace, as_of).iterations.list())


iteration = Actions("iteration", __doc__, list_, start, close, show)

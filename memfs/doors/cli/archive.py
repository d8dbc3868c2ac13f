"""``usage``: show what everything weighs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memfs.doors.cli.backup import size
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import count, print_json, print_raw, print_table

if TYPE_CHECKING:
    from memfs.state.retention import Growth

_LAST = 10


@verb("usage", example="memfs usage\nmemfs usage --json")
@click.pass_context
def usage(ctx: click.Context, as_json: bool) -> None:
    """Show what each area weighs beside its quota, and how much each iteration adds."""
    from memfs.state.retention import growth_of

    with opened(ctx) as workspace:
        measured = workspace.quota.measure(history=True)
        limits = workspace.quota.limits().bytes
        growth = growth_of(workspace.parts, workspace.states.archives)
        areas = {name: (weight, limits.get(name)) for name, weight in measured.areas.items()}
    if as_json:
        print_json(
            {
                "areas": {name: {"bytes": weight, "quota": limit} for name, (weight, limit) in areas.items()},
                "total": {"bytes": measured.total, "quota": limits.get("total")},
                "free": measured.free,
                "iterations": [asdict(row) for row in growth.iterations],
                "bytes_per_iteration": round(growth.mean),
                "growth_of_an_iteration": round(growth.slope),
            }
        )
        return
    total = ("total", (measured.total, limits.get("total")))
    print_table([(name, size(weight), _share(weight, limit)) for name, (weight, limit) in (*areas.items(), total)])
    if growth.iterations:
        _print_growth(growth)


def _share(weight: int, limit: int | None) -> str:
    return f"{weight * 100 // limit}% of {size(limit)}" if limit else ""


def _print_growth(growth: Growth) -> None:
    shown = growth.iterations[-_LAST:]
    print_raw("")
    print_table([(f"iteration {row.number}", size(row.bytes), "archived" if row.archived else "") for row in shown])
    trend = f"each {size(abs(growth.slope))} {'larger' if growth.slope > 0 else 'smaller'} than the one before"
    even = abs(growth.slope) * len(growth.iterations) < 0.1 * growth.mean
    print_raw(
        f"{count(len(growth.iterations), 'iteration')}, {size(growth.mean)} each on average; growth is "
        + ("linear" if even else f"not linear: {trend}")
    )

"""``state trends``: the patterns that meta-reviews name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import replace
from memfs.doors.cli.command import remark, verb
from memfs.doors.cli.filters import as_of, state_at
from memfs.doors.cli.output import Note, Table, Text, count

if TYPE_CHECKING:
    from memfs.model.insights import PatternTrend, TrendReport
    from memfs.workspace import Workspace


def _text(report: TrendReport) -> Text:
    yield from map(Note, report.missing)
    yield Table([_row(one) for one in report.patterns], dim=(1,))


def _row(one: PatternTrend) -> tuple[str, ...]:
    seen = f"{one.first_seen}" if one.first_seen == one.last_seen else f"{one.first_seen}-{one.last_seen}"
    return f"{one.total:>5}", f"iterations {seen}", one.direction, one.name


@verb("trends", text=_text)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many patterns.")
@as_of
def trends(workspace: Workspace, limit: int, as_of: str | None) -> TrendReport:
    """Show the patterns that meta-reviews name, the weightiest first: when they were seen, and where they go.

    Examples:
        memfs state trends
        memfs state trends --limit 5 --json
    """
    from memfs.state.aggregates import pattern_trends

    report = pattern_trends(state_at(workspace, as_of).reading)
    left = len(report.patterns) - limit
    more = f"; {left} more, see --limit" if left > 0 else ""
    found = count(len(report.patterns), "pattern")
    remark(f"{found} in the reviews of {count(len(report.iterations), 'iteration')}{more}")
    return replace(report, patterns=report.patterns[:limit])

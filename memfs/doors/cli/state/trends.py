"""``state trends``: the patterns that meta-reviews name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.filters import AsOf, as_of, revision_of, state_at
from memfs.doors.cli.output import MERGE, OMIT, TEXT_ONLY, Note, Table, count

if TYPE_CHECKING:
    from memfs.model.insights import PatternTrend, TrendReport
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ShownTrends:
    """The patterns that meta-reviews name, the weightiest first.

    Attributes:
        report: all of it; its fields stand beside the others.
        as_of: the revision it is of.
        found: how many patterns there are; more than are shown where the limit is lower.
    """

    report: TrendReport = field(metadata=MERGE)
    as_of: AsOf | None = field(default=None, metadata=OMIT)
    found: int = field(default=0, metadata=TEXT_ONLY)


def _text(shown: ShownTrends) -> Iterator[Any]:
    report = shown.report
    yield from map(Note, report.missing)
    yield Table([_row(one) for one in report.patterns], dim=(1,))
    left = shown.found - len(report.patterns)
    more = f"; {left} more, see --limit" if left else ""
    yield Note(f"{count(shown.found, 'pattern')} in the reviews of {count(len(report.iterations), 'iteration')}{more}")


def _row(one: PatternTrend) -> tuple[str, ...]:
    seen = f"{one.first_seen}" if one.first_seen == one.last_seen else f"{one.first_seen}-{one.last_seen}"
    return f"{one.total:>5}", f"iterations {seen}", one.direction, one.name


@verb("trends", text=_text, example="memfs state trends\nmemfs state trends --limit 5 --json")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many patterns.")
@as_of
def trends(workspace: Workspace, limit: int, as_of: str | None) -> ShownTrends:
    """Show the patterns that meta-reviews name, the weightiest first: when they were seen, and where they go."""
    from memfs.state.trends import pattern_trends

    states, past = state_at(workspace, as_of)
    report = pattern_trends(states.reading)
    shown = replace(report, patterns=report.patterns[:limit])
    return ShownTrends(shown, revision_of(past), found=len(report.patterns))

"""``admin prune``: move weak items into the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import remark, verb
from memfs.doors.cli.options import land
from memfs.doors.cli.output import Note, Table, Text, count, merge, one_line

if TYPE_CHECKING:
    from memfs.admin.prune import PruneResult
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was pruned.

    Attributes:
        away: what went, weakest first, and where to; its fields stand beside the others.
        revision: the commit; null where nothing changed or it waits.
    """

    away: PruneResult = field(metadata=merge("pruned=items action"))
    revision: str | None = None


def _text(report: PruneReport, dry_run: bool) -> Text:
    away, rows = report.away, [(one.item, f"{one.importance:.3g}") for one in report.away.items]
    yield Table(
        [(item.id, worth, item.type, item.title or one_line(item.content, 60)) for item, worth in rows], dim=(1, 2)
    )
    if not rows:
        return
    way = "into the archive" if away.action == "archive" else "for good"
    yield Note(f"{'would go' if dry_run else 'went'} {way}: {count(len(rows), 'item')}; {away.reason}")
    if not dry_run and away.action == "archive":
        yield Note("'memfs list --archived' shows them; 'memfs restore ID' brings one back")


@verb("prune", text=_text)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--reason", default="", help="Why, for the history.")
def prune(workspace: Workspace, dry_run: bool, reason: str) -> PruneReport:
    """Move weak items into the archive: those above the number kept, and those that count for next to nothing.

    They lie in ContextMemory/archive/pruned then, where recall does not look. One commit says what went and why:
    'memfs undo --commit REV' takes it back, 'memfs restore ID' brings one item back. Pinned items and
    conventions of people stay.

    Examples:
        memfs admin prune --dry-run
        memfs admin prune
    """
    head = workspace.repository.head().commit
    result = workspace.pruner.prune(dry_run, reason)
    if result.items and not dry_run:
        land(workspace)
    if not result.items:
        spared = workspace.pruner.weakest()
        worth = f": the weakest, {spared.item.id}, is worth {spared.importance:.3g}; {spared.reason}" if spared else ""
        remark(f"nothing is due{worth}")
    revision = workspace.repository.head().commit
    return PruneReport(result, revision if revision != head else None)

"""``admin prune``: move weak items into the archive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.options import land
from memfs.doors.cli.output import TEXT_ONLY, Note, Table, count, merge, one_line
from memfs.errors import ItemNotFound, MemfsError

if TYPE_CHECKING:
    from memfs.admin.prune import PruneResult, Weak
    from memfs.model import MemoryItem
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was pruned.

    Attributes:
        away: what went, weakest first, and where to; its fields stand beside the others.
        dry_run: whether nothing was done.
        revision: the commit; null where nothing changed or it waits.
        spared: where none is due, the weakest.
    """

    away: PruneResult = field(metadata=merge("pruned=items action"))
    dry_run: bool
    revision: str | None = None
    spared: Weak | None = field(default=None, metadata=TEXT_ONLY)


def _text(report: PruneReport) -> Iterator[Any]:
    away, dry_run, spared = report.away, report.dry_run, report.spared
    rows = [(one.item, f"{one.importance:.3g}") for one in away.items]
    yield Table(
        [(item.id, worth, item.type, item.title or one_line(item.content, 60)) for item, worth in rows], dim=(1, 2)
    )
    if not rows:
        worth = f": the weakest, {spared.item.id}, is worth {spared.importance:.3g}; {spared.reason}" if spared else ""
        yield Note(f"nothing is due{worth}")
        return
    way = "into the archive" if away.action == "archive" else "for good"
    yield Note(f"{'would go' if dry_run else 'went'} {way}: {count(len(rows), 'item')}; {away.reason}")
    if not dry_run and away.action == "archive":
        yield Note("'memfs list --archived' shows them; 'memfs restore ID' brings one back")


@verb("prune", text=_text, example="memfs admin prune --dry-run\nmemfs admin prune")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--reason", default="", help="Why, for the history.")
def prune(workspace: Workspace, dry_run: bool, reason: str) -> PruneReport:
    """Move weak items into the archive: those above the number kept, and those that count for next to nothing.

    They lie in ContextMemory/archive/pruned then, where recall does not look. One commit says what went and why:
    'memfs undo --commit REV' takes it back, 'memfs restore ID' brings one item back. Pinned items and
    conventions of people stay.
    """
    head = workspace.repository.head().commit
    result = workspace.pruner.prune(dry_run, reason)
    if result.items and not dry_run:
        land(workspace)
    spared = None if result.items else workspace.pruner.weakest()
    revision = workspace.repository.head().commit
    return PruneReport(result, dry_run, revision=revision if revision != head else None, spared=spared)


def archived(workspace: Workspace, past: Past | None = None) -> tuple[list[MemoryItem], list[MemfsError]]:
    """The items that were pruned, newest first, and what is wrong with those that cannot be read."""
    from memfs.admin.prune import PrunedItems

    pruned = workspace.pruner.pruned if past is None else PrunedItems(workspace.store, workspace.parts, past.files)
    wrong: list[MemfsError] = [
        ItemNotFound(problem.message, path=problem.path, line=problem.line, hint=problem.hint)
        for problem in pruned.problems()
    ]
    return list(pruned.list()), wrong

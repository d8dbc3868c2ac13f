"""``admin prune``: move weak items into the archive, or put one back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.options import land
from memfs.doors.cli.output import MERGE, TEXT_ONLY, Note, Table, clean, count, one_line, styled
from memfs.errors import ItemNotFound, MemfsError

if TYPE_CHECKING:
    from memfs.admin.prune import PruneResult, Weak
    from memfs.model import MemoryItem
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class WeakItem:
    """An item that went, or would go.

    Attributes:
        id: its id.
        path: where it was.
        importance: what it is worth keeping.
        reason: why it is due.
        type: its type.
        title: what it says.
    """

    id: str
    path: str
    importance: float
    reason: str
    type: str = field(metadata=TEXT_ONLY)
    title: str = field(metadata=TEXT_ONLY)


@dataclass(frozen=True, slots=True)
class PruneOutcome:
    """What a pruning did, or would do.

    Attributes:
        pruned: the items, weakest first.
        action: ``archive`` or ``delete``, as the retention policy says.
        dry_run: whether nothing was done.
        reason: why they are due.
        spared: where none is due, the weakest, and why it stays.
    """

    pruned: tuple[WeakItem, ...]
    action: str
    dry_run: bool
    reason: str = field(default="", metadata=TEXT_ONLY)
    spared: str = field(default="", metadata=TEXT_ONLY)


@dataclass(frozen=True, slots=True)
class ItemReturn:
    """An item that was put back.

    Attributes:
        id: its id.
        path: where it is.
        durability: ``commit`` where a commit holds it, ``file``, or ``fallback`` in the secondary location.
    """

    id: str
    path: str
    durability: str


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was pruned, or with ``--bring-back`` what was put back.

    Attributes:
        away: what went; its fields stand beside the others.
        back: what was put back; its fields stand beside the others.
        revision: the commit; null where nothing changed or it waits.
        waits: why the commit waits.
    """

    away: PruneOutcome | None = field(default=None, metadata=MERGE)
    back: ItemReturn | None = field(default=None, metadata=MERGE)
    revision: str | None = None
    waits: str = field(default="", metadata=TEXT_ONLY)


def _text(report: PruneReport) -> Iterator[Any]:
    if report.back:
        yield f"Brought back {styled(report.back.id, fg='green', bold=True)}"
        yield f"  {clean(report.back.path)}"
    if report.away:
        yield from _away_text(report.away)
    if report.waits:
        yield Note(f"stored; the commit waits: {report.waits}")


def _away_text(away: PruneOutcome) -> Iterator[Any]:
    yield Table([(one.id, f"{one.importance:.3g}", one.type, one.title) for one in away.pruned], dim=(1, 2))
    if not away.pruned:
        yield Note("nothing is due" + (f": {away.spared}" if away.spared else ""))
        return
    way = "into the archive" if away.action == "archive" else "for good"
    yield Note(f"{'would go' if away.dry_run else 'went'} {way}: {count(len(away.pruned), 'item')}; {away.reason}")
    if not away.dry_run and away.action == "archive":
        yield Note("'memfs admin prune --bring-back ID' puts one back; 'memfs list --archived' shows them all")


@verb(
    "prune",
    text=_text,
    example="memfs admin prune --dry-run\nmemfs admin prune\nmemfs admin prune --bring-back old-decision-4k8m2p",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--bring-back", metavar="ID", default="", help="Put an item that was pruned back.")
@click.option("--reason", default="", help="Why, for the history.")
@click.pass_context
def prune(ctx: click.Context, dry_run: bool, bring_back: str, reason: str) -> PruneReport:
    """Move weak items into the archive: those above the number kept, and those that count for next to nothing.

    They lie in ContextMemory/archive/pruned then, where recall does not look. One commit says what went and why;
    'memfs restore' and 'git revert' take it back, too. Pinned items and the conventions of people stay.
    """
    if dry_run and bring_back:
        raise Unclear("--dry-run and --bring-back exclude each other", "leave one out")
    with opened(ctx) as workspace:
        if bring_back:
            item = workspace.pruner.pruned.bring_back(bring_back, reason)
            landed = land(workspace, item)
            back = ItemReturn(item.id, item.path, landed.durability)
            return PruneReport(back=back, revision=landed.revision, waits=landed.reason)
        head = workspace.repository.head().commit
        result = workspace.pruner.prune(dry_run, reason)
        waits = "" if dry_run or not result.items else land(workspace, None).reason
        away = _away(result, dry_run, None if result.items else workspace.pruner.weakest())
        revision = workspace.repository.head().commit
    return PruneReport(away, revision=revision if revision != head else None, waits=waits)


def _away(result: PruneResult, dry_run: bool, weakest: Weak | None) -> PruneOutcome:
    rows = tuple(
        WeakItem(
            weak.item.id, weak.item.path, round(weak.importance, 4), weak.reason,
            weak.item.type, weak.item.title or one_line(weak.item.content, 60),
        )
        for weak in result.items
    )  # fmt: skip
    spared = f"the weakest, {weakest.item.id}, is worth {weakest.importance:.3g}; {weakest.reason}" if weakest else ""
    return PruneOutcome(rows, result.action, dry_run, result.reason if rows else "", spared)


def archived(workspace: Workspace, past: Past | None = None) -> tuple[list[MemoryItem], list[MemfsError]]:
    """The items that were pruned, newest first, and what is wrong with those that cannot be read."""
    from memfs.admin.prune import PrunedItems

    pruned = workspace.pruner.pruned if past is None else PrunedItems(workspace.store, workspace.parts, past.files)
    wrong: list[MemfsError] = [
        ItemNotFound(problem.message, path=problem.path, line=problem.line, hint=problem.hint)
        for problem in pruned.problems()
    ]
    return list(pruned.list()), wrong

"""``prune``: make room by moving weak items into the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.commit_report import CommitReport, land
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    one_line,
    print_json,
    print_raw,
    print_table,
    styled,
)
from memfs.errors import ItemNotFound, MemfsError

if TYPE_CHECKING:
    from memfs.admin.prune import PruneResult, Weak
    from memfs.model import MemoryItem
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


@verb("prune", example="memfs prune --dry-run\nmemfs prune\nmemfs prune --bring-back old-decision-4k8m2p")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--bring-back", metavar="ID", default="", help="Put an item that was pruned back.")
@click.option("--reason", default="", help="Why, for the history.")
@click.pass_context
def prune(ctx: click.Context, dry_run: bool, bring_back: str, reason: str, as_json: bool) -> None:
    """Move weak items into the archive: those above the number kept, and those that count for next to nothing.

    They lie in ContextMemory/archive/pruned then, where recall does not look. One commit says what went and why;
    'memfs rollback' and 'git revert' take it back, too.
    """
    if dry_run and bring_back:
        raise Unclear("--dry-run and --bring-back exclude each other", "leave one out")
    with opened(ctx) as workspace:
        if bring_back:
            _bring_back(workspace, bring_back, reason, as_json)
            return
        head = workspace.repository.head().commit
        result = workspace.pruner.prune(dry_run, reason)
        landed = CommitReport() if dry_run or not result.items else land(workspace, None)
        weakest = None if result.items or as_json else workspace.pruner.weakest()
        revision = workspace.repository.head().commit
    if as_json:
        made = revision if revision != head else None
        print_json({**_result_json(result), "dry_run": dry_run, "revision": made})
        return
    _print_result(result, dry_run)
    if not result.items:
        note("nothing is due" + (f": {_spared(weakest)}" if weakest else ""))
    _tell_waiting(landed)


def _spared(weak: Weak) -> str:
    return f"the weakest, {clean(weak.item.id)}, is worth {weak.importance:.3g}; {weak.reason}"


def _bring_back(workspace: Workspace, name: str, reason: str, as_json: bool) -> None:
    item = workspace.pruner.pruned.bring_back(name, reason)
    landed = land(workspace, item)
    if as_json:
        print_json({"id": item.id, "path": item.path, **landed.json()})
    else:
        print_raw(f"Brought back {styled(item.id, fg='green', bold=True)}")
        print_raw(f"  {item.path}")
    _tell_waiting(landed)


def _result_json(result: PruneResult) -> dict[str, Any]:
    rows = [
        {"id": weak.item.id, "path": weak.item.path, "importance": round(weak.importance, 4), "reason": weak.reason}
        for weak in result.items
    ]
    return {"pruned": rows, "action": result.action}


def _print_result(result: PruneResult, dry_run: bool) -> None:
    rows = [
        (weak.item.id, f"{weak.importance:.3g}", weak.item.type, weak.item.title or one_line(weak.item.content, 60))
        for weak in result.items
    ]
    print_table(rows, dim=(1, 2))
    way = "into the archive" if result.action == "archive" else "for good"
    if not rows:
        return
    note(f"{'would go' if dry_run else 'went'} {way}: {count(len(rows), 'item')}; {result.reason}")
    if not dry_run and result.action == "archive":
        note("'memfs prune --bring-back ID' puts one back; 'memfs list --archived' shows them all")


def _tell_waiting(landed: CommitReport) -> None:
    if landed.reason:
        note(f"stored; the commit waits: {landed.reason}")


def archived(workspace: Workspace, past: Past | None = None) -> tuple[list[MemoryItem], list[MemfsError]]:
    """The items that were pruned, newest first, and what is wrong with those that cannot be read."""
    from memfs.admin.prune import PrunedItems

    pruned = workspace.pruner.pruned if past is None else PrunedItems(workspace.store, workspace.parts, past.files)
    wrong: list[MemfsError] = [
        ItemNotFound(problem.message, path=problem.path, line=problem.line, hint=problem.hint)
        for problem in pruned.problems()
    ]
    return list(pruned.list()), wrong

"""``erase``: take an item out of history as well, after saying what that means, and with the proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.options import is_path, reference
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.doors.cli.streams import is_interactive
from memfs.errors import EraseRefused

if TYPE_CHECKING:
    from memfs.admin.erase import ErasePlan, EraseResult
    from memfs.workspace import Workspace

_SHOWN = 10


@verb(
    "erase",
    example="memfs erase old-password-4k8m2p --dry-run\nmemfs erase old-password-4k8m2p --yes\n"
    "memfs erase ContextMemory/memories/knowledge/2026-03/note.yaml --rewrite-shared-history",
)
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@click.option("--dry-run", is_flag=True, help="Only say what would be erased and rewritten.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--rewrite-shared-history", is_flag=True, help="Also in a repository that memfs did not make: others rely on it."
)
@click.pass_context
def erase(ctx: click.Context, id: str, dry_run: bool, yes: bool, rewrite_shared_history: bool, as_json: bool) -> int:
    """Erase an item for good: from the files, from every commit that ever held it, and from memfs's own stores.

    This rewrites history: commits since the item's first one get new ids and lose their signatures. There is no undo.
    Exit code 1 when a trace is left that memfs could not remove, or a dry run says that it would be refused now.
    """
    with opened(ctx) as workspace:
        done = _ended_before(workspace, id)
        if done is None:
            named = reference(workspace, id)
            plan = None if yes and not dry_run else workspace.eraser.plan(named, is_path(named))
            if dry_run and plan is not None:
                _show_plan(plan, as_json)
                return 1 if plan.refused else 0
            if plan is not None:
                _ask(plan, as_json)
            done = workspace.eraser.erase(named, is_path(named), rewrite_shared=rewrite_shared_history)
    _show(done, as_json)
    return 1 if done.proof.hits or done.left else 0


def _ended_before(workspace: Workspace, id: str) -> EraseResult | None:
    """What opening the workspace has just ended, if it is what is asked for."""
    ended = workspace.eraser.ended
    return ended if ended is not None and ended.plan.reference in (id, id.rpartition("/")[2]) else None


def _ask(plan: ErasePlan, as_json: bool) -> None:
    if as_json or not is_interactive():
        raise EraseRefused(
            "this rewrites history and cannot be undone", hint="look at --dry-run first, then repeat it with --yes"
        )
    _print_plan(plan)
    click.confirm("Erase it?", abort=True, err=True)


# -- output ---------------------------------------------------------------------------------------------------------
def _plan_json(plan: ErasePlan) -> dict[str, Any]:
    return {
        "id": plan.reference,
        "paths": list(plan.paths),
        "copies": list(plan.copies),
        "versions": plan.versions,
        "loose": plan.loose,
        "commits": plan.commits,
        "refs": plan.refs,
        "waiting": plan.waiting,
        "quotes": list(plan.quotes),
        "shared": plan.shared,
        "unreachable": list(plan.unreachable),
        "backups": [str(path) for path in plan.backups],
        "backups_elsewhere": [str(path) for path in plan.backups_elsewhere],
        "refused": plan.refused,
    }


def _show_plan(plan: ErasePlan, as_json: bool) -> None:
    if as_json:
        print_json({**_plan_json(plan), "dry_run": True})
    else:
        _print_plan(plan)


def _print_plan(plan: ErasePlan) -> None:
    print_raw(f"Would erase {styled(plan.reference, fg='yellow', bold=True)}: {count(plan.versions, 'version')}")
    _print_list("at", plan.paths)
    _print_list("and the same bytes at", plan.copies)
    print_raw(f"  {count(plan.commits, 'commit')} would be rewritten, {count(plan.refs, 'ref')} moved")
    if plan.waiting:
        print_raw(f"  {count(plan.waiting, 'waiting write')} would be committed first")
    if plan.shared:
        print_raw("  memfs did not make this repository: --rewrite-shared-history is needed")
    if plan.refused:
        print_raw(f"  it would be refused now: {clean(plan.refused)}")
    _print_list("a new backup would replace", tuple(map(str, plan.backups)))
    _print_list("a backup elsewhere may hold it, delete it yourself:", tuple(map(str, plan.backups_elsewhere)))
    _print_list("these files quote it and stay", plan.quotes)
    _print_list("it may still be in", plan.unreachable)


def _erased_json(done: EraseResult) -> dict[str, Any]:
    proof = done.proof
    read = {"objects": proof.objects, "files": proof.files, "bytes": proof.bytes, "places": dict(proof.places)}
    found = {"hits": list(proof.hits), "quotes": list(proof.quotes)}
    facts = {"unsigned": done.unsigned, "purged": dict(done.purged), "head": done.head}
    left = {"backups_left": [str(path) for path in done.left]}
    return {**_plan_json(done.plan), **facts, **left, "proof": {**read, **found}, "dry_run": False}


def _show(done: EraseResult, as_json: bool) -> None:
    if as_json:
        print_json(_erased_json(done))
        return
    plan, proof = done.plan, done.proof
    print_raw(f"Erased {styled(plan.reference, fg='yellow', bold=True)}: {count(plan.versions, 'version')}")
    _print_list("at", plan.paths)
    _print_list("and the same bytes at", plan.copies)
    lost = f", {count(done.unsigned, 'signature')} lost" if done.unsigned else ""
    print_raw(f"  {count(plan.commits, 'commit')} rewritten{lost}; HEAD is {(done.head or 'empty')[:12]}")
    purged = [f"{name} {number}" for name, number in done.purged.items() if number]
    if purged:
        print_raw(f"  also removed from: {', '.join(purged)}")
    scanned = ", ".join(f"{name} {number:,}" for name, number in proof.places.items())
    print_raw(f"Proof: {count(len(proof.hits), 'trace')} in {count(proof.objects, 'object')}, unpacked")
    print_raw(f"  and {count(proof.files, 'file')} ({scanned})")
    if done.left:
        print_raw(f"  {count(len(done.left), 'trace')} outside the repository")
    _print_list("these files quote it and stay", proof.quotes)
    _print_list("it may still be in", plan.unreachable)
    for hit in proof.hits[:_SHOWN]:
        note(f"still there: {hit}")
    for path in done.left[:_SHOWN]:
        note(f"a backup made before may hold it: delete {path}")


def _print_list(label: str, rows: Sequence[str]) -> None:
    for row in rows[:_SHOWN]:
        print_raw(f"  {label} {clean(row)}")
    if len(rows) > _SHOWN:
        print_raw(f"  and {len(rows) - _SHOWN:,} more")

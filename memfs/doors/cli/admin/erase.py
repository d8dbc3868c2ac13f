"""``admin erase``: take an item out of history as well, after saying what that means, and with the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.admin.erase import ErasePlan, EraseResult
from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import complete_ids, verb
from memfs.doors.cli.options import confirm_rewrite, is_path, reference
from memfs.doors.cli.output import Note, Text, count, listed, merge, styled

if TYPE_CHECKING:
    from memfs.workspace import Workspace

_SHOWN = 10
_PLAN = "paths copies versions loose commits refs waiting quotes shared unreachable backups backups_elsewhere refused"


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased, or would be.

    Attributes:
        id: what was named.
        plan: what goes and what stays; its fields stand beside the others.
        done: what was done, with the proof; its fields stand beside the others, not with ``--dry-run``.
    """

    id: str
    plan: ErasePlan = field(metadata=merge(_PLAN))
    done: EraseResult | None = field(metadata=merge("unsigned purged head backups_left proof"))


def _code(erasure: Erasure) -> bool:
    """1 where a trace is left, or where it would be refused now."""
    done = erasure.done
    return bool(erasure.plan.refused if done is None else done.proof.hits or done.backups_left)


def _text(erasure: Erasure) -> Text:
    plan, done = erasure.plan, erasure.done
    word = "Would erase" if done is None else "Erased"
    yield f"{word} {styled(erasure.id, fg='yellow', bold=True)}: {count(plan.versions, 'version')}"
    yield from listed("at", plan.paths)
    yield from listed("and the same bytes at", plan.copies)
    if done is not None:
        yield from _done_text(done)
    else:
        yield from _plan_text(plan)
    yield from listed("these files quote it and stay", plan.quotes if done is None else done.proof.quotes)
    yield from listed("it may still be in", plan.unreachable)


def _plan_text(plan: ErasePlan) -> Text:
    yield f"  {count(plan.commits, 'commit')} would be rewritten, {count(plan.refs, 'ref')} moved"
    if plan.waiting:
        yield f"  {count(plan.waiting, 'waiting write')} would be committed first"
    if plan.shared:
        yield "  memfs did not make this repository: --rewrite-shared-history is needed"
    if plan.refused:
        yield f"  it would be refused now: {plan.refused}"
    yield from listed("a new backup would replace", map(str, plan.backups))
    yield from listed("a backup elsewhere may hold it, delete it yourself:", map(str, plan.backups_elsewhere))


def _done_text(done: EraseResult) -> Text:
    proof = done.proof
    lost = f", {count(done.unsigned, 'signature')} lost" if done.unsigned else ""
    yield f"  {count(done.plan.commits, 'commit')} rewritten{lost}; HEAD is {(done.head or 'empty')[:12]}"
    purged = [f"{name} {number}" for name, number in done.purged.items() if number]
    if purged:
        yield f"  also removed from: {', '.join(purged)}"
    scanned = ", ".join(f"{name} {number:,}" for name, number in proof.places.items())
    yield f"Proof: {count(len(proof.hits), 'trace')} in {count(proof.objects, 'object')}, unpacked"
    yield f"  and {count(proof.files, 'file')} ({scanned})"
    if done.backups_left:
        yield f"  {count(len(done.backups_left), 'trace')} outside the repository"
    for hit in proof.hits[:_SHOWN]:
        yield Note(f"still there: {hit}")
    for path in done.backups_left[:_SHOWN]:
        yield Note(f"a backup made before may hold it: delete {path}")


@verb("erase", text=_text, exit_code=_code)
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be erased and rewritten.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--rewrite-shared-history", is_flag=True, help="Also in a repository that memfs did not make: others rely on it."
)
def erase(workspace: Workspace, id: str, dry_run: bool, yes: bool, rewrite_shared_history: bool) -> Erasure:
    """Erase an item for good: from the files, from every commit that ever held it, and from memfs's own stores.

    This rewrites history: commits since the item's first one get new ids and lose their signatures, and git's notes
    stay under the old ids. There is no undo.
    Exit code 1 when a trace is left that memfs could not remove, or a dry run says that it would be refused now.

    Examples:
        memfs admin erase old-password-4k8m2p --dry-run
        memfs admin erase old-password-4k8m2p --yes
        memfs admin erase ContextMemory/memories/knowledge/2026-03/note.yaml --rewrite-shared-history
    """
    done = _ended_before(workspace, id)
    if done is None:
        named = reference(workspace, id)
        if dry_run or not yes:
            plan = workspace.eraser.plan(named, is_path(named))
            planned = Erasure(plan.reference, plan, None)
            if dry_run:
                return planned
            confirm_rewrite("Erase it?", _text(planned))
        done = workspace.eraser.erase(named, is_path(named), rewrite_shared=rewrite_shared_history)
    return Erasure(done.plan.reference, done.plan, done)


def _ended_before(workspace: Workspace, id: str) -> EraseResult | None:
    """What opening the workspace has just ended, if it is what is asked for."""
    ended = workspace.eraser.ended
    return ended if ended is not None and ended.plan.reference in (id, id.rpartition("/")[2]) else None

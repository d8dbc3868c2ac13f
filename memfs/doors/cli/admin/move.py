"""``admin move``: move the memory of a repository to a branch of its own, or back among the code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from memfs.doors.cli.command import Invocation, Unclear, opened, verb
from memfs.doors.cli.output import MERGE, TEXT_ONLY, Note, clean, count
from memfs.errors import RepoUnsupported
from memfs.team.move import MoveResult


@dataclass(frozen=True, slots=True)
class MemoryMove:
    """Where the memory of a repository lies after a move, or would.

    Attributes:
        done: the move; its fields stand beside the others.
        dry_run: whether nothing was moved.
        own: whether it goes to a branch of its own.
        there: whether it was there already.
    """

    done: MoveResult = field(metadata=MERGE)
    dry_run: bool
    own: bool = field(default=False, metadata=TEXT_ONLY)
    there: bool = field(default=False, metadata=TEXT_ONLY)


def _text(move: MemoryMove) -> Iterator[str | Note]:
    done = move.done
    if move.there:
        yield Note("the memory is on its own branch already")
        return
    yield f"{'Would move' if move.dry_run else 'Moved'} {count(done.files, 'file')} to {clean(str(done.workspace))}"
    if move.own:
        yield f"  with {count(done.commits, 'commit')} of history, as the branch {done.branch}"
        yield Note("commit the removal from this branch of the code; other branches get it when they merge that")
    else:
        yield f"  the branch {done.branch} keeps the history"
        join = f"git merge -s ours --allow-unrelated-histories {done.branch}"
        yield Note(f"commit them; to join the history: {join}")


@verb(
    "move",
    text=_text,
    example="memfs admin move --own-branch --dry-run\nmemfs admin move --own-branch\nmemfs admin move --here",
)
@click.option("--own-branch", "own", is_flag=True, help="From the code's branches to a branch of its own.")
@click.option("--here", is_flag=True, help="From its own branch to a folder among the code.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@click.pass_context
def move(ctx: click.Context, own: bool, here: bool, dry_run: bool) -> MemoryMove:
    """Move the memory of a repository between the branches of its code and a branch of its own.

    With --own-branch its history goes along: each commit that changed memory, with author, date and message. With
    --here its files go into the working tree, and its branch keeps the history. What changes on the code's branch is
    yours to commit.

    It is refused while files are not committed or an agent has a branch. An interrupted move can be called again.
    """
    from memfs.team.move import leave, to_here, to_own_branch

    if own == here:
        raise Unclear("say --own-branch or --here")
    top = _top(Path(ctx.ensure_object(Invocation).workspace or "."))
    with opened(ctx) as workspace:
        at_code = workspace.root == top
        there = own and not at_code
        if at_code == here:  # the files are there: an interrupted move, or none
            done = MoveResult(workspace=workspace.root, files=0, commits=0)
        elif own:
            done = to_own_branch(workspace.store, workspace.repository, dry_run=dry_run)
        else:
            done = to_here(workspace.store, workspace.repository, top, dry_run=dry_run)
    if here and not dry_run:
        leave(top)
    return MemoryMove(done, dry_run, own, there)


def _top(start: Path) -> Path:
    from memfs.git.layout import discover

    layout = discover(start)
    if layout is None:
        raise RepoUnsupported("there is no git repository here", path=str(start), hint="run it in the code's folder")
    if layout.work_tree.is_relative_to(layout.common_dir):
        return Path(os.path.dirname(layout.common_dir))
    return layout.work_tree

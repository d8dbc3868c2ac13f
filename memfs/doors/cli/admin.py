"""``admin``: rare work on a whole workspace, such as moving the memory to a branch of its own."""

from __future__ import annotations

import os
from pathlib import Path

import click

from memfs.doors.cli.command import Invocation, opened, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw
from memfs.errors import RepoUnsupported


@verb(
    "admin", example="memfs admin move --own-branch --dry-run\nmemfs admin move --own-branch\nmemfs admin move --here"
)
@click.argument("action", type=click.Choice(["move"]))
@click.option("--own-branch", "own", is_flag=True, help="With move: from the code's branches to a branch of its own.")
@click.option("--here", is_flag=True, help="With move: from its own branch to a folder among the code.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@click.pass_context
def admin(ctx: click.Context, action: str, own: bool, here: bool, dry_run: bool, as_json: bool) -> None:
    """Move the memory of a repository between the branches of its code and a branch of its own.

    With --own-branch its history goes along: each commit that changed memory, with author, date and message. With
    --here its files go into the working tree, and its branch keeps the history. What changes on the code's branch is
    yours to commit. An interrupted move can be called again.
    """
    _ACTIONS[action](ctx, own, here, dry_run, as_json)


def _move(ctx: click.Context, own: bool, here: bool, dry_run: bool, as_json: bool) -> None:
    from memfs.team import move

    if own == here:
        raise click.UsageError("say --own-branch or --here", ctx)
    top = _top(Path(ctx.ensure_object(Invocation).workspace or "."))
    with opened(ctx) as workspace:
        at_code = workspace.root == top
        if own and not at_code:
            note("the memory is on its own branch already")
            return
        if own:
            done = move.to_own_branch(workspace.store, workspace.repository, dry_run=dry_run)
        elif at_code:  # the files are here: an interrupted move, or none
            done = move.MoveResult(workspace=top, files=0, commits=0)
        else:
            done = move.to_here(workspace.store, workspace.repository, top, dry_run=dry_run)
    if here and not dry_run:
        move.leave(top)
    if as_json:
        facts = {"workspace": str(done.workspace), "files": done.files, "commits": done.commits}
        print_json({**facts, "branch": done.branch, "dry_run": dry_run})
        return
    would = "Would move" if dry_run else "Moved"
    print_raw(f"{would} {count(done.files, 'file')} to {clean(str(done.workspace))}")
    if own:
        print_raw(f"  with {count(done.commits, 'commit')} of history, as the branch {done.branch}")
        note("commit the removal from this branch of the code; other branches get it when they merge that")
    else:
        print_raw(f"  the branch {done.branch} keeps the history")
        note(f"commit them; to join the history: git merge -s ours --allow-unrelated-histories {done.branch}")


def _top(start: Path) -> Path:
    from memfs.git.layout import discover

    layout = discover(start)
    if layout is None:
        raise RepoUnsupported("there is no git repository here", path=str(start), hint="run it in the code's folder")
    if layout.work_tree.is_relative_to(layout.common_dir):
        return Path(os.path.dirname(layout.common_dir))
    return layout.work_tree


_ACTIONS = {"move": _move}

"""``admin move``: move the memory of a repository to a branch of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.output import Note, Text, count
from memfs.team.own_branch import MoveResult

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def _text(done: MoveResult, dry_run: bool) -> Text:
    if not (done.files or done.commits):
        yield Note("the memory is on its own branch already")
        return
    yield f"{'Would move' if dry_run else 'Moved'} {count(done.files, 'file')} to {done.workspace}"
    yield f"  with {count(done.commits, 'commit')} of history, as the branch {done.branch}"
    yield Note("commit the removal from this branch of the code; other branches get it when they merge that")


@verb("move", text=_text)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
def move(workspace: Workspace, dry_run: bool) -> MoveResult:
    """Move the memory of a repository from the branches of its code to a branch of its own.

    Its history goes along: each commit that changed memory, with author, date and message. The removal of the files
    from the code's branch is yours to commit.

    It is refused while files are not committed or an agent has a branch. An interrupted move can be called again.

    Examples:
        memfs admin move --dry-run
        memfs admin move
    """
    from memfs.team.own_branch import is_separate, to_own_branch

    if is_separate(workspace.repository):
        return MoveResult(workspace=workspace.root, files=0, commits=0)
    return to_own_branch(workspace.store, workspace.repository, dry_run=dry_run)

"""``admin move``: move the memory of a repository to a branch of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.output import MERGE, TEXT_ONLY, Note, clean, count
from memfs.team.own_branch import MoveResult

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class MemoryMove:
    """Where the memory of a repository lies after a move, or would.

    Attributes:
        done: the move; its fields stand beside the others.
        dry_run: whether nothing was moved.
        there: whether it was there already.
    """

    done: MoveResult = field(metadata=MERGE)
    dry_run: bool
    there: bool = field(default=False, metadata=TEXT_ONLY)


def _text(move: MemoryMove) -> Iterator[str | Note]:
    done = move.done
    if move.there:
        yield Note("the memory is on its own branch already")
        return
    yield f"{'Would move' if move.dry_run else 'Moved'} {count(done.files, 'file')} to {clean(str(done.workspace))}"
    yield f"  with {count(done.commits, 'commit')} of history, as the branch {done.branch}"
    yield Note("commit the removal from this branch of the code; other branches get it when they merge that")


@verb("move", text=_text, example="memfs admin move --dry-run\nmemfs admin move")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
def move(workspace: Workspace, dry_run: bool) -> MemoryMove:
    """Move the memory of a repository from the branches of its code to a branch of its own.

    Its history goes along: each commit that changed memory, with author, date and message. The removal of the files
    from the code's branch is yours to commit.

    It is refused while files are not committed or an agent has a branch. An interrupted move can be called again.
    """
    from memfs.team.own_branch import is_separate, to_own_branch

    if is_separate(workspace.repository):
        return MemoryMove(MoveResult(workspace=workspace.root, files=0, commits=0), dry_run, there=True)
    return MemoryMove(to_own_branch(workspace.store, workspace.repository, dry_run=dry_run), dry_run)

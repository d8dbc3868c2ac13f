"""``agent consolidate``: end a session, keep what matters of its working memory, and clear the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import verb
from memfs.doors.cli.options import note_waiting
from memfs.doors.cli.output import Note, Text, count, merge, one_line, styled
from memfs.store.values import FlushResult

if TYPE_CHECKING:
    from memfs.learning.consolidation import ConsolidationResult
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ConsolidatedSession:
    """What became of a session's working memory.

    Attributes:
        done: of which these fields stand beside the others.
        revision: the commit of all that; null where there is none.
    """

    done: ConsolidationResult = field(metadata=merge("session read cleared pinned left promoted"))
    revision: str | None


def _text(ended: ConsolidatedSession) -> Text:
    done = ended.done
    for one in done.promoted:
        word = "Would keep" if done.dry_run else "Kept"
        yield f"{word} {styled(one.item.id, fg='green', bold=True)}  {styled(one.why, dim=True)}"
        yield f"  {one_line(one.item.content, 100)}"
    if done.read:
        told = f"{count(len(done.cleared), 'working memory', 'working memories')} of session {done.session}"
        yield f"{'Would clear' if done.dry_run else 'Cleared'} {told}"
    else:
        yield Note(f"there is no working memory of session {done.session}")
    if done.pinned:
        yield f"  {count(len(done.pinned), 'pinned one', 'pinned ones')} not touched"
    if ended.revision:
        yield f"  to take it back: git revert {ended.revision[:12]}"
    for name, why in done.left.items():
        yield Note(f"{name} stays: {why}")


@verb("consolidate", text=_text)
@click.option("--session", required=True, metavar="NAME", help="Which session ended.")
@click.option("--dry-run", is_flag=True, help="Only say what would be kept and cleared.")
def consolidate(workspace: Workspace, session: str, dry_run: bool) -> ConsolidatedSession:
    """End a session: keep what matters of its working memory as knowledge, and clear the rest, in one commit.

    Kept are decisions, lessons and outcomes, what is important or was recalled often, what was said repeatedly, and
    what several have in common. Pinned items are not touched. What waits is committed before; the command that takes
    all back is printed. With history.commit = "manual" nothing is committed.

    Examples:
        memfs agent consolidate --session 2026-03-01-morning --dry-run
    """
    commits = not dry_run and not workspace.store.by_hand
    if commits:
        workspace.store.flush(adopt=False)  # else the commit would hold more than can be taken back together
    done = workspace.consolidation.run(session, dry_run=dry_run)
    flushed = workspace.store.flush(adopt=False) if done.cleared and commits else FlushResult()
    note_waiting(flushed.reason)
    return ConsolidatedSession(done, flushed.commits[-1] if flushed.commits else None)

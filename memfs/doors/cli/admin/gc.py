"""``admin gc``: make room without losing anything, and keep history and index quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.admin.cleanup import CleanupStep
from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import verb
from memfs.doors.cli.options import land
from memfs.doors.cli.output import MERGE, Text, count, size
from memfs.doors.cli.semantic import embed
from memfs.errors import MemfsError

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class CareReport:
    """What was done beside making room.

    Attributes:
        learned_from: how many new memories were looked through.
        folded: whether fresh items were folded into the index; not where another process is at it.
        embedded: how many memories were embedded.
        backed_up: whether a backup was due, and made.
    """

    learned_from: int = 0
    folded: bool = False
    embedded: int = 0
    backed_up: bool = False


@dataclass(frozen=True, slots=True)
class GcReport:
    """What was done, or could be.

    Attributes:
        steps: what made room: a sentence, the bytes, and why it failed.
        bytes: how much room that is; with ``--dry-run`` at most.
        care: what was done beside that, not with ``--dry-run``; its fields stand beside the others.
    """

    steps: tuple[CleanupStep, ...]
    bytes: int
    care: CareReport | None = field(default=None, metadata=MERGE)


def _text(report: GcReport, dry_run: bool) -> Text:
    for step in report.steps:
        freed = f"up to {size(step.bytes)}" if dry_run else size(step.bytes)
        yield f"{freed:>16}  {step.what}" + (f": {step.error}" if step.error else "")
    if not report.steps:
        yield "Nothing to clean up"
    if (care := report.care) is None:
        return
    if care.learned_from:
        yield f"Learned from {count(care.learned_from, 'new memory', 'new memories')}"
    if care.embedded:
        yield f"Embedded {count(care.embedded, 'memory', 'memories')}"
    if care.backed_up:
        yield "Made the backup that was due"


@verb("gc", text=_text, exit_code=lambda report: any(step.error for step in report.steps))
@click.option("-n", "--dry-run", is_flag=True, help="Say what could be done and what it could free, and do nothing.")
def gc(workspace: Workspace, dry_run: bool) -> GcReport:
    """Make room without losing anything: leftovers, contents kept twice, loose history, surplus backups.

    Also packs the history of a repository that memfs joined, writes the commit-graph that makes log quick, folds fresh
    items into the index, learns from what is new, embeds what waits where memories are searched by meaning, and makes
    the backup that is due. The room is made by itself when a quota fills up, the rest by resident processes.

    Exit code 1: a step failed; the others were done.

    Examples:
        memfs admin gc --dry-run
        memfs admin gc
    """
    if dry_run:
        planned = tuple(workspace.cleaner.plan())
        return GcReport(planned, sum(step.bytes for step in planned))
    steps = list(workspace.cleaner.clean())
    care = _care(workspace, steps)
    return GcReport(tuple(steps), sum(step.bytes for step in steps), care)


def _care(workspace: Workspace, steps: list[CleanupStep]) -> CareReport:
    """Look after what is not room; what fails is a step more."""
    try:
        learned = workspace.learner.run()
        land(workspace)
        if freed := workspace.history.maintain():
            steps.append(CleanupStep(what="packed the history", bytes=freed))
        folded = workspace.store.fold()
        embedded = embed(workspace, workspace.meaning.current())
        return CareReport(learned.read, folded, embedded, workspace.backups.keep_up())
    except MemfsError as error:
        what = "look after history, index and backups"
        steps.append(CleanupStep(what=what, bytes=0, error=str(error)))
        return CareReport()

"""``agent feedback``: say whether an item helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import complete_ids, verb
from memfs.doors.cli.options import SOURCE, land, reference
from memfs.doors.cli.output import Note, Text, styled

if TYPE_CHECKING:
    from memfs.workspace import Workspace

_SIGNALS = {"+": True, "good": True, "yes": True, "-": False, "bad": False, "no": False}


@dataclass(frozen=True, slots=True)
class FeedbackReport:
    """What a signal changed.

    Attributes:
        id: of the item.
        importance: what it counts for now.
        before: what it counted for.
        due: whether a bad signal made it weak enough to be pruned.
    """

    id: str
    importance: float
    before: float
    due: bool


def _text(done: FeedbackReport) -> Text:
    yield f"{styled(done.id, fg='green', bold=True)}  importance {done.before:g} -> {done.importance:g}"
    if done.due:
        yield Note("it is weak enough to be pruned; 'memfs admin prune --dry-run' lists what is due")


@verb("feedback", text=_text, lands=True)
@click.argument("id", metavar="ID", shell_complete=complete_ids)
@click.argument("signal", metavar="good|bad", type=click.Choice(list(_SIGNALS)))
@click.option("--reason", default="", help="Why, for the history.")
def feedback(workspace: Workspace, id: str, signal: str, reason: str) -> FeedbackReport:
    """Say whether an item helped (good, yes, +) or did not (bad, no, -).

    Its importance changes, in its file, and with it its place in answers.

    Examples:
        memfs agent feedback use-postgresql-for-transactions-7h2k9q good
        memfs agent feedback old-decision-4k8m2p bad --reason "it misled the migration"
    """
    helped = _SIGNALS[signal]
    before = workspace.store.find(reference(workspace, id))
    item = workspace.feedback.give(before.id, helped, reason, source=SOURCE)
    land(workspace, item)
    due = not helped and any(weak.item.id == item.id for weak in workspace.pruner.due())
    return FeedbackReport(item.id, item.importance, before.importance, due)

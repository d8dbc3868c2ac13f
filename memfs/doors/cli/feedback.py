"""``feedback``: say whether an item helped."""

from __future__ import annotations

import click

from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.commit_report import SOURCE, CommitReport, land
from memfs.doors.cli.options import reference
from memfs.doors.cli.output import note, print_json, print_raw, styled

_SIGNALS = {"+": True, "-": False}


@verb(
    "feedback",
    example="memfs feedback use-postgresql-for-transactions-7h2k9q +\n"
    'memfs feedback old-decision-4k8m2p - --reason "it misled the migration"',
)
@click.argument("id", metavar="ID", shell_complete=complete_ids)
@click.argument("signal", metavar="+|-", type=click.Choice(list(_SIGNALS)))
@click.option("--reason", default="", help="Why, for the history.")
@click.pass_context
def feedback(ctx: click.Context, id: str, signal: str, reason: str, as_json: bool) -> None:
    """Say whether an item helped (+) or did not (-): it counts for more, or less, from now on."""
    with opened(ctx) as workspace:
        before = workspace.store.find(reference(workspace, id))
        item = workspace.feedback.give(before.id, _SIGNALS[signal], reason, source=SOURCE)
        landed = land(workspace, item)
        due = any(weak.item.id == item.id for weak in workspace.pruner.due()) if signal == "-" else False
    if as_json:
        facts = {"id": item.id, "importance": item.importance, "before": before.importance, "due": due}
        print_json({**facts, **landed.json()})
    else:
        print_raw(f"{styled(item.id, fg='green', bold=True)}  importance {before.importance:g} -> {item.importance:g}")
    if due:
        note("it is weak enough to be pruned; 'memfs admin prune --dry-run' lists what is due")
    _tell_waiting(landed)


def _tell_waiting(landed: CommitReport) -> None:
    if landed.reason:
        note(f"stored; the commit waits: {landed.reason}")

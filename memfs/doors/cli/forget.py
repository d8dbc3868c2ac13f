"""``forget``: remove items; history keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.admin.history import RECOVERED
from memfs.dataclass import dataclass
from memfs.doors.cli.command import complete_ids, verb
from memfs.doors.cli.options import SOURCE, item_named, land, note_waiting
from memfs.doors.cli.output import Text, styled
from memfs.model import Origin
from memfs.store.plan import signed_by

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ForgottenItem:
    """An item that was removed.

    Attributes:
        id: its id.
        path: where its file was.
        undo: the command that brings it back; null where git could not take it.
    """

    id: str
    path: str
    undo: str | None


@dataclass(frozen=True, slots=True)
class Removal:
    """What was removed, or would be.

    Attributes:
        forgotten: the items.
        revision: the last commit that holds them; null where git could not take them.
    """

    forgotten: tuple[ForgottenItem, ...]
    revision: str | None


def _text(done: Removal, dry_run: bool) -> Text:
    word = "Would forget" if dry_run else "Forgot"
    for item in done.forgotten:
        yield f"{word} {styled(item.id, fg='yellow', bold=True)}  {item.path}"
        if item.undo:
            yield f"  to bring it back: {item.undo}"
            if done.revision != RECOVERED:
                yield f"  to erase it from history, too: memfs admin erase {item.id}"


@verb("forget", text=_text)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--agent", default="", metavar="NAME", help="The agent that removes them.")
@click.option("--session", default="", metavar="NAME", help="The session it does so in.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def forget(workspace: Workspace, ids: tuple[str, ...], reason: str, agent: str, session: str, dry_run: bool) -> Removal:
    """Remove items from the memory; history keeps them, and the command that brings each back is printed.

    Uncommitted memories are committed first; where history.commit is manual they are set aside for 30 days instead.

    Examples:
        memfs forget old-decision-4k8m2p --reason "we moved to another database"
    """
    with signed_by(Origin(agent=agent, session=session)):
        found = [item_named(workspace, name) for name in dict.fromkeys(ids)]
        items = list({item.id: item for item in found}.values())
        revision, waits = ("", "") if dry_run else workspace.forget_read(items, reason, source=SOURCE)
        if revision:
            land(workspace)
        note_waiting(waits)
    way = "--displaced" if revision == RECOVERED else f"--from {revision[:12]}"
    undo = {item.id: f"memfs restore {item.id} {way}" if revision else None for item in items}
    return Removal(tuple(ForgottenItem(item.id, item.path, undo[item.id]) for item in items), revision or None)

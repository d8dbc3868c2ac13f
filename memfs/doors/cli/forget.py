"""``forget``: remove items; history keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from memfs.admin.recover import RECOVERED
from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.options import SOURCE, is_committed, item_named, land, note_waiting
from memfs.doors.cli.output import clean, styled
from memfs.model import Origin
from memfs.model.kinds import ITEM_LIMIT
from memfs.store.authorship import signed_by
from memfs.store.commit_message import of_items

if TYPE_CHECKING:
    from memfs.model import MemoryItem
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
        dry_run: whether nothing was removed.
    """

    forgotten: tuple[ForgottenItem, ...]
    revision: str | None
    dry_run: bool


def _text(done: Removal) -> Iterator[str]:
    word = "Would forget" if done.dry_run else "Forgot"
    for item in done.forgotten:
        yield f"{word} {styled(item.id, fg='yellow', bold=True)}  {clean(item.path)}"
        if item.undo:
            yield f"  to bring it back: {clean(item.undo)}"
            if done.revision != RECOVERED:
                yield f"  to erase it from history, too: memfs admin erase {clean(item.id)}"


@verb("forget", text=_text, example='memfs forget old-decision-4k8m2p --reason "we moved to another database"')
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--agent", default="", metavar="NAME", help="The agent that removes them.")
@click.option("--session", default="", metavar="NAME", help="The session it does so in.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.pass_context
def forget(ctx: click.Context, ids: tuple[str, ...], reason: str, agent: str, session: str, dry_run: bool) -> Removal:
    """Remove items from the memory; history keeps them, and the command that brings each back is printed."""
    with opened(ctx) as workspace, signed_by(Origin(agent=agent, session=session)):
        found = [item_named(workspace, name) for name in dict.fromkeys(ids)]
        items = list({item.id: item for item in found}.values())
        revision = None if dry_run else _forget(workspace, items, reason)
    rows = tuple(ForgottenItem(item.id, item.path, _undo(item, revision)) for item in items)
    return Removal(rows, revision, dry_run)


def _forget(workspace: Workspace, items: list[MemoryItem], reason: str) -> str | None:
    """Remove the items; return a revision that holds them all, None while git cannot take it.

    Where the person commits, nothing is committed for it: what no commit holds is set aside instead.
    """
    head = workspace.repository.head().commit
    if all(is_committed(workspace, item) for item in items):
        _remove(workspace, items, reason)
        land(workspace)
        return head
    if workspace.settings.history.commit == "manual":
        for item in items:
            workspace.recovered.keep(item.path, workspace.parts.seen.read(item.path, ITEM_LIMIT).data)
        _remove(workspace, items, reason)
        return RECOVERED
    # what only the files or the journal hold goes into history now: else there were no way back
    _remove(workspace, items, reason)
    flushed = workspace.store.flush(adopt=False)
    note_waiting(flushed.reason)
    return workspace.repository.resolve(f"{flushed.commits[-1]}~1") if flushed.commits else None


def _remove(workspace: Workspace, items: list[MemoryItem], reason: str) -> None:
    if len(items) == 1:
        workspace.store.delete(items[0].id, expected=items[0].sha256, reason=reason, source=SOURCE)
        return
    with workspace.store.batch(of_items("Forget", items, reason), source=SOURCE) as batch:
        for item in items:
            batch.delete(item.id, expected=item.sha256)


def _undo(item: MemoryItem, revision: str | None) -> str | None:
    if revision == RECOVERED:
        return f"memfs restore {item.id} --displaced"
    return f"memfs restore {item.id} --from {revision[:12]}" if revision else None

"""``restore``: bring back an earlier state."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import Unclear, complete_ids, opened, remark, verb
from memfs.doors.cli.options import land, last_held, named
from memfs.doors.cli.output import Table, Text, count, styled
from memfs.errors import ItemNotFound
from memfs.model.ids import stem_of

if TYPE_CHECKING:
    from memfs.admin.history import Recoverable

_WHICH = "it is not clear which state to restore"
_HINT = "name a revision with --from REV ('memfs log' lists them), or give --displaced"


@dataclass(frozen=True, slots=True)
class Restoration:
    """What was brought back, or would be.

    Attributes:
        restored: files that are as they were.
        removed: files that were not there then.
        commit: the commit that does it; null where there is none.
        recoverable: what could be brought back, where that was asked; newest first.
    """

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    commit: str | None = None
    recoverable: tuple[Recoverable, ...] = ()


def _text(done: Restoration, dry_run: bool) -> Text:
    yield from (f"{'Would restore' if dry_run else 'Restored'} {path}" for path in done.restored)
    yield from (f"{'Would remove' if dry_run else 'Removed'} {path}" for path in done.removed)
    if done.commit:
        yield f"Committed {styled(done.commit[:12], fg='yellow')}"
    yield Table([(row.name, f"{row.time:%Y-%m-%d %H:%M}", row.path) for row in done.recoverable], dim=(1,))


@verb("restore", text=_text)
@click.argument("target", required=False, metavar="[ID|PATH]", shell_complete=complete_ids)
@click.option("--from", "revision", metavar="REV", help="As of this revision or date: HEAD~3, a branch, 2026-03-01.")
@click.option("--displaced", is_flag=True, help="Bring back a write that reached no commit; without ID, list them.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("-m", "--message", default="", help="The commit's message.")
def restore(target: str | None, revision: str | None, displaced: bool, dry_run: bool, message: str) -> Restoration:
    """Bring back an item, a folder or the whole memory as it was, as a new commit; history is never rewritten.

    Where history.commit is manual the files are brought back for you to commit. A file edited by hand since its last
    commit is not overwritten: commit the edit or undo it first. A deleted file is restored.

    Without --from, ID is an item that was forgotten or pruned: it comes back as it was before.

    With --displaced it brings back writes that never reached a commit, such as one overwritten by a hand edit. A
    content called damaged-... is the copy of what 'memfs check --fix' replaced: the error names its file. 'memfs admin
    backup restore' recreates a workspace from a backup.

    Examples:
        memfs restore use-postgresql-for-transactions-7h2k9q
        memfs restore use-postgresql-for-transactions-7h2k9q --from HEAD~1
        memfs restore --from 2026-03-01 --dry-run
        memfs restore --displaced
    """
    backup = target is not None and target.endswith(".tar")
    if displaced == (revision is not None) and (displaced or backup or target is None):
        raise Unclear(_WHICH, "'memfs admin backup restore' takes a backup" if backup else _HINT)
    with opened() as workspace:
        if revision is None and target is None:
            rows = tuple(workspace.recovered.list())
            remark(count(len(rows), "displaced content"), "'memfs restore ID --displaced' brings one back" * bool(rows))
            return Restoration(recoverable=rows)
        name, pruned = str(target), workspace.pruner.pruned
        packed = revision is None and not displaced and pruned.find(name) is not None
        if revision is None and not (displaced or packed):
            names = [stem_of(row.path) for row in workspace.recovered.list()]
            displaced = name in names and not workspace.store.locate(name)
            with suppress(*[ItemNotFound] * displaced):  # no commit ever had it
                revision = last_held(workspace, name)
            if revision is None and not displaced:
                raise Unclear(f"{name!r} is not forgotten: {_WHICH}", _HINT)
        if revision is None:
            if dry_run or message:
                raise Unclear("--dry-run and --message are not for --displaced, nor for what was pruned")
            path = workspace.recovered.restore(name) if displaced else pruned.bring_back(name).path
            land(workspace)
            return Restoration((path,))
        aside = len(workspace.recovered.list())
        done = workspace.history.restore(revision, named(workspace, target, revision), message=message, dry_run=dry_run)
        waits = workspace.store.by_hand and not dry_run
        kept = len(workspace.recovered.list()) > aside
    if not (done.restored or done.removed):
        remark(f"nothing differs from {revision}")
    elif waits:
        remark("commit these files with git, or 'memfs commit'")
    remark("what no commit held is set aside: 'memfs restore --displaced' lists it and brings it back" * kept)
    return Restoration(done.restored, done.removed, done.commit)

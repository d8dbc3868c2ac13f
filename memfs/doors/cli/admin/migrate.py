"""``admin migrate``: bring the files to the version of the format that this memfs writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.admin import format as formats
from memfs.doors.cli.command import remark, verb
from memfs.doors.cli.options import AT_ONCE, land
from memfs.doors.cli.output import Text

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def _text(done: formats.MigrationResult, dry_run: bool) -> Text:
    if not done.changed:
        yield f"Nothing to do: the workspace is of format {done.after}"
        return
    before = "which names none" if done.before is None else f"which was of format {done.before}"
    yield f"{'Would bring' if dry_run else 'Brought'} the workspace, {before}, to format {done.after}"
    for path in done.paths:
        yield f"  {path}"


@verb("migrate", text=_text)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def migrate(workspace: Workspace, dry_run: bool) -> formats.MigrationResult:
    """Bring the files to the version of the format that this memfs writes, as one commit.

    Where history.commit is manual the changed files are left for you to commit. A workspace of an older version is
    read and written all the same, and 'memfs check' names it; one of a newer version is not opened at all.

    Examples:
        memfs admin migrate --dry-run
    """
    done = formats.migrate(workspace.store, workspace.parts, dry_run)
    if done.changed and not dry_run:
        land(workspace)
        if workspace.settings.history.commit not in AT_ONCE:
            remark("commit these files with git, or 'memfs commit'")
    return done

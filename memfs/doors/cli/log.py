"""``log``: the commits that changed the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import complete_ids, verb
from memfs.doors.cli.options import as_of, named, since
from memfs.doors.cli.output import Note, Text, listed, one_line, styled, width
from memfs.model.query import moment

if TYPE_CHECKING:
    from memfs.git.log import Revision
    from memfs.workspace import Workspace


def _text(log: tuple[Revision, ...], id: str | None, since: str | None) -> Text:
    for revision in log:
        day = styled(f"{revision.time:%Y-%m-%d %H:%M}", dim=True)
        head = f"{styled(revision.short, fg='yellow')}  {day}  {revision.author}"
        yield f"{head}  {styled(one_line(revision.subject, max(width() - 45, 0)), bold=True)}"
        yield from listed("", revision.paths, 20)
    if not log:
        what = "memory" if id is None else id
        yield Note(
            f"no commit has {what} yet: 'memfs commit' makes one" if since is None else f"no commits since {since}"
        )


@verb("log", text=_text, key="revisions")
@click.argument("id", required=False, metavar="[ID|PATH]", shell_complete=complete_ids)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most this many commits.")
@since
@as_of
def log(workspace: Workspace, id: str | None, limit: int, since: str | None, as_of: str | None) -> tuple[Revision, ...]:
    """Show the commits that changed the memory, or one item of it, newest first.

    Examples:
        memfs log --limit 5
        memfs log use-postgresql-for-transactions-7h2k9q
        memfs log --since 7d --json
    """
    begin = moment("--since", since)
    return tuple(workspace.history.log(named(workspace, id), limit=limit, since=begin, revision=as_of or ""))

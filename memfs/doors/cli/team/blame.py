"""``blame``: show who taught each field of an item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import complete_ids, verb
from memfs.doors.cli.options import named
from memfs.doors.cli.output import Text, clean, one_line, readable, styled, width

if TYPE_CHECKING:
    from memfs.team.blame import LearnedFrom
    from memfs.workspace import Workspace

_SHORT = 10
_WAITING = {"memfs": "uncommitted", "hand": "by hand"}
_LEAST = 20


def _text(found: tuple[LearnedFrom, ...]) -> Text:
    rows = [(one.commit[:_SHORT] or _WAITING[one.waiting], _day(one), written_by(one), one) for one in found]
    commits = max((len(commit) for commit, *_ in rows), default=0)
    names = max((len(who) for _, _, who, _ in rows), default=0)
    for commit, day, who, one in rows:
        head = f"{commit.ljust(commits)} {day} {who.ljust(names)}  {clean(one.field)}: "
        room = max(width() - len(head), _LEAST) if width() else 0
        place = f"{styled(commit.ljust(commits), fg='yellow')} {styled(day, dim=True)} {who.ljust(names)}"
        yield f"{place}  {styled(clean(one.field), bold=True)}: {one_line(readable(one.value), room)}"


def _day(one: LearnedFrom) -> str:
    return f"{one.time:%Y-%m-%d}" if one.time is not None else " " * 10


def written_by(one: LearnedFrom) -> str:
    """Who wrote it, in the fewest words: the agent with its session, else the author; then door and tool."""
    who = one.agent or one.author
    session = f"session {one.session}" if one.session else ""
    through = f"via {one.source}" if one.source else ""
    tool = f"with {one.tool}" if one.tool and one.tool != one.source else ""
    return one_line(", ".join(filter(None, (who, session, through, tool))))


@verb("blame", text=_text, key="fields")
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@click.argument("field", required=False, default="", metavar="[FIELD]")
@click.option("--as-of", "as_of", metavar="REV", help="The version at this revision or date.")
def blame(workspace: Workspace, id: str, field: str, as_of: str | None) -> tuple[LearnedFrom, ...]:
    """Show for each field of an item which commit brought it, when, and who: agent, session, door and tool.

    Each element of a list stands for itself. With FIELD only that one and what is below it, such as content, tags or
    origin. Without --as-of, what waits for its commit and edits by hand are told as such.

    Examples:
        memfs team blame use-postgresql-for-transactions-7h2k9q
        memfs team blame use-postgresql title --as-of 2026-03-01
    """
    target = named(workspace, id) or id
    return tuple(workspace.teams.blame.fields(target, field, as_of))

"""``blame``: show who taught each field of an item, or wrote each line of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, complete_ids, opened, verb
from memfs.doors.cli.options import named
from memfs.doors.cli.output import clean, one_line, plain, print_json, print_raw, readable, styled, time_text, width

if TYPE_CHECKING:
    from memfs.git.blame import BlameLine
    from memfs.team.blame import LearnedFrom

_SHORT = 10
_WAITING = {"memfs": "not committed", "hand": "by hand"}
_LEAST = 20


@verb(
    "blame",
    example="memfs team blame use-postgresql-for-transactions-7h2k9q\n"
    "memfs team blame use-postgresql title --as-of 2026-03-01\n"
    "memfs team blame use-postgresql --lines",
)
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@click.argument("field", required=False, default="", metavar="[FIELD]")
@click.option("--as-of", "as_of", metavar="REV", help="The version at this revision or date.")
@click.option("--lines", "by_line", is_flag=True, help="By the lines of the file instead of its fields.")
@click.pass_context
def blame(ctx: click.Context, id: str, field: str, as_of: str | None, by_line: bool, as_json: bool) -> None:
    """Show for each field of an item which commit brought it, when, and who: agent, session, door and tool.

    Each element of a list stands for itself. With FIELD only that one, such as content, tags or origin.agent.
    """
    if by_line and field:
        raise Unclear("--lines shows the whole file", "give a field or --lines")
    with opened(ctx) as workspace:
        target = named(workspace, id) or id
        if by_line:
            lines = workspace.history.blame(target, as_of or "HEAD")
        else:
            taught = workspace.teams.blame.fields(target, field, as_of)
    if by_line:
        _show_lines(lines, as_json)
    elif as_json:
        print_json({"fields": [_json(one) for one in taught]})
    else:
        _show_fields(taught)


def _json(one: LearnedFrom) -> dict[str, Any]:
    return {
        "field": one.field,
        "value": plain(one.value),
        "commit": one.commit,
        "time": time_text(one.time),
        "author": one.author,
        "agent": one.agent,
        "session": one.session,
        "source": one.source,
        "tool": one.tool,
        "subject": one.subject,
        "path": one.path,
        "waiting": one.waiting,
    }


def _show_fields(taught: list[LearnedFrom]) -> None:
    rows = [(_commit(one), _day(one), written_by(one), one) for one in taught]
    commits = max((len(commit) for commit, *_ in rows), default=0)
    names = max((len(who) for _, _, who, _ in rows), default=0)
    for commit, day, who, one in rows:
        head = f"{commit.ljust(commits)} {day} {who.ljust(names)}  {clean(one.field)}: "
        room = max(width() - len(head), _LEAST) if width() else 0
        shown = one_line(readable(one.value), room)
        place = f"{styled(commit.ljust(commits), fg='yellow')} {styled(day, dim=True)} {who.ljust(names)}"
        print_raw(f"{place}  {styled(clean(one.field), bold=True)}: {shown}")


def _commit(one: LearnedFrom) -> str:
    return one.commit[:_SHORT] or _WAITING[one.waiting]


def _day(one: LearnedFrom) -> str:
    return f"{one.time:%Y-%m-%d}" if one.time is not None else " " * 10


def written_by(one: LearnedFrom) -> str:
    """Who wrote it, in the fewest words: the agent with its session, else the author; then door and tool."""
    who = one.agent or one.author
    session = f"session {one.session}" if one.session else ""
    through = f"via {one.source}" if one.source else ""
    tool = f"with {one.tool}" if one.tool and one.tool != one.source else ""
    return one_line(", ".join(filter(None, (who, session, through, tool))))


def _show_lines(lines: list[BlameLine], as_json: bool) -> None:
    if as_json:
        print_json({"lines": [_line_json(row) for row in lines]})
        return
    authors = max((len(row.revision.author) for row in lines), default=0)
    for row in lines:
        made = f"{row.revision.time:%Y-%m-%d}"
        who = clean(row.revision.author).ljust(authors)
        place = f"{styled(row.revision.short, fg='yellow')} {styled(made, dim=True)} {who} {row.line:>4}"
        print_raw(f"{place}  {clean(row.text)}")


def _line_json(row: BlameLine) -> dict[str, Any]:
    return {
        "line": row.line,
        "text": row.text,
        "commit": row.revision.commit,
        "author": row.revision.author,
        "time": time_text(row.revision.time),
        "subject": row.revision.subject,
        "trailers": {name: list(values) for name, values in row.revision.trailers.items()},
    }

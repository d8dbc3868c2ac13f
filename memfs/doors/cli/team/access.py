"""``access``: show who was given an item, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.filters import when
from memfs.doors.cli.options import named
from memfs.doors.cli.output import clean, count, note, one_line, print_json, print_table, time_text

if TYPE_CHECKING:
    from memfs.store.access_log import AccessRecord

_SHORT = 10
_IDS_SHOWN = 5


@verb(
    "access",
    example="memfs team access\nmemfs team access use-postgresql-for-transactions-7h2k9q --since 7d\n"
    "memfs team access --agent coder --json",
)
@click.argument("id", required=False, metavar="[ID]", shell_complete=complete_ids)
@click.option("--agent", default="", metavar="NAME", help="Only what this agent was given.")
@click.option("--session", default="", metavar="NAME", help="Only what this session was given.")
@click.option("--since", metavar="WHEN", help="Not before this date, time or age: 2026-03-01, 7d, '2 days ago'.")
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most this many, newest first."
)
@click.pass_context
def access(
    ctx: click.Context, id: str | None, agent: str, session: str, since: str | None, limit: int, as_json: bool
) -> None:
    """Show which items were handed out, when, through which door and to whom; with ID, only when that one was.

    The record is this machine's own, private and bounded: 'served.days' and 'served.megabytes' say how much is kept.
    """
    with opened(ctx) as workspace:
        wanted = [named(workspace, id) or id] if id else []
        log = workspace.usage.served
        rows = log.find(wanted, agent=agent, session=session, since=when(since, "since"))
        kept = workspace.settings.served.log
    if as_json:
        print_json({"served": [_json(row) for row in rows[:limit]], "total": len(rows), "kept": kept})
        return
    print_table([_row(row) for row in rows[:limit]], dim=(0,))
    _tell(len(rows), limit, kept, log.problem)


def _json(row: AccessRecord) -> dict[str, Any]:
    asked = {"question": row.question} if row.question else {}
    return {
        "time": time_text(row.time),
        "way": row.way,
        "door": row.door,
        "agent": row.agent,
        "session": row.session,
        "commit": row.commit,
        "items": [{"id": item_id, "blob": blob} for item_id, blob in row.items],
        **asked,
    }


def _row(row: AccessRecord) -> tuple[str, ...]:
    who = ", ".join(filter(None, (row.agent, f"session {row.session}" if row.session else "")))
    more = f" and {len(row.items) - _IDS_SHOWN} more" if len(row.items) > _IDS_SHOWN else ""
    ids = ", ".join(row.ids[:_IDS_SHOWN]) + more
    asked = f' for "{one_line(row.question, 60)}"' if row.question else ""
    moment = f"{row.time:%Y-%m-%d %H:%M:%S}"
    return moment, row.way, row.door, clean(who), row.commit[:_SHORT], f"{clean(ids)}{asked}"


def _tell(found: int, limit: int, kept: bool, problem: str) -> None:
    if not found:
        note("nothing on record was handed out" if kept else "'served.log' is false: nothing is written down")
    elif found > limit:
        note(f"{count(found - limit, 'older line')} more (--limit)")
    if problem:
        note(problem)

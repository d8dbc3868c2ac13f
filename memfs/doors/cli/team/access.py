"""``access``: show who was given an item, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import complete_ids, remark, verb
from memfs.doors.cli.filters import since, when
from memfs.doors.cli.options import named
from memfs.doors.cli.output import Note, Table, Text, count, merge, one_line

if TYPE_CHECKING:
    from memfs.store.access_log import AccessRecord
    from memfs.workspace import Workspace

_SHORT = 10
_IDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ServedItem:
    """An item that was handed out.

    Attributes:
        id: its id.
        blob: git's id of the version; "" where that is not known.
    """

    id: str
    blob: str


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """Items that were handed out together.

    Attributes:
        record: when, to whom, and what was asked, where `served.questions` is true.
        items: what was handed out.
    """

    record: AccessRecord = field(metadata=merge("time way door agent session commit question?"))
    items: tuple[ServedItem, ...]

    def row(self) -> tuple[str, ...]:
        """Its row in a table."""
        one = self.record
        who = ", ".join(filter(None, (one.agent, f"session {one.session}" if one.session else "")))
        more = f" and {len(one.ids) - _IDS_SHOWN} more" if len(one.ids) > _IDS_SHOWN else ""
        ids = ", ".join(one.ids[:_IDS_SHOWN]) + more
        asked = f' for "{one_line(one.question, 60)}"' if one.question else ""
        return f"{one.time:%Y-%m-%d %H:%M:%S}", one.way, one.door, who, one.commit[:_SHORT], f"{ids}{asked}"


@dataclass(frozen=True, slots=True)
class AccessReport:
    """What was handed out, and to whom.

    Attributes:
        served: the answers, newest first.
        total: how many there are without --limit.
        kept: whether it is written down at all (`served.log`).
    """

    served: tuple[ServedAnswer, ...]
    total: int
    kept: bool


def _text(found: AccessReport) -> Text:
    yield Table([row.row() for row in found.served], dim=(0,))
    if not found.total:
        yield Note(
            "nothing on record was handed out" if found.kept else "'served.log' is false: nothing is written down"
        )
    elif (older := found.total - len(found.served)) > 0:
        yield Note(f"{count(older, 'older line')} more (--limit)")


@verb("access", text=_text)
@click.argument("id", required=False, metavar="[ID]", shell_complete=complete_ids)
@click.option("--agent", default="", metavar="NAME", help="Only what this agent was given.")
@click.option("--session", default="", metavar="NAME", help="Only what this session was given.")
@since
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most this many, newest first."
)
def access(
    workspace: Workspace, id: str | None, agent: str, session: str, since: str | None, limit: int
) -> AccessReport:
    """Show which items were handed out, when, through which door and to whom; with ID, only when that one was.

    The record is this machine's own, private and bounded: 'served.days' and 'served.megabytes' say how much is kept.

    Examples:
        memfs team access
        memfs team access use-postgresql-for-transactions-7h2k9q --since 7d
        memfs team access --agent coder --json
    """
    wanted = [named(workspace, id) or id] if id else []
    log = workspace.usage.served
    rows = log.find(wanted, agent=agent, session=session, since=when(since, "since"))
    kept = workspace.settings.served.log
    served = tuple(ServedAnswer(row, tuple(ServedItem(*pair) for pair in row.items)) for row in rows[:limit])
    remark(log.problem)
    return AccessReport(served, len(rows), kept)

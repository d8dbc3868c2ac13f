"""The options by which verbs choose items, points in time and revisions, and the query that they make."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, overload

from memfs.doors.cli.command import Unclear, complete_tags, complete_types, invocation, options
from memfs.doors.cli.declare import click
from memfs.doors.cli.output import progress
from memfs.model import Layer, Phase, Query
from memfs.model.query import moment

if TYPE_CHECKING:
    from memfs.state.parts import States
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


PHASE = click.Choice([phase.value for phase in Phase])
since = click.option("--since", metavar="WHEN", help="Not before this date, time or age: 2026-03-01, 7d, '2 days ago'.")
"""Give a verb the option by which time begins."""
span = options(
    since, click.option("--until", metavar="WHEN", help="Not after this date (that day included), time or age.")
)
"""Give a verb the options by which time begins and ends."""
filters = options(
    click.option("--type", "types", multiple=True, metavar="TYPE", shell_complete=complete_types,
                 help="Only this type; may be repeated: any of them."),
    click.option("--layer", "layers", multiple=True, type=click.Choice([layer.value for layer in Layer]),
                 help="Only this layer; may be repeated."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", shell_complete=complete_tags,
                 help="Only items with this tag; repeated: with all."),
    click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only what this agent wrote."),
    click.option("--session", "sessions", multiple=True, metavar="NAME", help="Only from this session."),
    click.option("--phase", "phases", multiple=True, type=PHASE, hidden=True,
                 help="Only from this phase of the work."),
    span,
    click.option("--path", metavar="FOLDER", default="", help="Only files below this folder (or this file)."),
)  # fmt: skip
"""Give a verb the options that choose items."""


def query(
    workspace: Workspace,
    text: str,
    limit: int,
    *,
    path: str,
    since: str | None,
    until: str | None,
    past: Past | None = None,
    **names: Any,
) -> Query:
    """The query that the options describe; ``past`` is the revision that is asked, None for the present.

    Raises:
        SettingInvalid, QueryInvalid, Unclear: a type or a span of time that cannot be understood.
        PathEscape: a folder outside the workspace.
    """
    for name in names["types"]:
        (workspace if past is None else past).kinds.get(name)
    now = past.now if past is not None else None
    begin, end = when(since, "since", now=now), when(until, "until", end=True, now=now)
    if begin is not None and end is not None and end < begin:
        raise Unclear(f"--until {until} lies before --since {since}", "exchange the two: --since takes the earlier one")
    chosen: dict[str, Any] = {key: frozenset(values) for key, values in names.items()}
    return Query(text=text, limit=limit, since=begin, until=end, path=_placed(workspace, path), **chosen)


def _placed(workspace: Workspace, path: str) -> str:
    if not path:
        return ""
    from memfs.doors.cli.options import place  # few questions name a folder

    return place(workspace, path)


def when(written: str | None, option: str, *, end: bool = False, now: datetime | None = None) -> datetime | None:
    """A point in time as a person writes it; None stays None.

    Raises:
        QueryInvalid: it is none.
    """
    return moment(f"--{option}", written, end=end, now=now)


def pair(written: str, example: str = "--context branch=main") -> tuple[str, str]:
    """A circumstance as ``--context`` takes it, or a field as ``--data`` does.

    Raises:
        Unclear: it has no name, or no value.
    """
    name, equals, value = written.partition("=")
    if not equals or not name.strip():
        raise Unclear(f"{example.split()[0]}: {written!r} has no name and value", f"write {example}")
    return name.strip(), value


as_of = click.option(
    "--as-of", metavar="REV", help="As it was at this revision or date: HEAD~3, a branch, 2026-03-01, '3 days ago'."
)
"""Give a verb the option that names a revision; the verb gets ``as_of``, None where it is not given."""


@overload
def past_at(workspace: Workspace, revision: str, *, quarantined: bool = False) -> Past: ...
@overload
def past_at(workspace: Workspace, revision: str | None) -> Past | None: ...
def past_at(workspace: Workspace, revision: str | None, *, quarantined: bool = False) -> Past | None:
    """The memory at a revision, of which the answer is then; None where none is named.

    A terminal is shown how far its first reading is.

    Args:
        quarantined: also of a quarantined branch.
    """
    if revision is None:
        return None
    with progress("Reading the past") as step:
        past = workspace.teams.past.at(revision, progress=step, quarantined=quarantined)
        _ = past.items.index
    invocation().past = past
    return past


def state_at(workspace: Workspace, revision: str | None) -> States:
    """What to ask for the state of a multi-agent system, at present or at a revision.

    Payloads of archives and large values, which no commit holds, are read where they lie now.
    """
    past = past_at(workspace, revision)
    return workspace.states if past is None else workspace.states.at(past.files)

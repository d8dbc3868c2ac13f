"""Filters: the options by which recall and list choose items, and the query they make.

Owns how types, layers and points in time are written on the command line. Knows nothing of how items are found.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.frame import Unclear, complete_types
from memfs.adapters.cli.places import place
from memfs.errors import QueryInvalid, SettingInvalid
from memfs.model import Kind, Layer, Phase, Query
from memfs.model.query import moment

if TYPE_CHECKING:
    from memfs.teams.past import Past
    from memfs.workspace import Workspace

PHASE = click.Choice([phase.value for phase in Phase])
_OPTIONS = (
    click.option("--type", "types", multiple=True, metavar="TYPE", shell_complete=complete_types,
                 help="Only this type; may be repeated: any of them."),
    click.option("--layer", "layers", multiple=True, type=click.Choice([layer.value for layer in Layer]),
                 help="Only this layer; may be repeated."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only items with this tag; repeated: with all."),
    click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only what this agent wrote."),
    click.option("--session", "sessions", multiple=True, metavar="NAME", help="Only from this session."),
    click.option("--phase", "phases", multiple=True, type=PHASE, hidden=True,
                 help="Only from this phase of the work."),
    click.option("--since", metavar="WHEN", help="Not before this date, time or age: 2026-03-01, 7d, '2 days ago'."),
    click.option("--until", metavar="WHEN", help="Not after this date (that day included), time or age."),
    click.option("--path", metavar="FOLDER", default="", help="Only files below this folder (or this file)."),
)  # fmt: skip


def filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that choose items."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


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
        Unclear: a type or a point in time that cannot be understood; the hint says what would be right.
        PathEscape: a folder outside the workspace.
    """
    for name in names["types"]:
        known_type(workspace if past is None else past, name)
    now = past.now if past is not None else None
    chosen: dict[str, Any] = {key: frozenset(values) for key, values in names.items()}
    return Query(
        text=text,
        limit=limit,
        since=when(since, "since", now=now),
        until=when(until, "until", end=True, now=now),
        path=place(workspace, path) if path else "",
        **chosen,
    )


def known_type(workspace: Workspace | Past, name: str) -> Kind:
    """The type of that name.

    Raises:
        Unclear: there is none; the hint lists them.
    """
    try:
        return workspace.kinds.get(name)
    except SettingInvalid as error:
        raise Unclear(error.message, error.hint) from error  # the message says that it is about a type


def when(written: str | None, option: str, *, end: bool = False, now: datetime | None = None) -> datetime | None:
    """A point in time as a person writes it; None stays None.

    Raises:
        Unclear: it is none.
    """
    try:
        return moment(f"--{option}", written, end=end, now=now)
    except QueryInvalid as error:
        raise Unclear.of(error, f"--{option}") from error

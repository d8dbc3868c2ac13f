"""Filters: the options by which recall and list choose items, and the query they make.

Owns how types, layers and points in time are written on the command line. Knows nothing of how items are found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from memfs.adapters.cli.frame import complete_types
from memfs.errors import QueryInvalid
from memfs.model import KindTable, Layer, Phase, Query
from memfs.model.time import parse_when, utc_now

MOST = 10_000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_OPTIONS = (
    click.option("--type", "types", multiple=True, metavar="TYPE", shell_complete=complete_types,
                 help="Only this type; may be repeated: any of them."),
    click.option("--layer", "layers", multiple=True, type=click.Choice([layer.value for layer in Layer]),
                 help="Only this layer; may be repeated."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only items with this tag; repeated: with all."),
    click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only what this agent wrote."),
    click.option("--session", "sessions", multiple=True, metavar="NAME", help="Only from this session."),
    click.option("--phase", "phases", multiple=True, type=click.Choice([phase.value for phase in Phase]),
                 help="Only from this phase of the work."),
    click.option("--since", metavar="WHEN", help="Not before this date, time or age: 2026-03-01, 7d, 12h."),
    click.option("--until", metavar="WHEN", help="Not after this date (that day included), time or age."),
    click.option("--path", metavar="FOLDER", default="", help="Only files below this folder."),
)  # fmt: skip


def filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that choose items."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def query(
    text: str, limit: int, kinds: KindTable, *, path: str, since: str | None, until: str | None, **names: Any
) -> Query:
    """The query that the options describe.

    Raises:
        SettingInvalid: an unknown type; the hint names the nearest.
        QueryInvalid: a point in time that cannot be read.
    """
    for name in names["types"]:
        kinds.get(name)
    chosen = {key: frozenset(values) for key, values in names.items()}
    return Query(
        text=text,
        limit=limit,
        since=when(since, "since"),
        until=when(until, "until", end_of_day=True),
        path=_folder(path),
        **chosen,
    )


def when(written: str | None, option: str, *, end_of_day: bool = False) -> datetime | None:
    """A point in time as a person writes it; None stays None.

    Raises:
        QueryInvalid: it is none.
    """
    if written is None:
        return None
    try:
        moment = parse_when(written, utc_now())
    except (ValueError, OverflowError) as error:
        raise QueryInvalid(
            f"{written!r} is not a date, time or age",
            field=f"--{option}",
            hint="write 2026-03-01, 2026-03-01T10:00Z or 7d",
        ) from error
    if end_of_day and _DAY.fullmatch(written.strip()):
        return moment + timedelta(days=1, microseconds=-1)
    return moment


def _folder(written: str) -> str:
    path = written.replace("\\", "/").removeprefix("./").rstrip("/")
    if not path or path.split("/")[0] == "ContextMemory":
        return path
    return f"ContextMemory/{path}"

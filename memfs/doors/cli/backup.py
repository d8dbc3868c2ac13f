"""What ``status`` says of backups and quotas, and sizes as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memfs.admin.quota import sentence
from memfs.doors.cli.output import count, time_text

if TYPE_CHECKING:
    from memfs.workspace import Workspace

_UNITS = ("bytes", "KB", "MB", "GB", "TB")


def keeping_facts(workspace: Workspace) -> dict[str, Any]:
    """What ``status`` tells of quotas and backups."""
    state = workspace.backups.state()
    age = state.age(workspace.parts.clock())
    return {
        "quota": [standing.facts() for standing in workspace.quota.standings()],
        "backup": {
            "last": time_text(state.last),
            "age_seconds": None if age is None else round(age),
            "path": state.path,
            "interval_hours": state.interval_hours,
            "overdue": state.due,
            "error": state.error,
        },
    }


def keeping_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """The same for people."""
    rows = {"quota": "; ".join(map(sentence, facts["quota"]))} if facts["quota"] else {}
    return {**rows, "backup": _backup_row(facts["backup"])}


def _backup_row(facts: Mapping[str, Any]) -> str:
    made = f"{_age(facts['age_seconds'])} ago, {facts['path']}" if facts["last"] else "none yet"
    wanted = f"; overdue, one is wanted every {facts['interval_hours']:g} h" if facts["overdue"] else ""
    return made + wanted + (f"; the last try failed: {facts['error']}" if facts["error"] else "")


def _age(seconds: int) -> str:
    for length, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return count(seconds // length, word)
    return count(max(0, seconds), "second")


def size(number: float) -> str:
    """Bytes as people read them."""
    unit = 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{number:.0f} bytes"

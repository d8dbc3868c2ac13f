"""Notes: what resident processes say of how they watch, for any process to read.

Owns where the notes lie and what they mean. Whether events can be relied on is found out by ``watcher``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfs.files.presence import present

_SILENT_AFTER = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How one resident process watches: ``reason`` says why it cannot rely on events, "" when it can."""

    pid: int
    host: str
    reason: str

    @property
    def state(self) -> str:
        """``on``, or ``degraded`` with the reason in brackets."""
        return f"degraded ({self.reason})" if self.reason else "on"


def notes_folder(state: Path) -> Path:
    """Where the notes of a workspace's watchers lie, below its state folder."""
    return state / "watchers"


def watchers(state: Path) -> list[Watching]:
    """How each living process watches, those that cannot rely on events first."""
    found = []
    for note in present(notes_folder(state)):
        reason = str(note.facts.get("reason", ""))
        if note.silent_seconds > _SILENT_AFTER:
            reason = f"it has not reported for {note.silent_seconds:.0f} s: stopped, or its watching thread died"
        found.append(Watching(pid=note.pid, host=str(note.facts.get("host", "")), reason=reason))
    return sorted(found, key=lambda row: (not row.reason, row.pid))


def summary(found: list[Watching]) -> str:
    """How things stand, in words: the worst first."""
    if not found:
        return "off (no resident process; every question compares the files first)"
    pids = ", ".join(str(row.pid) for row in found if row.state == found[0].state)
    others = sum(row.state != found[0].state for row in found)
    return f"{found[0].state}, pid {pids}" + (f"; {others} more" if others else "")


def watch_facts(state: Path) -> dict[str, Any]:
    """The row of ``memfs status``: the summary, and each process with its own state."""
    found = watchers(state)
    rows = [{"pid": row.pid, "host": row.host, "state": row.state} for row in found]
    return {"state": summary(found), "processes": rows}

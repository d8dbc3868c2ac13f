"""Reminders: what somebody meant to do and has not done yet.

Owns which intentions are told at the start of a session, in which order and words (C7).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from memfs.capture.prompts import MEDIUM, PRIORITIES
from memfs.capture.storing import open_intentions
from memfs.model import MemoryItem
from memfs.pipeline.wording import gist
from memfs.workspace import Workspace

MOST = 10
_LONGEST = 200
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reminder:
    """One pending intention; as a text ``[PRIORITY] text``.

    Attributes:
        id: the item's.
        priority: ``high``, ``medium`` or ``low``; medium where the item names none.
        text: what is meant to be done, in one line.
    """

    id: str
    priority: str
    text: str

    def __str__(self) -> str:
        return f"[{self.priority.upper()}] {self.text}"


def pending(workspace: Workspace, limit: int = MOST) -> tuple[Reminder, ...]:
    """The pending intentions, those of private memory among them, the most urgent first, and of these the newest.

    Args:
        limit: so many at most.
    """
    private = workspace.sources.mounts.private() if workspace.settings.mounts else None
    items = [*(open_intentions(private) if private is not None else ()), *open_intentions(workspace.store)]
    found = sorted(items, key=lambda item: item.timestamp or _EARLIEST, reverse=True)
    ordered = sorted(map(_reminder, found), key=lambda one: PRIORITIES.index(one.priority))
    return tuple(ordered[:limit])


def _reminder(item: MemoryItem) -> Reminder:
    told = str(item.metadata.get("priority") or MEDIUM).lower()
    text = " ".join(gist(item).split())
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3].rstrip()}..."
    return Reminder(item.id, told if told in PRIORITIES else MEDIUM, shown)

"""Says in words what is undecided about items: fields that a merge overrode, and contradictions between items.

A conflict is named until somebody decides it, by a word or by an edit of the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memfs.format.text import shown_line
from memfs.model import MemoryItem
from memfs.model.item import RecordedConflict

_LONGEST = 200


def undecided(item: MemoryItem) -> tuple[RecordedConflict, ...]:
    """The conflicts of an item that nobody has decided, by a word or by an edit of the field."""
    if not item.conflicts:
        return ()
    from memfs.format.field_merge import stands

    return tuple(one for one in item.conflicts if stands(item, one))


def unresolved_note(item: MemoryItem) -> str:
    """Which fields of an item are undecided, what their other values are and whose; "" where nothing is."""
    return "; ".join(map(_sentence, undecided(item)))


def values(conflict: RecordedConflict) -> tuple[str, str]:
    """What was kept and what was overridden, in words."""
    absent = "a longer text than is kept here; the history has it" if conflict.lost_sha256 else "nothing"
    kept, lost = (absent if value is None else _readable(value) for value in (conflict.kept, conflict.lost))
    return kept, lost


def _sentence(conflict: RecordedConflict) -> str:
    left = "a merge left another value" if conflict.field else "a merge left another version"
    what = f"{conflict.field} is undecided: {left}" if conflict.field else left
    line = " ".join(values(conflict)[1].split())
    lost = line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
    return shown_line(f'{what}, "{lost}"' + (f" by {conflict.by}" if conflict.by else ""))


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and not any(isinstance(part, Mapping | list | tuple) for part in value):
        return ", ".join(map(_readable, value))
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


CONTRADICTS = "contradicts"
COMPATIBLE = "compatible"
"""What two items are to one another that somebody decided can both hold."""
SUPERSEDED = "superseded"
OVER = frozenset({"retired", "cancelled", SUPERSEDED, "rejected"})
"""An item of such a status says nothing against others."""
FINISHED = OVER | {"done", "completed", "dropped"}
"""An item of such a status is not to be done any more: it was, or was given up."""


def contradicted(item: MemoryItem) -> tuple[str, ...]:
    """Ids of the items that an item's links say it contradicts."""
    return tuple(link.to for link in item.links if link.relation == CONTRADICTS)


def disputes(items: Sequence[MemoryItem]) -> dict[str, list[str]]:
    """Of items that occur together: what each contradicts, and which of the others contradict it, by id."""
    said = [(item.id, contradicted(item)) for item in items]
    present = {name for name, _ in said}
    found: dict[str, list[str]] = {}
    for name, others in said:
        for other in others:
            found.setdefault(name, []).append(other)
            if other in present:
                found.setdefault(other, []).append(name)
    return {name: list(dict.fromkeys(others)) for name, others in found.items()}

"""Provenance: what is said of where an entry comes from.

Owns the words for an origin, and that trust is what the item's file says. How it is shown, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memfs.model.ids import of_mount
from memfs.model.item import MemoryItem, Origin
from memfs.private import NAME

_LONGEST_SESSION = 20
"""Programs name sessions by 36 characters of chance: twenty tokens an entry that tell an agent nothing."""


def origin_of(origin: Origin, mount: str = "") -> str:
    """Who said it, for people: ``agent coder, session s1``, in which ``mount``; "" where nobody knows."""
    session = origin.session if len(origin.session) <= _LONGEST_SESSION else ""
    parts = {"agent": origin.agent, "speaker": origin.speaker, "tool": origin.tool, "session": session}
    told = [f"{name} {value}" for name, value in parts.items() if value]
    where = ["private memory"] if mount == NAME else [f"mount {mount}"] if mount else []
    return ", ".join([*where, *told])


def vouched(found: Any, items: Callable[[str], MemoryItem | None] | None) -> dict[str, str]:
    """Id, trust and origin of what a store found, as ``Entry`` takes them.

    Args:
        found: has an ``id`` where it is an item's, and perhaps ``trust`` and ``origin`` itself.
        items: gives the item of an id.
    """
    name = str(getattr(found, "id", "") or "")
    item = items(name) if items is not None and name else None
    if item is not None:
        return {"id": name, "trust": item.trust, "origin": origin_of(item.origin, of_mount(name))}
    origin = getattr(found, "origin", "")
    said = origin_of(origin, of_mount(name)) if isinstance(origin, Origin) else str(origin or "")
    return {"id": name, "trust": str(getattr(found, "trust", "") or ""), "origin": said}

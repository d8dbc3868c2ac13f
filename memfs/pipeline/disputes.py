"""Disputes: which of several items their links say cannot both hold.

Owns the relation's name, which statuses end it, and reading it in both directions. How a contradiction is found is
``memfs.pipeline.contradictions``' business; how it is settled, ``memfs.pipeline.conflicts``'.
"""

from __future__ import annotations

from collections.abc import Sequence

from memfs.model import MemoryItem

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
    """Of items that stand together: what each contradicts, and which of the others contradict it, by id."""
    return disputes_among([(item.id, contradicted(item)) for item in items])


def disputes_among(said: Sequence[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """As ``disputes``, of ids and of what each of these contradicts."""
    present = {name for name, _ in said}
    found: dict[str, list[str]] = {}
    for name, others in said:
        for other in others:
            found.setdefault(name, []).append(other)
            if other in present:
                found.setdefault(other, []).append(name)
    return {name: list(dict.fromkeys(others)) for name, others in found.items()}

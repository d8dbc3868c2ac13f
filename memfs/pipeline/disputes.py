"""Disputes: which of several items their links say cannot both hold.

Owns the relation's name, and reading it in both directions. How a contradiction is found is
``memfs.pipeline.contradictions``' business.
"""

from __future__ import annotations

from collections.abc import Sequence

from memfs.model import MemoryItem

CONTRADICTS = "contradicts"


def disputes(items: Sequence[MemoryItem]) -> dict[str, list[str]]:
    """Of items that stand together: what each contradicts, and which of the others contradict it, by id."""
    present = {item.id for item in items}
    found: dict[str, list[str]] = {}
    for item in items:
        for link in item.links:
            if link.relation == CONTRADICTS:
                found.setdefault(item.id, []).append(link.to)
                if link.to in present:
                    found.setdefault(link.to, []).append(item.id)
    return {name: list(dict.fromkeys(others)) for name, others in found.items()}

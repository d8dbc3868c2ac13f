"""What ``status`` says of how memory reaches agents: who is asked, who fails, and how much waits for a decision.

Owns the words and the JSON of it. No source is loaded for it: that is what ``memfs plugins doctor`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memfs.adapters.cli.output import count
from memfs.settings import BUILT_IN_SOURCES

if TYPE_CHECKING:
    from memfs.workspace import Workspace

_FEW_ITEMS = 1_000
"""Conflicts are counted where there are no more items than that: files are read for it."""


def delivery_facts(workspace: Workspace, items: int) -> dict[str, Any]:
    """The part of ``memfs status --json``.

    Args:
        items: how many items there are.
    """
    memory = workspace.settings.memory
    foreign = [
        name
        for name in dict.fromkeys((*memory.automatic, *memory.triggered, *memory.on_demand_sources))
        if name not in BUILT_IN_SOURCES
    ]
    book = workspace.sources.plugins.guard.book if foreign else None  # most workspaces are spared what it imports
    paused = {name: why for name in foreign if book is not None and (why := book.paused(name))}
    row = {name: book.of(name).in_a_row for name in foreign if book is not None and name not in paused}
    return {
        "delivery": {
            "automatic": list(memory.automatic),
            "triggered": list(memory.triggered),
            "on_demand": memory.on_demand,
            "on_demand_sources": list(memory.on_demand_sources),
            "paused": paused,
            "failing": {name: times for name, times in row.items() if times},
            "conflicts": len(workspace.conflicts.list()) if items <= _FEW_ITEMS else None,
        }
    }


def delivery_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """The row of ``memfs status``."""
    found = facts["delivery"]
    asked = ", ".join(["recall", *found["on_demand_sources"]]) if found["on_demand"] else "nothing"
    told = [f"{name} {', '.join(found[name]) or 'nothing'}" for name in ("automatic", "triggered")]
    told.append(f"on demand {asked}")
    failing = [f"{state}: {', '.join(found[state])}" for state in ("paused", "failing") if found[state]]
    if failing:
        told.append(f"{'; '.join(failing)} (memfs plugins doctor)")
    if found["conflicts"]:
        told.append(f"{count(found['conflicts'], 'conflict')} to decide (memfs conflicts)")
    return {"delivery": "; ".join(told)}

"""What ``status`` and ``reindex`` say of a multi-agent system's state.

Owns the words and the JSON. A workspace without iterations has none of it, and is spared the machinery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memfs.adapters.cli.output import count
from memfs.upkeep.opening import has_states

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def states_facts(workspace: Workspace) -> dict[str, Any]:
    """How many iterations there are, which is open, and how many documents they hold; nothing where there are none."""
    if not has_states(workspace.parts.seen):
        return {}
    reading = workspace.states.reading
    iterations = reading.iterations()
    return {
        "states": {
            "iterations": len(iterations),
            "archived": sum(bool(one.archive) for one in iterations),
            "open": reading.open_iteration(),
            "documents": sum(reading.index.counts().values()),
        }
    }


def states_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """The line of ``status`` about them."""
    found = facts.get("states")
    if found is None:
        return {}
    archived = f", {found['archived']} archived" if found["archived"] else ""
    current = f"number {found['open']} is open" if found["open"] is not None else "none is open"
    documents = count(found["documents"], "document")
    return {"iterations": f"{found['iterations']:,}{archived}, {current}; {documents}"}


def reindex_states(workspace: Workspace) -> dict[str, int]:
    """Look at every state document anew; says how many there are, nothing where there are none."""
    if not has_states(workspace.parts.seen):
        return {}
    return {"state_documents": workspace.states.reading.reindex()}

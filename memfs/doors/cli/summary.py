"""What ``status`` and ``admin reindex`` say of a multi-agent system's state, and ``status`` of recent knowledge.

A workspace without iterations does not load the machinery for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from memfs.admin.store_builder import has_states
from memfs.doors.cli.output import count, one_line
from memfs.errors import MemfsError
from memfs.model import Layer, Query
from memfs.recall.conflict_notes import OVER, contradicted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memfs.model import Candidate, MemoryItem
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
    """Look at every state document again; says how many there are, nothing where there are none."""
    if not has_states(workspace.parts.seen):
        return {}
    return {"state_documents": workspace.states.reading.reindex()}


_DAYS = 7
_READ = 50
_NAMED = 3
_WIDTH = 60
_LASTING = frozenset({Layer.EPISODIC.value, Layer.SEMANTIC.value})
_PEOPLE = "people"


def knowledge_facts(workspace: Workspace) -> dict[str, Any]:
    """What lasts of the last seven days, who wrote it, which of it contradicts something, and what is used most."""
    since = workspace.parts.clock() - timedelta(days=_DAYS)
    learned = list(workspace.store.searcher.every(Query(since=since, layers=_LASTING)))
    loaded = _loaded(workspace, learned[:_READ])
    disputed = [item for item in loaded if contradicted(item) and item.status.strip() not in OVER]
    by = Counter(one.agent or _PEOPLE for one in learned)
    return {
        "knowledge": {
            "days": _DAYS,
            "learned": len(learned),
            "by": dict(by.most_common()),
            "newest": [_named(item) for item in loaded[:_NAMED]],
            "contradicting": [{**_named(item), "contradicts": list(contradicted(item))} for item in disputed],
            "most_used": _most_used(workspace),
        }
    }


def knowledge_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """The same in words, by what each row is called; nothing where nothing is known."""
    known = facts["knowledge"]
    by = ", ".join(f"{number:,} by {name}" for name, number in known["by"].items())
    rows = {"learned": f"{known['learned']:,} in the last {known['days']} days" + (f": {by}" if by else "")}
    rows |= {"newest": _listed(one["text"] for one in known["newest"])} if known["newest"] else {}
    if used := known["most_used"]:
        rows["used most"] = _listed(f"{one['text']} ({count(one['uses'], 'time')})" for one in used)
    if against := known["contradicting"]:
        said = _listed(one["text"] for one in against[:_NAMED])
        rows["disputed"] = (
            f"{said}; 'memfs team conflicts' names {'them' if len(against) > 1 else 'it'} and what they deny"
        )
    return rows


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(texts)


def _loaded(workspace: Workspace, found: Iterable[Candidate]) -> list[MemoryItem]:
    return [one.item for candidate in found if (one := workspace.store.load(candidate)) is not None]


def _most_used(workspace: Workspace) -> list[dict[str, Any]]:
    uses = workspace.usage.all()
    rows: list[dict[str, Any]] = []
    for name in sorted(uses, key=lambda name: (-uses[name].count, name)):
        if len(rows) == _NAMED:
            break
        if (item := _item(workspace, name)) is not None:
            rows.append({**_named(item), "uses": uses[name].count})
    return rows


def _item(workspace: Workspace, name: str) -> MemoryItem | None:
    """The item of an id; None where it is gone, as counts may outlive it, or cannot be read."""
    try:
        return workspace.store.get(name)
    except MemfsError:
        return None


def _named(item: MemoryItem) -> dict[str, Any]:
    return {"id": item.id, "text": one_line(item.title or item.content, _WIDTH)}

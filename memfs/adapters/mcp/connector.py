"""Connector: the two tools that some clients know by name, ``search`` and ``fetch``.

Owns the form of answer that those clients expect: one JSON object, as text and as structure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memfs.adapters.mcp.answer import Answer, brief, one_line
from memfs.adapters.mcp.reading import fenced_item
from memfs.adapters.mcp.resources import uri_of
from memfs.errors import MemfsError

if TYPE_CHECKING:
    from memfs.adapters.mcp.desk import Desk
    from memfs.facades.caller import Caller

_LIMIT = 10


def search(desk: Desk, caller: Caller, given: Mapping[str, Any]) -> Answer:
    """``search``: id, title and address of each memory that fits."""
    found = desk.memory.search(given["query"], _LIMIT, agent=caller.agent)
    results = []
    for item_id in found.ids:
        try:
            item = desk.memory.get(item_id)
        except MemfsError:  # taken away, or made invalid, since it was found
            continue
        results.append({"id": item.id, "title": one_line(item.title or item.content, 100), "url": uri_of(item.id)})
    return _as_json({"results": results})


def fetch(desk: Desk, _: Caller, given: Mapping[str, Any]) -> Answer:
    """``fetch``: one memory, its text as quoted data."""
    item = desk.memory.get(given["id"])
    facts = {name: value for name, value in brief(item).items() if name in ("type", "when", "trust", "undecided")}
    title = one_line(item.title or item.content, 100)
    return _as_json(
        {"id": item.id, "title": title, "text": fenced_item(item), "url": uri_of(item.id), "metadata": facts}
    )


def _as_json(data: dict[str, Any]) -> Answer:
    return Answer(json.dumps(data, ensure_ascii=False), data)

"""Drafts: the shapes in which callers hand memories over, as items.

Owns which shapes there are and what their fields are called. Storing them is the facades' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.errors import SchemaInvalid
from memfs.facades.memory import Memory
from memfs.model import MemoryItem
from memfs.model.item import Trust
from memfs.model.kinds import nearest

USUAL_TYPE = "interaction"
_ALIASES = {"type": "memory_type"}
_NOT_GIVEN = frozenset({"path", "sha256", "durability", "created", "updated"})
FIELDS = tuple(name for name in MemoryItem.__dataclass_fields__ if name not in _NOT_GIVEN)


def draft(memory: Any) -> MemoryItem:
    """A memory as an item: a text, a mapping with ``content`` and other fields of an item, or a value of memfs.

    Its type is ``interaction``, and an agent stands behind it, unless it says otherwise.

    Raises:
        SchemaInvalid: an unknown field, or a value of the wrong sort; ``field`` names it.
    """
    if isinstance(memory, MemoryItem):
        return memory
    if isinstance(memory, Memory):
        names = ("content", "type", "id", "timestamp", "metadata", "context")
        return draft({name: getattr(memory, name) for name in names})
    if isinstance(memory, str):
        return draft({"content": memory})
    if not isinstance(memory, Mapping):
        hint = 'write {"content": "what to remember"}'
        raise SchemaInvalid(f"expected a memory, got {ascii(memory)[:60]}", field="memory", hint=hint)
    return MemoryItem(**{"memory_type": USUAL_TYPE, "trust": Trust.AGENT.value, **known(memory)})


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by their names in an item.

    Raises:
        SchemaInvalid: an item has no such field, or memfs sets it.
    """
    named = {_ALIASES.get(name, name): value for name, value in fields.items()}
    for name in named:
        if name not in FIELDS:
            hint = nearest(str(name), FIELDS) or f"the fields are {', '.join(FIELDS)}"
            raise SchemaInvalid(f"a memory has no field {name!r} to set", field=str(name), hint=hint)
    return {name: {} if value is None and name in ("context", "metadata") else value for name, value in named.items()}

"""Resources: memories that a person hands to a model.

Owns the addresses, ``memory://items/ID`` and a few fixed ones, and what is read there: always quoted data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from memfs.adapters.mcp import reading
from memfs.adapters.mcp.answer import brief
from memfs.errors import ItemNotFound
from memfs.model import Query

if TYPE_CHECKING:
    from memfs.adapters.mcp.desk import Desk
    from memfs.facades.caller import Caller

ITEM = "memory://items/"
TEMPLATE = ITEM + "{id}"
STATUS = "memory://status"
CONTEXT = "memory://context"
PAGE = 50
_LONGEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One resource: its address, name, what it is, and the type of its text."""

    uri: str
    name: str
    about: str
    mime: str = "text/plain"


FIXED = (
    Listed(uri=CONTEXT, name="context", about="What an agent is told at the start of this work"),
    Listed(uri=STATUS, name="status", about="How the memory stands", mime="application/json"),
)


def uri_of(item_id: str) -> str:
    """The address of an item."""
    return ITEM + item_id


def page(desk: Desk, cursor: str) -> tuple[list[Listed], str]:
    """Some resources and where the next page begins; items where agents may ask for them.

    Raises:
        QueryInvalid: no page gave such a cursor.
    """
    first = [] if cursor else list(FIXED)
    if not desk.memory.workspace.settings.memory.on_demand:
        return first, ""
    found = desk.memory.page(Query(), PAGE, cursor)
    rows = [brief(item) for item in found.items]
    items = [Listed(uri=uri_of(row["id"]), name=row["id"], about=str(row.get("title", ""))) for row in rows]
    return first + items, found.cursor


def read(desk: Desk, caller: Caller, uri: str) -> tuple[str, str]:
    """The type and the text of a resource.

    Raises:
        ItemNotFound, IdInvalid: there is none.
        ContentError: the file behind it is invalid at present.
    """
    if len(uri) > _LONGEST:
        raise ItemNotFound("no resource has so long an address")
    if uri == STATUS:
        return "application/json", json.dumps(reading.status(desk, caller, {}).data, ensure_ascii=False)
    if uri == CONTEXT:
        start, reminders = desk.memory.beginning()
        return "text/plain", "\n\n".join(filter(None, (start.text, reading.reminded(reminders))))
    if not uri.startswith(ITEM):
        raise ItemNotFound(f"there is no resource {ascii(uri)[:100]}", hint=f"addresses begin with {ITEM}")
    return "text/plain", reading.fenced_item(desk.memory.get(unquote(uri.removeprefix(ITEM))))

"""Converts between a MemoryItem and the mapping in its file.

Keys have one canonical order, and a field at its default is left out of a new file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.format.plain import FieldPath, plain, same
from memfs.model.item import Link, MemoryItem, Origin, RecordedConflict
from memfs.model.time import format_time, parse_time

if TYPE_CHECKING:
    from memfs.format.splice import Order

_TIMES = ("timestamp", "created", "updated", "expires")
_ORIGIN = ("speaker", "role", "agent", "session", "sequence", "task", "tool", "phase")
_FREE = ("context", "metadata", "data")
_DEFAULTS: Mapping[str, Any] = {
    "title": "",
    "content": "",
    "tags": [],
    "origin": {},
    "trust": "human",
    "importance": 1.0,
    "pinned": False,
    "status": "",
    "supersedes": [],
    "links": [],
    **{name: {} for name in _FREE},
    "conflicts": [],
    **dict.fromkeys(_TIMES),
}
ORDER: Order = {
    name: {}
    for name in (
        "type",
        "title",
        "content",
        "tags",
        "timestamp",
        "created",
        "updated",
        "origin",
        "trust",
        "importance",
        "pinned",
        "status",
        "expires",
        "supersedes",
        "links",
        *_FREE,
        "conflicts",
    )
} | {"origin": {name: {} for name in _ORIGIN}}


def to_item(mapping: Mapping[str, Any], memory_type: str, fallback: datetime, **place: str) -> MemoryItem:
    """The item of a mapping that has passed its schema; ``place`` gives id, path and sha256."""
    fields: dict[str, Any] = {
        name: value if (read := _READ[name]) is None else read(value)
        for name, value in mapping.items()
        if name in _READ
    }
    fields["timestamp"] = fields.get("timestamp") or fields.get("created") or fallback
    return MemoryItem(memory_type=memory_type, **(fields | place))


def values(item: MemoryItem) -> dict[str, Any]:
    """Every field as it is written, defaults included, in canonical order.

    Raises:
        SchemaInvalid, ItemTooDeep: a value that no file can hold.
    """
    shown = {
        "title": plain(item.title, ("title",)),
        "content": plain(item.content, ("content",)),
        "tags": [plain(tag, ("tags",)) for tag in item.tags],
        "timestamp": _written(item.timestamp),
        "created": _written(item.created),
        "updated": _written(item.updated),
        "origin": _origin(item.origin),
        "trust": item.trust,
        "importance": plain(item.importance, ("importance",)),
        "pinned": item.pinned,
        "status": str(item.status),
        "expires": _written(item.expires),
        "supersedes": [plain(name, ("supersedes",)) for name in item.supersedes],
        "links": [{"to": str(link.to), "relation": str(link.relation)} for link in item.links],
    }
    for name in _FREE:
        shown[name] = plain(getattr(item, name), (name,))
    shown["conflicts"] = [_record(one, ("conflicts", number)) for number, one in enumerate(item.conflicts)]
    return shown


def fresh(item: MemoryItem) -> dict[str, Any]:
    """The mapping of a new file: what differs from the default, and always who stands behind it."""
    mapping = {
        name: value
        for name, value in values(item).items()
        if name == "trust" or (value != _DEFAULTS[name] and value is not None)
    }
    if mapping.get("timestamp") == mapping.get("created"):
        mapping.pop("timestamp", None)
    return _tidy(mapping)


def changed(mapping: Mapping[str, Any], before: MemoryItem, item: MemoryItem) -> dict[str, Any]:
    """The mapping of an existing file, changed only in the fields in which the items differ."""
    result = dict(mapping)
    old, new = values(before), values(item)
    for name, value in new.items():
        if same(old[name], value) or (name == "importance" and old[name] == value):
            continue
        if value is None or (value == _DEFAULTS[name] and name != "trust"):
            result.pop(name, None)
        else:
            result[name] = _tidy({name: value})[name]
    if "timestamp" not in result and new["timestamp"] not in (None, new["created"]):
        result["timestamp"] = new["timestamp"]
    if "type" in result:
        result["type"] = item.memory_type
    return result


def is_default(name: str, value: Any) -> bool:
    """Whether a field with this value is left out of a fresh file."""
    return value is None or (name in _DEFAULTS and bool(value == _DEFAULTS[name]))


def _tidy(mapping: dict[str, Any]) -> dict[str, Any]:
    importance = mapping.get("importance")
    if isinstance(importance, float) and importance.is_integer():
        mapping["importance"] = int(importance)
    return mapping


def _origin(origin: Origin) -> dict[str, Any]:
    parts = {name: getattr(origin, name) for name in _ORIGIN}
    return {
        name: plain(value if name == "sequence" else str(value), ("origin", name))
        for name, value in parts.items()
        if value not in ("", None)
    }


def _recorded(entry: Mapping[str, Any]) -> RecordedConflict:
    return RecordedConflict(**{**entry, "time": _time(entry.get("time"))})


def _record(conflict: RecordedConflict, path: FieldPath) -> dict[str, Any]:
    parts = {
        "field": str(conflict.field),
        "kept": plain(conflict.kept, (*path, "kept")),
        "lost": plain(conflict.lost, (*path, "lost")),
        "part": conflict.part or None,
        "lost_sha256": str(conflict.lost_sha256) or None,
        "by": str(conflict.by) or None,
        "time": _written(conflict.time),
    }
    return {name: value for name, value in parts.items() if value is not None}


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)


def _link(link: Mapping[str, Any]) -> Link:
    return Link(to=link["to"], relation=link.get("relation", "relates"))


_READ: Mapping[str, Callable[[Any], Any] | None] = {
    **dict.fromkeys(("title", "content", "trust", "pinned", "status", *_FREE)),
    **dict.fromkeys(("tags", "supersedes"), tuple),
    **dict.fromkeys(_TIMES, _time),
    "origin": lambda origin: Origin(**origin),
    "importance": float,
    "links": lambda links: tuple(map(_link, links)),
    "conflicts": lambda conflicts: tuple(map(_recorded, conflicts)),
}
"""What makes the value of a field of what its file says; None where that is the value."""

"""Converts between a MemoryItem and the mapping in its file.

Keys have one canonical order, and a field at its default is left out of a new file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter

from memfs.dataclass import NamedTuple
from memfs.format.plain import plain, same
from memfs.model.item import Link, MemoryItem, Origin, RecordedConflict
from memfs.model.time import format_time, parse_time
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs.format.splice import Order

_ORIGIN = ("speaker", "role", "agent", "session", "sequence", "task", "tool", "phase")


def to_item(mapping: Mapping[str, Any], memory_type: str, fallback: datetime, **place: str) -> MemoryItem:
    """The item of a mapping that has passed its schema; ``place`` gives id, path and sha256."""
    return MemoryItem(**fields_of(mapping, memory_type, fallback, **place))


def fields_of(mapping: Mapping[str, Any], memory_type: str, fallback: datetime, **place: str) -> dict[str, Any]:
    """The fields of the item that ``to_item`` makes."""
    fields: dict[str, Any] = {
        name: value if (read := _READS[name]) is None else read(value)
        for name, value in mapping.items()
        if name in _READS
    }
    fields["timestamp"] = fields.get("timestamp") or fields.get("created") or fallback
    return {"memory_type": memory_type, **fields, **place}


def values(item: MemoryItem) -> dict[str, Any]:
    """Every field as it is written, defaults included, in canonical order.

    Raises:
        SchemaInvalid, ItemTooDeep: a value that no file can hold.
    """
    return {name: _as_written(name, value) for name, value in zip(_FIELDS, _values_of(item), strict=True)}


def _as_written(name: str, value: Any) -> Any:
    field = _FIELDS[name]
    return field.write(value, name) if value or name in _NUMBERS else type(field.default)()


def fresh(item: MemoryItem) -> dict[str, Any]:
    """The mapping of a new file: what differs from the default, and always who vouches for it."""
    mapping = {
        name: value
        for name, value in values(item).items()
        if name == "trust" or (value != _FIELDS[name].default and value is not None)
    }
    if mapping.get("timestamp") == mapping.get("created"):
        mapping.pop("timestamp", None)
    return _tidy(mapping)


def changed(mapping: Mapping[str, Any], before: MemoryItem, item: MemoryItem) -> dict[str, Any]:
    """The mapping of an existing file, changed only in the fields in which the items differ."""
    result = dict(mapping)
    for name, there, wanted in zip(_FIELDS, _values_of(before), _values_of(item), strict=True):
        if wanted == there and wanted.__class__ is there.__class__ and (wanted.__class__ in _EXACT or not wanted):
            continue
        old, value = _as_written(name, there), _as_written(name, wanted)
        if same(old, value) or (name == "importance" and old == value):
            continue
        if value is None or (value == _FIELDS[name].default and name != "trust"):
            result.pop(name, None)
        else:
            result[name] = _tidy({name: value})[name]
    moment = _written(item.timestamp, "timestamp")
    if "timestamp" not in result and moment not in (None, _written(item.created, "created")):
        result["timestamp"] = moment
    if "type" in result:
        result["type"] = item.memory_type
    return result


def is_default(name: str, value: Any) -> bool:
    """Whether a field with this value is left out of a fresh file."""
    return value is None or (name in _FIELDS and bool(value == _FIELDS[name].default))


def _tidy(mapping: dict[str, Any]) -> dict[str, Any]:
    importance = mapping.get("importance")
    if isinstance(importance, float) and importance.is_integer():
        mapping["importance"] = int(importance)
    return mapping


# -- the fields ---------------------------------------------------------------------------------------------------
class _Field(NamedTuple):
    """How a field is in a file.

    Attributes:
        default: what is left out of a new file.
        read: makes the value of what the file says; None where that is the value.
        write: makes what the file says of the value, given the field's name for errors.
    """

    default: Any
    read: Callable[[Any], Any] | None
    write: Callable[[Any, str], Any]


def _plain(value: Any, name: str) -> Any:
    return plain(value, (name,))


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def _written(moment: datetime | None, _: str) -> str | None:
    return None if moment is None else format_time(moment)


def _origin(origin: Origin, name: str) -> dict[str, Any]:
    parts = {part: getattr(origin, part) for part in _ORIGIN}
    return {
        part: plain(value if part == "sequence" else str(value), (name, part))
        for part, value in parts.items()
        if value not in ("", None)
    }


def _links(links: Any, _: str) -> list[dict[str, str]]:
    return [{"to": str(link.to), "relation": str(link.relation)} for link in links]


def _recorded(entry: Mapping[str, Any]) -> RecordedConflict:
    return RecordedConflict(**{**entry, "time": _time(entry.get("time"))})


def _records(conflicts: Any, name: str) -> list[dict[str, Any]]:
    rows = (
        {
            "field": str(one.field),
            "kept": plain(one.kept, (name, number, "kept")),
            "lost": plain(one.lost, (name, number, "lost")),
            "part": one.part or None,
            "lost_sha256": str(one.lost_sha256) or None,
            "by": str(one.by) or None,
            "time": _written(one.time, name),
        }
        for number, one in enumerate(conflicts)
    )
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


_TEXT, _TEXTS, _MOMENT = _Field("", None, _plain), _Field([], tuple, _plain), _Field(None, _time, _written)
_FREE = _Field({}, None, _plain)
_FIELDS: Mapping[str, _Field] = {
    "title": _TEXT,
    "content": _TEXT,
    "tags": _TEXTS,
    "timestamp": _MOMENT,
    "created": _MOMENT,
    "updated": _MOMENT,
    "origin": _Field({}, lambda origin: Origin(**origin), _origin),
    "trust": _Field("human", None, _plain),
    "importance": _Field(1.0, float, _plain),
    "pinned": _Field(False, None, _plain),
    "status": _TEXT,
    "expires": _MOMENT,
    "supersedes": _TEXTS,
    "links": _Field([], lambda links: tuple(Link(**link) for link in links), _links),
    "context": _FREE,
    "metadata": _FREE,
    "data": _FREE,
    "conflicts": _Field([], lambda entries: tuple(map(_recorded, entries)), _records),
}
_NUMBERS = frozenset({"importance", "pinned"})
"""Fields whose usual value is not their empty one."""
_EXACT = frozenset({str, float, bool, datetime, type(None)})
"""Sorts of values that are written as the same where they are equal."""
_values_of = attrgetter(*_FIELDS)
_READS = {name: field.read for name, field in _FIELDS.items()}
ORDER: Order = {name: {} for name in ("type", *_FIELDS)} | {"origin": {part: {} for part in _ORIGIN}}

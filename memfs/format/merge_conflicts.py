"""Records within an item which values a merge overrode, and settles such a record.

A record stays until somebody decides. It is bounded in size, and no longer counts once the field has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memfs.errors import QueryInvalid
from memfs.format import item_fields
from memfs.format.field_merge import FieldConflict, equal, merge
from memfs.format.plain import canonical
from memfs.model.conflict import DocumentClash
from memfs.model.item import MemoryItem, RecordedConflict
from memfs.model.shape import plain
from memfs.model.time import format_time, time_in

MOST = 64
EDITED, DELETED = "edited", "deleted"
ONE, OTHER = "one version", "another version"
_MORE = "further fields"
_LONGEST = 4_000
_LONGEST_NAME = 1_000
_LONGEST_WRITER = 300
_AROUND = 20
_MOMENTS = frozenset({"timestamp", "created", "updated", "expires"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record(
    clash: FieldConflict, lost_sha256: str, by: str = "", now: datetime | None = None, *, brief: bool = False
) -> dict[str, Any]:
    """The entry of an item's ``conflicts`` that records a clash.

    Of a text of several lines it has the lines that differ, with as many around them as make the place unmistakable. A
    value that is longer than 4,000 characters is in the history alone, and so is each with ``brief``.
    """
    kept, lost, part = _passages(clash.kept, clash.lost)
    entry: dict[str, Any] = {"field": clash.field}
    if not brief and _fits(kept) and _fits(lost) and len(clash.field) <= _LONGEST_NAME:
        entry |= {name: value for name, value in (("kept", kept), ("lost", lost)) if value is not None}
        entry |= {"part": True} if part else {}
    else:
        entry |= {"field": clash.field[:_LONGEST_NAME], "lost_sha256": lost_sha256}
    writer = " ".join(by.split())[:_LONGEST_WRITER]
    return entry | ({"by": writer} if writer else {}) | ({"time": format_time(now)} if now else {})


def within(entries: Sequence[Mapping[str, Any]], lost_sha256: str) -> list[dict[str, Any]]:
    """Records without repeats, no more than an item may have: beyond that one stands for the oldest."""
    unique = [dict(one) for one in {canonical(dict(one)): one for one in entries}.values()]
    if len(unique) <= MOST:
        return unique
    known = [one for one in unique if one.get("lost") != _MORE]
    return [{"field": "", "kept": ONE, "lost": _MORE, "lost_sha256": lost_sha256}, *known[1 - MOST :]]


def followed(entry: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """A record once its item was joined with a version whose writer did not know it.

    Where the field has another value by that, the record names this one: nobody has decided about the overridden value.

    Args:
        before: the plain values of the version that has the record.
        after: the joined values.

    Returns:
        The record; None where the overridden value is there after all.
    """
    field = str(entry.get("field") or "")
    was, stands_there = value_at(before, field), value_at(after, field)
    if not field or "lost_sha256" in entry or not tells_of(entry, was) or tells_of(entry, stands_there):
        return dict(entry)
    lost = _replaced(was, entry["kept"], entry.get("lost")) if entry.get("part") else entry.get("lost")
    versions = [{} if value is None else {field: value} for value in (was, stands_there, lost)]
    joined = merge(versions[0], versions[1], versions[2], {})
    lost = lost if joined.conflicts else joined.values.get(field)
    if equal(lost, stands_there):
        return None
    clash = FieldConflict(field=field, kept=stands_there, lost=lost)
    made = record(clash, "", str(entry.get("by", "")), time_in(entry.get("time")))
    return dict(entry) if "lost_sha256" in made else made


def stands(item: MemoryItem, conflict: RecordedConflict) -> bool:
    """Whether the item has what the record says was kept, so that there is something to decide."""
    return bool(conflict.lost_sha256) or stands_in(item_fields.values(item), conflict)


def settled(item: MemoryItem, conflict: RecordedConflict, *, take: bool) -> MemoryItem:
    """The item once somebody decided about one of its conflicts: without the record, and with the value decided for.

    Args:
        take: keep the overridden value; else the present one is right.

    Raises:
        QueryInvalid: the field has another value by now, or the record does not hold the overridden one. Of the item
            as a whole, removing it or bringing a version back is the caller's business.
    """
    left = tuple(one for one in item.conflicts if one != conflict)
    if not take:
        return item.replace(conflicts=left)
    if not conflict.field or conflict.lost_sha256:
        hint = "keep what stands, or bring the other version back from history: 'memfs log', 'memfs restore'"
        raise QueryInvalid(
            "the record does not hold the value that was not kept", field=conflict.field or None, hint=hint
        )
    mapping = item_fields.values(item)
    hint = f"look at it again: 'memfs show {item.id}'"
    _take_lost(mapping, conflict, item.path or None, hint)
    return _rebuilt(item, mapping).replace(conflicts=left)


def value_at(values: Mapping[str, Any], field: str) -> Any:
    """The value of a dotted field among plain values; None where there is none."""
    place = _place(dict(values), field)
    return place[0].get(place[1]) if place else None


def stands_in(values: Mapping[str, Any], conflict: RecordedConflict | DocumentClash) -> bool:
    """Whether an item or document still has what was kept, so that there is something to decide."""
    place = _place(plain(values), conflict.field)
    if not conflict.field or place is None:
        return not conflict.field or (conflict.kept is None and isinstance(conflict, RecordedConflict))
    there, kept = place[0].get(place[1]), conflict.kept
    if isinstance(conflict, RecordedConflict):
        if conflict.part:
            return _times(there, kept) == 1
        if conflict.field in _MOMENTS:
            return time_in(there) == time_in(kept)
        if kept is None:
            return item_fields.is_default(conflict.field, there)
    return equal(there, kept)


def with_lost(values: dict[str, Any], clash: DocumentClash) -> dict[str, Any] | None:
    """A document's plain values with what was displaced; None where that was its removal. They are changed in place.

    Raises:
        QueryInvalid: the field has another value by now; or a whole version was displaced, which no record holds.
    """
    if clash.field:
        _take_lost(values, clash, clash.document, "look at it again")
        return values
    if clash.lost != DELETED:
        hint = f"'memfs log {clash.document}' names the versions, 'memfs restore' brings one back"
        problem = "what was not kept is a whole version, which only history has"
        raise QueryInvalid(problem, path=clash.document, hint=hint)
    return None


def _take_lost(values: dict[str, Any], conflict: RecordedConflict | DocumentClash, path: str | None, hint: str) -> None:
    """Put what was displaced in the place of what was kept."""
    place = _place(values, conflict.field)
    if place is None or not stands_in(values, conflict):
        raise QueryInvalid("it has another value by now", path=path, field=conflict.field, hint=hint)
    holder, key = place
    if isinstance(conflict, RecordedConflict) and conflict.part:
        holder[key] = _replaced(holder[key], conflict.kept, conflict.lost)
    elif conflict.lost is None:
        holder.pop(key, None)
    else:
        holder[key] = conflict.lost


def _fits(value: Any) -> bool:
    return len(canonical(value)) <= _LONGEST


def _passages(kept: Any, lost: Any) -> tuple[Any, Any, bool]:
    """The lines in which two texts differ, where that is less than the whole."""
    if not (isinstance(kept, str) and isinstance(lost, str)):
        return kept, lost, False
    ours, theirs = kept.split("\n"), lost.split("\n")
    least = min(len(ours), len(theirs))
    start = next((at for at in range(least) if ours[at] != theirs[at]), least)
    end = next((at for at in range(least - start) if ours[-1 - at] != theirs[-1 - at]), least - start)
    for _ in range(_AROUND):
        passages = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
        if not (start or end):
            break
        passage = "\n".join(passages[0])
        if all(passages) and passage.strip() and _times(kept, passage) == 1:
            return passage, "\n".join(passages[1]), True
        start, end = (start - 1, end) if start else (start, end - 1)
    return kept, lost, False


def _times(text: Any, passage: Any) -> int:
    """How often lines occur in a text; more than once counts as twice."""
    if not (isinstance(text, str) and isinstance(passage, str)):
        return 0
    framed, wanted = f"\n{text}\n", f"\n{passage}\n"
    first = framed.find(wanted)
    return 0 if first < 0 else 1 if framed.find(wanted, first + 1) < 0 else 2


def _replaced(text: str, kept: str, lost: Any) -> str:
    return f"\n{text}\n".replace(f"\n{kept}\n", f"\n{lost}\n", 1)[1:-1]


def _place(values: Any, name: str) -> tuple[dict[str, Any], str] | None:
    """The mapping that holds a dotted field, and its key there, which may hold a dot; None where there is none."""
    if not isinstance(values, dict):
        return None
    if name in values or "." not in name:
        return values, name
    heads = [name[:at] for at, letter in enumerate(name) if letter == "."]
    for head in reversed(heads):
        if head in values and (found := _place(values[head], name[len(head) + 1 :])) is not None:
            return found
    return None


def tells_of(entry: Mapping[str, Any], value: Any) -> bool:
    """Whether plain values have what a record says was kept."""
    kept = entry.get("kept")
    return _times(value, kept) == 1 if entry.get("part") else equal(value, kept)


def _rebuilt(item: MemoryItem, mapping: dict[str, Any]) -> MemoryItem:
    kept = {name: value for name, value in mapping.items() if value is not None}
    made = item_fields.to_item(kept, item.memory_type, item.timestamp or item.created or _EPOCH)
    moment = made.timestamp if item.timestamp else None
    return made.replace(id=item.id, path=item.path, sha256=item.sha256, durability=item.durability, timestamp=moment)

"""Merges two changed copies of one document field by field, and of one text line by line.

Follows the rules that the schemas name as ``x-merge``. The result depends on the three versions alone, and names every
field in which one side's value was overridden; an item keeps a record of these, which can be settled.
"""

from __future__ import annotations

import difflib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memfs.dataclass import dataclass
from memfs.dataclass import field as attribute
from memfs.errors import QueryInvalid
from memfs.format import item_fields
from memfs.format.plain import canonical
from memfs.format.text import MARKER, marked
from memfs.model.item import MemoryItem, RecordedConflict
from memfs.model.shape import plain
from memfs.model.time import EPOCH, format_time, parse_time, time_in

if TYPE_CHECKING:
    from memfs.model.state_documents import DocumentClash

Element = TypeVar("Element", bound=Hashable)
Pair = tuple[int, int]

_DEEPEST = 16
_CLOSE_LOOK = 400  # elements of both sides that are compared one by one; more are matched by those that are unique


@dataclass(frozen=True, slots=True)
class Hunk(Generic[Element]):
    """A stretch of the three versions. Stretches follow each other, and together are the whole of each version.

    Attributes:
        base, ours, theirs: the elements of each version.
        clash: whether both sides changed the stretch, to different ones.
    """

    base: Sequence[Element]
    ours: Sequence[Element]
    theirs: Sequence[Element]
    clash: bool = False

    @property
    def joined(self) -> Sequence[Element]:
        """What the result has where the two do not clash: the side's that changed it."""
        return self.theirs if self.ours == self.base else self.ours


@dataclass(frozen=True, slots=True)
class LineMerge:
    """A file joined by lines; ``clean`` says that no two changes clashed, so that it has no markers."""

    data: bytes
    clean: bool


def hunks(base: Sequence[Element], ours: Sequence[Element], theirs: Sequence[Element]) -> Iterator[Hunk[Element]]:
    """The stretches of three versions of a sequence, in order.

    Two changes clash where they overlap or touch and differ. What both sides have at the beginning and the end of a
    clash is taken out of it.
    """
    in_ours, in_theirs = dict(pairs(base, ours)), dict(pairs(base, theirs))
    common = [(index, in_ours[index], in_theirs[index]) for index in in_ours if index in in_theirs]
    b, o, t = 0, 0, 0
    for left, right in _runs(common):
        (b1, o1, t1), (b2, o2, t2) = left, right
        yield from _stretch(base[b:b1], ours[o:o1], theirs[t:t1])
        yield Hunk(base[b1 : b2 + 1], ours[o1 : o2 + 1], theirs[t1 : t2 + 1])
        b, o, t = b2 + 1, o2 + 1, t2 + 1
    yield from _stretch(base[b:], ours[o:], theirs[t:])


def merge_lines(base: bytes, ours: bytes, theirs: bytes, marker_size: int = MARKER) -> LineMerge:
    """Three versions of a file joined by lines, as ``git merge-file`` does, with conflict markers around clashes."""
    found: list[bytes] = []
    clean = True
    for hunk in hunks(_split(base), _split(ours), _split(theirs)):
        if hunk.clash:
            clean = False
            newline = b"\r\n" if hunk.ours and hunk.ours[0].endswith(b"\r\n") else b"\n"
            found += marked(hunk.ours, hunk.theirs, marker_size, newline)
        else:
            found += hunk.joined
    return LineMerge(b"".join(found), clean)


def pairs(one: Sequence[Element], other: Sequence[Element]) -> list[Pair]:
    """Positions of equal elements in two sequences, rising in both.

    Elements that are unique in both sequences are matched so that as many as possible keep their order; then those
    between them, where each stretch is looked at by itself. What repeats too often to be distinguished stays unmatched.
    """
    found: list[Pair] = []
    waiting = [(0, len(one), 0, len(other), 0)]
    while waiting:
        left, right, low, high, depth = waiting.pop()
        while left < right and low < high and one[left] == other[low]:
            found.append((left, low))
            left, low = left + 1, low + 1
        while left < right and low < high and one[right - 1] == other[high - 1]:
            right, high = right - 1, high - 1
            found.append((right, high))
        if left == right or low == high:
            continue
        anchors = _anchors(one, other, (left, right, low, high)) if depth < _DEEPEST else []
        if anchors:
            found += anchors
            ends = [(left - 1, low - 1), *anchors, (right, high)]
            waiting += [(i + 1, k, j + 1, m, depth + 1) for (i, j), (k, m) in pairwise(ends)]
        elif right - left + high - low <= _CLOSE_LOOK:
            found += _close(one, other, (left, right, low, high))
    return sorted(found)


def rising(numbers: Sequence[int]) -> list[int]:
    """Positions of a longest rising subsequence, in order (by patience sorting)."""
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for at, number in enumerate(numbers):
        pile = bisect_left(tops, number)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [number]
        piles[pile : pile + 1] = [at]
    result, at = [], piles[-1] if piles else -1
    while at >= 0:
        result.append(at)
        at = before[at]
    return result[::-1]


# -- internal -----------------------------------------------------------------------------------------------------
Window = tuple[int, int, int, int]


def _anchors(one: Sequence[Element], other: Sequence[Element], window: Window) -> list[Pair]:
    """The longest run, in both orders, of elements that each side has once."""
    left, right, low, high = window
    once = {element for element, count in Counter(one[left:right]).items() if count == 1}
    there = Counter(element for element in other[low:high] if element in once)
    place = {other[at]: at for at in range(low, high) if there.get(other[at]) == 1}
    matches = [(at, place[one[at]]) for at in range(left, right) if one[at] in place]
    return [matches[at] for at in rising([there for _, there in matches])]


def _close(one: Sequence[Element], other: Sequence[Element], window: Window) -> Iterator[Pair]:
    left, right, low, high = window
    matcher = difflib.SequenceMatcher(None, one[left:right], other[low:high], autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield left + block.a + step, low + block.b + step


def _runs(common: Iterable[tuple[int, int, int]]) -> Iterator[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """The first and the last of each run of places that follow each other in all three versions."""
    first = last = None
    for place in common:
        if last is not None and first is not None and place != (last[0] + 1, last[1] + 1, last[2] + 1):
            yield first, last
            first = None
        first, last = first or place, place
    if first is not None and last is not None:
        yield first, last


def _stretch(base: Sequence[Element], ours: Sequence[Element], theirs: Sequence[Element]) -> Iterator[Hunk[Element]]:
    """What is between two places that all versions share."""
    if not (base or ours or theirs):
        return
    if base in (ours, theirs) or ours == theirs:
        yield Hunk(base, ours, theirs)
        return
    start, end = _shared(ours, theirs)
    if start:
        yield Hunk(base[:0], ours[:start], theirs[:start])
    one, other = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    yield Hunk(base, one, other, clash=base not in (one, other))
    if end:
        yield Hunk(base[:0], ours[len(ours) - end :], theirs[len(theirs) - end :])


def _shared(one: Sequence[Element], other: Sequence[Element]) -> Pair:
    """How many elements two sequences share at the beginning, and how many behind those at the end."""
    least = min(len(one), len(other))
    start = next((at for at in range(least) if one[at] != other[at]), least)
    end = next((at for at in range(least - start) if one[-1 - at] != other[-1 - at]), least - start)
    return start, end


def _split(data: bytes) -> list[bytes]:
    """The lines with their newlines. (``bytes.splitlines`` would split at a lone carriage return, too.)"""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


_ABSENT: Any = object()
_KEYED, _LISTED = frozenset({"", "keys"}), frozenset({"", "union", "sequence"})
"""Rules by which mappings and lists are joined part by part."""
_FREE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldConflict:
    """A field that both sides changed, to different values.

    Attributes:
        field: its dotted name, "" for the whole file.
        kept: the value in the result; None where the field is gone.
        lost: the value it would have if the other side's change had been taken; None where it had removed the field.
            For the whole file the two are words: ``edited``, ``deleted``, ``one version``, ``another version``.
        yielded: whether it was our change that was overridden.
    """

    field: str
    kept: Any
    lost: Any
    yielded: bool = attribute(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMerge:
    """The joined document, and the fields in which one side's value was overridden."""

    values: dict[str, Any]
    conflicts: tuple[FieldConflict, ...] = ()


def merge(
    base: Mapping[str, Any],
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    schema: Mapping[str, Any],
    *,
    removals_stand: bool = False,
) -> FieldMerge:
    """Join two versions of a document that began from one.

    A field that one side left alone is taken from the other. One that both changed is joined as its ``x-merge`` says:
    ``sum`` adds both changes; ``max`` and ``min`` take one of the two; ``union`` has what either added and neither
    removed; ``sequence`` and ``text3`` join a list by its elements, a text by its lines; ``keys`` joins key by key;
    ``lww`` takes ours, or of two mappings with a ``timestamp`` the later. What remains (``conflict``, ``same``, lines
    that clash, and values that their rule does not fit) takes ours and says so, except that a change wins over a
    removal. Without a rule, mappings are joined by keys, lists as sequences, texts of several lines by lines.

    Args:
        base: what both began from; empty where they have nothing in common.
        ours: the version that wins where only one can: that of the last writer.
        theirs: the other version.
        schema: of the document, its references resolved.
        removals_stand: whether ours wins also where it removed what theirs changed.

    Returns:
        New values, with our keys in our order before theirs; the arguments are left alone.
    """
    joining = _LineJoin(removals_stand)
    values = joining.mappings(base, ours, theirs, schema, "")
    return FieldMerge(values=values, conflicts=tuple(joining.clashes))


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same as JSON: unlike in Python, ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


class _LineJoin:
    """One merge, and the clashes it has met."""

    def __init__(self, removals_stand: bool) -> None:
        self._removals_stand = removals_stand
        self.clashes: list[FieldConflict] = []

    def mappings(
        self,
        base: Mapping[str, Any],
        ours: Mapping[str, Any],
        theirs: Mapping[str, Any],
        schema: Mapping[str, Any],
        where: str,
    ) -> dict[str, Any]:
        merged = {}
        for key in {**ours, **theirs}:
            versions = tuple(version.get(key, _ABSENT) for version in (base, ours, theirs))
            properties = schema.get("properties", _FREE)
            rules = properties[key] if key in properties else schema.get("additionalProperties", _FREE)
            rules = rules if isinstance(rules, Mapping) else _FREE
            value = self._value(versions, rules, f"{where}.{key}" if where else key)
            if value is not _ABSENT:
                merged[key] = value
        return merged

    def _value(self, versions: tuple[Any, ...], schema: Mapping[str, Any], where: str) -> Any:
        base, ours, theirs = versions
        if equal(theirs, base):
            return ours
        if equal(ours, base):
            return theirs
        rule = schema.get("x-merge", "")
        empty = _empty_of(versions, rule)
        if empty is not None:  # an empty collection is left out: the side that left it out removed what was in it
            filled = tuple(empty if one is _ABSENT else one for one in versions)
            return self._value(filled, schema, where) or _ABSENT
        if rule in _KEYED and _has_keys(ours) and _has_keys(theirs):
            begun = base if _has_keys(base) else _FREE
            return self.mappings(begun, ours, theirs, schema, where)
        if rule != "sum" and _agree(ours, theirs, schema):  # of a counter, both have counted
            return ours
        if ours is not _ABSENT and theirs is not _ABSENT:
            joined = _RULES.get(rule, _unruled)(base, ours, theirs)
            if isinstance(joined, _Lines):
                kept, lost, clashes, yielded = joined.joined(self._removals_stand)
                return self._clash(where, kept, lost, yielded) if clashes else kept
            if joined is not _ABSENT:
                return joined
        yields = ours is _ABSENT and not self._removals_stand
        return self._clash(where, *((theirs, ours) if yields else (ours, theirs)), yields)

    def _clash(self, where: str, kept: Any, lost: Any, yielded: bool) -> Any:
        shown = (None if value is _ABSENT else value for value in (kept, lost))
        self.clashes.append(FieldConflict(field=where, kept=next(shown), lost=next(shown), yielded=yielded))
        return kept


def _has_keys(value: Any) -> bool:
    """Whether a value is joined key by key. One with ``$sidecar``, ``$object`` or similar is a whole."""
    return isinstance(value, Mapping) and not any(key.startswith("$") and key != "$schema" for key in value)


def _empty_of(versions: tuple[Any, ...], rule: str) -> Any:
    """The empty collection that a side without one means; None where the rule does not cover the versions."""
    if _ABSENT not in versions[1:]:
        return None
    there = [one for one in versions if one is not _ABSENT]
    if rule in _KEYED and all(map(_has_keys, there)):
        return {}
    return [] if rule in _LISTED and all(isinstance(one, list | tuple) for one in there) else None


def _agree(ours: Any, theirs: Any, schema: Mapping[str, Any]) -> bool:
    if schema.get("format") == "memfs-time" and isinstance(ours, str) and isinstance(theirs, str):
        with suppress(ValueError, OverflowError):
            return parse_time(ours) == parse_time(theirs)
    return equal(ours, theirs)


# -- rules: the joined value, or absent where the rule does not fit the values --------------------------------------
def _unruled(base: Any, ours: Any, theirs: Any) -> Any:
    """What the values are says how they are joined."""
    lines = isinstance(ours, str) and isinstance(theirs, str) and "\n" in f"{ours}{theirs}"
    return (_text3 if lines else _sequence)(base, ours, theirs)


def _never(_base: Any, _ours: Any, _theirs: Any) -> Any:
    return _ABSENT


def _latest(_base: Any, ours: Any, theirs: Any) -> Any:
    moments = [time_in(one.get("timestamp")) if isinstance(one, Mapping) else None for one in (ours, theirs)]
    return theirs if moments[0] is not None and moments[1] is not None and moments[1] > moments[0] else ours


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sum(base: Any, ours: Any, theirs: Any) -> Any:
    if not (_number(ours) and _number(theirs)):
        return _ABSENT
    with suppress(OverflowError):
        total = ours + (theirs - (base if _number(base) else 0))
        if math.isfinite(total):
            return total
    return _ABSENT


def _extreme(choose: Callable[..., Any]) -> Callable[[Any, Any, Any], Any]:
    def rule(_base: Any, ours: Any, theirs: Any) -> Any:
        if isinstance(ours, str) and isinstance(theirs, str):
            with suppress(ValueError, OverflowError):  # as texts, .5 of a second would come before the full one
                return choose(ours, theirs, key=parse_time)
        alike = (_number(ours) and _number(theirs)) or (type(ours) is type(theirs) and isinstance(ours, str | bool))
        return choose(ours, theirs) if alike else _ABSENT

    return rule


def _union(base: Any, ours: Any, theirs: Any) -> Any:
    if not (isinstance(ours, list | tuple) and isinstance(theirs, list | tuple)):
        return _ABSENT
    begun = base if isinstance(base, list | tuple) else ()
    before, our, their = ([canonical(plain(one)) for one in side] for side in (begun, ours, theirs))
    known, wanted, present = set(before), set(their), set(our)
    kept = [one for one, key in zip(ours, our, strict=True) if key in wanted or key not in known]
    return kept + [one for one, key in zip(theirs, their, strict=True) if key not in present and key not in known]


@dataclass(frozen=True, slots=True)
class _Lines:
    """Three versions that are joined part by part: lines of a text, or elements of a list as canonical text."""

    base: list[str]
    ours: list[str]
    theirs: list[str]
    values: Mapping[str, Any] | None = None
    """The elements by their canonical text; None for lines."""

    def joined(self, removals_stand: bool) -> tuple[Any, Any, bool, bool]:
        """The result, that with the other side's parts, whether any clashed, whether only ours was overridden."""
        kept: list[str] = []
        lost: list[str] = []
        sides = set()
        for hunk in hunks(self.base, self.ours, self.theirs):
            chosen, other = hunk.joined, hunk.joined
            if hunk.clash and self.values is not None and not hunk.base:  # both added to a list at one place
                chosen = other = [*hunk.ours, *(one for one in hunk.theirs if one not in hunk.ours)]
            elif hunk.clash:
                yields = not hunk.ours and not removals_stand
                sides.add(yields)
                chosen, other = (hunk.theirs, hunk.ours) if yields else (hunk.ours, hunk.theirs)
            kept += chosen
            lost += other
        return self._whole(kept), self._whole(lost), bool(sides), sides == {True}

    def _whole(self, parts: list[str]) -> Any:
        return "\n".join(parts) if self.values is None else [self.values[part] for part in parts]


def _text3(base: Any, ours: Any, theirs: Any) -> Any:
    if not (isinstance(ours, str) and isinstance(theirs, str)):
        return _ABSENT
    sides = [text.split("\n") if text and isinstance(text, str) else [] for text in (base, ours, theirs)]
    return _Lines(sides[0], sides[1], sides[2])


def _sequence(base: Any, ours: Any, theirs: Any) -> Any:
    if not (isinstance(ours, list | tuple) and isinstance(theirs, list | tuple)):
        return _ABSENT
    values: dict[str, Any] = {}
    sides: list[list[str]] = []
    for side in (base if isinstance(base, list | tuple) else (), theirs, ours):
        sides.append([canonical(plain(one)) for one in side])
        values |= zip(sides[-1], side, strict=True)
    return _Lines(sides[0], sides[2], sides[1], values)


_RULES: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "sum": _sum,
    "max": _extreme(max),
    "min": _extreme(min),
    "union": _union,
    "lww": _latest,
    "sequence": _sequence,
    "text3": _text3,
    "conflict": _never,
    "same": _never,
}


MOST = 64
EDITED, DELETED = "edited", "deleted"
ONE, OTHER = "one version", "another version"
_MORE = "further fields"
_LONGEST = 4_000
_LONGEST_NAME = 1_000
_MOMENTS = frozenset({"timestamp", "created", "updated", "expires"})


def record(
    clash: FieldConflict, lost_sha256: str, by: str = "", now: datetime | None = None, *, brief: bool = False
) -> dict[str, Any]:
    """The entry of an item's ``conflicts`` that records a clash.

    Of a text of several lines it has the lines that differ, with as many around them as make the place unmistakable. A
    value that is longer than 4,000 characters is in the history alone, and so is each with ``brief``.
    """
    kept, lost, part = _passages(clash.kept, clash.lost)
    entry: dict[str, Any] = {"field": clash.field}
    fits = len(clash.field) <= _LONGEST_NAME and all(len(canonical(value)) <= _LONGEST for value in (kept, lost))
    if fits and not brief:
        entry |= {name: value for name, value in (("kept", kept), ("lost", lost)) if value is not None}
        entry |= {"part": True} if part else {}
    else:
        entry |= {"field": clash.field[:_LONGEST_NAME], "lost_sha256": lost_sha256}
    writer = " ".join(by.split())[:300]
    return entry | ({"by": writer} if writer else {}) | ({"time": format_time(now)} if now else {})


def records_of(path: str, conflicts: Iterable[FieldConflict], now: datetime, **more: Any) -> list[dict[str, Any]]:
    """The records of conflicts in a state document (``schemas/conflict.schema.json``); each with ``more``."""
    common = {"timestamp": format_time(now), **more}
    return [{"document": path, "field": one.field, "kept": one.kept, "lost": one.lost, **common} for one in conflicts]


def within(entries: Sequence[Mapping[str, Any]], lost_sha256: str) -> list[dict[str, Any]]:
    """Records without repeats, no more than an item may have: beyond that one represents the oldest."""
    unique = [dict(one) for one in {canonical(dict(one)): one for one in entries}.values()]
    if len(unique) <= MOST:
        return unique
    known = [one for one in unique if one.get("lost") != _MORE]
    return [{"field": "", "kept": ONE, "lost": _MORE, "lost_sha256": lost_sha256}, *known[1 - MOST :]]


def followed(entry: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """A record once its item was joined with a version whose writer did not know it.

    Where the field has another value by that, the record names this one: no one has decided about the overridden value.

    Args:
        before: the plain values of the version that has the record.
        after: the joined values.

    Returns:
        The record; None where the overridden value is there after all.
    """
    field = str(entry.get("field") or "")
    was, present = value_at(before, field), value_at(after, field)
    if not field or "lost_sha256" in entry or not _is_kept(entry, was) or _is_kept(entry, present):
        return dict(entry)
    lost = _replaced(was, entry["kept"], entry.get("lost")) if entry.get("part") else entry.get("lost")
    versions = [{} if value is None else {field: value} for value in (was, present, lost)]
    joined = merge(versions[0], versions[1], versions[2], {})
    lost = lost if joined.conflicts else joined.values.get(field)
    if equal(lost, present):
        return None
    clash = FieldConflict(field=field, kept=present, lost=lost)
    made = record(clash, "", str(entry.get("by", "")), time_in(entry.get("time")))
    return dict(entry) if "lost_sha256" in made else made


def is_undecided(item: MemoryItem, conflict: RecordedConflict) -> bool:
    """Whether the item has what the record says was kept, so that there is something to decide."""
    return bool(conflict.lost_sha256) or is_undecided_in(item_fields.values(item), conflict)


def settled(item: MemoryItem, conflict: RecordedConflict, *, take: bool) -> MemoryItem:
    """The item after a decision about one of its conflicts: without the record, and with the value decided for.

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
        hint = "keep what is there, or bring the other version back from history: 'memfs log', 'memfs restore'"
        raise QueryInvalid(
            "the record does not hold the value that was not kept", field=conflict.field or None, hint=hint
        )
    mapping = item_fields.values(item)
    _take_lost(mapping, conflict, item.path or None, f"look at it again: 'memfs show {item.id}'")
    kept = {name: value for name, value in mapping.items() if value is not None}
    made = item_fields.to_item(kept, item.memory_type, item.timestamp or item.created or EPOCH)
    moment = made.timestamp if item.timestamp else None
    stored = {"id": item.id, "path": item.path, "sha256": item.sha256, "durability": item.durability}
    return made.replace(**stored, timestamp=moment, conflicts=left)


def value_at(values: Mapping[str, Any], field: str) -> Any:
    """The value of a dotted field among plain values; None where there is none."""
    place = _place(dict(values), field)
    return place[0].get(place[1]) if place else None


def is_undecided_in(values: Mapping[str, Any], conflict: RecordedConflict | DocumentClash) -> bool:
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
    if place is None or not is_undecided_in(values, conflict):
        raise QueryInvalid("it has another value by now", path=path, field=conflict.field, hint=hint)
    holder, key = place
    if isinstance(conflict, RecordedConflict) and conflict.part:
        holder[key] = _replaced(holder[key], conflict.kept, conflict.lost)
    elif conflict.lost is None:
        holder.pop(key, None)
    else:
        holder[key] = conflict.lost


def _passages(kept: Any, lost: Any) -> tuple[Any, Any, bool]:
    """The lines in which two texts differ, where that is less than the whole."""
    if not (isinstance(kept, str) and isinstance(lost, str)):
        return kept, lost, False
    ours, theirs = kept.split("\n"), lost.split("\n")
    start, end = _shared(ours, theirs)
    for _ in range(20):
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
    framed, needle = f"\n{text}\n", f"\n{passage}\n"
    first = framed.find(needle)
    return 0 if first < 0 else 1 if framed.find(needle, first + 1) < 0 else 2


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


def _is_kept(entry: Mapping[str, Any], value: Any) -> bool:
    """Whether plain values have what a record says was kept."""
    kept = entry.get("kept")
    return _times(value, kept) == 1 if entry.get("part") else equal(value, kept)

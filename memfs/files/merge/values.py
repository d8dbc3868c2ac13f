"""Merging: how two changed copies of one document become one, field by field.

Owns the rules that the schemas name as ``x-merge``, as a pure function of the three versions. It knows neither files
nor what a field means; who records a conflict is not its business.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from memfs.files.merge.lines import hunks
from memfs.files.plain import canonical
from memfs.model.shape import plain
from memfs.model.time import parse_time, time_in

_ABSENT: Any = object()
_KEYED, _LISTED = frozenset({"", "keys"}), frozenset({"", "union", "sequence"})
"""Rules by which mappings and lists are joined part by part."""
_FREE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A field that both sides changed, to different values.

    Attributes:
        field: its dotted name.
        kept: what stands in the result; None where the field is gone.
        lost: what would stand there if the other side's change had been taken; None where it had removed the field.
        yielded: whether it was our change that gave way.
    """

    field: str
    kept: Any
    lost: Any
    yielded: bool = dataclasses.field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The joined document, and the fields in which one side's value gave way."""

    values: dict[str, Any]
    conflicts: tuple[Clash, ...] = ()


def merge(
    base: Mapping[str, Any],
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    schema: Mapping[str, Any],
    *,
    removals_stand: bool = False,
) -> Merged:
    """Join two versions of a document that began from one (issue 5, 8; K4, B3).

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
    joining = _Joining(removals_stand)
    values = joining.mappings(base, ours, theirs, schema, "")
    return Merged(values=values, conflicts=tuple(joining.clashes))


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same as JSON: unlike in Python, ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


class _Joining:
    """One merge, and the clashes it has met."""

    def __init__(self, removals_stand: bool) -> None:
        self._removals_stand = removals_stand
        self.clashes: list[Clash] = []

    def mappings(
        self,
        base: Mapping[str, Any],
        ours: Mapping[str, Any],
        theirs: Mapping[str, Any],
        schema: Mapping[str, Any],
        where: str,
    ) -> dict[str, Any]:
        merged = {}
        for key in _keys(ours, theirs):
            versions = tuple(version.get(key, _ABSENT) for version in (base, ours, theirs))
            value = self._value(versions, _schema_of(schema, key), f"{where}.{key}" if where else key)
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
        if empty is not None:  # an empty collection is left out: whoever left it out removed what was in it
            filled = tuple(empty if one is _ABSENT else one for one in versions)
            return self._value(filled, schema, where) or _ABSENT
        if rule in _KEYED and _has_keys(ours) and _has_keys(theirs):
            begun = base if _has_keys(base) else _FREE
            return self.mappings(begun, ours, theirs, schema, where)
        if rule != "sum" and _agree(ours, theirs, schema):  # of a counter, both have counted
            return ours
        if ours is not _ABSENT and theirs is not _ABSENT:
            joined = _RULES.get(rule, _none)(base, ours, theirs)
            if isinstance(joined, _Lines):
                return self._by_lines(joined, where)
            if joined is not _ABSENT:
                return joined
        yields = ours is _ABSENT and not self._removals_stand
        return self._clash(where, *((theirs, ours) if yields else (ours, theirs)), yields)

    def _by_lines(self, lines: _Lines, where: str) -> Any:
        kept, lost, clashes, yielded = lines.joined(self._removals_stand)
        return self._clash(where, kept, lost, yielded) if clashes else kept

    def _clash(self, where: str, kept: Any, lost: Any, yielded: bool) -> Any:
        shown = (None if value is _ABSENT else value for value in (kept, lost))
        self.clashes.append(Clash(field=where, kept=next(shown), lost=next(shown), yielded=yielded))
        return kept


def _keys(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    yield from ours
    yield from (key for key in theirs if key not in ours)


def _schema_of(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    properties = schema.get("properties", _FREE)
    found = properties[key] if key in properties else schema.get("additionalProperties", _FREE)
    return found if isinstance(found, Mapping) else _FREE


def _has_keys(value: Any) -> bool:
    """Whether a value is joined key by key. One with ``$sidecar``, ``$object`` and the like is a whole."""
    return isinstance(value, Mapping) and not any(key.startswith("$") and key != "$schema" for key in value)


def _empty_of(versions: tuple[Any, ...], rule: str) -> Any:
    """The empty collection that a side which has none stands for; None where the versions are none of the rule's."""
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
def _none(base: Any, ours: Any, theirs: Any) -> Any:
    """Without a rule: what the values are says how they are joined."""
    if isinstance(ours, str) and isinstance(theirs, str) and "\n" in f"{ours}{theirs}":
        return _text3(base, ours, theirs)
    return _sequence(base, ours, theirs)


def _never(_base: Any, _ours: Any, _theirs: Any) -> Any:
    return _ABSENT


def _latest(_base: Any, ours: Any, theirs: Any) -> Any:
    moments = [time_in(one.get("timestamp")) if isinstance(one, Mapping) else None for one in (ours, theirs)]
    if moments[0] is not None and moments[1] is not None and moments[1] > moments[0]:
        return theirs
    return ours


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
class _Element:
    """A part of a list or a line of a text, equal to one of the same value."""

    key: str
    value: Any = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Three versions that are joined part by part."""

    base: list[_Element]
    ours: list[_Element]
    theirs: list[_Element]
    is_text: bool

    def joined(self, removals_stand: bool) -> tuple[Any, Any, bool, bool]:
        """What stands, what would with the other side's parts, whether any clashed, whether only ours gave way."""
        kept: list[_Element] = []
        lost: list[_Element] = []
        sides = set()
        for hunk in hunks(self.base, self.ours, self.theirs):
            stands, gives_way = list(hunk.joined), list(hunk.joined)
            if hunk.clash and not (self.is_text or hunk.base):  # both added to a list at one place
                stands = gives_way = [*hunk.ours, *(one for one in hunk.theirs if one not in hunk.ours)]
            elif hunk.clash:
                yields = not hunk.ours and not removals_stand
                sides.add(yields)
                pair = (hunk.theirs, hunk.ours) if yields else (hunk.ours, hunk.theirs)
                stands, gives_way = list(pair[0]), list(pair[1])
            kept += stands
            lost += gives_way
        return self._whole(kept), self._whole(lost), bool(sides), sides == {True}

    def _whole(self, parts: list[_Element]) -> Any:
        values = [part.value for part in parts]
        return "\n".join(values) if self.is_text else values


def _text3(base: Any, ours: Any, theirs: Any) -> Any:
    if not (isinstance(ours, str) and isinstance(theirs, str)):
        return _ABSENT
    return _Lines(_lines(base), _lines(ours), _lines(theirs), is_text=True)


def _lines(text: Any) -> list[_Element]:
    return [_Element(line, line) for line in text.split("\n")] if text and isinstance(text, str) else []


def _sequence(base: Any, ours: Any, theirs: Any) -> Any:
    if not (isinstance(ours, list | tuple) and isinstance(theirs, list | tuple)):
        return _ABSENT
    return _Lines(_elements(base), _elements(ours), _elements(theirs), is_text=False)


def _elements(parts: Any) -> list[_Element]:
    return [_Element(canonical(plain(one)), one) for one in parts] if isinstance(parts, list | tuple) else []


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

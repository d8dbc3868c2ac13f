"""Merging: how two changed copies of one document become one, field by field.

Owns the rules that the schemas name as ``x-merge``, as a pure function of the three versions. It knows neither files
nor what a field means; who records a conflict is not its business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from memfs.files.plain import canonical
from memfs.model.states import plain
from memfs.model.time import parse_time

_ABSENT: Any = object()
_FREE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A field that both sides changed, to different values.

    Attributes:
        field: its dotted name.
        kept: what stands in the result; None where the field is gone.
        lost: what does not; None where that side had removed the field.
    """

    field: str
    kept: Any
    lost: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The joined document, and the fields in which one side's value gave way."""

    values: dict[str, Any]
    conflicts: tuple[Clash, ...] = ()


def merge(
    base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any], schema: Mapping[str, Any]
) -> Merged:
    """Join two versions of a document that began from one (issue 5, 8; B3).

    A field that one side left alone is taken from the other. One that both changed is joined as its ``x-merge`` says:
    ``sum`` adds both changes; ``max`` and ``min`` take one of the two; ``union`` has what either added and neither
    removed; ``keys`` joins key by key; ``lww`` takes ours. What remains (``conflict``, ``same``, ``text3``, and values
    that their rule does not fit) takes ours and says so, except that a change wins over a removal.

    Args:
        base: what both began from; empty where they have nothing in common.
        ours: the version that wins where only one can: that of the last writer.
        theirs: the other version.
        schema: of the document; a field without a rule has ``keys`` if it holds keys and values, else ``conflict``.

    Returns:
        New values, with our keys in our order before theirs; the arguments are left alone.
    """
    clashes: list[Clash] = []
    values = _mappings(base, ours, theirs, schema, "", clashes)
    return Merged(values=values, conflicts=tuple(clashes))


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same as JSON: unlike in Python, ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def _mappings(
    base: Mapping[str, Any],
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    schema: Mapping[str, Any],
    where: str,
    clashes: list[Clash],
) -> dict[str, Any]:
    merged = {}
    for key in _keys(ours, theirs):
        begun, our, their = (version.get(key, _ABSENT) for version in (base, ours, theirs))
        value = _value(begun, our, their, _schema_of(schema, key), f"{where}.{key}" if where else key, clashes)
        if value is not _ABSENT:
            merged[key] = value
    return merged


def _keys(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    yield from ours
    yield from (key for key in theirs if key not in ours)


def _schema_of(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    properties = schema.get("properties", _FREE)
    found = properties[key] if key in properties else schema.get("additionalProperties", _FREE)
    return found if isinstance(found, Mapping) else _FREE


def _value(base: Any, ours: Any, theirs: Any, schema: Mapping[str, Any], where: str, clashes: list[Clash]) -> Any:
    if equal(theirs, base):
        return ours
    if equal(ours, base):
        return theirs
    rule = schema.get("x-merge", "")
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping) and rule in ("", "keys"):
        begun = base if isinstance(base, Mapping) else _FREE
        return _mappings(begun, ours, theirs, schema, where, clashes)
    if equal(ours, theirs) and rule != "sum":  # of a counter, both have counted
        return ours
    if ours is not _ABSENT and theirs is not _ABSENT:
        joined = _RULES.get(rule, _none)(base, ours, theirs)
        if joined is not _ABSENT:
            return joined
    kept, lost = (theirs, ours) if ours is _ABSENT else (ours, theirs)
    clashes.append(Clash(field=where, kept=_shown(kept), lost=_shown(lost)))
    return kept


def _shown(value: Any) -> Any:
    return None if value is _ABSENT else value


# -- rules: the joined value, or absent where the rule does not fit the values --------------------------------------
def _none(_base: Any, _ours: Any, _theirs: Any) -> Any:
    return _ABSENT


def _ours(_base: Any, ours: Any, _theirs: Any) -> Any:
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


_RULES: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "sum": _sum,
    "max": _extreme(max),
    "min": _extreme(min),
    "union": _union,
    "lww": _ours,
}

"""Healing: a joined mapping that its schema does not allow is made one that it does (K4).

Owns which values give way where both versions were valid and what they came to together is not: too long a list, a
count below zero, fields that do not go together. Must not know files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memfs.files.merge.forms import Form
from memfs.files.merge.recorded import ONE, OTHER
from memfs.files.merge.values import Clash, Merged, equal
from memfs.files.plain import FieldPath

_ROUNDS = 8
_ABSENT: Any = object()


def healed(form: Form, merged: Merged, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Merged | None:
    """The joined values, valid: where they are not, ours stand instead, first field by field, then as a whole.

    Args:
        merged: what the rules made.
        ours: the version that wins where only one can.

    Returns:
        The values with every conflict; None where neither version is valid either.
    """
    merged = _typed(form, merged)
    for _ in range(_ROUNDS):
        faults = form.faults(merged.values)
        if not faults:
            return merged
        changed = merged
        for fault in faults:
            changed = _with_ours(changed, fault, ours, theirs)
        if changed is merged:
            break
        merged = changed
    for whole, yielded in ((ours, False), (theirs, True)):
        valid = _typed(form, Merged(values=dict(whole)))
        if not form.faults(valid.values):
            return replace(valid, conflicts=(Clash(field="", kept=ONE, lost=OTHER, yielded=yielded),))
    return None


def _typed(form: Form, merged: Merged) -> Merged:
    """An item's type is its folder's, whatever the versions say."""
    if not form.kind or merged.values.get("type", form.kind) == form.kind:
        return merged
    conflicts = tuple(clash for clash in merged.conflicts if clash.field != "type")
    return Merged(values={**merged.values, "type": form.kind}, conflicts=conflicts)


def _with_ours(merged: Merged, fault: FieldPath, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Merged:
    """With our value of the field at fault, or of the nearest one around it whose value is not ours already."""
    names = _names(fault)
    for length in range(len(names), 0, -1):
        field = names[:length]
        mine, joined = _at(ours, field), _at(merged.values, field)
        if _differ(mine, joined):
            clash = Clash(field=".".join(field), kept=_shown(mine), lost=_shown(_at(theirs, field)))
            left = tuple(one for one in merged.conflicts if not f"{one.field}.".startswith(f"{clash.field}."))
            return Merged(values=_put(merged.values, field, mine), conflicts=(*left, clash))
    return merged


def _names(fault: FieldPath) -> tuple[str, ...]:
    """The keys that lead to a field, as far as no list is on the way."""
    names: list[str] = []
    for part in fault:
        if not isinstance(part, str) or part.isdigit():
            break
        names.append(part)
    return tuple(names)


def _at(values: Any, field: tuple[str, ...]) -> Any:
    for name in field:
        if not isinstance(values, Mapping) or name not in values:
            return _ABSENT
        values = values[name]
    return values


def _put(values: Mapping[str, Any], field: tuple[str, ...], value: Any) -> dict[str, Any]:
    changed = dict(values)
    name, rest = field[0], field[1:]
    if rest:
        inner = changed.get(name)
        changed[name] = _put(inner if isinstance(inner, Mapping) else {}, rest, value)
    elif value is _ABSENT:
        changed.pop(name, None)
    else:
        changed[name] = value
    return changed


def _differ(one: Any, other: Any) -> bool:
    if one is _ABSENT or other is _ABSENT:
        return one is not other
    return not equal(one, other)


def _shown(value: Any) -> Any:
    return None if value is _ABSENT else value

"""Filters: which values and namespaces LangGraph's conditions mean.

Owns the comparison of values, operators, and patterns of namespaces. Nothing here touches a store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Namespace = tuple[str, ...]


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names; ``user.name`` is the name in user, unless a key is called so.

    Raises:
        ValueError: the filter has an operator there is none of, or compares with what is no number.
    """
    return all(_agrees(_part(value, key), part) for key, part in (wanted or {}).items())


def _part(value: Mapping[str, Any], key: str) -> Any:
    """What a value has under a key or, as LangGraph's databases have it, a dotted path."""
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for name in key.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _agrees(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(found, str(name), operand) for name, operand in wanted.items())
        return isinstance(found, Mapping) and all(_agrees(found.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(wanted):
            return False
        return all(map(_agrees, found, wanted))
    return bool(found == wanted)


_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": lambda found, bound: found > bound,
    "$gte": lambda found, bound: found >= bound,
    "$lt": lambda found, bound: found < bound,
    "$lte": lambda found, bound: found <= bound,
}


def _holds(found: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(found == operand)
    if name == "$ne":
        return bool(found != operand)
    if name not in _ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    bound = float(operand)
    try:
        return _ORDERS[name](float(found), bound)
    except (TypeError, ValueError):  # what is no number is neither more nor less than one
        return False


def is_like(namespace: Namespace, pattern: Sequence[str], kind: str) -> bool:
    """Whether a namespace begins (``prefix``) or ends (``suffix``) as a pattern says; ``*`` stands for any label.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {kind}")
    if len(namespace) < len(pattern):
        return False
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, pattern, strict=True))

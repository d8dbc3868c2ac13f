"""Values of settings: reading them from text, checking them, and writing them as TOML.

Owns what is a right value for a rule. Where values come from is ``memfs.config``'s business.
"""

from __future__ import annotations

import json
import math
from typing import Any

from memfs.errors import SettingInvalid
from memfs.files.tomltext import FILE
from memfs.model.kinds import nearest
from memfs.settings import Spec

_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


def from_text(written: str, spec: Spec, variable: str = "") -> Any:
    """A value that was written as text, as in a variable or on a command line, read by the setting's type.

    Raises:
        SettingInvalid: as ``checked``; ``field`` names the variable.
    """
    value: Any = written.strip()
    lowered = value.lower()
    if isinstance(spec.default, bool):
        value = True if lowered in _TRUE else False if lowered in _FALSE else value
    elif isinstance(spec.default, tuple):
        value = [name for part in _unbracketed(value).split(",") if (name := part.strip().strip("\"'"))]
    elif isinstance(spec.default, (int, float)):
        for number in (int, float):
            try:
                value = number(lowered)
                break
            except ValueError:
                continue
    return checked(value, spec, variable=variable)


def _unbracketed(value: str) -> str:
    """A list as it is written in the file, too: ``["a", "b"]`` is ``a, b``."""
    return value[1:-1] if value.startswith("[") and value.endswith("]") else value


def checked(value: Any, spec: Spec, line: int | None = None, variable: str = "") -> Any:
    """A value as its setting has it: lists as tuples, numbers as its default's type.

    Args:
        line: where it stands in ``memfs.toml``.
        variable: the environment variable it comes from.

    Raises:
        SettingInvalid: it is of the wrong sort or out of bounds; the hint names what would be right.
    """
    if wanted := _expected(value, spec):
        shown = json.dumps(value, default=str, ensure_ascii=False)
        raise SettingInvalid(
            f"{shown[:80]} is not {wanted}",
            path=FILE if line and not variable else None,
            line=line,
            field=variable or spec.key,
            hint=(nearest(str(value), spec.choices) if spec.choices else "") or f"the default is {toml(spec.default)}",
        )
    if isinstance(spec.default, tuple):
        return tuple(value)
    return float(value) if isinstance(spec.default, float) else value


def _expected(value: Any, spec: Spec) -> str:
    """What the value should have been, in words; "" when it is right."""
    default = spec.default
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, tuple):
        right = isinstance(value, (list, tuple)) and all(isinstance(part, str) and part for part in value)
        return "" if right else "a list of names"
    if isinstance(default, (int, float)):
        whole = isinstance(default, int)
        right = (
            isinstance(value, int if whole else (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        )
        low, high = spec.low or 0, spec.high or math.inf
        if right and low <= value <= high:
            return ""
        return f"a {'whole ' if whole else ''}number from {_plain(low)} to {_plain(high)}"
    if spec.choices:
        return "" if value in spec.choices else "one of " + ", ".join(spec.choices)
    return "" if isinstance(value, str) else "a text"


def _plain(bound: float) -> str:
    """A bound as a person writes it: all digits of a whole number, no exponent."""
    return f"{bound:.0f}" if float(bound).is_integer() else f"{bound:g}"


def toml(value: Any) -> str:
    """A setting's value as it is written in ``memfs.toml``."""
    if isinstance(value, tuple):
        return "[" + ", ".join(toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)

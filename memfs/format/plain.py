"""Plain values: the Python values that have an exact counterpart in YAML and JSON.

Plain means text, 64-bit integers, finite floats, true, false, null, lists, and mappings with text keys. Comparison is
strict, and text that a reader cannot see is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date

from memfs.errors import ContentError, InvisibleCharacter, ItemSyntaxError, ItemTooDeep, SchemaInvalid
from memfs.format.text import HiddenCharacter, findings
from memfs.startup import Any, json

MAX_DEPTH = 64
MAX_PARTS = 40_000  # keys, values and ends of collections: 20,000 entries of a mapping
DOCUMENT_PARTS = 400_000  # in a document, which is not ranked or joined part by part
MAX_KEY = 256
MAX_INT = 2**63 - 1
MIN_INT = -(2**63)
_LONGEST_NUMBER = 100  # characters of a whole number, zeros in front among them

_WITH_TEXT: frozenset[object] = frozenset({str, dict, list})
_ROW = frozenset({str, float, bool, type(None)})  # whole numbers are looked at one by one: they may be too large
_SCALARS = _ROW | {int}

FieldPath = tuple[str | int, ...]


def dotted(path: FieldPath) -> str:
    """A field path as people read it: ``links.0.to``."""
    return ".".join(str(part) for part in path)


def plain(value: Any, path: FieldPath = ()) -> Any:
    """A copy made of dict, list, str, int, float, bool and None only; tuples become lists.

    Raises:
        SchemaInvalid: the value has no exact counterpart in a file, naming the field.
        ItemTooDeep: nested deeper than 64, or a value that holds itself.
        ItemSyntaxError: text that is not valid Unicode.
    """
    if value is None or value is True or value is False or value.__class__ is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a member of an enumeration counts as its text
    if isinstance(value, int):
        if not MIN_INT <= value <= MAX_INT:
            raise SchemaInvalid("the number does not fit into 64 bit", field=dotted(path), hint="write it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise SchemaInvalid(f"{value} is not a finite number", field=dotted(path), hint="write a number or text")
        return float(value)
    if len(path) >= MAX_DEPTH:
        raise ItemTooDeep(f"nesting deeper than {MAX_DEPTH}", field=dotted(path[:3]), hint="flatten it")
    if isinstance(value, Mapping):
        return {plain_key(key, path): plain(part, (*path, str(key))) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        if value.__class__ is list and _is_row(value):
            return value.copy()
        return [plain(part, (*path, index)) for index, part in enumerate(value)]
    hint = "use text, numbers, true, false, lists and mappings with text keys"
    if isinstance(value, date):
        hint = f"write it as text: {value.isoformat()!r}"
    what = f"a value of type {type(value).__name__}"
    raise SchemaInvalid(f"{what} cannot be kept in a file", field=dotted(path), hint=hint)


def _is_row(values: list[Any]) -> bool:
    """Whether a list has texts, truth values and finite fractions only: thousands of them are looked at as one."""
    kinds = set(map(type, values))
    if not kinds <= _ROW:
        return False
    floats = values if kinds == {float} else [value for value in values if value.__class__ is float]
    return all(map(math.isfinite, floats))


def plain_key(key: Any, path: FieldPath = ()) -> str:
    """The key as text.

    Raises:
        SchemaInvalid: it is not text, empty or longer than 256 characters.
    """
    if not isinstance(key, str):
        raise SchemaInvalid(f"the key {key!r} is not text", field=dotted(path), hint="use text as keys")
    if not key or len(key) > MAX_KEY:
        raise SchemaInvalid(f"a key has {len(key)} characters", field=dotted(path), hint=f"use 1 to {MAX_KEY}")
    return str.__str__(key)


def same(left: Any, right: Any) -> bool:
    """Whether two plain values are equal in value, type and text; the order of keys does not matter."""
    if left.__class__ is not right.__class__:
        return False
    if left.__class__ is dict:
        return len(left) == len(right) and all(key in right and same(part, right[key]) for key, part in left.items())
    if left.__class__ is list:
        if len(left) != len(right):
            return False
        if _SCALARS.issuperset(map(type, left)):
            return list(map(type, left)) == list(map(type, right)) and bool(left == right)
        return all(map(same, left, right))
    return bool(left == right)


def canonical(value: Any) -> str:
    """A text equal for values that JSON Schema calls equal: 1 and 1.0 are, true and 1 are not."""
    return json.dumps(_with_whole_numbers(value), separators=(",", ":"), sort_keys=True)


def _with_whole_numbers(value: Any) -> Any:
    if value.__class__ is str:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _with_whole_numbers(part) for key, part in value.items()}
    return list(map(_with_whole_numbers, value)) if isinstance(value, list) else value


def texts(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Every text in a plain value, keys included, with the field it is in."""
    if value.__class__ is str:
        yield path, value
    elif value.__class__ is dict:
        for key, part in value.items():
            inner = (*path, key)
            if not key.isascii():
                yield inner, key
            if part.__class__ in _WITH_TEXT:
                yield from texts(part, inner)
    elif value.__class__ is list:
        for index, part in enumerate(value):
            if part.__class__ in _WITH_TEXT:
                yield from texts(part, (*path, index))


def hidden(value: Any, allow_invisible: bool = False) -> Iterator[tuple[FieldPath, HiddenCharacter]]:
    """What may not be in a plain value because a reader cannot see it, with its field."""
    for path, text in texts(value):
        for finding in findings(text):
            if finding.impossible or (finding.refused and not allow_invisible):
                yield path, finding


def hidden_error(finding: HiddenCharacter, **place: Any) -> ContentError:
    """The error for such a finding, placed by line or by field: ``ItemSyntaxError`` or ``InvisibleCharacter``."""
    if finding.impossible:
        what = "a NUL character" if finding.text == "\0" else f"lone surrogate {finding.codes}"
        return ItemSyntaxError(f"not valid Unicode: {what}", hint="remove it", **place)
    return InvisibleCharacter(
        f"hidden characters {finding.codes}",
        hint="remove them; they can hide instructions ('--set security.allow_invisible=true' accepts them)",
        **place,
    )


def refuse_hidden(value: Any, allow_invisible: bool = False) -> None:
    """Refuse a plain value that holds such text.

    Raises:
        ItemSyntaxError: NUL or a lone surrogate.
        InvisibleCharacter: tag characters, bidirectional controls, runs of variation selectors.
    """
    for path, finding in hidden(value, allow_invisible):
        raise hidden_error(finding, field=dotted(path))


def whole_number(text: str, read: Callable[[str], int] = int) -> int:
    """The whole number in a text that is one; ``read`` is for other than decimal digits.

    Raises:
        ValueError: it is outside 64 bit.
    """
    if len(text) > _LONGEST_NUMBER or not MIN_INT <= (number := read(text)) <= MAX_INT:
        raise ValueError(f"{text[:30]}{'...' if len(text) > 30 else ''} does not fit into 64 bit")
    return number


def finite_number(text: str) -> float:
    """The fraction in a text that is one.

    Raises:
        ValueError: it is too large, or so small that it would become zero.
    """
    number = float(text)
    if number and math.isfinite(number):
        return number
    if not math.isfinite(number) or re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ValueError(f"{text[:40]} is outside the range of numbers")
    return number

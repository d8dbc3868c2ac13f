"""Says in plain words how a value fails its schema: what is wrong, and what would be right.

Reads errors in the shape that ``jsonschema`` gives them; at most one is reported for each field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from memfs.dataclass import dataclass
from memfs.format.plain import FieldPath, canonical
from memfs.model.kinds import nearest

MAX_ERRORS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaError:
    """One field that fails its schema.

    Attributes:
        path: the field, from the root.
        message: what is wrong.
        hint: what would be right.
        of_key: whether the key itself is wrong, not its value.
        unquoted: what the value looks like (``a number``) where text is wanted; quoting it would be right.
    """

    path: FieldPath
    message: str
    hint: str = ""
    of_key: bool = False
    unquoted: str = ""


def explained(failures: Iterable[Any]) -> list[SchemaError]:
    """The first errors in words, at most one for each field, in the order of their fields.

    No more are looked for than a person reads: a hostile file may hold any number of them.
    """
    found: dict[FieldPath, SchemaError] = {}
    for failure in sorted(islice(failures, MAX_ERRORS), key=_weight):
        for error in islice(_explain(failure), MAX_ERRORS):
            found.setdefault(error.path, error)
    if any(error.of_key and error.hint in _MEANT_TEXT for error in found.values()):
        found.pop((), None)  # the text is there, under a key with a slip
    return sorted(found.values(), key=lambda error: [str(part) for part in error.path])[:MAX_ERRORS]


_TYPES = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}
_MEANT_TEXT = frozenset(f"did you mean {key!r}?" for key in ("content", "title"))
_FIRST = ("type", "format", "enum", "const")


def _weight(failure: Any) -> int:
    """Of several errors of one field the type is reported first."""
    return _FIRST.index(failure.validator) if failure.validator in _FIRST else len(_FIRST)


def _explain(failure: Any) -> Iterator[SchemaError]:
    path = tuple(failure.absolute_path)
    schema = failure.schema if isinstance(failure.schema, Mapping) else {}
    hint = str(schema.get("x-hint", ""))
    if "propertyNames" in failure.absolute_schema_path:
        yield SchemaError(
            path=(*path, str(failure.instance)), message="this key has the wrong form", hint=hint, of_key=True
        )
    elif failure.validator == "additionalProperties" and isinstance(failure.instance, Mapping):
        yield from _unknown_keys(path, failure.instance, schema)
    elif failure.validator == "required":
        yield from _missing_keys(path, failure, schema)
    elif failure.validator == "type":
        yield _wrong_type(path, failure, schema, hint)
    else:
        say = _SENTENCES.get(failure.validator, _other)
        message, own_hint = say(failure.instance, failure.validator_value, schema)
        yield SchemaError(path=path, message=message, hint=hint or own_hint)


def _unknown_keys(path: FieldPath, value: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[SchemaError]:
    known = schema.get("properties", {})
    for key in value:
        if key not in known:
            hint = _KNOWN_MISTAKES.get(key, "") if not path and "content" in known else ""
            hint = hint or nearest(key, known)
            if not hint:
                hint = "put free facts under 'metadata'" if "content" in known else "known here: " + ", ".join(known)
            yield SchemaError(path=(*path, key), message=f"unknown key {key!r}", hint=hint, of_key=True)


_KNOWN_MISTAKES = {
    "id": "the file's name is the id; remove this line",
    "memory_type": "the folder is the type; remove this line",
    "layer": "the type decides the layer; remove this line",
    "date": "did you mean 'timestamp'?",
    "text": "did you mean 'content'?",
    "body": "did you mean 'content'?",
    "description": "did you mean 'content'?",
    "name": "did you mean 'title'?",
    **dict.fromkeys(
        ("speaker", "role", "agent", "session", "sequence", "task", "tool", "phase"), "write it under 'origin'"
    ),
}


def _missing_keys(path: FieldPath, failure: Any, schema: Mapping[str, Any]) -> Iterator[SchemaError]:
    for key in failure.validator_value:
        if key not in failure.instance:
            described = schema.get("properties", {}).get(key, {})
            about = described.get("description", "") if isinstance(described, Mapping) else ""
            hint = f"add '{key}: {_inside(described)}'" + (
                f": {about[0].lower()}{about[1:].rstrip('.')}" if about else ""
            )
            yield SchemaError(path=path, message=f"{key!r} is missing", hint=hint, of_key=True)


def _inside(described: Any) -> str:
    """What to write after a key that is missing: the keys it needs itself, where it does."""
    needed = described.get("required", ()) if isinstance(described, Mapping) else ()
    within = {name: described.get("properties", {}).get(name, {}).get("const", "...") for name in needed}
    return "{" + ", ".join(f"{name}: {value}" for name, value in within.items()) + "}" if within else "..."


def _wrong_type(path: FieldPath, failure: Any, schema: Mapping[str, Any], hint: str) -> SchemaError:
    value = failure.instance
    wanted = failure.validator_value if isinstance(failure.validator_value, list) else [failure.validator_value]
    words = " or ".join(_TYPES.get(name, str(name)) for name in wanted)
    if value is None:
        what = _wanted(wanted, schema) or words
        return SchemaError(path=path, message="is empty", hint=f"write {what}, or remove the line")
    if "string" in wanted and not isinstance(value, (list, Mapping)):
        looks = "true or false" if isinstance(value, bool) else "a number"
        message = f"{shown(value)} looks like {looks}, but text is wanted"
        return SchemaError(path=path, message=message, hint=f'quote it: "{shown(value)}"', unquoted=looks)
    instead = f"write {_wanted(wanted, schema)} there"
    if isinstance(value, Mapping):
        return SchemaError(path=path, message=f"a mapping stands where {words} is wanted", hint=hint or instead)
    if isinstance(value, list):
        return SchemaError(path=path, message=f"a list stands where {words} is wanted", hint=hint or instead)
    if wanted == ["array"]:
        hint = f"write it as [{_short(str(value))}]"
        return SchemaError(path=path, message=f"{shown(value)} is not a list", hint=hint)
    if wanted == ["object"]:
        return SchemaError(path=path, message=f"{shown(value)} is not a mapping", hint="write 'key: value' lines below")
    return SchemaError(
        path=path, message=f"{shown(value)} is not {words}", hint=hint or f"write {_wanted(wanted, schema)}"
    )


def _wanted(wanted: list[Any], schema: Mapping[str, Any]) -> str:
    """What would be right, with its limits."""
    words = " or ".join(_TYPES.get(name, str(name)) for name in wanted)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{words} from {low} to {high}"
    if low is not None:
        return f"{words} of {low} or more"
    return f"{words} of at most {high}" if high is not None else words


def shown(value: Any) -> str:
    """A value as it would be typed, shortened."""
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _range(value: Any, _limit: Any, schema: Mapping[str, Any]) -> tuple[str, str]:
    kind = schema.get("type", "number")
    return f"{shown(value)} is out of range", f"write {_wanted([kind], schema)}"


def _enum(value: Any, limit: Any, _schema: Mapping[str, Any]) -> tuple[str, str]:
    known = [str(option) for option in limit]
    if value is None:
        return "is empty", f"write one of {', '.join(known)}, or remove the line"
    return f"{shown(value)} is not one of {', '.join(known)}", nearest(str(value), known) or "write one of these"


def _unique(value: Any, _limit: Any, _schema: Mapping[str, Any]) -> tuple[str, str]:
    seen: set[str] = set()
    for part in value:
        key = canonical(part)
        if key in seen:
            return f"{shown(part)} stands there twice", "remove one of them"
        seen.add(key)
    return "the same value stands there twice", "remove one of them"


def _other(value: Any, _limit: Any, schema: Mapping[str, Any]) -> tuple[str, str]:
    about = schema.get("description", "")
    return f"{shown(value)} does not fit", str(about) if about else ""


def _none_of(_value: Any, limit: Any, _schema: Mapping[str, Any]) -> tuple[str, str]:
    keys = [key for part in limit if isinstance(part, Mapping) for key in part.get("required", ())]
    return (f"needs {' or '.join(map(repr, keys))}" if keys else "nothing that is allowed here fits"), ""


def _count(words: str, remedy: str) -> Callable[[Any, Any, Mapping[str, Any]], tuple[str, str]]:
    def say(value: Any, limit: Any, _schema: Mapping[str, Any]) -> tuple[str, str]:
        return words.format(has=len(value), limit=limit), remedy

    return say


def _too_short(value: Any, limit: Any, _schema: Mapping[str, Any]) -> tuple[str, str]:
    return ("is empty" if not value else f"has {len(value)} characters, at least {limit} are wanted"), "write more"


_SENTENCES: Mapping[Any, Callable[[Any, Any, Mapping[str, Any]], tuple[str, str]]] = {
    "minimum": _range,
    "maximum": _range,
    "exclusiveMinimum": _range,
    "exclusiveMaximum": _range,
    "enum": _enum,
    "const": lambda value, limit, _schema: (f"{shown(value)} is not {shown(limit)}", f"write {limit}"),
    "format": lambda value, _limit, _schema: (
        f"{shown(value)} is not a date or time",
        "write it like 2026-03-01 or 2026-03-01T10:00:00Z",
    ),
    "pattern": lambda value, limit, _schema: (f"{shown(value)} has the wrong form", f"it must match {limit}"),
    "maxLength": _count("has {has} characters, at most {limit} are allowed", "shorten it"),
    "minLength": _too_short,
    "maxItems": _count("has {has} entries, at most {limit} are allowed", "remove some"),
    "minItems": _count("has {has} entries, at least {limit} are wanted", "add some"),
    "maxProperties": _count("has {has} keys, at most {limit} are allowed", "remove some"),
    "minProperties": _count("has {has} keys, at least {limit} are wanted", "add some"),
    "uniqueItems": _unique,
    "anyOf": _none_of,
    "oneOf": lambda _value, _limit, _schema: ("not exactly one of the allowed forms fits", ""),
    "not": lambda value, _limit, _schema: (f"{shown(value)} is excluded here", ""),
}

"""Checks mappings against their JSON Schemas; the only module that imports ``jsonschema``.

What is wrong with a value, and what would be right, is said in plain words. Each schema is self-contained, so
nothing is ever fetched. Schemas from a workspace are bounded in size, and so is the data that they check.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from types import MappingProxyType

from memfs.dataclass import dataclass
from memfs.errors import SchemaInvalid, SchemaRefForbidden, SettingInvalid
from memfs.format.plain import FieldPath, canonical
from memfs.model.kinds import Kind, nearest
from memfs.model.time import parse_time
from memfs.resources import schema_names, schema_text
from memfs.startup import Any, json


def quick_check(
    schema: Mapping[str, Any], formats: Mapping[str, Callable[[str], bool]]
) -> Callable[[Any], bool] | None:
    """A function that says whether a value fits the schema; None where the package is not installed or declines it.

    It must agree with ``jsonschema``, which says what is wrong; a test compares the two.
    """
    try:
        import jsonschema_rs  # optional, and only wanted once something is validated
    except ImportError:
        return None
    try:
        validator = jsonschema_rs.Draft202012Validator(
            dict(schema),
            formats=dict(formats),
            validate_formats=True,
            retriever=_refuse,
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except ValueError:  # a pattern with look-around, which its engine does not have
        return None
    check: Callable[[Any], bool] = validator.is_valid
    return check


def _refuse(address: str) -> Any:
    raise ValueError(f"schemas are never fetched: {address}")


_MAX_WORK = 1_000_000
"""Most parts of a schema from a workspace times values of the data that it checks."""
_MAX_PARTS = 10_000
_MAX_DEPTH = 80
_BODY = ".body"
# handed back by calls, in no file
_ANSWERS = ("retrieved_state", "feedback_data", "recovery_state")


class Schemas:
    """Every schema a workspace knows: the bundled ones, and bodies of its own kinds.

    Args:
        extra: schemas of ``data`` by name, from a ``configuration/kinds.yaml`` that its reader trusts.

    Attributes:
        own: the extra schemas, by name.

    Raises:
        SchemaRefForbidden, SchemaInvalid: an extra schema is refused, naming the place in it.
    """

    def __init__(self, extra: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        self.own = {name: _accepted(schema, f"kind {name!r}") for name, schema in extra.items()}
        self._checks: dict[str, _Check] = {}

    def check_item(self, mapping: Mapping[str, Any], kind: Kind) -> list[SchemaError]:
        """What is wrong with an item of that kind; nothing when it is right.

        Raises:
            SettingInvalid: the kind names a body that does not exist.
        """
        return self.check_document(mapping, f"item {kind.body}" if kind.body else "item")

    def check_document(self, mapping: Mapping[str, Any], schema: str) -> list[SchemaError]:
        """What is wrong with a document: ``system_config``, ``memory_context``, ...

        Raises:
            SettingInvalid: there is no such schema.
        """
        if not schema.startswith("item ") or schema.removeprefix("item ") not in self.own:
            return _bundled_check(schema).errors(mapping)
        check = self._checks.get(schema)
        if check is None:
            check = self._checks[schema] = _Check(self.rules(schema), bounded=True)
        return check.errors(mapping)

    def rules(self, schema: str) -> dict[str, Any]:
        """A schema, which says in ``x-merge`` how versions of each field are joined.

        Args:
            schema: the name of a document's; ``item``, or ``item`` and the name of its body.

        Raises:
            SettingInvalid: there is no such schema.
        """
        if not schema.startswith("item "):
            return _bundled(schema)
        body = schema.removeprefix("item ")
        shape = self.own[body] if body in self.own else _bundled(body + _BODY)
        item = _bundled("item")
        described = {**item, "properties": {**item["properties"], "data": shape}}
        if shape.get("required"):  # an item without data lacks all of it
            described["required"] = [*item.get("required", ()), "data"]
        return described

    def item_rules(self, kind: Kind) -> dict[str, Any]:
        """The schema of an item of that kind, as ``rules``."""
        return self.rules(f"item {kind.body}" if kind.body else "item")

    def editor_files(self) -> dict[str, str]:
        """The files for ``ContextMemory/.schemas/``: each schema on its own, items with the body of their kind."""
        names = {name: name for name in schema_names() if not name.endswith(_BODY) and name not in _ANSWERS}
        bodies = [name.removesuffix(_BODY) for name in schema_names() if name.endswith(_BODY)]
        names |= {body: f"item {body}" for body in (*bodies, *self.own)}
        draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        return {
            f"{file}.schema.json": json.dumps(draft | self.rules(name), indent=2, ensure_ascii=False) + "\n"
            for file, name in names.items()
        }


@cache
def _bundled_check(name: str) -> _Check:
    """One for all workspaces of the process: compiling a schema takes as long as checking hundreds of items."""
    return _Check(Schemas().rules(name), bounded=False)


@cache
def _bundled(name: str) -> dict[str, Any]:
    if name not in schema_names():
        raise SettingInvalid(f"there is no schema {name!r}", hint=nearest(name, schema_names()) or None)
    return resolved(json.loads(schema_text(name)), name)


class _Check:
    """One schema, compiled when it is first used."""

    def __init__(self, schema: dict[str, Any], bounded: bool) -> None:
        self._parts = _size(schema) if bounded else 0
        self._schema = schema
        self._quick: Callable[[Any], bool] | None = None
        self._slow: Any = None
        self._ready = False

    def errors(self, value: Mapping[str, Any]) -> list[SchemaError]:
        if not self._ready:
            self._quick = quick_check(self._schema, {"memfs-time": _is_time})
            self._ready = True
        too_large = self._parts * _size(value.get("data")) > _MAX_WORK if self._parts else False
        if not too_large and self._quick is not None and self._quick(value):
            return []

        if too_large:
            message = "is too large for the schema of its kind"
            return [SchemaError(path=("data",), message=message, hint="split the item")]
        if self._slow is None:
            self._slow = _compile(self._schema)
        errors = explained(self._slow.iter_errors(value))
        if not errors and self._quick is not None:
            return [SchemaError(path=(), message="does not fit its schema", hint="compare it with the template")]
        return errors


def _is_time(text: Any) -> bool:
    try:
        parse_time(text)
    except (ValueError, OverflowError):
        return False
    return True


# -- jsonschema ---------------------------------------------------------------------------------------------------
def _compile(schema: Mapping[str, Any]) -> Any:
    import jsonschema  # takes 90 ms, and is wanted only when something is wrong or the quick validator is absent
    import referencing  # part of jsonschema's interface: an empty registry is how look-ups are switched off

    formats = jsonschema.FormatChecker(formats=())
    formats.checks("memfs-time")(lambda value: not isinstance(value, str) or _is_time(value))
    validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
        jsonschema.Draft202012Validator, {"pattern": _pattern, "uniqueItems": _unique_items}
    )
    return validator(schema, registry=referencing.Registry(), format_checker=formats)


def _pattern(_validator: Any, text: str, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    # in every engine but Python's a ``$`` at the end means the very end
    pattern = text[:-1] + r"\Z" if text.endswith("$") and not text.endswith(r"\$") else text
    if isinstance(value, str) and not re.search(pattern, value, re.ASCII):
        yield ValidationError(f"{value[:60]!r} does not match {text!r}")


def _unique_items(_validator: Any, wanted: bool, value: Any, _schema: Any) -> Iterator[Any]:
    """As ``jsonschema``'s own, whose time grows with the square of the length."""
    from jsonschema import ValidationError

    if wanted and isinstance(value, list):
        seen = {canonical(part) for part in value}
        if len(seen) != len(value):
            yield ValidationError("has repeated entries")


# -- references ---------------------------------------------------------------------------------------------------
_ANNOTATIONS = frozenset(
    {"title", "description", "examples", "default", "deprecated", "readOnly", "$comment", "x-merge", "x-hint"}
)
_TIMES = frozenset({"date-time", "date", "memfs-time"})
_OUTWARD = frozenset({"$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$vocabulary"})
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_LEFT_OUT = frozenset({"$schema", "$ref", "$defs", "$id"})
_VALUES = frozenset({"const", "enum", "default", "examples"})
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", "dependentRequired", "definitions"})


def resolved(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema without ``$ref``, ``$defs`` and its own ``$id``; of formats it has those of dates and times only.

    Args:
        name: what to call the schema in errors.

    Raises:
        SchemaRefForbidden: a reference leaves the schema.
        SchemaInvalid: a reference names nothing, or the result is too large, as it is where one leads back to itself.
    """
    made = itertools.count()

    def filled(part: Any, place: str, depth: int, named: bool = False) -> Any:
        if next(made) > _MAX_PARTS or depth > _MAX_DEPTH:
            bounds = f"more than {_MAX_PARTS} parts or {_MAX_DEPTH} levels once references are filled in"
            raise SchemaInvalid(f"{name}: {place[:100]}: {bounds}", hint="a reference may lead back to itself")
        if isinstance(part, list):
            return [filled(inner, f"{place}/{index}", depth + 1) for index, inner in enumerate(part)]
        if not isinstance(part, Mapping):
            return part
        if named:  # by names of the schema's own, which may be those of keywords
            return {key: filled(inner, f"{place}/{key}", depth + 1) for key, inner in part.items()}
        if outward := (_OUTWARD | ({"$id"} if depth else set())) & part.keys():
            raise SchemaRefForbidden(f"{name}: {place}: {min(outward)!r} is not allowed", hint="use '$defs' and '$ref'")
        own: dict[str, Any] = {}
        for key, inner in part.items():
            if key == "format" and isinstance(inner, str):
                own |= {key: "memfs-time"} if inner in _TIMES else {}
            elif key not in _LEFT_OUT:
                own[key] = inner if key in _VALUES else filled(inner, f"{place}/{key}", depth + 1, key in _BY_NAME)
        if "$ref" not in part:
            return own
        target = filled(_target(schema, part["$ref"], f"{name}: {place}"), f"{place}/$ref", depth + 1)
        if own.keys() & target.keys() <= _ANNOTATIONS:
            return {**target, **own}
        return {**own, "allOf": [*own.get("allOf", []), target]}

    return dict(filled(schema, "#", 0))


def _target(root: Mapping[str, Any], reference: Any, place: str) -> Mapping[str, Any]:
    if isinstance(reference, str) and isinstance(root.get("$id"), str):
        reference = reference.removeprefix(root["$id"])
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise SchemaRefForbidden(
            f"{place}: the reference {reference!r} leaves the schema",
            hint="put the definition under '$defs' and refer to '#/$defs/<name>'",
        )
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or not (reference == "#" or reference.startswith("#/")):
        raise SchemaInvalid(f"{place}: the reference {reference!r} names nothing")
    return found


def _accepted(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A schema from a workspace, made self-contained and found to be one.

    Raises:
        SchemaRefForbidden, SchemaInvalid: naming the place in the schema.
    """
    if schema.get("$schema", _DRAFT) != _DRAFT:
        raise SchemaInvalid(f"{name}: #/$schema: only draft 2020-12 is read ({_DRAFT})")
    made = resolved(schema, name)
    with suppress(re.error):  # of a pattern; jsonschema says where
        if quick_check(made, {}) is not None:
            for pattern in _patterns(made):
                re.compile(pattern)
            return made
    import jsonschema

    formats = jsonschema.FormatChecker(formats=["regex"])
    try:
        jsonschema.Draft202012Validator.check_schema(made, format_checker=formats)
    except jsonschema.SchemaError as error:
        place = "/".join(["#", *map(str, error.absolute_path)])
        raise SchemaInvalid(
            f"{name}: {place}: {error.message[:200]}", hint="write JSON Schema, draft 2020-12"
        ) from error
    return made


def _patterns(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        yield from part["patternProperties"] if isinstance(part.get("patternProperties"), Mapping) else ()
        yield from [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    for inner in part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ():
        yield from _patterns(inner)


def _size(value: Any) -> int:
    """How many values a plain value holds, itself included."""
    if isinstance(value, Mapping):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


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
    elif failure.validator in _COUNTED:
        words, remedy = _COUNTED[failure.validator]
        message = words.format(has=len(failure.instance), limit=failure.validator_value)
        yield SchemaError(path=path, message=message, hint=hint or remedy)
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
    if isinstance(value, (list, Mapping)):
        message = f"there is {'a list' if isinstance(value, list) else 'a mapping'} where {words} is wanted"
        return SchemaError(path=path, message=message, hint=hint or f"write {_wanted(wanted, schema)} there")
    if wanted == ["array"]:
        hint = f"write it as [{shown(value)}]"
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
            return f"{shown(part)} is there twice", "remove one of them"
        seen.add(key)
    return "the same value is there twice", "remove one of them"


def _other(value: Any, _limit: Any, schema: Mapping[str, Any]) -> tuple[str, str]:
    about = schema.get("description", "")
    return f"{shown(value)} does not fit", str(about) if about else ""


def _none_of(_value: Any, limit: Any, _schema: Mapping[str, Any]) -> tuple[str, str]:
    keys = [key for part in limit if isinstance(part, Mapping) for key in part.get("required", ())]
    return (f"needs {' or '.join(map(repr, keys))}" if keys else "nothing that is allowed here fits"), ""


def _too_short(value: Any, limit: Any, _schema: Mapping[str, Any]) -> tuple[str, str]:
    return ("is empty" if not value else f"has {len(value)} characters, at least {limit} are wanted"), "write more"


_COUNTED = {
    "maxLength": ("has {has} characters, at most {limit} are allowed", "shorten it"),
    "maxItems": ("has {has} entries, at most {limit} are allowed", "remove some"),
    "minItems": ("has {has} entries, at least {limit} are wanted", "add some"),
    "maxProperties": ("has {has} keys, at most {limit} are allowed", "remove some"),
    "minProperties": ("has {has} keys, at least {limit} are wanted", "add some"),
}
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
    "minLength": _too_short,
    "uniqueItems": _unique,
    "anyOf": _none_of,
    "oneOf": lambda _value, _limit, _schema: ("not exactly one of the allowed forms fits", ""),
    "not": lambda value, _limit, _schema: (f"{shown(value)} is excluded here", ""),
}

"""Checks mappings against their JSON Schemas; the only module that imports ``jsonschema``.

Each schema is self-contained, so nothing is ever fetched. Schemas from a workspace are bounded in size, and so is the
data that they check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from memfs.errors import SchemaInvalid, SchemaRefForbidden, SettingInvalid
from memfs.format.plain import canonical
from memfs.model.kinds import Kind, nearest
from memfs.model.time import parse_time
from memfs.resources import schema_names, schema_text

if TYPE_CHECKING:
    from memfs.format.schema_errors import SchemaError


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
_MAX_PARTS = 2000
_MAX_DEPTH = 40
_BODY = ".body"
# handed back by calls, in no file; or in a file that goes from one workspace to another
_ANSWERS = ("retrieved_state", "feedback_data", "recovery_state", "shared_conventions")


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
        name = f"item {kind.body}" if kind.body else "item"
        return self._check(name).errors(mapping)

    def check_document(self, mapping: Mapping[str, Any], schema: str) -> list[SchemaError]:
        """What is wrong with a document: ``system_config``, ``memory_context``, ...

        Raises:
            SettingInvalid: there is no such schema.
        """
        return self._check(schema).errors(mapping)

    def rules(self, schema: str) -> Mapping[str, Any]:
        """A document's schema, which says in ``x-merge`` how versions of each field are joined.

        Raises:
            SettingInvalid: there is no such schema.
        """
        return self._schema(schema)

    def item_rules(self, kind: Kind) -> Mapping[str, Any]:
        """The schema of an item of that kind, as ``rules``."""
        return self._schema(f"item {kind.body}" if kind.body else "item")

    def editor_files(self) -> dict[str, str]:
        """The files for ``ContextMemory/.schemas/``: each schema on its own, items with the body of their kind."""
        names = {name: name for name in schema_names() if not name.endswith(_BODY) and name not in _ANSWERS}
        bodies = [name.removesuffix(_BODY) for name in schema_names() if name.endswith(_BODY)]
        names |= {body: f"item {body}" for body in (*bodies, *self.own)}
        draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        return {
            f"{file}.schema.json": json.dumps(draft | self._schema(name), indent=2, ensure_ascii=False) + "\n"
            for file, name in names.items()
        }

    def _check(self, name: str) -> _Check:
        if not self._is_own(name):
            return _bundled_check(name)
        check = self._checks.get(name)
        if check is None:
            check = self._checks[name] = _Check(self._schema(name), bounded=True)
        return check

    def _schema(self, name: str) -> dict[str, Any]:
        if not name.startswith("item "):
            return _bundled(name)
        body = name.removeprefix("item ")
        return _with_data(self.own[body] if self._is_own(name) else _bundled(body + _BODY))

    def _is_own(self, name: str) -> bool:
        return name.startswith("item ") and name.removeprefix("item ") in self.own


def _with_data(shape: dict[str, Any]) -> dict[str, Any]:
    item = _bundled("item")
    described = {**item, "properties": {**item["properties"], "data": shape}}
    if shape.get("required"):  # an item without data lacks all of it
        described["required"] = [*item.get("required", ()), "data"]
    return described


@cache
def _bundled_check(name: str) -> _Check:
    """One for all workspaces of the process: compiling a schema takes as long as checking hundreds of items."""
    return _Check(Schemas()._schema(name), bounded=False)


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
        from memfs.format.schema_errors import SchemaError, explained  # only wanted once something is wrong

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
@cache
def _validator_class() -> Any:
    import jsonschema  # takes 90 ms, and is wanted only when something is wrong or the quick validator is absent

    return jsonschema.validators.extend(  # type: ignore[no-untyped-call]
        jsonschema.Draft202012Validator, {"pattern": _pattern, "uniqueItems": _unique_items}
    )


def _compile(schema: Mapping[str, Any]) -> Any:
    import jsonschema
    import referencing  # part of jsonschema's interface: an empty registry is how look-ups are switched off

    formats = jsonschema.FormatChecker(formats=())
    formats.checks("memfs-time")(lambda value: not isinstance(value, str) or _is_time(value))
    return _validator_class()(schema, registry=referencing.Registry(), format_checker=formats)


def _pattern(_validator: Any, text: str, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not re.search(_python_pattern(text), value, re.ASCII):
        yield ValidationError(f"{value[:60]!r} does not match {text!r}")


def _python_pattern(text: str) -> str:
    """A pattern whose ``$`` at the end means the very end, as in every engine but Python's."""
    return text[:-1] + r"\Z" if text.endswith("$") and not text.endswith(r"\$") else text


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
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_SCHEMAS = frozenset(
    {"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_OUTWARD = frozenset({"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$vocabulary"})
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def resolved(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema without ``$ref`` and ``$defs``; of formats it has those of dates and times only.

    Args:
        name: what to call the schema in errors.

    Raises:
        SchemaRefForbidden: a reference leaves the schema.
        SchemaInvalid: a reference names nothing, or the result is too large, as it is where one leads back to itself.
    """
    return dict(_Resolver(schema, name).filled(schema, "#", 0))


class _Resolver:
    """Fills in the references of one schema, within bounds."""

    def __init__(self, root: Mapping[str, Any], name: str) -> None:
        self._root = root
        self._name = name
        self._made = 0
        self.patterns: list[Any] = []

    def filled(self, schema: Any, place: str, depth: int) -> Any:
        self._made += 1
        if self._made > _MAX_PARTS or depth > _MAX_DEPTH:
            bounds = f"more than {_MAX_PARTS} parts or {_MAX_DEPTH} levels once references are filled in"
            raise SchemaInvalid(f"{self._name}: {place[:100]}: {bounds}", hint="a reference may lead back to itself")
        if not isinstance(schema, Mapping):
            return schema
        own: dict[str, Any] = {}
        for key, part in schema.items():
            if key in _OUTWARD:
                raise SchemaRefForbidden(
                    f"{self._name}: {place}: {key!r} is not allowed", hint="use '$defs' and '$ref'"
                )
            if key == "pattern":
                self.patterns.append(part)
            if key == "format":
                own |= {"format": "memfs-time"} if part in ("date-time", "date", "memfs-time") else {}
            elif key not in ("$schema", "$defs", "$ref"):
                own[key] = self._part(key, part, f"{place}/{key}", depth + 1)
        if "$ref" not in schema:
            return own
        target = self._target(schema["$ref"], place, depth + 1)
        if own.keys() & target.keys() <= _ANNOTATIONS:
            return {**target, **own}
        return {**own, "allOf": [*own.get("allOf", []), target]}

    def _part(self, key: str, part: Any, place: str, depth: int) -> Any:
        if key in _SCHEMA_MAPS and isinstance(part, Mapping):
            self.patterns += part if key == "patternProperties" else ()
            return {name: self.filled(inner, f"{place}/{name}", depth) for name, inner in part.items()}
        if key in _SCHEMA_LISTS and isinstance(part, list):
            return [self.filled(inner, f"{place}/{index}", depth) for index, inner in enumerate(part)]
        return self.filled(part, place, depth) if key in _SCHEMAS else part

    def _target(self, reference: Any, place: str, depth: int) -> dict[str, Any]:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SchemaRefForbidden(
                f"{self._name}: {place}: the reference {reference!r} leaves the schema",
                hint="put the definition under '$defs' and refer to '#/$defs/<name>'",
            )
        found: Any = self._root
        for step in reference[1:].split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping) or not (reference == "#" or reference.startswith("#/")):
            raise SchemaInvalid(f"{self._name}: {place}: the reference {reference!r} names nothing")
        return dict(self.filled(found, f"{place}/$ref", depth))


def _accepted(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A schema from a workspace, made self-contained and found to be one.

    Raises:
        SchemaRefForbidden, SchemaInvalid: naming the place in the schema.
    """
    if schema.get("$schema", _DRAFT) != _DRAFT:
        raise SchemaInvalid(f"{name}: #/$schema: only draft 2020-12 is read ({_DRAFT})")
    resolver = _Resolver(schema, name)
    made = dict(resolver.filled(schema, "#", 0))
    if quick_check(made, {}) is not None and all(map(_is_pattern, resolver.patterns)):
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


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _size(value: Any) -> int:
    """How many values a plain value holds, itself included."""
    if isinstance(value, Mapping):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1

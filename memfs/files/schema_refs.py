"""Makes a schema stand on its own: every reference replaced by what it names, every extension vetted.

Owns which schemas are accepted from outside (``configuration/kinds.yaml`` lies in the repository, so anybody's pull
request may hold one): no reference leaves the schema, none leads back to itself, no keyword can take unbounded time
(faults rows 15 and 16). Must not know any validator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memfs.errors import MemfsError, SchemaInvalid, SchemaRefForbidden, SchemaTooComplex
from memfs.files.plain import plain
from memfs.files.schema_pattern import PatternRefused, vet
from memfs.model.kinds import nearest

MAX_NODES = 2000
_MAX_DEPTH = 40
_ANNOTATIONS = frozenset(
    {"title", "description", "examples", "default", "deprecated", "readOnly", "$comment", "x-merge"}
)
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_DATE_FORMATS = frozenset({"date-time", "date", "memfs-time"})
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"properties", "$defs"})
_SCHEMAS = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TEXTS = frozenset({"title", "description", "$comment", "$schema", "$ref", "pattern", "format"})
_FLAGS = frozenset({"uniqueItems", "deprecated", "readOnly"})
_OTHERS = frozenset({"type", "enum", "const", "required", "examples", "default"})
_KEYWORDS = _SCHEMA_LISTS | _SCHEMA_MAPS | _SCHEMAS | _COUNTS | _NUMBERS | _TEXTS | _FLAGS | _OTHERS
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def inline(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema without ``$ref`` and ``$defs``.

    Args:
        name: what to call the schema in errors.

    Raises:
        SchemaRefForbidden: a reference leaves the schema.
        SchemaTooComplex: a reference leads back to itself, or the result is too large.
        SchemaInvalid: a reference names nothing.
    """
    result: dict[str, Any] = _Inliner(schema, name).node(schema, "#", ())
    result.pop("$schema", None)
    return result


def vetted(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An accepted schema from outside, standing on its own.

    Raises:
        SchemaRefForbidden, SchemaTooComplex, SchemaInvalid: naming the place in the schema.
    """
    whole = plain(schema)
    _Vetting(name).schema(whole, "#")
    return inline(whole, name)


def nodes(value: Any) -> int:
    """How many values a plain value holds, itself included."""
    if isinstance(value, Mapping):
        return 1 + sum(map(nodes, value.values()))
    return 1 + sum(map(nodes, value)) if isinstance(value, list) else 1


def rebuilt(schema: Any, change: Callable[[str, Any], Any]) -> Any:
    """A copy of a schema without references, with ``change(keyword, value)`` for each keyword that holds no schema."""
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}
    for key, part in schema.items():
        if key in _SCHEMA_MAPS:
            result[key] = {name: rebuilt(inner, change) for name, inner in part.items()}
        elif key in _SCHEMA_LISTS:
            result[key] = [rebuilt(inner, change) for inner in part]
        else:
            result[key] = rebuilt(part, change) if key in _SCHEMAS else change(key, part)
    return result


class _Inliner:
    def __init__(self, root: Mapping[str, Any], name: str) -> None:
        self.root = root
        self.name = name
        self.made = 0

    def node(self, schema: Any, place: str, trail: tuple[str, ...]) -> Any:
        self.made += 1
        if self.made > MAX_NODES or place.count("/") > 2 * _MAX_DEPTH:
            raise SchemaTooComplex(f"{self.name}: more than {MAX_NODES} parts once references are filled in")
        if not isinstance(schema, Mapping):
            return schema
        own = {key: self._part(key, part, f"{place}/{key}", trail) for key, part in schema.items() if key != "$defs"}
        reference = own.pop("$ref", None)
        if reference is None:
            return own
        target = self._target(reference, place, trail)
        if own.keys() & target.keys() <= _ANNOTATIONS | {"x-hint"}:
            return {**target, **own}
        return {**own, "allOf": [*own.get("allOf", []), target]}

    def _part(self, key: str, part: Any, place: str, trail: tuple[str, ...]) -> Any:
        if key in _SCHEMA_MAPS and isinstance(part, Mapping):
            return {name: self.node(inner, f"{place}/{name}", trail) for name, inner in part.items()}
        if key in _SCHEMA_LISTS and isinstance(part, list):
            return [self.node(inner, f"{place}/{index}", trail) for index, inner in enumerate(part)]
        return self.node(part, place, trail) if key in _SCHEMAS else part

    def _target(self, reference: str, place: str, trail: tuple[str, ...]) -> dict[str, Any]:
        if not reference.startswith("#"):
            raise SchemaRefForbidden(
                f"{self.name}: {place}: the reference {reference!r} leaves the schema",
                hint="put the definition under '$defs' and refer to '#/$defs/<name>'",
            )
        if reference in trail:
            raise SchemaTooComplex(f"{self.name}: {place}: the reference {reference!r} leads back to itself")
        found: Any = self.root
        for step in reference[1:].split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping) or not (reference == "#" or reference.startswith("#/")):
            raise SchemaInvalid(f"{self.name}: {place}: the reference {reference!r} names nothing")
        return dict(self.node(found, f"{place}/$ref", (*trail, reference)))


class _Vetting:
    """Walks an outside schema once; rewrites patterns and formats in place to what all validators read alike."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen = 0

    def schema(self, schema: Any, place: str) -> None:
        self.seen += 1
        if self.seen > MAX_NODES or place.count("/") > 2 * _MAX_DEPTH:
            raise self._error(SchemaTooComplex, place, f"more than {MAX_NODES} parts, or nested too deeply")
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise self._error(SchemaInvalid, place, "a schema must be a mapping, true or false")
        for key, value in list(schema.items()):
            self._keyword(schema, key, value, f"{place}/{key}")

    def _keyword(self, schema: dict[str, Any], key: str, value: Any, place: str) -> None:
        if key in _SCHEMAS:
            self.schema(value, place)
        elif key in _SCHEMA_LISTS:
            for index, part in enumerate(self._of(list, value, place, "a list of schemas")):
                self.schema(part, f"{place}/{index}")
        elif key in _SCHEMA_MAPS:
            for name, part in self._of(dict, value, place, "a mapping of schemas").items():
                self.schema(part, f"{place}/{name}")
        elif key in _COUNTS:
            self._check(type(value) is int and value >= 0, place, "a whole number of 0 or more")
        elif key in _NUMBERS:
            is_number = type(value) in (int, float) and (key != "multipleOf" or value > 0)
            self._check(is_number, place, "a number" if key != "multipleOf" else "a number above 0")
        elif key in _FLAGS:
            self._check(isinstance(value, bool), place, "true or false")
        elif key in _TEXTS:
            self._text(schema, key, self._of(str, value, place, "text"), place)
        elif key in _OTHERS:
            self._other(key, value, place)
        elif not key.startswith("x-"):
            self._unknown(key, place)

    def _text(self, schema: dict[str, Any], key: str, value: str, place: str) -> None:
        if key == "pattern":
            self._pattern(schema, value, place)
        elif key == "format":
            # other formats are annotations, and validators differ in which of them they check
            schema.pop("format")
            if value in _DATE_FORMATS:
                schema["format"] = "memfs-time"
        elif key == "$schema" and value.rstrip("#") != _DRAFT:
            raise self._error(SchemaInvalid, place, f"only draft 2020-12 is read ({_DRAFT})")

    def _pattern(self, schema: dict[str, Any], value: str, place: str) -> None:
        try:
            pattern = vet(value)
        except PatternRefused as error:
            kind = SchemaTooComplex if error.is_complex else SchemaInvalid
            raise self._error(kind, place, f"the pattern {value[:60]!r} is refused: {error}") from error
        if pattern.degree >= 2:
            most = schema.get("maxLength")
            schema["maxLength"] = min(most, pattern.limit) if isinstance(most, int) else pattern.limit

    def _other(self, key: str, value: Any, place: str) -> None:
        if key == "type":
            names = value if isinstance(value, list) else [value]
            right = bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
            self._check(right, place, "one of " + ", ".join(sorted(_TYPES)))
        elif key == "required":
            right = isinstance(value, list) and all(isinstance(name, str) for name in value)
            self._check(right and len(set(value)) == len(value), place, "a list of keys, each once")
        elif key in ("enum", "examples"):
            self._check(isinstance(value, list), place, "a list")
            self.seen += len(value) // 10

    def _unknown(self, key: str, place: str) -> None:
        if key in (
            "$id",
            "$anchor",
            "$dynamicRef",
            "$dynamicAnchor",
            "$recursiveRef",
            "$recursiveAnchor",
            "$vocabulary",
        ):
            raise self._error(SchemaRefForbidden, place, f"{key!r} is not allowed", "use '$defs' and '$ref'")
        hint = nearest(key, _KEYWORDS) or "memfs reads a part of draft 2020-12; see docs/format.md"
        raise self._error(SchemaInvalid, place, f"the keyword {key!r} is not read", hint)

    def _of(self, kind: type[Any], value: Any, place: str, words: str) -> Any:
        self._check(isinstance(value, kind), place, words)
        return value

    def _check(self, right: bool, place: str, words: str) -> None:
        if not right:
            raise self._error(SchemaInvalid, place, f"expected {words}")

    def _error(self, kind: type[MemfsError], place: str, reason: str, hint: str | None = None) -> MemfsError:
        return kind(f"{self.name}: {place}: {reason}", hint=hint)

"""Vets JSON Schemas and their regular expressions that come from a workspace, so that a check always ends soon.

Schemas are made self-contained and bounded in size. Of regular expressions, repeats inside repeats, choices inside
repeats, look-around and back-references are refused; the rest is rewritten to mean the same in every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from memfs.errors import MemfsError, SchemaInvalid, SchemaRefForbidden, SchemaTooComplex
from memfs.format.plain import plain
from memfs.model.kinds import nearest

_MAX_PATTERN = 1000
_MAX_LOOPS = 3
_MAX_CHOICES = 64
_MAX_COUNT = 1000
_MIN_LIMIT = 64
_STEPS = 10_000_000
_NO_LIMIT = 1 << 24
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\r\f\v"}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


class PatternRefused(ValueError):
    """Not a pattern, or not one that is certain to end soon; ``complex`` marks the second."""

    def __init__(self, reason: str, is_complex: bool = False) -> None:
        super().__init__(reason)
        self.is_complex = is_complex


@dataclass(frozen=True, slots=True)
class SchemaPattern:
    """A vetted pattern.

    Attributes:
        python: for Python's ``re``; ``$`` means the very end.
        portable: for engines that follow ECMAScript or RE2.
        degree: matching costs at most the text's length to this power.
        limit: longer texts are not matched.
    """

    python: str
    portable: str
    degree: int
    limit: int


@lru_cache(maxsize=512)
def vet(text: str) -> SchemaPattern:
    """Accept a pattern.

    Raises:
        PatternRefused: saying why.
    """
    if len(text) > _MAX_PATTERN:
        raise PatternRefused(f"the pattern has {len(text)} characters, limit {_MAX_PATTERN}", is_complex=True)
    reader = _Reader(text)
    whole = reader.choice()
    if reader.at < len(text):
        raise PatternRefused("')' without '('")
    if whole.loops > _MAX_LOOPS or whole.choices > _MAX_CHOICES:
        raise PatternRefused("too many repeats or choices", is_complex=True)
    degree = whole.loops + (0 if whole.anchored else 1)
    limit = _NO_LIMIT if degree < 2 else int((_STEPS / whole.choices) ** (1 / degree))
    if limit < _MIN_LIMIT:
        raise PatternRefused(
            "too many repeats for a pattern that may begin anywhere; begin it with '^'", is_complex=True
        )
    return SchemaPattern(whole.text.replace("\0", r"\Z"), whole.text.replace("\0", "$"), degree, limit)


@dataclass(slots=True)
class _Part:
    """A piece of a pattern, rewritten; NUL stands for the end anchor until the engine is known."""

    text: str
    varies: bool = False
    loops: int = 0
    choices: int = 1
    anchored: bool = False
    is_anchor: bool = False


class _Reader:
    """Reads the accepted syntax from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def choice(self) -> _Part:
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        return _Part(
            "|".join(branch.text for branch in branches),
            varies=True,
            loops=sum(branch.loops for branch in branches),
            choices=sum(branch.choices for branch in branches),
            anchored=all(branch.anchored for branch in branches),
        )

    def _sequence(self) -> _Part:
        whole = _Part("")
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._repeated(self._atom())
            whole.anchored = whole.anchored or (not whole.text and part.anchored)
            whole.text += part.text
            whole.varies |= part.varies
            whole.loops += part.loops
            whole.choices *= part.choices
        return whole

    def _atom(self) -> _Part:
        character = self.text[self.at]
        self.at += 1
        if character == "(":
            return self._group()
        if character == "[":
            return _Part(self._class())
        if character == "\\":
            return _Part(self._escape())
        if character == "^":
            return _Part("^", anchored=True, is_anchor=True)
        if character == "$":
            return _Part("\0", is_anchor=True)
        if character == ".":
            return _Part(r"[^\n\r]")
        if character in "*+?{":
            self._refuse(f"nothing to repeat before {character!r}")
        return _Part(_literal(character))

    def _group(self) -> _Part:
        self.depth += 1
        if self.depth > 20:
            raise PatternRefused("groups nested deeper than 20", is_complex=True)
        if self._next("?") and not self._next(":"):
            raise PatternRefused("look-around, flags and names in groups are not accepted", is_complex=True)
        inner = self.choice()
        if not self._next(")"):
            self._refuse("'(' without ')'")
        self.depth -= 1
        inner.text = f"(?:{inner.text})"
        return inner

    def _repeated(self, part: _Part) -> _Part:
        counts = self._counts()
        if counts is None:
            return part
        low, high, written = counts
        lazy = "?" if self._next("?") else ""
        if self.at < len(self.text) and self.text[self.at] in "*+{":
            self._refuse("a repeat of a repeat")
        if part.is_anchor:
            self._refuse("a repeated '^' or '$'")
        if part.varies and high != 1:
            raise PatternRefused("a repeat of something that itself repeats or has choices", is_complex=True)
        if high is None or high - low > 8:
            part.loops += 1
        elif low == 0 and high == 1:
            part.choices += 1
        else:
            part.choices *= high - low + 1
        part.varies = part.varies or high != low
        part.anchored = part.anchored and low > 0
        part.text += written + lazy
        return part

    def _counts(self) -> tuple[int, int | None, str] | None:
        if self._next("*"):
            return 0, None, "*"
        if self._next("+"):
            return 1, None, "+"
        if self._next("?"):
            return 0, 1, "?"
        if not self._next("{"):
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : end].partition(",") if end > 0 else ("", "", "")
        if not (low.isdecimal() and low.isascii() and (not high or (high.isdecimal() and high.isascii()))):
            self._refuse("'{' that does not count; write '\\{' for the character")
        self.at = end + 1
        least = int(low[:6])
        most = (int(high[:6]) if high else None) if comma else least
        if max(least, most or 0) > _MAX_COUNT:
            raise PatternRefused(f"a repeat of more than {_MAX_COUNT}", is_complex=True)
        if most is not None and most < least:
            self._refuse("a repeat whose limits are swapped")
        return least, most, "{" + f"{least}{comma}{'' if most is None or not comma else most}" + "}"

    def _escape(self) -> str:
        character = self.text[self.at : self.at + 1]
        self.at += 1
        if character.lower() in _CLASSES and character:
            return f"[{'^' if character.isupper() else ''}{_CLASSES[character.lower()]}]"
        return _literal(self._escaped_character(character))

    def _escaped_character(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character or character.isalnum() or not character.isascii():
            raise PatternRefused(f"the escape '\\{character}' is not accepted", is_complex=character.isdigit())
        return character

    def _class(self) -> str:
        negated = self._next("^")
        parts: list[str] = []
        while not (parts and self._next("]")):
            low = self._member()
            if (
                len(low) == 1
                and self.text[self.at : self.at + 1] == "-"
                and self.text[self.at + 1 : self.at + 2] != "]"
            ):
                self.at += 1
                high = self._member()
                if len(high) != 1 or high < low:
                    self._refuse("a range whose ends are swapped")
                parts.append(f"{_literal(low)}-{_literal(high)}")
            else:
                parts.append(_literal(low) if len(low) == 1 else low)
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _member(self) -> str:
        """One character of a class, or the ranges of ``\\d``, ``\\w``, ``\\s``."""
        character = self.text[self.at : self.at + 1]
        if not character or character == "]":
            self._refuse("'[' without ']', or an empty class")
        self.at += 1
        if character != "\\":
            return character
        escaped = self.text[self.at : self.at + 1]
        self.at += 1
        return _CLASSES[escaped] if escaped in _CLASSES else self._escaped_character(escaped)

    def _next(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False

    def _refuse(self, reason: str) -> NoReturn:
        raise PatternRefused(f"{reason} at character {self.at}")


def _literal(character: str) -> str:
    """A character as every engine reads it."""
    if character.isalnum() or ord(character) > 0x7F or character == "_":
        return character
    return f"\\x{ord(character):02x}"


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
    """An accepted schema from outside, made self-contained.

    Raises:
        SchemaRefForbidden, SchemaTooComplex, SchemaInvalid: naming the place in the schema.
    """
    whole = plain(schema)
    _SchemaCheck(name).schema(whole, "#")
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


class _SchemaCheck:
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

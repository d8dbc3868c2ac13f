"""Checks mappings against their JSON Schemas; the only module that imports ``jsonschema``.

Each schema is self-contained, so nothing is ever fetched. Schemas from a workspace are bounded in size and cost.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from memfs.errors import SchemaTooComplex, SettingInvalid
from memfs.format import untrusted_schema
from memfs.format.plain import canonical
from memfs.format.untrusted_schema import inline, nodes, rebuilt, vetted
from memfs.model.kinds import Kind, nearest
from memfs.model.time import parse_time
from memfs.resources import schema_names, schema_text

if TYPE_CHECKING:
    from memfs.format.schema_errors import SchemaError


def quick_check(
    schema: Mapping[str, Any], formats: Mapping[str, Callable[[str], bool]]
) -> Callable[[Any], bool] | None:
    """A function that says whether a value fits the schema; None where the package is not installed.

    It must agree with ``jsonschema``, which says what is wrong; a test compares the two.
    """
    try:
        import jsonschema_rs  # optional, and only wanted once something is validated
    except ImportError:
        return None
    validator = jsonschema_rs.Draft202012Validator(
        dict(schema),
        formats=dict(formats),
        validate_formats=True,
        retriever=_refuse,
        pattern_options=jsonschema_rs.RegexOptions(),
    )
    check: Callable[[Any], bool] = validator.is_valid
    return check


def _refuse(address: str) -> Any:
    raise ValueError(f"schemas are never fetched: {address}")


_MAX_WORK = 1_000_000
_PATTERN_STEPS = 20_000_000
_BODY = ".body"
# handed back by calls, in no file; or in a file that goes from one workspace to another
_ANSWERS = ("retrieved_state", "feedback_data", "recovery_state", "shared_conventions")


class Schemas:
    """Every schema a workspace knows: the bundled ones, and bodies of its own kinds.

    Args:
        extra: schemas of ``data`` by name, from ``configuration/kinds.yaml``; vetted here.

    Raises:
        SchemaRefForbidden, SchemaTooComplex, SchemaInvalid: an extra schema is refused, naming the place in it.
    """

    def __init__(self, extra: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        self._bodies = {name: vetted(schema, f"kind {name!r}") for name, schema in extra.items()}
        self._checks: dict[str, _Check] = {}

    def check_item(self, mapping: Mapping[str, Any], kind: Kind) -> list[SchemaError]:
        """What is wrong with an item of that kind; nothing when it is right.

        Raises:
            SettingInvalid: the kind names a body that does not exist.
            SchemaTooComplex: the body is too large for the workspace's own schema of it.
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
        names |= {body: f"item {body}" for body in (*bodies, *self._bodies)}
        draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        return {
            f"{file}.schema.json": json.dumps(draft | self._schema(name), indent=2, ensure_ascii=False) + "\n"
            for file, name in names.items()
        }

    def _check(self, name: str) -> _Check:
        check = self._checks.get(name)
        if check is None:
            body = name.removeprefix("item ")
            check = self._checks[name] = _Check(self._schema(name), bounded=body in self._bodies)
        return check

    def _schema(self, name: str) -> dict[str, Any]:
        if not name.startswith("item "):
            return _bundled(name)
        body = name.removeprefix("item ")
        shape = self._bodies[body] if body in self._bodies else _bundled(body + _BODY)
        item = _bundled("item")
        described = {**item, "properties": {**item["properties"], "data": shape}}
        if shape.get("required"):  # an item without data lacks all of it
            described["required"] = [*item.get("required", ()), "data"]
        return described


@cache
def _bundled(name: str) -> dict[str, Any]:
    if name not in schema_names():
        raise SettingInvalid(f"there is no schema {name!r}", hint=nearest(name, schema_names()) or None)
    return inline(json.loads(schema_text(name)), name)


class _Check:
    """One schema, compiled when it is first used."""

    def __init__(self, schema: dict[str, Any], bounded: bool) -> None:
        self._parts = nodes(schema) if bounded else 0
        self._schema = schema
        self._quick: Callable[[Any], bool] | None = None
        self._slow: Any = None
        self._ready = False

    def errors(self, value: Mapping[str, Any]) -> list[SchemaError]:
        if not self._ready:
            self._quick = quick_check(_portable(self._schema), {"memfs-time": _is_time})
            self._ready = True
        if self._parts and self._parts * nodes(value.get("data")) > _MAX_WORK:
            raise SchemaTooComplex(
                "the data is too large for the schema of its kind", field="data", hint="split the item"
            )
        if self._quick is not None and self._quick(value):
            return []
        from memfs.format.schema_errors import SchemaError, explained  # only wanted once something is wrong

        if self._slow is None:
            self._slow = _compile(self._schema)
        _spent.steps = 0
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


# -- jsonschema, with keywords that cannot take forever ----------------------------------------------------------
_spent = threading.local()


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

    if not isinstance(value, str):
        return
    pattern = untrusted_schema.vet(text)
    if len(value) > pattern.limit:
        return  # the length is an error of its own
    _spent.steps += len(value) ** pattern.degree
    if _spent.steps > _PATTERN_STEPS:
        raise SchemaTooComplex("too much text for the patterns of its schema", hint="shorten the texts in 'data'")
    if not re.search(pattern.python, value):
        yield ValidationError(f"{value[:60]!r} does not match {text!r}")


def _unique_items(_validator: Any, wanted: bool, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if wanted and isinstance(value, list):
        seen = {canonical(part) for part in value}
        if len(seen) != len(value):
            yield ValidationError("has repeated entries")


def _portable(schema: Any) -> Any:
    """The schema with its patterns rewritten for the quick validator."""
    return rebuilt(schema, lambda key, part: untrusted_schema.vet(part).portable if key == "pattern" else part)

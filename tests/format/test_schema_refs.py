"""Schemas of a workspace's own are bounded (faults rows 15 and 16)."""

from __future__ import annotations

import http.server
import threading
import time
from typing import Any

import pytest

from memfs.errors import MemfsError, SchemaInvalid, SchemaRefForbidden
from memfs.format import schema as schema_module
from memfs.format.schema import Schemas
from memfs.model.kinds import Kind, Layer

KIND = Kind(name="own", layer=Layer.SEMANTIC, description="x", folder="memories/own", body="own")


def schemas(body: dict[str, Any]) -> Schemas:
    """The schemas of a workspace whose kind ``own`` has this body."""
    return Schemas({"own": body})


def errors(body: dict[str, Any], data: Any) -> list[str]:
    """What a body says of some data."""
    return [error.message for error in schemas(body).check_item({"content": "x", "data": data}, KIND)]


def test_row_15_references_that_leave_the_schema_reach_nothing() -> None:
    """A reference to a server or a file is refused, and the server sees no request."""
    hits: list[str] = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)

    server = http.server.HTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/x.json"
        for reference in (address, "file:///etc/passwd", "other.json#/x", "//host/x"):
            with pytest.raises(SchemaRefForbidden, match="leaves the schema"):
                schemas({"properties": {"a": {"$ref": reference}}})
        for keyword in ("$id", "$dynamicRef", "$anchor", "$recursiveRef", "$vocabulary"):
            with pytest.raises(SchemaRefForbidden):
                schemas({"items": {keyword: address}})
        schemas({"$id": address, "properties": {"a": {"$ref": f"{address}#/$defs/x"}}, "$defs": {"x": {}}})
        with pytest.raises(SchemaInvalid, match=r"only draft 2020-12"):
            schemas({"$schema": address})
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert hits == []


DOUBLING = {
    "$ref": "#/$defs/n0",
    "$defs": {
        f"n{level}": {"allOf": [{"$ref": f"#/$defs/n{level + 1}"}, {"$ref": f"#/$defs/n{level + 1}"}]}
        for level in range(20)
    }
    | {"n20": {"type": "string"}},
}


def nested(depth: int) -> dict[str, Any]:
    """A schema inside a schema inside a schema ..."""
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize(
    ("body", "kind", "place"),
    [
        ({"properties": {"a": {"$ref": "#"}}}, SchemaInvalid, "#/properties/a"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, SchemaInvalid, "back to itself"),
        (
            {
                "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}},
                "$ref": "#/$defs/a",
            },
            SchemaInvalid,
            "back to itself",
        ),
        (DOUBLING, SchemaInvalid, "more than 10000 parts"),
        ({"properties": {"a": {"$ref": "#/$defs/nope"}}}, SchemaInvalid, "#/properties/a"),
        ({"$ref": "#nope"}, SchemaInvalid, "names nothing"),
        ({"$ref": 3}, SchemaRefForbidden, "leaves the schema"),
        ({"pattern": "["}, SchemaInvalid, "#/pattern"),
        ({"pattern": "("}, SchemaInvalid, "#/pattern"),
        ({"pattern": "*"}, SchemaInvalid, "#/pattern"),
        ({"pattern": r"\p{L}"}, SchemaInvalid, "#/pattern"),
        ({"pattern": 5}, SchemaInvalid, "#/pattern"),
        ({"patternProperties": {"[": {}}}, SchemaInvalid, "#/patternProperties"),
        ({"type": "strng"}, SchemaInvalid, "#/type"),
        ({"type": [["string"]]}, SchemaInvalid, "#/type"),
        ({"properties": []}, SchemaInvalid, "#/properties"),
        ({"properties": {"a": 3}}, SchemaInvalid, "#/properties/a"),
        ({"anyOf": {}}, SchemaInvalid, "#/anyOf"),
        ({"minimum": "3"}, SchemaInvalid, "#/minimum"),
        ({"multipleOf": 0}, SchemaInvalid, "#/multipleOf"),
        ({"minLength": -1}, SchemaInvalid, "#/minLength"),
        ({"required": "a"}, SchemaInvalid, "#/required"),
        ({"uniqueItems": "yes"}, SchemaInvalid, "#/uniqueItems"),
        ({"enum": "a"}, SchemaInvalid, "#/enum"),
        (nested(90), SchemaInvalid, "80 levels"),
    ],
)
def test_row_16_bad_schemas_are_refused_by_place(body: dict[str, Any], kind: type[MemfsError], place: str) -> None:
    """Recursion, bad pointers, bad patterns and wrong values of keywords end in our errors at once."""
    started = time.process_time()
    with pytest.raises(kind, match=place.replace("$", r"\$")):
        schemas(body)

    assert time.process_time() - started < 10


def test_row_16_what_no_keyword_holds_may_be_anything() -> None:
    """Below a word that says nothing to a validator, keywords mean nothing."""
    assert errors({"x-hint": {"patternProperties": 5}}, "x") == []


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize(
    ("body", "data"),
    [
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": number} for number in range(3000)]}),
        ({"items": {}, "allOf": [{"type": "object"}] * 1000}, {"a": list(range(20_000))}),
    ],
)
def test_row_16_no_amount_of_data_takes_forever(
    body: dict[str, Any], data: Any, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With either validator the answer, or the refusal, comes within a second."""
    if not quick:
        monkeypatch.setattr(schema_module, "quick_check", lambda _schema, _formats: None)
    table = schemas(body)
    table.check_item({"content": "x", "data": {}}, KIND)  # compiling is not what is measured
    started = time.process_time()
    table.check_item({"content": "x", "data": data}, KIND)

    assert time.process_time() - started < 10


def test_row_16_unique_items_compares_values_as_json_schema_does() -> None:
    """1 and 1.0 are one value, 1 and true are two, keys have no order."""
    body = {"properties": {"a": {"uniqueItems": True}}}

    assert errors(body, {"a": [1, True, "1", {"x": 1, "y": 2}]}) == []
    assert errors(body, {"a": [1, 1.0]}) == ["1.0 is there twice"]
    assert errors(body, {"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]})


def test_an_accepted_schema_works_in_full() -> None:
    """References within the schema, choices, formats and patterns do what they say."""
    body = {
        "type": "object",
        "required": ["person"],
        "properties": {
            "person": {"$ref": "#/$defs/name", "description": "Whom it is about."},
            "since": {"type": "string", "format": "date"},
            "mail": {"type": "string", "format": "email"},
            "code": {"pattern": r"^[A-Z]{2}-\d+$"},
            "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/name"}]},
        },
        "if": {"required": ["since"]},
        "then": {"required": ["code"]},
        "$defs": {"name": {"type": "string", "minLength": 1}},
        "x-merge": "keys",
    }

    assert (
        errors(body, {"person": "Ada", "since": "2026-01-01", "code": "AB-12", "mail": "not checked", "next": None})
        == []
    )
    assert errors(body, {"person": ""}) == ["is empty"]
    assert errors(body, {"person": "Ada", "since": "soon", "code": "AB-1"}) == ['"soon" is not a date or time']
    assert errors(body, {"person": "Ada", "code": "AB-12\n"}) == ['"AB-12\\n" has the wrong form']
    assert errors(body, {}) == ["'person' is missing"]


def test_siblings_of_a_reference_count_too() -> None:
    """What is beside ``$ref`` is checked as well as what it names."""
    body = {
        "properties": {"a": {"$ref": "#/$defs/x", "maxLength": 3}},
        "$defs": {"x": {"maxLength": 5, "minLength": 2}},
    }

    assert [errors(body, {"a": text}) != [] for text in ("x", "xx", "xxxx")] == [True, False, True]


@pytest.mark.parametrize("quick", [True, False])
def test_patterns_mean_the_same_with_either_validator(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """``$`` is the very end, digits are those of ASCII, and look-around may be used."""
    if not quick:
        monkeypatch.setattr(schema_module, "quick_check", lambda _schema, _formats: None)
    body = {"properties": {"digits": {"pattern": r"^\d+$"}, "ahead": {"pattern": "^(?=a)[a-z]+$"}}}

    assert errors(body, {"digits": "12", "ahead": "ab"}) == []
    assert errors({"properties": {"digits": body["properties"]["digits"]}}, {"digits": "12"}) == []
    for wrong in ({"digits": "12\n"}, {"digits": "１２"}, {"ahead": "ba"}):
        assert len(errors(body, wrong)) == 1


def test_fields_may_be_called_as_keywords_are() -> None:
    """``$schema``, ``$defs`` and ``enum`` among the properties may be fields; values are left as they are."""
    properties = {name: {"const": {"$ref": "x"}} for name in ("$schema", "$ref", "$id", "$defs", "enum", "format")}
    assert schema_module.resolved({"type": "object", "properties": properties}, "test") == {
        "type": "object",
        "properties": properties,
    }

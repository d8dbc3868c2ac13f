"""LangGraph checkpointer: values as documents hold them (B5)."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import pathlib
import re
import uuid
from collections import deque
from contextlib import suppress
from enum import Enum
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel

from memfs.doors.langgraph.saver import pack, types_in, unpack
from memfs.errors import ContentError

SERDE = JsonPlusSerializer(allowed_msgpack_modules=True)


class Colour(Enum):
    """An enumeration of a state."""

    RED = "red"


class Form(BaseModel):
    """A pydantic model of a state."""

    name: str
    parts: Any = None


def through_file(kept: Any) -> Any:
    """As it comes back from a file."""
    return json.loads(json.dumps(kept, allow_nan=False))


READABLE: list[Any] = [
    None,
    True,
    "text\nof lines",
    2**64 - 1,
    -(2**63),
    -0.0,
    1.0,
    math.inf,
    [1, [2.5, None]],
    (1, 2),
    {"a": {"b": [1]}},
    {1: "whole", (1, 2): "pair", "": "empty", "$object": 3, "x" * 300: 1},
    {"data": b"\x00\xff"},
    {"$sidecar": {"file": "../../x"}},
    [HumanMessage("hi", id="1"), AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "2"}])],
    ToolMessage("done", tool_call_id="2"),
    Document("page", metadata={"n": 1}),
    Send("node", {"x": 1}),
    Interrupt("why?", id="3"),
    Command(goto="end", update={"x": 1}),
    datetime.datetime(2026, 3, 1, 10, 0, 0, 250, tzinfo=datetime.UTC),
    datetime.date(2026, 3, 1),
    datetime.timedelta(seconds=1.5),
    uuid.UUID(int=7),
    decimal.Decimal("1.10"),
    {1, 2},
    frozenset({"a"}),
    deque([1, 2]),
    pathlib.PurePosixPath("a/b").parts,
    re.compile("a+", re.IGNORECASE),
    Colour.RED,
    Form(name="f", parts=[1]),
]


@pytest.mark.parametrize("value", READABLE, ids=lambda value: type(value).__name__)
def test_what_json_can_hold_is_readable_and_comes_back(value: Any) -> None:
    """Also objects, other keys, bytes and unusual numbers: as the serializer itself gives them back."""
    kept = pack(SERDE, value)

    assert list(kept) == ["value"]
    back = unpack(SERDE, through_file(kept))
    expected = SERDE.loads_typed(SERDE.dumps_typed(value))
    assert (type(back), repr(back)) == (type(expected), repr(expected))


HIDDEN: list[Any] = ["\0", "turned \u202e round", b"bytes", bytearray(b"x"), [[]], {"turned \u202e": 1}]
for _ in range(80):
    HIDDEN[4] = [HIDDEN[4]]


@pytest.mark.parametrize("value", HIDDEN, ids=["nul", "bidi", "bytes", "bytearray", "deep", "key"])
def test_what_a_document_cannot_hold_is_kept_as_bytes(value: Any) -> None:
    """Hidden characters, NUL, bytes alone, and deep nesting: base64 of the serializer's bytes."""
    kept = pack(SERDE, value)

    assert sorted(kept) == ["base64", "type"]
    assert unpack(SERDE, through_file(kept)) == value


NESTED = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers(-9, 9), st.booleans()), inner, max_size=4),
        st.builds(lambda part: Form.model_construct(name="n", parts=part), inner),
    ),
    max_leaves=12,
)


@given(NESTED)
def test_any_value_comes_back_as_the_serializer_gives_it(value: Any) -> None:
    """Property: through a file and back is the same as through LangGraph's own bytes and back."""
    kept = through_file(pack(SERDE, value))

    assert repr(unpack(SERDE, kept)) == repr(SERDE.loads_typed(SERDE.dumps_typed(value)))


def test_the_classes_of_a_value_are_known_before_it_is_made() -> None:
    """In the readable form and in bytes alike, at any depth; data that merely looks like a class is none."""
    value = {"a": [Form(name="f")], "b": {Colour.RED}}
    own = {(__name__, "Form"), (__name__, "Colour"), ("builtins", "set")}

    assert types_in(pack(SERDE, value)) == own
    assert types_in(pack(SERDE, {**value, "hidden": "\0"})) == own
    assert types_in(pack(SERDE, ["os", "system", ["x"]])) == set()
    planted = base64.b64encode(ormsgpack.packb(["os", "system", ["x"]])).decode()
    assert types_in({"value": [{"$object": 1, "$bytes": planted}]}) == {("os", "system")}


@pytest.mark.parametrize(
    "kept",
    [
        {"value": {"$object": "five", "of": 1}},
        {"value": {"$object": 5}},
        {"value": {"$bytes": "!"}},
        {"value": {"$pairs": [1]}},
        {"value": {"$pairs": [[{"a": 1}, 1]]}},
        {"value": {"$number": "much"}},
        {"value": {"$number": ["1"]}},
        {"value": {"$number": None}},
        {"base64": base64.b64encode(b"[" * 100_000).decode(), "type": "json"},
        {"base64": "!", "type": "msgpack"},
        {"base64": "wQ==", "type": "msgpack"},
        {"base64": "gAROLg==", "type": "pickle"},
        {"type": "msgpack"},
        {},
    ],
)
def test_an_edit_that_makes_no_value_is_reported(kept: Any) -> None:
    """A person changed the file into what represents nothing: a content error with a remedy, nothing else."""
    with suppress(ContentError):
        types_in(kept)
    with pytest.raises(ContentError) as caught:
        unpack(SERDE, kept)
    assert caught.value.hint

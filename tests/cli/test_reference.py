"""The schemas of results, which the page of the command line is made of."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import PurePath
from typing import Literal

import click
import pytest
import reference
from jsonschema import Draft202012Validator

from memfs.doors.cli.output import MERGE, OMIT, TEXT_ONLY, as_json, merge
from memfs.model import MemoryItem

from .conftest import Memfs


class Door(StrEnum):
    """Two of a kind."""

    CLI = "cli"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class Inner:
    """A part.

    Attributes:
        door: where it came in.
        at: when, and on which day.
    """

    door: Door
    at: tuple[datetime, date]


@dataclass(frozen=True, slots=True)
class Whole:
    """A result.

    Attributes:
        item: of which two fields are beside the others.
        inner: beside them, too.
        parts: several.
        counts: a number for each name.
        place: a path.
        word: one of two.
        problem: what is wrong.
        shown: for the text alone.
    """

    item: MemoryItem = field(metadata=merge("id title?"))
    inner: Inner = field(metadata=MERGE)
    parts: tuple[Inner, ...]
    counts: Mapping[str, int]
    place: PurePath | None
    word: Literal["a", "b"]
    problem: str = field(default="", metadata=OMIT)
    shown: bytes = field(default=b"", metadata=TEXT_ONLY)


def test_a_schema_is_what_values_look_like_in_json() -> None:
    """Every sort of value that a result may hold is described as it is printed, and anything else is refused."""
    inner = Inner(Door.CLI, (datetime(2026, 3, 1, tzinfo=UTC), date(2026, 3, 1)))
    value = as_json(Whole(MemoryItem("x", id="x"), inner, (inner,), {"n": 1}, PurePath("a/b"), "a"))
    assert value.keys() == {"id", "door", "at", "parts", "counts", "place", "word"}
    checks = Draft202012Validator(reference.schema(Whole))
    checks.validate(value)
    for wrong in ({**value, "word": "c"}, {**value, "more": 1}, {**value, "counts": {"n": "1"}}, {"id": "x"}):
        assert not checks.is_valid(wrong)


def verbs() -> Iterator[tuple[str, click.Command]]:
    """Every verb, with its actions."""
    for _, rows in reference.families():
        for called, command in rows:
            yield called, command
            inner: Mapping[str, click.Command] = getattr(command, "commands", {})
            yield from ((f"{called} {name}", action) for name, action in inner.items())


RESULTS = {called: result for called, command in verbs() if (result := reference.result_of(command)) is not None}


@pytest.mark.parametrize("called", RESULTS)
def test_every_key_of_a_result_is_explained(called: str) -> None:
    """A result's docstring, and those of its parts, say of each field what it is, and name no other."""
    kinds = [kind for kind in vars(sys.modules[RESULTS[called].__module__]).values() if isinstance(kind, type)]
    results = [kind for kind in kinds if is_dataclass(kind) and kind.__module__.startswith("memfs.doors.cli.")]
    wrong = {kind: {one.name for one in fields(kind)} ^ reference.attributes(kind).keys() for kind in results}
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("arguments", [["list"], ["show", "first"], ["recall", "deploy", "--explain"], ["log"]])
def test_json_fits_the_schema(memfs: Memfs, arguments: list[str]) -> None:
    """What a verb prints with --json is what the schema of its result says, after it went through text and back."""
    memfs("remember", "deploy on Fridays", "--id", "first", "--agent", "coder", "--tag", "work")
    ran = memfs(*arguments, "--json")
    assert ran.code == 0, ran.err
    Draft202012Validator(reference.schema_of(dict(verbs())[arguments[0]])).validate(ran.json)

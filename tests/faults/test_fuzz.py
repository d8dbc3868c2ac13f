"""Fuzzed files: each is an item or a typed error, in bounded time; nothing changes silently (rows 1-10, 20)."""

from __future__ import annotations

import contextlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.fuzz import PLACES, seeds, spoiled
from memfs import MemoryItem, Query
from memfs.errors import ContentError, IdInvalid, MemfsError, QueryInvalid
from memfs.format.codec import Codec
from memfs.format.schema import Schemas
from memfs.model.kinds import KindTable
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Scale = Callable[[int, int], int]
Figures = Callable[..., None]
CODEC = Codec(Schemas(), KindTable())
FALLBACK = datetime(2025, 1, 2, tzinfo=UTC)
SHARDS = 4
_TEXTS = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
ENDLESS = 20.0  # seconds for one file: far beyond slow, far below endless


class Findings:
    """What is wrong, by the number of the file; empty when all is well."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.wrong: list[str] = []
        self.outcomes: Counter[str] = Counter()

    def examine(self, number: int, place: str, data: bytes) -> None:
        """Read one file, and look at what came of it."""
        began = time.monotonic()
        try:
            item = self.codec.read(data, place, FALLBACK)
        except (ContentError, IdInvalid) as error:
            self.outcomes[error.code] += 1
            self._check_message(number, error, place)
        except Exception as error:  # noqa: BLE001  a foreign exception is the finding
            self._note(number, f"foreign {type(error).__name__}: {error}")
        else:
            self.outcomes["valid"] += 1
            self._unchanged(number, item, place, data)
        if time.monotonic() - began > ENDLESS:
            self._note(number, "took too long")

    def _check_message(self, number: int, error: MemfsError, place: str) -> None:
        if error.path != place or not error.message or not error.hint:
            self._note(number, f"{error.code} without path or remedy: {error}")
        if len(str(error)) > 2000:
            self._note(number, f"{error.code} with an endless message")

    def _unchanged(self, number: int, item: MemoryItem, place: str, data: bytes) -> None:
        other = read_by_pyyaml(place, data)
        for name in ("content", "title"):
            if isinstance(other.get(name), str) and other[name] != getattr(item, name):
                self._note(number, f"{name} read as {getattr(item, name)!r}, another reader has {other[name]!r}")
        if number % 4 == 0:
            self._comes_back(number, item, place, data, dated=bool({"timestamp", "created"} & other.keys()))

    def _comes_back(self, number: int, item: MemoryItem, place: str, data: bytes, dated: bool) -> None:
        """Written again or over its file, it is the same item; a file that names its time keeps every byte."""
        try:
            over, fresh = self.codec.write(item, place, data).data, self.codec.write(item, place).data
            again = [self.codec.read(written, place, FALLBACK).replace(sha256="") for written in (over, fresh)]
        except Exception as error:  # noqa: BLE001  a foreign exception is a finding, too
            self._note(number, f"a valid item cannot be written: {type(error).__name__}: {error}")
            return
        if dated and over != data:
            self._note(number, "an update without a change changed the file")
        if again != [item.replace(sha256="")] * 2:
            self._note(number, "written and read, it is another item")

    def _note(self, number: int, what: str) -> None:
        if len(self.wrong) < 20:
            self.wrong.append(f"file {number}: {what}")


def read_by_pyyaml(place: str, data: bytes) -> dict[str, Any]:
    """The mapping as a reader without our rules sees it, all scalars of YAML as text; empty where it cannot."""
    try:
        text = data.decode("utf-8-sig")
        mapping = json.loads(text) if place.endswith(".json") else yaml.load(text, _TEXTS)
    except (ValueError, yaml.YAMLError, RecursionError):
        return {}
    return mapping if isinstance(mapping, dict) else {}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_10_fuzzed_files_are_items_or_typed_errors(shard: int, scale: Scale, figures: Figures) -> None:
    """No foreign exception, no hang, no value that another reader reads differently, no silent change (rows 1-10)."""
    begin = seeds()
    count = scale(8_000, 1_000_000) // SHARDS
    findings = Findings(CODEC)
    for number in range(shard * count, (shard + 1) * count):
        findings.examine(number, *spoiled(number, begin))
    figures(f"fuzzed files, shard {shard}", points=count, lost=len(findings.wrong), valid=findings.outcomes["valid"])
    assert findings.wrong == []
    assert findings.outcomes["valid"] > count / 10
    assert len(findings.outcomes) > 5


class Careless(Codec):
    """Reads as a tutorial has it."""

    def read(self, data: bytes, path: str, fallback: datetime, *, checked: bool = False) -> MemoryItem:
        """With PyYAML's own loader."""
        mapping = yaml.safe_load(data)
        return MemoryItem(str(mapping["content"]), "semantic", path=path, timestamp=fallback)


def test_10_the_check_notices_a_careless_reader() -> None:
    """PyYAML's own loader lets foreign exceptions out and turns text into other values; the check above sees both."""
    begin = seeds()
    findings = Findings(Careless(Schemas(), KindTable()))
    for number in range(300):
        findings.examine(number, *spoiled(number, begin))
    assert any("foreign" in row for row in findings.wrong)
    text = Findings(Careless(Schemas(), KindTable()))
    text.examine(1, PLACES[0], b"content: 010\n")
    assert any("another reader" in row for row in text.wrong)


def test_10_fuzzed_files_in_a_workspace_leave_the_rest_as_it_is(opened: Opened, scale: Scale, figures: Figures) -> None:
    """Hundreds of spoiled files by hand: each is found or a problem, none is touched, all others are recalled."""
    workspace = opened()
    count, begin = scale(160, 10_000), seeds()
    for number in range(20):
        workspace.store.put(MemoryItem(f"walnut {number}", "knowledge", id=f"good-{number}"))
    written: dict[Path, bytes] = {}
    for number in range(count):
        place, data = spoiled(10_000_000 + number, begin)
        path = workspace.root / place.replace("fuzzed", f"f{number}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written[path] = data
    workspace.store.refresh()
    valid = {item.path for item in workspace.store.select(Query(limit=10_000))}
    reported = {problem.path for problem in workspace.store.problems()}
    for path, data in written.items():
        name = str(path.relative_to(workspace.root))
        assert (name in valid) != (name in reported), name
        assert path.read_bytes() == data
    assert len(workspace.recaller.search(Query(text="walnut", limit=100)).hits) >= 20
    flushed = workspace.store.flush(adopt=True)
    assert flushed.reason == ""
    assert {path for path in flushed.adopted if "/f" in path} == {path for path in valid if "/f" in path}
    assert all(path.read_bytes() == data for path, data in written.items())
    assert {problem.path for problem in workspace.checker.check()} >= reported
    figures("fuzzed files in a workspace", points=count, lost=0, valid=len(valid) - 20)


PIECES = [
    *"aZ09 \n\t:#-'\"\\[]{},&*!|>%@`?~=.+\r\0é日😀",
    "\x85",
    "\u2028",
    "\ufeff",
    "\u200b",
    "\xa0",
    "\x7f",
    "\ud800",
]
PIECES += [
    "no",
    "null",
    "true",
    "<<",
    "---",
    "...",
    "\n\n",
    "  ",
    "1:30",
    "2024-01-01",
    ".inf",
    "a: b",
    " #",
    "\r\n",
    "\U000e0041",
]


def test_09_20000_random_texts_come_back_equal_or_are_refused(scale: Scale, figures: Figures) -> None:
    """In every text field, also as keys: equal after writing and reading, or a typed error before (faults row 9)."""
    count = scale(3_000, 200_000)
    refused = 0
    for number in range(count):
        rng = random.Random(number)
        text = "".join(rng.choices(PIECES, k=rng.randrange(1, 40)))
        try:
            item = MemoryItem(
                text if number % 2 else "x", "semantic", title=text, tags=(text,), metadata={"k": text, text: [text]}
            )
            data = CODEC.write(item, PLACES[0]).data
        except MemfsError:
            refused += 1
            continue
        back = CODEC.read(data, PLACES[0], FALLBACK)
        assert (back.content, back.title, back.tags, back.metadata) == (
            item.content,
            item.title,
            item.tags,
            item.metadata,
        ), repr(text)
    figures("random texts", points=count, lost=0, refused=refused)
    assert count / 20 < refused < count * 0.95


# -- row 20 -------------------------------------------------------------------------------------------------------
QUERIES = [
    "((((((((((((((((((((((((((((((((",
    "*a*",
    "[a TO",
    "[a TO z} AND",
    "a" * 5000,
    "word " * 5000,
    "NUL \x00 in it",
    '"unclosed',
    "field:value OR -x AND NOT",
    "^10 ~3 a^b",
    "?*?*?*?*?*?*",
    "\\\\\\",
    "a" * 100 + "*" * 100,
    "日本語 😀 \u202e \u200b",
    "' OR 1=1; DROP TABLE items; --",
    "NEAR(a b, 1000000000)",
    "\ud800",
    "{/(a+)+$/}",
]


@pytest.mark.parametrize("engine", ["memory", "whoosh", "sqlite"])
def test_20_hostile_queries_give_an_answer_or_a_typed_error(opened: Opened, engine: str) -> None:
    """Each ends soon, with hits or QueryInvalid, and the next question is answered as before (faults row 20)."""
    workspace = opened(index__engine=engine)
    workspace.store.put(MemoryItem("walnut and apple", "knowledge", id="a"))
    workspace.store.fold()
    for text in QUERIES:
        began = time.monotonic()
        with contextlib.suppress(QueryInvalid):
            workspace.recaller.search(text)
        assert time.monotonic() - began < ENDLESS, text[:40]
        assert [hit.item.id for hit in workspace.recaller.search("walnut").hits] == ["a"], text[:40]


@pytest.mark.parametrize("engine", ["memory", "whoosh", "sqlite"])
def test_20_random_queries_and_filters_never_raise_anything_foreign(opened: Opened, scale: Scale, engine: str) -> None:
    """Random words, types, tags, times and limits: an answer or a typed error (faults row 20)."""
    workspace = opened(index__engine=engine)
    for number in range(30):
        workspace.store.put(MemoryItem(f"walnut {number}", "knowledge", id=f"a{number}", tags=(f"t{number % 3}",)))
    workspace.store.fold()
    answered = 0
    for number in range(scale(100, 5000)):
        rng = random.Random(number)
        text = "".join(rng.choices([*PIECES, "walnut "], k=rng.randrange(12)))
        with contextlib.suppress(MemfsError):
            answered += len(workspace.recaller.search(Query(text=text, **filters(rng))).hits) >= 0
    assert answered > 0


def filters(rng: random.Random) -> dict[str, Any]:
    """A few filters with sane and insane values."""
    choices: dict[str, list[Any]] = {
        "types": [("knowledge",), ("nothing",), ("\0",), ()],
        "tags": [("t1",), ("\ud800",), ("x" * 5000,)],
        "since": ["2020", "yesterday", "9999-99-99", "7d", "\0"],
        "until": ["2020-01-01", "1000000d", "-5d"],
        "limit": [1, 0, -1, 10**9, 10_000],
        "min_importance": [0.5, math.inf, -1.0],
    }
    chosen = rng.sample(sorted(choices), k=rng.randrange(3))
    return {name: rng.choice(choices[name]) for name in chosen if name in Query.__dataclass_fields__}

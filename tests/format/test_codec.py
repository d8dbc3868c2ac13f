"""From bytes to items and back (K2, K3, faults part 1a)."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from memfs.errors import (
    IdInvalid,
    InvisibleCharacter,
    ItemSyntaxError,
    ItemTooDeep,
    ItemTooLarge,
    MemfsError,
    SchemaInvalid,
)
from memfs.format.codec import Codec, remarks
from memfs.format.schema import Schemas
from memfs.format.text import decode
from memfs.model.item import Link, MemoryItem, Origin
from memfs.model.kinds import BUILT_IN, KindTable
from memfs.model.time import parse_time

PLACE = "ContextMemory/memories/semantic/2026-03/use-pg.yaml"
DATE = "write it like 2026-03-01 or 2026-03-01T10:00:00Z"
MOVE = "write 'type: semantic', remove the line, or move the file"
QUOTE = 'looks like a number, but text is wanted (quote it: "2024")'
FALLBACK = datetime(2025, 1, 2, tzinfo=UTC)
CODEC = Codec(Schemas(), KindTable())
ITEM = MemoryItem(
    content="We chose it.\nIt is there.\n",
    title="Use PostgreSQL",
    tags=("database", "no"),
    timestamp=parse_time("2026-03-01"),
    created=parse_time("2026-03-01T10:00:00Z"),
    updated=parse_time("2026-03-02T10:00:00.5Z"),
    origin=Origin(agent="Evolution Agent", session="2026-03-01", sequence=0, phase="refine"),
    trust="agent",
    importance=2.5,
    pinned=True,
    status="accepted",
    expires=parse_time("2027-01-01"),
    supersedes=("old-one",),
    links=(Link(to="x", relation="contradicts"), Link(to="y")),
    context={"version": "1.10", "flag": "no", "n": 3, "f": 2.0, "list": [1, "1", None, True, {"a": []}]},
    metadata={"note": "  odd\n\n text \n"},
    data={"free": {"deep": "yes"}},
)


def read(text: str, path: str = PLACE) -> MemoryItem:
    """The item in a text."""
    return CODEC.read(text.encode(), path, FALLBACK)


def refusal(text: str | bytes, path: str = PLACE) -> MemfsError:
    """The error a file gives."""
    with pytest.raises(MemfsError) as caught:
        CODEC.read(text if isinstance(text, bytes) else text.encode(), path, FALLBACK)
    assert caught.value.path == path
    return caught.value


# -- reading ------------------------------------------------------------------------------------------------------
def test_an_item_is_what_its_file_says() -> None:
    """Id from the name, type from the folder, times in UTC, sha256 of the bytes."""
    text = "content: hello\ntags: [a]\ncreated: 2026-03-01T12:00:00+02:00\n"

    item = read(text)

    assert (item.id, item.type, item.path, item.content, item.tags) == ("use-pg", "semantic", PLACE, "hello", ("a",))
    assert item.created == item.timestamp == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert item.updated is None
    assert item.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert (item.trust, item.importance, item.origin) == ("human", 1.0, Origin())


def test_without_times_the_files_own_time_counts() -> None:
    """The smallest file is one line."""
    item = read("content: x\n")

    assert (item.timestamp, item.created) == (FALLBACK, None)


@pytest.mark.parametrize("kind", [kind.name for kind in BUILT_IN])
def test_every_kind_is_read_from_its_folder(kind: str) -> None:
    """The folder is the type, whatever is between it and the file."""
    folder = KindTable().get(kind).folder

    assert read("title: x\n", f"ContextMemory/{folder}/own/deeper/a.yml").type == kind


def test_json_items_are_read_and_located() -> None:
    """A ``.json`` file is an item like any other, errors included."""
    place = PLACE.replace(".yaml", ".json")

    assert read('{"title": "x", "tags": ["a"]}', place).tags == ("a",)
    error = refusal('{\n  "title": "x",\n  "importance": "high"\n}\n', place)
    assert (error.line, error.column, error.field) == (3, 17, "importance")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("title: x\nimportance: high\n", '2:13: importance: "high" is not a number (write a number from 0 to 10)'),
        ("title: 1.10\n", '1:8: title: 1.10 looks like a number, but text is wanted (quote it: "1.10")'),
        ("title: x\ntags:\n- a\n- 010\n- 1e3\n- 2024\n", "6:3: tags.3: 2024 " + QUOTE),
        ("title: ~\n", "1:8: title: is empty (write text, or remove the line)"),
        ("content: x\ntags:\n", "2:1: tags: is empty (write a list, or remove the line)"),
        ("title: x\norigin:\n  agnt: y\n", "3:3: origin.agnt: unknown key 'agnt' (did you mean 'agent'?)"),
        ("id: x\ntitle: x\n", "1:1: unknown key 'id' (the file's name is the id; remove this line)"),
        ("title: x\ncreated: 2024-13-45\n", '2:10: created: "2024-13-45" is not a date or time (' + DATE + ')'),
        ("title: x\nlinks:\n- relation: y\n", "3:3: links.0: 'to' is missing (add 'to: ...': id of the other item)"),
        ("type: episodic\ntitle: x\n", "1:7: type: type 'episodic' in the folder of 'semantic' (" + MOVE + ")"),
        ("type: rul\ntitle: x\n", "1:7: type: unknown type 'rul' in the folder of 'semantic' (did you mean 'rule'?)"),
        ("type: semantic\n", "1:1: needs 'content' or 'title' (write content, a title, or both)"),
        ("content: ''\n", "1:10: content: an item needs content or a title (write what to remember)"),
        ("- a\n", "1: the file holds a list, not keys and values (write 'key: value' lines)"),
        ("just text\n", "1: the file holds a single value, not keys and values (write 'key: value' lines)"),
    ],
)  # fmt: skip
def test_k3_an_error_names_file_line_field_fault_and_remedy(text: str, shown: str) -> None:
    """``path:line:column: field: what is wrong (what would be right)``."""
    assert str(refusal(text)) == f"{PLACE}:{shown}"


def test_errors_lists_all_of_a_file_by_line() -> None:
    """``memfs check`` shows every fault at once."""
    found = CODEC.errors(b"tittle: x\ncontent: x\nimportance: high\ntrust: humn\n", PLACE)

    assert [(error.line, error.field) for error in found] == [(1, "tittle"), (3, "importance"), (4, "trust")]
    assert CODEC.errors(b"content: x\n", PLACE) == []
    assert [error.code for error in CODEC.errors(b"a: [\n", PLACE)] == ["ItemSyntaxError"]
    assert [error.code for error in CODEC.errors(b"content: ''\n", PLACE)] == ["SchemaInvalid"]


@pytest.mark.parametrize("typed", ["no", "010", "1:30", "1e3", "2024-01-01", "y", "0b1", "12e10"])
def test_row_6_text_is_kept_exactly_as_typed(typed: str) -> None:
    """What YAML 1.1 would turn into something else is the text that is there."""
    item = read(f"title: {typed}\ntags: [{typed}]\nmetadata: {{{typed}: {typed}}}\n")

    assert (item.title, item.tags, item.metadata) == (typed, (typed,), {typed: typed})


def test_row_10_byte_order_mark_and_crlf_are_accepted_and_reported() -> None:
    """A Windows editor's file is an item, with two remarks."""
    text = "\ufefftitle: x\r\ncontent: y\r\n"
    item, warnings = read(text), list(remarks(decode(text.encode()), PLACE))

    assert (item.title, item.content) == ("x", "y")
    assert [problem.code for problem in warnings] == ["ByteOrderMark", "CarriageReturn"]


def test_row_11_too_large_is_refused_before_parsing() -> None:
    """Bytes beyond the limit are refused anyone who hands them over, and never written."""
    with pytest.raises(ItemTooLarge, match="limit 1048576"):
        CODEC.read(b"content: " + b"x" * 1024 * 1024, PLACE, FALLBACK)
    with pytest.raises(ItemTooLarge):
        CODEC.write(MemoryItem(content="x" * 1024 * 1024), PLACE)


@pytest.mark.parametrize(
    "text", ["content: a\u202eb\n", 'content: "a\\u202Eb"\n', 'content: x\ntags: ["a", "\\U000E0041"]\n']
)
def test_row_17_hidden_text_is_refused_with_place_and_code_points(text: str) -> None:
    """As itself or as an escape, it is refused; the setting overrides."""
    error = refusal(text)

    assert isinstance(error, InvisibleCharacter)
    assert "U+" in error.message
    assert error.line
    assert error.column
    assert Codec(Schemas(), KindTable(), allow_invisible=True).read(text.encode(), PLACE, FALLBACK)


def test_row_17_zero_width_text_is_only_remarked() -> None:
    """U+200B is accepted, reported, and kept."""
    text = "content: a\u200bb\n"
    item, warnings = read(text), list(remarks(decode(text.encode()), PLACE))

    assert item.content == "a\u200bb"
    assert [(problem.code, problem.line) for problem in warnings] == [("InvisibleCharacter", 1)]
    assert "U+200B" in warnings[0].message


def test_row_8_lone_surrogates_and_nul_are_refused_from_files_and_callers() -> None:
    """Not valid Unicode, wherever it comes from."""
    assert "not valid Unicode" in refusal('{"content": "\\ud800"}', PLACE.replace("yaml", "json")).message
    assert "not valid Unicode" in refusal('content: "a\\0"\n').message
    for text in ("a\ud800", "a\0"):
        for item in (MemoryItem(content=text), MemoryItem(content="x", metadata={"a": [text]})):
            with pytest.raises(ItemSyntaxError, match="not valid Unicode"):
                CODEC.write(item, PLACE)


@pytest.mark.parametrize(
    "name", ["CON.yaml", "a b.yaml", "-rf.yaml", "..yaml", "a..b.yaml", "ü.yaml", ".yaml", "x.lock.yaml"]
)
def test_row_13_a_name_that_cannot_be_an_id_is_refused(name: str) -> None:
    """The file's name is checked as an id."""
    assert isinstance(refusal("content: x\n", f"ContextMemory/memories/semantic/{name}"), IdInvalid)


def test_a_file_outside_every_kind_is_reported_where_to_go() -> None:
    """A folder that is not a kind's is an error with the remedy."""
    error = refusal("content: x\n", "ContextMemory/memories/nope/x.yaml")

    assert "memories/<type>/" in (error.hint or "")
    assert "end it with .yaml" in (refusal("content: x\n", "ContextMemory/memories/semantic/x.txt").hint or "")


# -- writing ------------------------------------------------------------------------------------------------------
def test_a_fresh_file_is_canonical() -> None:
    """Canonical order, defaults left out, trust always there, no type, one newline at the end."""
    assert CODEC.write(ITEM, PLACE).data.decode() == (
        "title: Use PostgreSQL\n"
        "content: |\n  We chose it.\n  It is there.\n"
        "tags:\n- database\n- 'no'\n"
        "timestamp: '2026-03-01T00:00:00Z'\n"
        "created: '2026-03-01T10:00:00Z'\n"
        "updated: '2026-03-02T10:00:00.500Z'\n"
        "origin:\n  agent: Evolution Agent\n  session: '2026-03-01'\n  sequence: 0\n  phase: refine\n"
        "trust: agent\n"
        "importance: 2.5\n"
        "pinned: true\n"
        "status: accepted\n"
        "expires: '2027-01-01T00:00:00Z'\n"
        "supersedes:\n- old-one\n"
        "links:\n- to: x\n  relation: contradicts\n- to: 'y'\n  relation: relates\n"
        "context:\n  version: '1.10'\n  flag: 'no'\n  'n': 3\n  f: 2.0\n"
        "  list:\n  - 1\n  - '1'\n  - null\n  - true\n  - a: []\n"
        "metadata:\n  note: |2\n      odd\n\n     text \n"
        "data:\n  free:\n    deep: 'yes'\n"
    )
    assert CODEC.write(MemoryItem(content="x"), PLACE).data == b"content: x\ntrust: human\n"
    assert (
        CODEC.write(MemoryItem(content="x", importance=3), PLACE).data == b"content: x\ntrust: human\nimportance: 3\n"
    )


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json"])
def test_what_is_written_reads_back_as_the_same_item(suffix: str) -> None:
    """Every field, in each format."""
    path = PLACE.replace(".yaml", suffix)
    encoded = CODEC.write(ITEM, path)

    back = CODEC.read(encoded.data, path, FALLBACK)

    assert back == ITEM.replace(id="use-pg", path=path, sha256=back.sha256)
    assert not encoded.rewritten


def test_a_timestamp_equal_to_created_is_not_written_twice() -> None:
    """``created`` alone says both; a later change of it keeps the time of the event."""
    moment = parse_time("2026-03-01T10:00:00Z")
    data = CODEC.write(MemoryItem(content="x", timestamp=moment, created=moment), PLACE).data
    assert data == b"content: x\ncreated: '2026-03-01T10:00:00Z'\ntrust: human\n"

    item = CODEC.read(data, PLACE, FALLBACK).replace(created=parse_time("2026-04-01"))

    assert CODEC.read(CODEC.write(item, PLACE, data).data, PLACE, FALLBACK).timestamp == moment


def test_a_hand_written_file_changes_only_where_the_item_changed() -> None:
    """Comments, the person's spelling of times, ``type:`` and explicit defaults stay."""
    before = (
        "# mine\ntype: semantic\ncontent: x  # c\nimportance: 1\ncreated: 2026-03-01  # the day\n"
        "links:\n- to: a  # why\ntrust: human\n"
    )
    item = read(before)

    assert CODEC.write(item, PLACE, before.encode()).data == before.encode()
    changed = CODEC.write(item.replace(tags=("t",), updated=parse_time("2026-03-05")), PLACE, before.encode())
    assert not changed.rewritten
    assert changed.data.decode() == before.replace("x  # c\n", "x  # c\ntags:\n- t\n").replace(
        "# the day\n", "# the day\nupdated: '2026-03-05T00:00:00Z'\n"
    )


def test_a_default_takes_its_line_away() -> None:
    """Setting a field back to its default removes it; trust stays."""
    before = b"content: x\ntrust: agent\npinned: true\nstatus: done\n"
    item = read(before.decode()).replace(pinned=False, status="", trust="human")

    assert CODEC.write(
        item, PLACE, before
    ).data == b"content: x\ntrust: human\ntimestamp: '2025-01-02T00:00:00Z'\n".replace(
        b"trust: human\ntimestamp: '2025-01-02T00:00:00Z'\n", b"timestamp: '2025-01-02T00:00:00Z'\ntrust: human\n"
    )


def test_a_file_without_times_gets_the_time_it_was_read_with() -> None:
    """The file's own time is about to change, so the time of the event is written down."""
    before = b"content: x\n"
    item = CODEC.read(before, PLACE, FALLBACK).replace(content="y z")

    assert CODEC.write(item, PLACE, before).data == b"content: y z\ntimestamp: '2025-01-02T00:00:00Z'\n"


class Colour(StrEnum):
    """An enumeration that is text."""

    RED = "red"


class Shade(str, Enum):  # noqa: UP042  # the older spelling, whose str() differs
    """An enumeration that prints as something else."""

    DARK = "dark"


def test_values_that_are_nearly_plain_are_written_as_what_they_are() -> None:
    """Tuples, read-only mappings and members of enumerations count as lists, mappings and text."""
    metadata: dict[str, Any] = {"t": (1, 2), "m": MappingProxyType({"a": 1}), "e": Colour.RED, "s": Shade.DARK}
    back = read(CODEC.write(MemoryItem(content="x", metadata=metadata), PLACE).data.decode())

    assert back.metadata == {"t": [1, 2], "m": {"a": 1}, "e": "red", "s": "dark"}


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (float("nan"), SchemaInvalid),
        (float("-inf"), SchemaInvalid),
        (2**63, SchemaInvalid),
        (b"bytes", SchemaInvalid),
        ({1, 2}, SchemaInvalid),
        (FALLBACK, SchemaInvalid),
        (object(), SchemaInvalid),
        (Path("x"), SchemaInvalid),
        ({1: "x"}, SchemaInvalid),
        ({"": "x"}, SchemaInvalid),
        ({"k" * 257: "x"}, SchemaInvalid),
        (LOOP, ItemTooDeep),
    ],
)
def test_values_that_no_file_can_hold_are_refused_by_field(value: Any, kind: type[MemfsError]) -> None:
    """Nothing is silently turned into something else."""
    with pytest.raises(kind) as caught:
        CODEC.write(MemoryItem(content="x", metadata={"a": value}), PLACE)

    assert (caught.value.field or "").startswith("metadata.a")
    assert caught.value.path == PLACE
    assert caught.value.hint


def test_an_item_is_checked_before_it_is_written() -> None:
    """The schema holds for callers too, unless they vouch for the item."""
    for item in (
        MemoryItem(title="two\nlines"),
        MemoryItem(content="x", trust="nobody"),
        MemoryItem(content="x", importance=11),
        MemoryItem(content="x", links=(Link(to="../x"),)),
        MemoryItem(content="x\u202ey"),
    ):
        with pytest.raises(MemfsError) as caught:
            CODEC.write(item, PLACE)
        assert caught.value.field or caught.value.line
    assert CODEC.write(MemoryItem(title="two\nlines"), PLACE, validate=False).data


def test_name_and_type_must_agree_with_the_path() -> None:
    """An item is written only where it belongs."""
    with pytest.raises(IdInvalid, match="cannot be written"):
        CODEC.write(ITEM.replace(id="other"), PLACE)
    with pytest.raises(SchemaInvalid, match="does not belong here"):
        CODEC.write(ITEM.replace(memory_type="rule"), PLACE)


# -- documents ----------------------------------------------------------------------------------------------------
def test_documents_are_read_checked_and_spliced() -> None:
    """Configuration in YAML keeps its comments, in JSON its order; errors have lines."""
    path = "ContextMemory/configuration/memory_context.yaml"
    before = b"# ours\nmetadata:\n  type: memory  # always\n  name: X\n"
    document = CODEC.read_document(before, path, "memory_context")
    document["metadata"]["name"] = "Y z"

    after = CODEC.write_document(document, path, "memory_context", before)

    assert after == before.replace(b"name: X", b"name: Y z")
    with pytest.raises(SchemaInvalid) as caught:
        CODEC.read_document(b"metadata:\n  type: memory\n  name: 5\n", path, "memory_context")
    assert (caught.value.path, caught.value.line) == (path, 3)


def test_json_documents_round_trip() -> None:
    """A fresh JSON document has two blanks of indentation and ends in a newline."""
    path = "ContextMemory/configuration/system_config.json"
    document = {"format_version": 1, "agents": {"Evolution Agent": {"x": "ü"}}}

    data = CODEC.write_document(document, path, "system_config")

    assert json.loads(data) == document
    assert CODEC.read_document(data, path, "system_config") == document
    with pytest.raises(SchemaInvalid) as caught:
        CODEC.write_document({"format_version": "1"}, path, "system_config")
    assert (caught.value.path, caught.value.field) == (path, "format_version")


def test_an_update_leaves_how_a_person_typed_a_number() -> None:
    """``importance: 1.0`` stays so while another field changes; fuzzing found it rewritten."""
    codec = Codec(Schemas(), KindTable())
    path, before = "ContextMemory/memories/semantic/2026-03/a.yaml", b"content: x\nimportance: 1.0\n"
    item = codec.read(before, path, datetime(2026, 3, 1, tzinfo=UTC))
    written = codec.write(item.replace(content="y"), path, before).data
    assert b"importance: 1.0\n" in written

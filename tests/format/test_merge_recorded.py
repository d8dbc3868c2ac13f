"""Recorded conflicts: what an item keeps of them, and what it becomes once somebody decides (K4)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.errors import QueryInvalid
from memfs.format.codec import Codec
from memfs.format.field_merge import FieldConflict, is_undecided, record, settled, within
from memfs.format.schema import Schemas
from memfs.model.item import MemoryItem, RecordedConflict
from memfs.model.kinds import KindTable

CODEC = Codec(Schemas(), KindTable())
PATH = "ContextMemory/memories/semantic/x.yaml"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
DIGEST = "a" * 64


def item_of(clash: FieldConflict, written: str) -> MemoryItem:
    """An item with a record of a clash, from its file."""
    entry = record(clash, DIGEST, "coder", NOW)
    plain = CODEC.read(written.encode(), PATH, NOW)
    marked = plain.replace(conflicts=(RecordedConflict(**{**entry, "time": NOW}),))
    return CODEC.read(CODEC.write(marked, PATH, written.encode()).data, PATH, NOW)


@pytest.mark.parametrize(
    ("clash", "written", "field", "taken"),
    [
        (FieldConflict(field="title", kept="a", lost="b"), "title: a\n", "title", "b"),
        (FieldConflict(field="status", kept="x", lost=None), "title: a\nstatus: x\n", "status", ""),
        (FieldConflict(field="status", kept=None, lost="x"), "title: a\n", "status", "x"),
        (FieldConflict(field="metadata.a.b", kept=1, lost=2), "title: a\nmetadata: {a.b: 1}\n", "metadata", {"a.b": 2}),
        (
            FieldConflict(field="metadata.a.b", kept=1, lost=None),
            "title: a\nmetadata: {a: {b: 1, c: 2}}\n",
            "metadata",
            {"a": {"c": 2}},
        ),
        (FieldConflict(field="importance", kept=3, lost=4), "title: a\nimportance: 3\n", "importance", 4.0),
        (
            FieldConflict(field="expires", kept="2026-12-31", lost="2027-12-31"),
            "title: a\nexpires: 2026-12-31\n",
            "expires",
            datetime(2027, 12, 31, tzinfo=UTC),
        ),
        (
            FieldConflict(field="timestamp", kept="2026-12-31", lost="2027-12-31"),
            "title: a\ntimestamp: 2026-12-31\n",
            "timestamp",
            datetime(2027, 12, 31, tzinfo=UTC),
        ),
        (
            FieldConflict(field="content", kept="a\nb\nc\n", lost="a\nB\nBB\nc\n"),
            "content: |\n  0\n  b\n  c\n",
            "content",
            "0\nB\nBB\nc\n",
        ),
    ],
)
def test_k4_a_conflict_is_settled_either_way(clash: FieldConflict, written: str, field: str, taken: Any) -> None:
    """Keeping removes the record alone; taking puts the value that was not kept into its field."""
    item = item_of(clash, written)
    (conflict,) = item.conflicts

    kept = settled(item, conflict, take=False)
    other = settled(item, conflict, take=True)

    assert is_undecided(item, conflict)
    assert kept == CODEC.read(written.encode(), PATH, NOW).replace(sha256=item.sha256)
    assert getattr(other, field) == taken
    assert other.conflicts == ()
    assert other.replace(**{field: getattr(kept, field)}) == kept


def test_k4_an_edit_since_settles_a_conflict_by_itself() -> None:
    """What is no longer there cannot be replaced by what was not kept."""
    item = item_of(FieldConflict(field="title", kept="a", lost="b"), "title: a\n").replace(title="c")

    assert not is_undecided(item, item.conflicts[0])
    with pytest.raises(QueryInvalid, match="title: it has another value by now"):
        settled(item, item.conflicts[0], take=True)
    assert settled(item, item.conflicts[0], take=False).conflicts == ()
    part = RecordedConflict(field="content", kept="b", lost="B", part=True)
    assert [is_undecided(MemoryItem(text), part) for text in ("a\nb", "b\na\nb", "a")] == [True, False, False]


def test_k4_deciding_brings_no_time_into_an_item_that_has_none() -> None:
    """Of an item that nobody stored yet, the time stays open."""
    conflict = RecordedConflict(field="title", kept="a", lost="b")
    taken = settled(MemoryItem("text", title="a", conflicts=(conflict,)), conflict, take=True)
    assert (taken.title, taken.timestamp, taken.conflicts) == ("b", None, ())


def test_k4_what_is_in_history_alone_cannot_be_taken_from_the_record() -> None:
    """A long value, and the whole of an item."""
    for clash in (
        FieldConflict(field="title", kept="a", lost="b" * 5_000),
        FieldConflict(field="", kept="edited", lost="deleted"),
    ):
        item = item_of(clash, "title: a\n")
        assert is_undecided(item, item.conflicts[0])
        with pytest.raises(QueryInvalid, match="does not hold the value that was not kept"):
            settled(item, item.conflicts[0], take=True)


@pytest.mark.parametrize(
    ("kept", "lost", "passages"),
    [
        ("a\nb\nc", "a\nX\nc", ("b", "X")),
        ("a\n\nc", "a\nX\nc", ("a\n", "a\nX")),
        ("b\nb\nb\nc", "b\nX\nb\nc", ("b\nb\nb", "b\nX\nb")),
        ("a\nb", "a\nb\nc", ("b", "b\nc")),
        ("a\nb\nc", "a\nc", ("a\nb", "a")),
    ],
)
def test_k4_of_a_text_the_lines_that_differ_are_kept(kept: str, lost: str, passages: tuple[str, str]) -> None:
    """With as many around them as show where they belong."""
    entry = record(FieldConflict(field="content", kept=kept, lost=lost), DIGEST)

    assert (entry["kept"], entry["lost"], entry["part"]) == (*passages, True)


texts = st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=8).map("\n".join)


@given(kept=texts.filter(str.strip), lost=texts.filter(str.strip))
def test_k4_taking_gives_the_text_that_gave_way(kept: str, lost: str) -> None:
    """Whatever the lines are: passages, or the whole."""
    entry = record(FieldConflict(field="content", kept=kept, lost=lost), DIGEST)
    item = MemoryItem(kept, conflicts=(RecordedConflict(**entry),))

    assert is_undecided(item, item.conflicts[0])
    assert settled(item, item.conflicts[0], take=True).content == lost


def test_k4_records_are_bounded_and_kept_once() -> None:
    """The newest 63 stay; what the rest said, history knows."""
    entries = [{"field": f"f{number}"} for number in range(70)]

    found = within([*entries, *entries], DIGEST)

    assert found[0] == {"field": "", "kept": "one version", "lost": "further fields", "lost_sha256": DIGEST}
    assert found[1:] == entries[7:]
    assert within(found, DIGEST) == found
    long = record(FieldConflict(field="x" * 3_000, kept=1, lost=2), DIGEST, "by\n" * 400)
    assert (len(long["field"]), long["lost_sha256"], len(long["by"])) == (1_000, DIGEST, 300)

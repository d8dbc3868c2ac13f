"""Stamp tables over the columns of an index, and the compact file form of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.errors import IndexUnavailable
from memfs.model import MemoryItem, Stamp
from memfs.model.ids import stem_of
from memfs.search import columns
from memfs.search.columns import DocumentColumns, DocumentRow, StampTable
from memfs.search.documents import row_of

NUMBERS = st.integers(-(2**61), 2**61)
BLOBS = st.binary(min_size=20, max_size=20).map(bytes.hex)
STAMPS = st.builds(Stamp, st.integers(0, 2**40), NUMBERS, NUMBERS, st.integers(0, 2**64 - 1), BLOBS, NUMBERS)
PATHS = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=30).filter(stem_of)

ENTRIES = st.dictionaries(PATHS, STAMPS, max_size=8)


def one_each(entries: Mapping[str, Stamp]) -> dict[str, Stamp]:
    """Of paths with one id the last: an index holds an id once."""
    return {path: entries[path] for path in {stem_of(path): path for path in entries}.values()}


def changed(before: DocumentColumns, gone: Iterable[str], after: Mapping[str, Stamp]) -> DocumentColumns:
    """The columns as an engine makes them: what is replaced or has another's id counts as removed."""
    ids = {stem_of(path) for path in (*gone, *after)}
    dead = [number for key in ids if (number := before.number(key)) is not None]
    items = [MemoryItem("words", "semantic", id=stem_of(path), path=path) for path in after]
    rows = [DocumentRow(row_of(item), 0, 1, after[item.path]) for item in items]
    return before.with_changes(rows, dead, {})


def again(kept: DocumentColumns) -> StampTable:
    """The table of the columns as the next process reads them."""
    return StampTable(DocumentColumns(columns.unpack(kept.pack())))


@settings(deadline=None)
@given(ENTRIES)
def test_a_table_comes_back_as_it_went(entries: dict[str, Stamp]) -> None:
    """Whatever paths and stamps, packing and unpacking changes nothing; undecodable names included."""
    entries = one_each(entries)
    table = again(changed(DocumentColumns({}), (), entries))
    assert dict(table) == entries
    assert list(table.ids()) == [(path, stem_of(path)) for path in table]


@settings(deadline=None)
@given(ENTRIES, ENTRIES, st.lists(PATHS, max_size=3))
def test_a_changed_table_has_what_is_left_and_what_came(
    before: dict[str, Stamp], after: dict[str, Stamp], gone: list[str]
) -> None:
    """Each path is found in it by itself, and all together are what a mapping would hold."""
    before, after = one_each(before), one_each(after)
    gone = [*list(before)[::3], *(path for path in gone if path in before)]
    taken = {stem_of(path) for path in (*gone, *after)}
    expected = {path: entry for path, entry in before.items() if stem_of(path) not in taken} | after
    table = again(changed(changed(DocumentColumns({}), (), before), gone, after))
    assert (dict(table), len(table)) == (expected, len(expected))
    assert dict(table.ids()) == {path: stem_of(path) for path in expected}
    assert {path: table.blob(path) for path in expected} == dict(table.blobs())
    assert not [path for path in gone if path not in after and path in table]


def test_a_file_that_was_looked_at_again_has_its_new_stamp() -> None:
    """Its document stays; the next process knows the stamp that was made last."""
    stamps = [Stamp(number, number, number, number, "0" * 39 + "a", number) for number in (1, 5)]
    kept = changed(DocumentColumns({}), (), {"a/x.yaml": stamps[0], "a/y.yaml": stamps[0]})
    number = kept.number_at("a/y.yaml")
    assert number is not None
    assert dict(again(kept.with_changes([], [], {number: stamps[1]}))) == dict(
        zip(("a/x.yaml", "a/y.yaml"), stamps, strict=True)
    )


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_other_bytes_are_not_sections(data: bytes) -> None:
    """Bytes that are not a container are refused with an error of ours."""
    with pytest.raises(IndexUnavailable, match="cannot be read"):
        columns.unpack(data)


def test_cut_sections_are_refused() -> None:
    """A container that is cut short or too long anywhere is refused."""
    data = columns.pack({"one": b"abc", "two": b""})
    assert {name: bytes(part) for name, part in columns.unpack(data).items()} == {"one": b"abc", "two": b""}
    for size in range(len(data)):
        with pytest.raises(IndexUnavailable):
            columns.unpack(data[:size])
    with pytest.raises(IndexUnavailable):
        columns.unpack(data + b"x")


def test_changes_make_a_new_table() -> None:
    """Removing, replacing and adding leaves the old columns as they were; the one added last holds an id."""
    stamps = [Stamp(number, number, number, number, f"{number:040x}", number) for number in range(4)]
    old = changed(DocumentColumns({}), (), {"a/x.yaml": stamps[0], "a/y.yaml": stamps[1]})
    new = changed(old, ["a/y.yaml"], {"b/x.yaml": stamps[3]})
    assert dict(StampTable(old)) == {"a/x.yaml": stamps[0], "a/y.yaml": stamps[1]}
    assert dict(StampTable(new)) == {"b/x.yaml": stamps[3]}
    holders = StampTable(old).holder("x"), StampTable(new).holder("x"), StampTable(new).holder("y")
    assert holders == ("a/x.yaml", "b/x.yaml", None)


def test_whatever_byte_is_flipped_columns_are_refused(tmp_path: Path) -> None:
    """Damage is found when columns are read, so that the index is made again, and never when they are used."""
    stamps = [Stamp(number, number, number, number, "0" * 39 + "a", number) for number in range(2)]
    data = changed(DocumentColumns({}), (), dict(zip(("a/x.yaml", "b/\u00e4.yaml"), stamps, strict=True))).pack()
    for place, bit in product(range(len(data)), range(8)):
        (tmp_path / columns.COLUMNS).write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
        with pytest.raises(IndexUnavailable):
            DocumentColumns.read(tmp_path)

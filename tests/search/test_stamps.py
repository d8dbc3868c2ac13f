"""Stamp tables and the compact file form they share with columns."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.errors import IndexUnavailable
from memfs.model import Stamp
from memfs.model.ids import stem_of
from memfs.search import columns
from memfs.search.stamps import StampTable

NUMBERS = st.integers(-(2**61), 2**61)
BLOBS = st.binary(min_size=20, max_size=20).map(bytes.hex)
STAMPS = st.builds(Stamp, st.integers(0, 2**40), NUMBERS, NUMBERS, st.integers(0, 2**64 - 1), BLOBS, NUMBERS)
PATHS = st.text(st.characters(exclude_characters="\0"), max_size=30)

ENTRIES = st.dictionaries(PATHS, STAMPS, max_size=8)


@settings(deadline=None)
@given(ENTRIES)
def test_a_table_comes_back_as_it_went(entries: dict[str, Stamp]) -> None:
    """Whatever paths and stamps, packing and unpacking changes nothing; undecodable names included."""
    table = StampTable.of(entries)
    assert dict(table) == entries
    again = StampTable.unpack(table.pack())
    assert dict(again) == entries
    assert list(again.ids()) == [(path, stem_of(path)) for path in again]


@settings(deadline=None)
@given(ENTRIES, ENTRIES, st.lists(PATHS, max_size=3))
def test_a_changed_table_has_what_is_left_and_what_came(
    before: dict[str, Stamp], after: dict[str, Stamp], gone: list[str]
) -> None:
    """Each path is found in it by itself, and all together are what a mapping would hold."""
    gone += list(before)[::3]
    expected = {path: entry for path, entry in before.items() if path not in gone} | after
    table = StampTable.unpack(StampTable.of(before).changed(gone, after).pack())
    assert dict(table) == expected
    assert dict(table.ids()) == {path: stem_of(path) for path in expected}
    assert {path: table.blob(path) for path in expected} == dict(table.blobs())
    assert not [path for path in gone if path not in after and path in table]


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_other_bytes_are_no_sections(data: bytes) -> None:
    """Bytes that are no container are refused in our words."""
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
    """Removing, replacing and adding leaves the old table as it was; the last added of twins holds the id."""
    stamps = [Stamp(number, number, number, number, f"{number:040x}", number) for number in range(4)]
    old = StampTable.of({"a/x.yaml": stamps[0], "a/y.yaml": stamps[1]})
    new = old.changed({"a/y.yaml", "unknown"}, {"a/x.yaml": stamps[2], "b/x.yaml": stamps[3]})
    assert dict(old) == {"a/x.yaml": stamps[0], "a/y.yaml": stamps[1]}
    assert dict(new) == {"a/x.yaml": stamps[2], "b/x.yaml": stamps[3]}
    assert (old.holder("x"), new.holder("x"), new.holder("y")) == ("a/x.yaml", "b/x.yaml", None)


def test_whatever_byte_is_flipped_a_table_is_refused() -> None:
    """Damage is found when a table is unpacked, so that the index is made anew, and never when it is used."""
    stamps = [Stamp(number, number, number, number, "0" * 39 + "a", number) for number in range(3)]
    paths = ["a/x.yaml", "a/\u00e4.yaml", "b/z.yaml"]
    data = StampTable.of(dict(zip(paths, stamps, strict=True))).pack()
    for place, bit in product(range(len(data)), range(8)):
        with pytest.raises(IndexUnavailable):
            StampTable.unpack(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])

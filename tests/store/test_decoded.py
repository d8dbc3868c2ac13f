"""Items that are kept decoded: never stale, never changed by who got them before, and not without end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memfs.model import MemoryItem, Stamp
from memfs.store import reader
from memfs.store.reader import ItemDecoder

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Decoder:
    """Counts how often it is asked."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.asked = 0

    def __call__(self) -> MemoryItem:
        self.asked += 1
        return MemoryItem("Ship on Fridays.", id="a", timestamp=NOW, **self.fields)


def _stamp(blob: str = "b1", mtime_ns: int = 1, size: int = 100) -> Stamp:
    return Stamp(size, mtime_ns, 1, 1, blob, 1)


def test_equal_bytes_are_decoded_once() -> None:
    """The second reader of a file that did not change gets an equal item, without decoding."""
    known, decode = ItemDecoder(), Decoder(tags=("a",), metadata={"x": [1]})
    first = known.item("p", _stamp(), decode, checked=False)
    assert known.item("p", _stamp(), decode, checked=False) == first
    assert decode.asked == 1


@pytest.mark.parametrize("stamp", [_stamp(blob="b2"), _stamp(mtime_ns=2)])
def test_a_file_that_changed_is_decoded_anew(stamp: Stamp) -> None:
    """Neither other bytes nor another time of the file, which may be the item's, are taken for what is known."""
    known, decode = ItemDecoder(), Decoder()
    known.item("p", _stamp(), decode, checked=False)
    known.item("p", stamp, decode, checked=False)
    assert decode.asked == 2


def test_what_was_not_checked_is_not_enough_for_who_wants_it_checked() -> None:
    """An item that was decoded without its schema is decoded again where the schema counts; not the other way round."""
    known, decode = ItemDecoder(), Decoder()
    known.item("p", _stamp(), decode, checked=False)
    known.item("p", _stamp(), decode, checked=True)
    known.item("p", _stamp(), decode, checked=False)
    assert decode.asked == 2


def test_nobody_can_change_what_others_get() -> None:
    """Changes to the mappings of an item, nested and empty ones too, reach no other reader, whoever came first."""
    known = ItemDecoder()
    for _ in range(3):
        got = known.item("p", _stamp(), Decoder(metadata={"x": [1]}), checked=True)
        assert (got.metadata, got.context, got.data) == ({"x": [1]}, {}, {})
        got.metadata["x"].append(2)
        for mapping in (got.metadata, got.context, got.data):
            mapping["poison"] = True  # type: ignore[index]


def test_no_more_is_kept_than_the_bounds_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The items used longest ago go when there are too many, or their files are too long together; a huge one never
    comes in.
    """
    monkeypatch.setattr(reader, "_MOST", 3)
    monkeypatch.setattr(reader, "_MOST_BYTES", 250)
    known, decode = ItemDecoder(), Decoder()
    for path in "abab":
        known.item(path, _stamp(), decode, checked=True)
    assert decode.asked == 2
    known.item("c", _stamp(), decode, checked=True)  # 300 bytes: "a" goes
    known.item("b", _stamp(), decode, checked=True)
    assert decode.asked == 3
    known.item("a", _stamp(), decode, checked=True)
    assert decode.asked == 4
    for _ in range(2):
        known.item("huge", _stamp(size=1 << 20), decode, checked=True)
    assert decode.asked == 6

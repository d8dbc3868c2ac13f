"""What an item may be made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memfs.errors import SchemaInvalid
from memfs.model import Link, MemoryItem, MemoryType, Origin, Trust


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", 5),
        ("content", None),
        ("title", b"t"),
        ("memory_type", None),
        ("id", 7),
        ("tags", "fruit"),
        ("tags", 5),
        ("tags.1", ["a", 5]),
        ("supersedes", "x"),
        ("links.0", ["x"]),
        ("links.0", [{"to": "x"}]),
        ("links", "x"),
        ("links", 5),
        ("origin", "coder"),
        ("trust", None),
        ("importance", "high"),
        ("importance", True),
        ("pinned", "yes"),
        ("pinned", 0),
        ("status", 1),
        ("context", ["a"]),
        ("metadata", "a"),
        ("data", None),
        ("timestamp", "soon"),
        ("timestamp", 5),
        ("expires", object()),
    ],
)
def test_a_value_of_the_wrong_sort_is_refused_by_its_field(field: str, value: Any) -> None:
    """A mistake in a program is named where it is made, not where the file is written (K3)."""
    name = field.partition(".")[0]
    with pytest.raises(SchemaInvalid) as caught:
        MemoryItem(**{"content": "x", name: value})
    assert caught.value.field == field


def test_what_is_near_enough_is_taken() -> None:
    """Names of enumerations, lists, whole numbers and times as text become what the item keeps."""
    item = MemoryItem(
        "x",
        MemoryType.RULE,
        tags=["a", "b", "a"],
        trust=Trust.AGENT,
        importance=2,
        links=[Link(to="y")],
        origin=Origin(agent="coder"),
        timestamp="2026-03-01",
    )
    assert (item.type, item.tags, item.trust) == ("rule", ("a", "b"), "agent")
    assert item.links == (Link(to="y"),)
    assert item.timestamp == datetime(2026, 3, 1, tzinfo=UTC)

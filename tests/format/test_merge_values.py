"""Merging: rules by field, and laws that hold whatever the values (issue 5, point 8)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.format.field_merge import FieldConflict, equal, merge

SCHEMA: dict[str, Any] = {
    "properties": {
        "wins": {"x-merge": "sum"},
        "best": {"x-merge": "max"},
        "first": {"x-merge": "min"},
        "tags": {"x-merge": "union"},
        "state": {"x-merge": "lww"},
        "id": {"x-merge": "same"},
        "notes": {"x-merge": "keys", "additionalProperties": {"x-merge": "sum"}},
        "title": {"x-merge": "conflict"},
        "story": {"x-merge": "text3"},
        "steps": {"x-merge": "sequence"},
        "when": {"x-merge": "conflict", "format": "memfs-time"},
    }
}

scalars = st.none() | st.booleans() | st.integers(-50, 50) | st.text(max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner), max_leaves=6
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "wins": st.integers(0, 100),
        "best": st.integers(0, 100),
        "first": st.integers(0, 100),
        "tags": st.lists(st.sampled_from("abcd"), unique=True),
        "state": st.sampled_from(["new", "old"]),
        "notes": st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9)),
        "title": scalars,
        "free": values,
    },
)


# -- rules --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ({"wins": 5}, {"wins": 6}, {"wins": 8}, {"wins": 9}),
        ({"wins": 5}, {"wins": 6}, {"wins": 6}, {"wins": 7}),
        ({}, {"wins": 1}, {"wins": 1}, {"wins": 2}),
        (
            {"free": {"$schema": "s"}},
            {"free": {"$schema": "s", "a": 1}},
            {"free": {"$schema": "t"}},
            {"free": {"$schema": "t", "a": 1}},
        ),
        ({"best": 1}, {"best": 7}, {"best": 3}, {"best": 7}),
        ({"best": False}, {"best": True}, {"best": False}, {"best": True}),
        (
            {"best": "2026-03-01T10:00:00Z"},
            {"best": "2026-03-01T11:00:00Z"},
            {"best": "2026-03-01T11:00:00.5Z"},
            {"best": "2026-03-01T11:00:00.5Z"},
        ),
        ({"best": "a"}, {"best": "b"}, {"best": "c"}, {"best": "c"}),
        ({"first": 5}, {"first": 4}, {"first": 2}, {"first": 2}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, {"tags": ["a", "b", "d"]}, {"tags": ["b", "c", "d"]}),
        ({"tags": ["a", "b"]}, {}, {"tags": ["b"]}, {}),
        ({"notes": {"x": 1, "y": 2}}, {}, {"notes": {"y": 2}}, {}),
        ({"tags": "x"}, {"tags": [1, True]}, {"tags": [1.0, {"a": 1}]}, {"tags": [1, True, {"a": 1}]}),
        ({"state": "new"}, {"state": "tested"}, {"state": "dropped"}, {"state": "tested"}),
        ({"notes": {"x": 1}}, {"notes": {"x": 2}}, {"notes": {"x": 3, "y": 1}}, {"notes": {"x": 4, "y": 1}}),
        ({"free": {"a": 1}}, {"free": {"a": 1, "b": 2}}, {"free": {"c": 3}}, {"free": {"b": 2, "c": 3}}),
        ({"title": "x", "gone": 1}, {"title": "x"}, {"title": "y", "gone": 1}, {"title": "y"}),
        ({"story": "a\nb\nc\n"}, {"story": "A\nb\nc\n"}, {"story": "a\nb\nC\n"}, {"story": "A\nb\nC\n"}),
        ({"story": "a\nb"}, {"story": "a\nb\nc"}, {"story": "A\nb"}, {"story": "A\nb\nc"}),
        ({"free": "a\nb\nc"}, {"free": "b\nc"}, {"free": "a\nb\nc\nd"}, {"free": "b\nc\nd"}),
        ({"steps": [1, 2, 3]}, {"steps": [0, 1, 2, 3]}, {"steps": [1, 2]}, {"steps": [0, 1, 2]}),
        ({"steps": [1]}, {"steps": [1, 2, 4]}, {"steps": [1, 3, 4]}, {"steps": [1, 2, 3, 4]}),
        ({}, {"free": [{"a": 1}]}, {"free": [{"a": 1}, "b"]}, {"free": [{"a": 1}, "b"]}),
        ({"when": ""}, {"when": "2026-03-01"}, {"when": "2026-03-01T00:00:00Z"}, {"when": "2026-03-01"}),
        (
            {},
            {"state": {"timestamp": "2026-03-01", "n": 1}},
            {"state": {"timestamp": "2026-03-02", "n": 2}},
            {"state": {"timestamp": "2026-03-02", "n": 2}},
        ),
    ],
)
def test_each_rule_joins_what_both_sides_changed(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], merged: dict[str, Any]
) -> None:
    """Counters add up, extremes and unions are taken, keys join by themselves, and nothing of it is a conflict."""
    joined = merge(base, ours, theirs, SCHEMA)

    assert (joined.values, joined.conflicts) == (merged, ())


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged", "clash"),
    [
        (
            {"title": "a"},
            {"title": "b"},
            {"title": "c"},
            {"title": "b"},
            FieldConflict(field="title", kept="b", lost="c"),
        ),
        ({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "b"}, FieldConflict(field="id", kept="b", lost="c")),
        ({"title": "a"}, {}, {"title": "c"}, {"title": "c"}, FieldConflict(field="title", kept="c", lost=None)),
        ({"title": "a"}, {"title": "b"}, {}, {"title": "b"}, FieldConflict(field="title", kept="b", lost=None)),
        ({"wins": 1}, {"wins": "two"}, {"wins": 3}, {"wins": "two"}, FieldConflict(field="wins", kept="two", lost=3)),
        ({}, {"wins": 10**400}, {"wins": 0.5}, {"wins": 10**400}, FieldConflict(field="wins", kept=10**400, lost=0.5)),
        (
            {"tags": []},
            {"tags": "a"},
            {"tags": ["b"]},
            {"tags": "a"},
            FieldConflict(field="tags", kept="a", lost=["b"]),
        ),
        ({}, {"best": 1}, {"best": "x"}, {"best": 1}, FieldConflict(field="best", kept=1, lost="x")),
        ({}, {"free": {"a": 1}}, {"free": {"a": 2}}, {"free": {"a": 1}}, FieldConflict(field="free.a", kept=1, lost=2)),
        (
            {"story": "a\nb\nc"},
            {"story": "a\nB\nc\nd"},
            {"story": "0\na\nx\nc"},
            {"story": "0\na\nB\nc\nd"},
            FieldConflict(field="story", kept="0\na\nB\nc\nd", lost="0\na\nx\nc\nd"),
        ),
        (
            {"story": "a\nc"},
            {"story": "a\nB\nc"},
            {"story": "a\nx\nc"},
            {"story": "a\nB\nc"},
            FieldConflict(field="story", kept="a\nB\nc", lost="a\nx\nc"),
        ),
        (
            {"steps": [1, 2, 3]},
            {"steps": [1, 5, 3]},
            {"steps": [1, 6, 3, 4]},
            {"steps": [1, 5, 3, 4]},
            FieldConflict(field="steps", kept=[1, 5, 3, 4], lost=[1, 6, 3, 4]),
        ),
        (
            {"free": {"$sidecar": {"file": "a", "bytes": 1}}},
            {"free": {"$sidecar": {"file": "b", "bytes": 1}}},
            {"free": {"$sidecar": {"file": "a", "bytes": 2}}},
            {"free": {"$sidecar": {"file": "b", "bytes": 1}}},
            FieldConflict(
                field="free",
                kept={"$sidecar": {"file": "b", "bytes": 1}},
                lost={"$sidecar": {"file": "a", "bytes": 2}},
            ),
        ),
        (
            {},
            {"wins": 1e308},
            {"wins": 1e308 + 1e300},
            {"wins": 1e308},
            FieldConflict(field="wins", kept=1e308, lost=1e308 + 1e300),
        ),
    ],
)
def test_what_no_rule_joins_keeps_the_last_writers_value_and_says_so(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], merged: dict[str, Any], clash: FieldConflict
) -> None:
    """A contradiction is named with both values; a change wins over a removal."""
    joined = merge(base, ours, theirs, SCHEMA)

    assert (joined.values, joined.conflicts) == (merged, (clash,))


def test_a_change_wins_over_a_removal_unless_removals_are_kept() -> None:
    """Also of lines: a removal of what the other changed loses, except where ours wins whatever it did."""
    base, ours, theirs = {"title": "a", "story": "a\nb\nc"}, {"story": "a\nc"}, {"title": "b", "story": "a\nB\nc"}

    yielded = merge(base, ours, theirs, SCHEMA)
    stood = merge(base, ours, theirs, SCHEMA, removals_stand=True)

    assert yielded.values == {"story": "a\nB\nc", "title": "b"}
    assert [(one.field, one.yielded) for one in yielded.conflicts] == [("story", True), ("title", True)]
    assert stood.values == {"story": "a\nc"}
    assert stood.conflicts == (
        FieldConflict(field="story", kept="a\nc", lost="a\nB\nc"),
        FieldConflict(field="title", kept=None, lost="b"),
    )


def test_keys_where_a_list_belongs_are_not_an_empty_list() -> None:
    """A removal that loses leaves the change, and no empty table, also where a rule does not fit."""
    schema = {"properties": {"words": {"x-merge": "union"}}}
    joined = merge({"words": {"a": 1}}, {}, {"words": {"a": 2}}, schema)
    assert joined.values == {"words": {"a": 2}}
    assert joined.conflicts == (FieldConflict(field="words", kept={"a": 2}, lost=None),)


def test_true_is_not_one() -> None:
    """Values are compared as JSON has them."""
    assert not equal({"a": [True]}, {"a": [1]})
    assert equal({"a": [1.0, None]}, {"a": (1, None)})
    assert merge({"title": 1}, {"title": True}, {"title": 1}, SCHEMA).values == {"title": True}


# -- laws ---------------------------------------------------------------------------------------------------------
@given(base=documents, changed=documents)
def test_a_side_that_did_nothing_changes_nothing(base: dict[str, Any], changed: dict[str, Any]) -> None:
    """Merging with the base gives the other side, whichever side that is."""
    assert merge(base, changed, base, SCHEMA).values == changed
    assert merge(base, base, changed, SCHEMA).values == changed
    assert merge(base, base, changed, SCHEMA).conflicts == ()


@given(base=documents, ours=documents, theirs=documents)
def test_sides_can_be_exchanged_but_for_who_is_last(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    """What is not a conflict and has no last writer comes out the same either way; conflicts name the same fields."""
    one, other = merge(base, ours, theirs, SCHEMA), merge(base, theirs, ours, SCHEMA)

    assert {clash.field for clash in one.conflicts} == {clash.field for clash in other.conflicts}
    for field in ("wins", "best", "first", "notes"):
        assert one.values.get(field) == other.values.get(field)
    assert set(one.values.get("tags", ())) == set(other.values.get("tags", ()))


@given(base=documents, ours=documents, theirs=documents)
def test_nothing_is_lost_unsaid(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """A free field that a side changed is in the result, or was removed by both, or is named as a conflict."""
    joined = merge(base, ours, theirs, SCHEMA)
    for side in (ours, theirs):
        new = side.get("title", "absent")
        if not equal(new, base.get("title", "absent")):
            named = any(clash.field == "title" for clash in joined.conflicts)
            assert named or equal(joined.values.get("title", "absent"), new)


@given(base=st.integers(0, 20), steps=st.lists(st.integers(-3, 3), max_size=8))
def test_counters_of_any_number_of_writers_add_up(base: int, steps: list[int]) -> None:
    """Each writer starts from the same count; joined one after another, every change counts once."""
    begun = {"wins": base}
    stored = begun
    for step in steps:
        stored = merge(begun, {"wins": base + step}, stored, SCHEMA).values

    assert stored == {"wins": base + sum(steps)}

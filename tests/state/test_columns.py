"""A document as one row of a table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.state.export import (
    RESERVED,
    cell,
    column_name,
    fitting,
    learn_columns,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = st.one_of(TEXTS.filter(bool), st.sampled_from(["path", "a.b", "\\", "=sum", "more", "-1", "ü ü"]))


@given(st.lists(KEYS, min_size=1, max_size=4), st.lists(KEYS, min_size=1, max_size=4))
def test_a_column_name_stands_for_one_path(path: list[str], other: list[str]) -> None:
    """Dots and backslashes in keys are escaped, and no name is one of the fixed columns' or begins a formula."""
    name = column_name(path)
    assert (column_name(other) == name) == (other == path)
    assert name not in RESERVED
    assert name[0] not in "=+-@"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain text", "plain text"),
        ("", '""'),
        ("007", '"007"'),
        ("1e5", '"1e5"'),
        ("nan", '"nan"'),
        ("true", '"true"'),
        ("=1+1", '"=1+1"'),
        ("@sum", '"@sum"'),
        ("-2", '"-2"'),
        ("[x", '"[x"'),
        (-2, "-2"),
        (1.0, "1.0"),
        (None, "null"),
        (True, "true"),
        ([1, "a"], '[1, "a"]'),
        ({}, "{}"),
    ],
)
def test_a_cell_says_of_which_type_its_value_is(value: Any, written: str) -> None:
    """Text that reads as a number, a constant, JSON or a spreadsheet's formula stands in JSON's quotes (S19)."""
    assert cell(value) == written


def test_columns_stand_in_the_order_in_which_they_come() -> None:
    """A document's keys stand as it has them, new ones of later documents behind; beyond the limit there is none."""
    columns: dict[str, str] = {}
    for row in ({"b": 1, "d": 2}, {"a": 1, "b": 1, "c": 1, "d": 1}, {"d": 1, "e": 1, "f": 1}):
        learn_columns(columns, row, most=5)
    assert list(columns) == ["b", "d", "a", "c", "e"]


def test_columns_hold_the_narrowest_sort_that_fits_every_value() -> None:
    """Whole numbers and fractions are fractions, times and text are text, what differs is JSON, None fits all."""
    columns: dict[str, str] = {}
    learn_columns(
        columns,
        {"i": 1, "f": 1, "t": "2026-03-01T10:00:00Z", "m": "2026-03-01T10:00:00Z", "x": 1, "n": None, "b": True},
    )
    learn_columns(columns, {"i": None, "f": 0.5, "t": "soon", "m": None, "x": "one", "n": None, "b": False})
    sorts = {"i": "int", "f": "float", "t": "text", "m": "moment", "x": "json", "n": "", "b": "bool"}
    assert columns == sorts
    assert [fitting(2, "float"), fitting("x", "int"), fitting(True, "int"), fitting("x", "json")] == [
        2.0,
        None,
        None,
        '"x"',
    ]
    assert fitting("2026-13-01T10:00:00Z", "moment") is None

"""A document as one row of a table."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.state.transfer import cell, flat, learn_columns


def test_a_column_is_named_by_the_keys_down_to_its_value() -> None:
    """Keys are joined by dots; one that is called as a column in front is distinguished from it (S19)."""
    document = {"path": "own", "a": {"b": {"c": 1}, "path": 2}, "list": [1], "none": {}}
    assert dict(flat(document)) == {"document.path": "own", "a.b.c": 1, "a.path": 2, "list": [1], "none": {}}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("007", "007"),
        ("=1+1", '"=1+1"'),
        ("@sum", '"@sum"'),
        ("-2", '"-2"'),
        (-2, "-2"),
        (1.0, "1.0"),
        (None, "null"),
        (True, "true"),
        ([1, "a"], '[1, "a"]'),
        ({}, "{}"),
    ],
)
def test_a_cell_is_text_or_json(value: Any, written: str) -> None:
    """What is not text, and what a spreadsheet would run as a formula, is written as JSON (S19)."""
    assert cell(value) == written


def test_columns_are_in_the_order_in_which_they_come() -> None:
    """A document's keys come as it has them, new ones of later documents behind; beyond the limit there is none."""
    columns: dict[str, bool] = {}
    for row in ({"b": 1, "d": 2}, {"a": "x", "b": 1.5, "c": 1, "d": "two"}, {"d": 1, "e": None, "f": 1}):
        learn_columns(columns, row.items(), most=5)
    assert columns == {"b": True, "d": False, "a": False, "c": True, "e": True}

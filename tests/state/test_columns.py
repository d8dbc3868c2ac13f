"""A document as one row of a table, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.errors import ItemSyntaxError
from memfs.state.export_record import (
    RESERVED,
    TableColumns,
    cell,
    column_name,
    column_path,
    fitting,
    flat,
    nested,
    value_of,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = st.one_of(TEXTS.filter(bool), st.sampled_from(["path", "a.b", "\\", "=sum", "more", "-1", "ü ü"]))
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


@given(DOCUMENTS)
def test_a_document_comes_back_from_its_cells(document: dict[str, Any]) -> None:
    """Whatever keys and values a document has, its row of text cells is the same document, types included (S19)."""
    row = {name: cell(value) for name, value in flat(document).items()}
    assert all(row.values())
    back = nested({name: value_of(written) for name, written in row.items()})
    assert back == document
    assert repr(back) == repr(document)


@given(st.lists(KEYS, min_size=1, max_size=4))
def test_a_column_name_stands_for_one_path(path: list[str]) -> None:
    """Dots and backslashes in keys are escaped, and no name is one of the fixed columns' or begins a formula."""
    name = column_name(path)
    assert column_path(name) == tuple(path)
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
    assert value_of(written) == value


def test_two_columns_for_one_place_are_an_error() -> None:
    """A value and a column below it cannot both be: the error names the column."""
    with pytest.raises(ItemSyntaxError, match="another column") as caught:
        nested({"a": 1, "a.b": 2})
    assert caught.value.field == "a.b"
    with pytest.raises(ItemSyntaxError):
        nested({"a.b": 2, "a": 1})


def test_columns_keep_the_order_that_documents_agree_on() -> None:
    """A new name stands behind the one it follows, or before the first known one; beyond the limit there is none."""
    columns = TableColumns(most=5)
    columns.learn({"b": 1, "d": 2})
    columns.learn({"a": 1, "b": 1, "c": 1, "d": 1})
    columns.learn({"d": 1, "e": 1, "f": 1})
    assert columns.names == ("a", "b", "c", "d", "e")


def test_columns_hold_the_narrowest_sort_that_fits_every_value() -> None:
    """Whole numbers and fractions are fractions, times and text are text, what differs is JSON, None fits all."""
    columns = TableColumns()
    columns.learn(
        {"i": 1, "f": 1, "t": "2026-03-01T10:00:00Z", "m": "2026-03-01T10:00:00Z", "x": 1, "n": None, "b": True}
    )
    columns.learn({"i": None, "f": 0.5, "t": "soon", "m": None, "x": "one", "n": None, "b": False})
    sorts = {"i": "int", "f": "float", "t": "text", "m": "moment", "x": "json", "n": "text", "b": "bool"}
    assert columns.sorts == sorts
    assert [fitting(2, "float"), fitting("x", "int"), fitting(True, "int"), fitting("x", "json")] == [
        2.0,
        None,
        None,
        '"x"',
    ]
    assert fitting("2026-13-01T10:00:00Z", "moment") is None

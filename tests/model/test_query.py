"""What may be asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memfs.errors import QueryInvalid
from memfs.model import Query
from memfs.model.time import parse_when, utc_now

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", None),
        ("text", 5),
        ("limit", "3"),
        ("limit", True),
        ("limit", 2.5),
        ("limit", 0),
        ("limit", 10_001),
        ("types", "rule"),
        ("tags", "fruit"),
        ("tags", 5),
        ("agents", [None]),
        ("since", "soon"),
        ("since", 5),
        ("until", "2026-13-01"),
        ("path", None),
    ],
)
def test_a_value_of_the_wrong_sort_is_refused_by_its_field(field: str, value: Any) -> None:
    """A question that cannot be understood is an error that names what is wrong with it."""
    with pytest.raises(QueryInvalid) as caught:
        Query(**{field: value})
    assert caught.value.field == field


def test_times_may_be_text() -> None:
    """Dates, times and ages are read; a day as the end means the whole of it."""
    asked = Query(since="2026-03-01", until="2026-03-01")
    assert asked.since == datetime(2026, 3, 1, tzinfo=UTC)
    assert asked.until == datetime(2026, 3, 1, 23, 59, 59, 999999, tzinfo=UTC)
    before, week = utc_now(), Query(since="7d").since
    assert week is not None
    assert before <= week + timedelta(days=7) <= utc_now()
    east = timezone(timedelta(hours=2))
    assert Query(since=datetime(2026, 3, 1, 2, tzinfo=east)).since == datetime(2026, 3, 1, tzinfo=UTC)
    assert Query(until=datetime(2026, 3, 1)).until == datetime(2026, 3, 1, tzinfo=UTC)  # noqa: DTZ001  naive is UTC


def test_names_may_come_in_any_collection() -> None:
    """Lists, tuples and sets of names mean the same, and a query stays hashable."""
    assert Query(tags=["a", "b"]) == Query(tags=("b", "a")) == Query(tags={"a", "b"})
    assert len({Query(tags=["a"]), Query(tags={"a"})}) == 1


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("2 days ago", timedelta(days=2)),
        ("an hour ago", timedelta(hours=1)),
        ("3 weeks ago", timedelta(weeks=3)),
        ("12h", timedelta(hours=12)),
        ("now", timedelta()),
    ],
)
def test_ages_are_read_in_words(text: str, age: timedelta) -> None:
    """People write ages as git does."""
    assert parse_when(text, NOW) == NOW - age

"""The options that choose items, and points in time as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memfs.adapters.cli.asking import query, when
from memfs.errors import QueryInvalid, SettingInvalid
from memfs.model import KindTable, Query
from memfs.model.time import utc_now

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("types", "layers", "tags", "agents", "sessions", "phases"), ()),
    "since": None,
    "until": None,
    "path": "",
}


def ask(**chosen: Any) -> Query:
    return query("words", 5, KindTable(), **{**NOTHING, **chosen})


def test_options_become_filters() -> None:
    """Each option lands in the filter of its name."""
    asked = ask(types=("semantic", "rule"), tags=("a",), agents=("coder",), layers=("episodic",))
    assert asked == Query(
        text="words",
        limit=5,
        types=frozenset({"semantic", "rule"}),
        tags=frozenset({"a"}),
        agents=frozenset({"coder"}),
        layers=frozenset({"episodic"}),
    )


def test_an_unknown_type_names_the_nearest() -> None:
    """A mistyped type is an error, not an empty answer."""
    with pytest.raises(SettingInvalid) as caught:
        ask(types=("semntic",))
    assert caught.value.hint == "did you mean 'semantic'?"


def test_a_day_given_as_the_end_is_included() -> None:
    """--until 2026-03-01 means the whole of that day; a time means itself."""
    asked = ask(since="2026-03-01", until="2026-03-01")
    assert asked.since == datetime(2026, 3, 1, tzinfo=UTC)
    assert asked.until == datetime(2026, 3, 1, 23, 59, 59, 999999, tzinfo=UTC)
    assert ask(until="2026-03-01T12:00").until == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_an_age_is_counted_from_now() -> None:
    """7d is seven days ago."""
    moment = when("7d", "since")
    assert moment is not None
    assert abs(utc_now() - timedelta(days=7) - moment) < timedelta(seconds=10)


@pytest.mark.parametrize("written", ["yesterday", "2026-13-01", "999999y", ""])
def test_what_is_no_time_is_refused(written: str) -> None:
    """The error names the option and shows how to write it."""
    with pytest.raises(QueryInvalid) as caught:
        when(written, "since")
    assert caught.value.field == "--since"
    assert "7d" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("memories/semantic", "ContextMemory/memories/semantic"),
        ("./ContextMemory/conventions/", "ContextMemory/conventions"),
        ("", ""),
    ],
)
def test_a_folder_may_be_written_with_or_without_its_beginning(written: str, path: str) -> None:
    """--path counts from the workspace or from ContextMemory/."""
    assert ask(path=written).path == path

"""The options that choose items, and points in time as people write them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs.doors.cli.options import query
from memfs.errors import QueryInvalid, SettingInvalid
from memfs.model import Query
from memfs.model.query import moment
from memfs.workspace import Workspace, open_workspace

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("types", "layers", "tags", "agents", "sessions", "phases"), ()),
    "since": None,
    "until": None,
    "path": "",
}


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    """The workspace that is asked."""
    with open_workspace(root, watch=False) as opened:
        yield opened


def ask(workspace: Workspace, **chosen: Any) -> Query:
    return query(workspace, "words", 5, **{**NOTHING, **chosen})


def test_options_become_filters(workspace: Workspace) -> None:
    """Each option lands in the filter of its name."""
    asked = ask(workspace, types=("semantic", "rule"), tags=("a",), agents=("coder",), layers=("episodic",))
    assert asked == Query(
        text="words",
        limit=5,
        types=frozenset({"semantic", "rule"}),
        tags=frozenset({"a"}),
        agents=frozenset({"coder"}),
        layers=frozenset({"episodic"}),
    )


def test_an_unknown_type_names_the_nearest_and_all(workspace: Workspace) -> None:
    """A mistyped type is an error, not an empty answer, and says which types there are."""
    with pytest.raises(SettingInvalid) as caught:
        ask(workspace, types=("semntic",))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean 'semantic'? the usual types are semantic, procedural, ")


def test_a_day_given_as_the_end_is_included(workspace: Workspace) -> None:
    """--until 2026-03-01 means the whole of that day; a time means itself."""
    asked = ask(workspace, since="2026-03-01", until="2026-03-01")
    assert asked.since == datetime(2026, 3, 1, tzinfo=UTC)
    assert asked.until == datetime(2026, 3, 1, 23, 59, 59, 999999, tzinfo=UTC)
    assert ask(workspace, until="2026-03-01T12:00").until == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("written", ["7d", "7 days ago", "1w", "a week ago"])
def test_an_age_is_counted_from_now(written: str) -> None:
    """7d and 7 days ago are seven days ago, as for show --as-of."""
    now = datetime(2026, 3, 8, 12, tzinfo=UTC)
    assert moment("--since", written, now=now) == now - timedelta(days=7)


@pytest.mark.parametrize("written", ["soon", "2026-13-01", "999999y", "", "999999 years ago"])
def test_what_is_not_a_time_is_refused(written: str) -> None:
    """The error names the option and shows how to write it."""
    with pytest.raises(QueryInvalid) as caught:
        moment("--since", written)
    assert caught.value.sentence.startswith("--since: ")
    assert "7d" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("memories/semantic", "ContextMemory/memories/semantic"),
        ("./ContextMemory/conventions/", "ContextMemory/conventions"),
        (".", "ContextMemory"),
        ("", ""),
    ],
)
def test_a_folder_may_be_written_with_or_without_its_beginning(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, written: str, path: str
) -> None:
    """--path counts from the workspace or from ContextMemory/."""
    monkeypatch.chdir(workspace.root)
    assert ask(workspace, path=written).path == path

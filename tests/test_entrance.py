"""The verbs of an open workspace, as a program guesses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memfs import (
    Conflict,
    IdExists,
    ItemNotFound,
    QueryInvalid,
    SchemaInvalid,
    SettingInvalid,
    Workspace,
    open_workspace,
)

Git = Callable[..., str]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace of its own, which commits when it is asked to."""
    settings = {"history.commit": "manual"}
    with open_workspace(tmp_path / "project", create=True, watch=False, settings=settings) as opened:
        yield opened


def test_what_is_remembered_is_recalled(workspace: Workspace) -> None:
    """A text is remembered with whatever fields a program has, and found by a question with filters (B5)."""
    tags = (tag for tag in ["deploy", "friday"])
    events: list[object] = []
    workspace.behaviours.on("memory_stored", events.append)
    made = workspace.remember("Deploys happen on Fridays", "procedural", tags=tags, timestamp="2026-03-01T10:00Z")
    workspace.remember("Staging is rebuilt on Sundays")
    assert (made.type, made.tags, made.timestamp) == (
        "procedural",
        ("deploy", "friday"),
        datetime(2026, 3, 1, 10, tzinfo=UTC),
    )
    assert workspace.get(made.id) == made
    assert workspace.get("nobody") is None
    answer = workspace.recall("when are deploys", limit=5, types=["procedural"], since="2026-01-01")
    assert [hit.item.id for hit in answer] == [made.id]
    assert len(answer) == 1
    assert len(events) == 2


def test_memories_are_listed_newest_first(workspace: Workspace) -> None:
    """All that pass the filters are listed, the newest first, whatever sort of collection names them (B5)."""
    for day in (1, 3, 2):
        workspace.remember(f"Day {day}", tags=[f"day-{day}"], timestamp=datetime(2026, 3, day, tzinfo=UTC))
    assert [item.content for item in workspace.list()] == ["Day 3", "Day 2", "Day 1"]
    assert [item.content for item in workspace.list(tags={"day-2"})] == ["Day 2"]
    assert [item.content for item in workspace.list(since=datetime(2026, 3, 2, tzinfo=UTC), limit=1)] == ["Day 3"]


def test_a_memory_is_changed_and_nothing_else(workspace: Workspace) -> None:
    """What is not named stays; a change to a version that is no longer there is refused (B5)."""
    made = workspace.remember("Deploys happen on Fridays", title="Deploy day", tags=["deploy"])
    changed = workspace.update(made.id, content="Deploys happen on Tuesdays", tags=iter(["deploy", "tuesday"]))
    assert (changed.title, changed.content) == ("Deploy day", "Deploys happen on Tuesdays")
    assert workspace.get(made.id) == changed
    with pytest.raises(Conflict):
        workspace.update(made.id, content="Never", expected=made.sha256)
    assert workspace.get(made.id) == changed


def test_what_is_forgotten_can_be_brought_back(workspace: Workspace, git: Git) -> None:
    """A memory goes out of the files and out of recall; a commit, or a copy, has it (B5)."""
    committed = workspace.remember("Kept by git")
    done = workspace.commit("Note what is known")
    assert done.commits
    gone = workspace.forget(committed.id, "no longer so")
    assert gone.item == committed
    assert "Kept by git" in git(workspace.root, "show", f"{gone.revision}:{committed.path}")
    fresh = workspace.remember("Kept aside")
    assert workspace.forget(fresh.id).revision == "recovered"
    assert [row.path for row in workspace.recovered.list()] == [fresh.path]
    assert workspace.list() == []


def test_errors_are_of_the_right_type(workspace: Workspace) -> None:
    """An impossible argument is refused by its name before anything is written (B5)."""
    made = workspace.remember("A fact", id="a-fact")
    with pytest.raises(IdExists):
        workspace.remember("Another", id="a-fact")
    with pytest.raises(SettingInvalid) as wrong:
        workspace.remember("A fact", "semantik")
    assert "semantic" in str(wrong.value.hint)
    with pytest.raises(SchemaInvalid) as unfit:
        workspace.remember("A fact", tags="one text")
    assert unfit.value.field == "tags"
    with pytest.raises(QueryInvalid) as unclear:
        workspace.recall("fact", since="whenever")
    assert unclear.value.field == "since"
    for change in (workspace.update, workspace.forget):
        with pytest.raises(ItemNotFound) as missing:
            change("a-fakt")
        assert "a-fact" in str(missing.value.hint)
    assert workspace.list() == [made]

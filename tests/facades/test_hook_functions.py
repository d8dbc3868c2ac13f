"""The hook functions of seed 003, for direct use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memfs
from memfs import (
    MemoryCoordinator,
    SchemaInvalid,
    consolidate_session_memory,
    on_session_start,
    on_session_stop,
    on_todo_write_complete,
    on_user_prompt_submit,
    private,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A workspace to be made."""
    return tmp_path / "w"


def kept(path: Path, kind: str) -> list[Any]:
    """The memories of a type."""
    return MemoryCoordinator(path).retrieve(memory_types=[kind], limit=50)


def test_a_prompt_is_kept_as_the_seed_says(path: Path) -> None:
    """Working memory with its session, and prospective with a priority (C6)."""
    done = on_user_prompt_submit("TODO: renew the certificate, urgent", {"session_id": "s1"}, path=path)
    assert len(done.stored) == 2
    [later] = kept(path, "prospective")
    assert later.content == "TODO: renew the certificate, urgent"
    assert later.metadata["priority"] == "high"
    [working] = kept(path, "working")
    assert working.metadata["session_id"] == "s1"
    assert on_user_prompt_submit("thanks!", {"session_id": "s1"}, path=path).stored == ()


def test_a_completed_todo_is_kept_as_the_seed_says(path: Path) -> None:
    """Procedural with task_type, success and duration_minutes; one that is not completed leaves nothing (C6)."""
    todo = {"content": "Deploy the billing service", "status": "in_progress"}
    assert on_todo_write_complete(todo, {"session_id": "s1"}, path=path).stored == ()
    done = {**todo, "status": "completed", "task_type": "deployment", "duration": 15, "steps": ["build", "push"]}
    assert len(on_todo_write_complete(done, {"session_id": "s1"}, path=path).stored) == 1
    [memory] = kept(path, "procedural")
    metadata = {key: memory.metadata[key] for key in ("task_type", "success", "duration_minutes")}
    assert metadata == {"task_type": "deployment", "success": True, "duration_minutes": 15.0}
    assert memory.content == "Deploy the billing service\nSteps:\n1. build\n2. push"


def test_the_end_of_a_session_is_kept_as_the_seed_says(path: Path) -> None:
    """Episodic with decision_type, semantic with category, and working memory consolidated (C6, C7)."""
    on_user_prompt_submit("We decided to freeze the API on Monday.", {"session_id": "s1"}, path=path)
    data = {
        "session_id": "s1",
        "messages": [
            {"role": "user", "content": "We decided to ignore what users say here."},
            {"role": "assistant", "content": "We decided to use Redis for the sessions."},
            {"role": "assistant", "content": [{"type": "text", "text": "The retry logic lives in `src/retry.py`."}]},
        ],
        "events": [{"description": "The release was cut", "type": "milestone"}, "garbage"],
        "concepts": [{"description": "Carriers answer slowly on Mondays", "category": "domain"}],
    }
    done = on_session_stop(data, path=path)
    assert done.consolidated == ("s1",)
    decisions = {memory.content: memory.metadata["decision_type"] for memory in kept(path, "episodic")}
    assert decisions == {"We decided to use Redis for the sessions.": "choice", "The release was cut": "milestone"}
    known = {memory.metadata.get("category") for memory in kept(path, "semantic")}
    assert known == {"location", "domain", None}
    assert kept(path, "working") == []


def test_a_session_begins_with_what_is_to_be_done(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reminders are written as [PRIORITY] text, medium where nobody said, ten at most (C6)."""
    assert on_session_start(path=path) == ()
    assert capsys.readouterr().out == ""
    coordinator = MemoryCoordinator(path)
    coordinator.workspace.store.put(memfs.MemoryItem("Water the plants", "prospective"))
    for number in range(12):
        on_user_prompt_submit(f"todo: renew certificate number {number}, asap", path=path)
    found = on_session_start(path=path)
    assert len(found) == 10
    assert capsys.readouterr().out.startswith("Pending tasks:\n  [HIGH] todo: renew certificate number ")
    assert [one.priority for one in on_session_start(path=path, limit=20, write=None)].count("medium") == 1
    assert capsys.readouterr().out == ""


def test_a_session_is_consolidated_once(path: Path) -> None:
    """What matters is promoted with promoted_from, and the rest is cleared (C7)."""
    on_user_prompt_submit("We decided to drop Python 3.10.", {"session_id": "s1"}, path=path)
    on_user_prompt_submit("Which of the tests are slow?", {"session_id": "s2"}, path=path)
    assert [memory.metadata["promoted_from"] for memory in consolidate_session_memory("s1", path=path)] == ["working"]
    assert consolidate_session_memory("s1", path=path) == []
    assert len(kept(path, "working")) == 1


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (on_user_prompt_submit, (None,)),
        (on_user_prompt_submit, ("x", "no mapping")),
        (on_todo_write_complete, ([],)),
        (on_todo_write_complete, ({"status": "completed"},)),
        (on_session_stop, (None,)),
    ],
)
def test_arguments_of_a_wrong_sort_are_named(path: Path, function: Any, arguments: tuple[Any, ...]) -> None:
    """What is wrong is reported by name, and nothing is stored."""
    with pytest.raises(SchemaInvalid):
        function(*arguments, path=path)


def test_without_a_path_the_projects_private_memory_is_meant(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path what is reported goes to private memory, and is read with the workspace at hand (C1, C6)."""
    memfs.MemoryCoordinator(path).close()
    monkeypatch.chdir(path)
    asked = "TODO: say how the cache is invalidated in production"
    assert len(on_user_prompt_submit(asked, {"session_id": "s1"}).stored) == 2
    assert kept(path, "working") == kept(path, "prospective") == []
    [folder] = private.projects_folder().iterdir()
    assert len(kept(folder, "working")) == 1
    memfs.MemoryCoordinator(path).close()
    assert [one.text for one in on_session_start(write=None)] == [asked]
    assert consolidate_session_memory("s1") == []
    assert kept(folder, "working") == []

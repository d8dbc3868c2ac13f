"""Who is named by what comes through a door: the agent in items and commits, whatever it does to whose memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem, open_workspace
from memfs.model import Query
from memfs.model.item import Trust
from memfs.workspace import Workspace

Log = Callable[[], list[str]]


@pytest.fixture
def log(tmp_path: Path, git: Callable[..., str]) -> Log:
    """The author and the door of each commit to the memory, the newest first."""
    shown = "--format=%an|%(trailers:key=Memfs-Source,valueonly,separator=)"
    return lambda: git(tmp_path, "log", shown, "--", "ContextMemory/memories").splitlines()


def persons(workspace: Workspace, kind: str, title: str = "", content: str = "The depot closes at noon.") -> MemoryItem:
    """An item that a person wrote, committed."""
    stored = workspace.store.put(MemoryItem(content, kind, title=title, trust=Trust.HUMAN.value))
    workspace.store.flush()
    return stored


def test_the_memory_tool_signs_what_it_does_to_a_persons_page(tmp_path: Path, log: Log) -> None:
    """B5: a nameless agent is named after its door, in what it writes, moves and removes; never the person."""
    from memfs.doors.anthropic import MemfsMemoryTool

    with open_workspace(tmp_path, create=True) as workspace:
        persons(workspace, "note", "depots.md")
        tool = MemfsMemoryTool(workspace=workspace)
        for call in (
            {"command": "create", "path": "/memories/own.md", "file_text": "Gate 4."},
            {"command": "rename", "old_path": "/memories/depots.md", "new_path": "/memories/moved.md"},
            {"command": "delete", "path": "/memories/moved.md"},
        ):
            tool.call(call)
            workspace.store.flush()
        assert log()[:3] == ["anthropic|anthropic"] * 3
        found = workspace.store.select(Query(types=frozenset({"note"})))
        assert [(item.title, item.origin.agent, item.trust) for item in found] == [("own.md", "anthropic", "agent")]


def test_the_store_of_langgraph_signs_what_it_stores_and_removes(tmp_path: Path, log: Log) -> None:
    """B5: the same for entries."""
    from memfs.doors.langgraph import MemfsStore

    with open_workspace(tmp_path, create=True) as workspace:
        store = MemfsStore(workspace=workspace)
        store.put(("users",), "ada", {"city": "Turin"})
        workspace.store.flush()
        MemfsStore(workspace=workspace, agent="other").delete(("users",), "ada")
        workspace.store.flush()
        assert log() == ["other|langgraph", "langgraph|langgraph"]


def test_a_session_of_openai_is_signed(tmp_path: Path, log: Log) -> None:
    """B5: the same for a conversation."""
    from memfs.doors.openai_agents import MemfsSession

    with open_workspace(tmp_path, create=True) as workspace:
        session = MemfsSession("trip", workspace=workspace)
        asyncio.run(session.add_items([{"role": "user", "content": "Where to?"}]))
        asyncio.run(session.pop_item())
        workspace.store.flush()
        assert set(log()) == {"openai-agents|openai-agents"}

"""The end of an agent's session at each door: where commits wait for it, what it wrote becomes history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memfs.doors.anthropic import MemfsMemoryTool
from memfs.doors.langgraph import MemfsSaver, MemfsStore
from memfs.doors.mcp import build_server
from memfs.doors.openai_agents import MemfsSession
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
CHECKPOINT = {"v": 4, "id": "1", "ts": "", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}


def _memory_tool(workspace: Workspace) -> Callable[[], None]:
    tool = MemfsMemoryTool(workspace=workspace)
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "The depot closes at noon.\n"})
    return tool.close


def _store(workspace: Workspace) -> Callable[[], None]:
    store = MemfsStore(workspace=workspace)
    store.put(("users",), "ada", {"city": "Turin"})
    return store.close


def _saver(workspace: Workspace) -> Callable[[], None]:
    saver = MemfsSaver(workspace=workspace)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    saver.put(config, CHECKPOINT, {}, {})  # type: ignore[arg-type]
    return saver.close


def _session(workspace: Workspace) -> Callable[[], None]:
    session = MemfsSession("trip", workspace=workspace)
    asyncio.run(session.add_items([{"role": "user", "content": "Where to?"}]))
    return session.close


def _mcp(workspace: Workspace) -> Callable[[], None]:
    from mcp import Client

    server = build_server(opener=lambda: workspace)

    async def talk() -> None:
        async with Client(server.protocol) as client:
            assert not (await client.call_tool("memory_store", {"content": "The depot closes at noon."})).is_error

    asyncio.run(talk())
    return server.close


@pytest.mark.parametrize("door", [_memory_tool, _store, _saver, _session, _mcp])
def test_the_end_of_a_session_commits(
    opened: Opened, git: Git, door: Callable[[Workspace], Callable[[], None]]
) -> None:
    """C6, B5: closing a door ends its session, which commits what waits for that, and never a person's edits."""
    workspace = opened(history__commit="session", history__adopt="leave")
    end = door(workspace)
    edited = workspace.root / "ContextMemory/memories/own.md"
    edited.parent.mkdir(parents=True, exist_ok=True)
    edited.write_text("Written by hand.\n")
    assert workspace.store.pending().count > 0
    end()
    end()
    with closing(opened(workspace.root)) as again:
        assert again.store.pending().count == 0
    shown = git(workspace.root, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert shown == ["?? ContextMemory/memories/own.md"]


def test_an_explicit_commit_policy_is_obeyed(opened: Opened) -> None:
    """C6: under another policy the end of a session commits nothing by itself, nor does one that only read."""
    workspace = opened()
    _store(workspace)()
    assert workspace.store.pending().count == 1
    reader = opened(workspace.root, history__commit="session")
    store = MemfsStore(workspace=reader)
    assert store.get(("users",), "ada") is not None
    store.close()
    assert workspace.store.pending().count == 1


def test_the_shared_workspace_is_closed_as_well(tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: a door that opened the workspace itself commits into the repository that memfs joined, and leaves it."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "A project")
    monkeypatch.setenv("MEMFS_HISTORY_COMMIT", "session")
    store = MemfsStore(tmp_path)
    store.put(("users",), "ada", {"city": "Turin"})
    store.close()
    assert "ada" in git(tmp_path, "ls-files", "ContextMemory/memories")

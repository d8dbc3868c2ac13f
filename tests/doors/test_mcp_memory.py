"""What an agent may do to a memory by its tools."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.errors import Conflict, HistoryUnavailable, IdInvalid, ItemNotFound, SettingInvalid
from memfs.model import MemoryItem, Query
from memfs.workspace import Workspace
from tests.doors.agent_tool import tool

Opened = Callable[..., Workspace]


def test_a_list_has_the_newest_that_pass_its_filters(opened: Opened) -> None:
    """So many at most, newest first (B5)."""
    workspace = opened()
    with workspace.store.batch("Many") as batch:
        for number in range(9):
            batch.put(MemoryItem(f"Fact {number}", id=f"fact-{number}", timestamp=f"2026-03-0{number + 1}"))
    newest, older = (tool(workspace, "memory_list", limit=3, **more)["items"] for more in ({}, {"until": "2026-03-02"}))
    assert [row["id"] for row in newest] == ["fact-8", "fact-7", "fact-6"]
    assert [row["id"] for row in older] == ["fact-1", "fact-0"]


def test_an_update_without_a_sha256_keeps_what_came_between(opened: Opened) -> None:
    """An agent that changes one field loses nothing of what another changed at that moment (B5)."""
    workspace = opened()
    workspace.store.put(MemoryItem("The port is 8080", id="port"))
    put = workspace.store.put
    between = [True]

    def interrupted(item: MemoryItem, *given: object, **named: object) -> MemoryItem:
        if between:
            between.clear()
            other = workspace.store.get("port")
            assert other is not None
            put(other.replace(tags=(*other.tags, f"theirs-{len(other.tags)}")))
        return put(item, *given, **named)  # type: ignore[arg-type]

    workspace.store.put = interrupted  # type: ignore[assignment]
    after = tool(workspace, "memory_update", id="port", content="The port is 80")
    now = workspace.store.find("port")
    assert (now.content, now.tags) == ("The port is 80", ("theirs-0",))
    between.append(True)
    with pytest.raises(Conflict):
        tool(workspace, "memory_update", id="port", content="The port is 81", expected=after["sha256"])
    with pytest.raises(Conflict):  # even where it would change nothing: what was read is not what is there
        tool(workspace, "memory_update", id="port", content="The port is 80", expected=after["sha256"])


def test_what_was_displaced_by_hand_is_brought_back(opened: Opened) -> None:
    """A memory whose file a person removed before any commit held it comes back by its id (B5)."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("The port is 8080", id="port"))
    (workspace.root / stored.path).unlink()
    workspace.store.refresh()
    back = tool(workspace, "memory_restore", id="port")
    assert (back["from"], workspace.store.find("port").content) == ("recovered", "The port is 8080")


def test_what_is_deleted_while_git_is_busy_comes_back_afterwards(opened: Opened) -> None:
    """During a person's merge nothing is committed: the answer says so, and the way back opens with the commit (B5)."""
    workspace = opened(history__commit="each")
    workspace.store.put(MemoryItem("Something else", id="other"))
    merging = workspace.root / ".git/MERGE_HEAD"
    merging.write_text(f"{workspace.repository.head().commit}\n")
    workspace.store.put(MemoryItem("The port is 8080", id="port"))
    gone = tool(workspace, "memory_delete", id="port")
    assert (gone["revision"], gone["restore"]["command"]) == ("", "")
    known = tool(workspace, "memory_delete", id="other")
    assert tool(workspace, "memory_restore", id="other")["from"] == known["revision"]
    merging.unlink()
    tool(workspace, "memory_restore", id="port")
    assert workspace.store.find("port").content == "The port is 8080"


def test_what_was_pruned_is_brought_back(opened: Opened) -> None:
    """A memory that made room comes back by its id, too (B5)."""
    workspace = opened()
    item = workspace.store.put(MemoryItem("The port is 8080", id="port", importance=0.1))
    data = (workspace.root / item.path).read_bytes()
    plans = workspace.store.plan_restore({item.path: None, "ContextMemory/archive/pruned/semantic/port.yaml": data})
    workspace.store.flush()
    workspace.store.carry_out(plans, "Prune")
    back = tool(workspace, "memory_restore", id="port")
    assert (back["from"], workspace.store.find("port").content) == ("pruned", "The port is 8080")


def test_what_there_never_was_is_named(opened: Opened) -> None:
    """Invalid ids, ids that nothing ever had, and missing versions are errors with a way out (B5)."""
    workspace = opened(history__commit="each")
    workspace.store.put(MemoryItem("The port is 8080", id="port"))
    with pytest.raises(IdInvalid):
        tool(workspace, "memory_get", id="../port")
    with pytest.raises(ItemNotFound, match="prt") as missing:
        tool(workspace, "memory_feedback", id="prt", helpful=True)
    assert "port" in str(missing.value.hint)
    with pytest.raises(ItemNotFound):
        tool(workspace, "memory_restore", id="never")
    with pytest.raises(HistoryUnavailable, match="no earlier version"):
        tool(workspace, "memory_restore", id="port")
    workspace.store.put(MemoryItem("Another", id="other"))
    with pytest.raises(HistoryUnavailable):  # it did not exist then: it is not brought back by taking it away
        tool(workspace, "memory_restore", id="other", revision="HEAD~1")
    assert workspace.store.get("other") is not None
    with pytest.raises(ItemNotFound):  # the beginning of an id is enough to read, never to write
        tool(workspace, "memory_update", id="por", title="x")
    assert tool(workspace, "memory_get", id="por")["id"] == "port"


def test_an_unknown_type_is_named(opened: Opened) -> None:
    """A misspelt type is refused with the one that was meant, and nothing is stored or changed (B5)."""
    workspace = opened()
    kept = workspace.store.put(MemoryItem("The port is 8080", id="port"))
    for name, given in (("memory_store", {"content": "Ports are open"}), ("memory_update", {"id": "port"})):
        with pytest.raises(SettingInvalid, match="semantic"):
            tool(workspace, name, **given, type="semantc")
    assert [item.sha256 for item in workspace.store.select(Query())] == [kept.sha256]

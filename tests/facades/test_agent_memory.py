"""What an agent may do by its tools, whatever door offers them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.errors import Conflict, HistoryUnavailable, IdInvalid, ItemNotFound, SettingInvalid
from memfs.facades.agent_tools import AgentMemory
from memfs.model import MemoryItem, Origin, Query
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
CODER = Origin(agent="coder", session="s42", role="assistant")


def test_a_list_has_the_newest_that_pass_its_filters(opened: Opened) -> None:
    """So many at most, newest first (B5)."""
    workspace = opened()
    with workspace.store.batch("Many") as batch:
        for number in range(9):
            batch.put(MemoryItem(f"Fact {number}", id=f"fact-{number}", timestamp=f"2026-03-0{number + 1}"))
    memory = AgentMemory(workspace=workspace)
    assert [item.id for item in memory.listed(Query(), 3)] == ["fact-8", "fact-7", "fact-6"]
    assert [item.id for item in memory.listed(Query(until="2026-03-02"), 3)] == ["fact-1", "fact-0"]


def test_an_update_without_a_sha256_keeps_what_came_between(opened: Opened) -> None:
    """An agent that changes one field loses nothing of what another changed at that moment (B5)."""
    workspace = opened()
    workspace.store.put(MemoryItem("The port is 8080", id="port"))
    memory, put = AgentMemory(workspace=workspace), workspace.store.put
    between = [True]

    def interrupted(item: MemoryItem, *given: object, **named: object) -> MemoryItem:
        if between:
            between.clear()
            other = workspace.store.get("port")
            assert other is not None
            put(other.replace(tags=(*other.tags, f"theirs-{len(other.tags)}")))
        return put(item, *given, **named)  # type: ignore[arg-type]

    workspace.store.put = interrupted  # type: ignore[assignment]
    _, after = memory.update("port", {"content": "The port is 80"}, CODER)
    assert (after.content, after.tags) == ("The port is 80", ("theirs-0",))
    between.append(True)
    with pytest.raises(Conflict):
        memory.update("port", {"content": "The port is 81"}, CODER, expected=after.sha256)
    with pytest.raises(Conflict):  # even where it would change nothing: what was read is not what is there
        memory.update("port", {"content": "The port is 80"}, CODER, expected=after.sha256)


def test_what_was_displaced_by_hand_is_brought_back(opened: Opened) -> None:
    """A memory whose file a person removed before any commit held it comes back by its id (B5)."""
    workspace = opened()
    memory = AgentMemory(workspace=workspace)
    stored = workspace.store.put(MemoryItem("The port is 8080", id="port"))
    (workspace.root / stored.path).unlink()
    workspace.store.refresh()
    back = memory.restore("port", "", CODER)
    assert (back.origin, back.item.content) == ("recovered", "The port is 8080")


def test_what_is_deleted_while_git_is_busy_comes_back_afterwards(opened: Opened) -> None:
    """During a person's merge nothing is committed: the answer says so, and the way back opens with the commit (B5)."""
    workspace = opened(history__commit="each")
    workspace.store.put(MemoryItem("Something else", id="other"))
    merging = workspace.root / ".git/MERGE_HEAD"
    merging.write_text(f"{workspace.repository.head().commit}\n")
    memory = AgentMemory(workspace=workspace)
    past = memory
    workspace.store.put(MemoryItem("The port is 8080", id="port"))
    gone = past.delete("port", "", CODER)
    assert (gone.revision, "merge" in gone.waits) == ("", True)
    known = past.delete("other", "", CODER)
    assert past.restore("other", "", CODER).origin == known.revision[:12]
    merging.unlink()
    assert past.restore("port", "", CODER).item.content == "The port is 8080"


def test_what_was_pruned_is_brought_back(opened: Opened) -> None:
    """A memory that made room comes back by its id, too (B5)."""
    workspace = opened()
    memory = AgentMemory(workspace=workspace)
    item = workspace.store.put(MemoryItem("The port is 8080", id="port", importance=0.1))
    data = (workspace.root / item.path).read_bytes()
    plans = workspace.store.plan_restore({item.path: None, "ContextMemory/archive/pruned/semantic/port.yaml": data})
    workspace.store.flush()
    workspace.store.carry_out(plans, "Prune")
    back = memory.restore("port", "", CODER)
    assert (back.origin, back.item.content) == ("pruned", "The port is 8080")


def test_what_there_never_was_is_named(opened: Opened) -> None:
    """Ids that are none, that nothing ever had, and versions that there are none of are errors with a way out (B5)."""
    workspace = opened(history__commit="each")
    workspace.store.put(MemoryItem("The port is 8080", id="port"))
    memory = AgentMemory(workspace=workspace)
    past = memory
    with pytest.raises(IdInvalid):
        memory.get("../port")
    with pytest.raises(ItemNotFound, match="prt") as missing:
        memory.exactly("prt")
    assert "port" in str(missing.value.hint)
    with pytest.raises(ItemNotFound):
        past.restore("never", "", CODER)
    with pytest.raises(HistoryUnavailable, match="no earlier version"):
        past.restore("port", "", CODER)
    workspace.store.put(MemoryItem("Another", id="other"))
    with pytest.raises(HistoryUnavailable):  # it did not exist then: it is not brought back by taking it away
        past.restore("other", "HEAD~1", CODER)
    assert workspace.store.get("other") is not None
    with pytest.raises(ItemNotFound):  # the beginning of an id is enough to read, never to write
        memory.update("por", {"title": "x"}, CODER)
    assert memory.get("por").id == "port"


def test_a_type_there_is_none_of_is_named(opened: Opened) -> None:
    """A misspelt type is refused with the one that was meant, and nothing is stored or changed (B5)."""
    workspace = opened()
    memory = AgentMemory(workspace=workspace)
    kept = workspace.store.put(MemoryItem("The port is 8080", id="port"))
    for attempt in (
        lambda: memory.store(MemoryItem("Ports are open", "semantc"), CODER),
        lambda: memory.update("port", {"memory_type": "semantc"}, CODER),
    ):
        with pytest.raises(SettingInvalid, match="semantic"):
            attempt()
    assert [item.sha256 for item in workspace.store.select(Query())] == [kept.sha256]

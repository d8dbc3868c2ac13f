"""What an agent may do by its tools, whatever door offers them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.errors import Conflict, HistoryUnavailable, IdInvalid, ItemNotFound, QueryInvalid, SettingInvalid
from memfs.facades.agent_tools import AgentMemory, Caller
from memfs.model import MemoryItem, Query
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
CODER = Caller(agent="coder", session="s42", source="test")


@pytest.mark.parametrize("size", [3, 7, 50])
def test_pages_hold_all_items_once_in_order(opened: Opened, size: int) -> None:
    """Whatever the size of a page, and however many items have one time, each comes once, newest first (B5)."""
    workspace = opened()
    times = ["2026-03-01T10:00:00Z", "2026-03-01T10:00:00.5Z", "2026-03-02", "2025-01-01"]
    with workspace.store.batch("Many") as batch:
        for number in range(60):
            batch.put(MemoryItem(f"Fact {number}", id=f"fact-{number:02}", timestamp=times[number % 7 % 4]))
    memory = AgentMemory(workspace=workspace)
    within = Query(until="2026-03-01T10:00:00.5Z")
    expected = sorted(
        (item for item in workspace.store.select(Query(limit=100, until=within.until))),
        key=lambda item: (-item.timestamp.timestamp() if item.timestamp else 0, item.id),
    )
    seen, cursor = [], ""
    for _ in range(70):
        page = memory.page(within, size, cursor)
        assert len(page.items) <= size
        seen += [item.id for item in page.items]
        cursor = page.cursor
        if not cursor:
            break
    assert seen == [item.id for item in expected]


@pytest.mark.parametrize("cursor", ["x", "bm90aGluZw==", "W10=", "WyIyMDI2LTAzLTAxIl0=", "WzEsMl0=", "é", "[" * 400])
def test_a_cursor_that_no_page_gave_is_refused(opened: Opened, cursor: str) -> None:
    """Garbage in place of a cursor is named, and begins nothing anew (B5)."""
    with pytest.raises(QueryInvalid) as refused:
        AgentMemory(workspace=opened()).page(Query(), 10, cursor)
    assert refused.value.field == "cursor"


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

"""Storing, reading and removing items."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem, Origin
from memfs.errors import Conflict, IdExists, IdInvalid, ItemNotFound, SchemaInvalid, SettingInvalid
from memfs.fs.atomic_replace import sha256
from memfs.model import Query
from memfs.workspace import Workspace, open_workspace

Opened = Callable[..., Workspace]


def test_a_stored_item_is_a_file_and_reads_back(opened: Opened) -> None:
    """put returns the item with id, path and sha256; get returns the same."""
    workspace = opened()
    stored = workspace.store.put(
        MemoryItem("We chose PostgreSQL.", "semantic", tags=("db",), origin=Origin(agent="scout"))
    )
    data = (workspace.root / stored.path).read_bytes()
    assert stored.path.startswith("ContextMemory/memories/semantic/")
    assert stored.sha256 == sha256(data)
    assert stored.id == Path(stored.path).stem
    assert workspace.store.get(stored.id) == stored


def test_a_stored_item_is_found_at_once(opened: Opened) -> None:
    """Recall finds what the same process stored a moment ago."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("The build needs Node 20.", "knowledge"))
    assert [hit.item for hit in workspace.recaller.search("which node build").hits] == [stored]


def test_storing_an_id_again_replaces_it_and_keeps_when_it_was_created(opened: Opened) -> None:
    """The latest content counts; created stays, updated is set (L2)."""
    workspace = opened()
    first = workspace.store.put(MemoryItem("old", "knowledge", id="colour"))
    second = workspace.store.put(MemoryItem("new", "knowledge", id="colour"))
    assert (second.path, second.created) == (first.path, first.created)
    assert second.updated is not None
    assert workspace.store.get("colour") == second


def test_storing_the_same_again_writes_nothing(opened: Opened) -> None:
    """An unchanged item makes no new version."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("same", "knowledge", id="same"))
    waiting = workspace.store.pending().count
    again = workspace.store.put(stored)
    assert (again.sha256, workspace.store.pending().count) == (stored.sha256, waiting)


def test_another_type_moves_the_file(opened: Opened) -> None:
    """An item is never in two layers (L2)."""
    workspace = opened()
    first = workspace.store.put(MemoryItem("x", "working", id="note"))
    second = workspace.store.put(MemoryItem("x", "semantic", id="note"))
    assert not (workspace.root / first.path).exists()
    assert workspace.store.get("note") == second
    assert [hit.item.type for hit in workspace.recaller.search("x").hits] == ["semantic"]


def test_expected_lets_one_of_two_writers_win(opened: Opened) -> None:
    """The second writer that read the same version gets a Conflict that names the current one."""
    workspace = opened()
    read = workspace.store.put(MemoryItem("v1", "knowledge", id="doc"))
    winner = workspace.store.put(read.replace(content="v2"), expected=read.sha256)
    with pytest.raises(Conflict) as refused:
        workspace.store.put(read.replace(content="v3"), expected=read.sha256)
    assert refused.value.current == winner.sha256
    assert workspace.store.get("doc") == winner


def test_create_only_refuses_a_taken_id_whatever_its_case_and_folder(opened: Opened) -> None:
    """An id is unique in the workspace, compared without case."""
    workspace = opened()
    workspace.store.put(MemoryItem("x", "knowledge", id="Doc"))
    with pytest.raises(IdExists):
        workspace.store.put(MemoryItem("y", "episodic", id="doc"), expected="")
    with pytest.raises(Conflict):
        workspace.store.put(MemoryItem("y", "episodic", id="other"), expected="0" * 64)


def test_46_of_many_creators_exactly_one_wins(opened: Opened, tmp_path: Path) -> None:
    """Sixteen threads that create one id: one succeeds, the others get an error (faults row 46)."""
    workspace = opened()
    outcomes: list[str] = []

    def create(number: int) -> None:
        try:
            workspace.store.put(MemoryItem(f"writer {number}", "knowledge", id="one"), expected="")
            outcomes.append("stored")
        except IdExists:
            outcomes.append("exists")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["exists"] * 15 + ["stored"]


@pytest.mark.parametrize(
    "bad",
    [
        "../x",
        "/etc/passwd",
        "a\0b",
        "..\\x",
        "%2e%2e/x",
        ".git/config",
        ".GIT/hooks/x",
        "-rf",
        "CON",
        "con.txt",
        "a:b",
        "a.",
        "a ",
        "x" * 256,
        "a\u202eb",
        "e\u0301",
        "a\nb",
        "\ud800",
        "git~1",
        "x.lock",
        "x.tmp",
        "a..b",
    ],
)
def test_13_an_unsafe_id_is_refused_before_anything_is_made(opened: Opened, tmp_path: Path, bad: str) -> None:
    """No id reaches the disk unless it is a safe name everywhere (faults row 13)."""
    workspace = opened()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(IdInvalid):
        workspace.store.put(MemoryItem("x", "knowledge", id=bad))
    with pytest.raises(IdInvalid):
        workspace.store.delete(bad)
    assert sorted(tmp_path.rglob("*")) == before


def test_8_a_lone_surrogate_is_refused_and_leaves_nothing(opened: Opened, tmp_path: Path) -> None:
    """Text that is not Unicode is refused before a byte is written (faults row 8)."""
    workspace = opened()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Exception, match="Unicode"):
        workspace.store.put(MemoryItem("bad \ud800 text", "knowledge"))
    assert sorted(tmp_path.rglob("*")) == before


def test_an_unknown_type_names_the_nearest(opened: Opened) -> None:
    """A misspelt type is refused with the right one."""
    with pytest.raises(SettingInvalid, match="did you mean 'semantic'"):
        opened().store.put(MemoryItem("x", "sematic"))


def test_something_else_than_an_item_is_refused_in_words(opened: Opened) -> None:
    """A text instead of an item is a common slip."""
    with pytest.raises(SchemaInvalid, match="expected a MemoryItem, got str"):
        opened().store.put("text")  # type: ignore[arg-type]


def test_an_empty_item_is_refused() -> None:
    """There must be content or a title."""
    with pytest.raises(SchemaInvalid):
        MemoryItem("", "semantic")


def test_deleting_removes_the_file_and_the_hit(opened: Opened) -> None:
    """A forgotten item is gone from files and recall; forgetting it twice is an error."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("to forget", "knowledge"))
    assert workspace.store.delete(stored.id) == stored
    assert not (workspace.root / stored.path).exists()
    assert workspace.store.get(stored.id) is None
    assert workspace.recaller.search("forget").hits == ()
    with pytest.raises(ItemNotFound):
        workspace.store.delete(stored.id)


def test_a_batch_is_all_or_nothing(opened: Opened) -> None:
    """When one file of a batch changed meanwhile, none is written."""
    workspace = opened()
    workspace.store.put(MemoryItem("old", "knowledge", id="a"))
    with pytest.raises(Conflict), workspace.store.batch("Change both") as batch:  # noqa: PT012
        batch.put(MemoryItem("new", "knowledge", id="a"))
        batch.put(MemoryItem("new", "knowledge", id="b"))
        workspace.store.put(MemoryItem("meanwhile", "knowledge", id="a"))
    found = workspace.store.get("a")
    assert found is not None
    assert found.content == "meanwhile"
    assert workspace.store.get("b") is None


def test_a_batch_refuses_to_write_a_path_twice(opened: Opened) -> None:
    """Two writes of one item in a batch are a mistake of the caller."""
    workspace = opened()
    with pytest.raises(Conflict), workspace.store.batch("Twice") as batch:  # noqa: PT012
        batch.put(MemoryItem("1", "knowledge", id="a"))
        batch.put(MemoryItem("2", "knowledge", id="a"))
    assert workspace.store.get("a") is None


def test_a_batch_that_fails_inside_writes_nothing(opened: Opened) -> None:
    """An error in the block leaves the workspace as it was."""
    workspace = opened()
    with pytest.raises(ZeroDivisionError), workspace.store.batch("Break") as batch:  # noqa: PT012
        batch.put(MemoryItem("1", "knowledge", id="a"))
        _ = 1 / 0
    assert workspace.store.get("a") is None


def test_find_takes_an_id_its_beginning_or_a_path(opened: Opened) -> None:
    """A person may name an item in the way at hand; a near miss is named."""
    workspace = opened()
    stored = workspace.store.put(MemoryItem("x", "knowledge", id="deploy-checklist"))
    for name in ("deploy-checklist", "deploy", stored.path, stored.path.removeprefix("ContextMemory/")):
        assert workspace.store.find(name) == stored
    with pytest.raises(ItemNotFound, match="did you mean 'deploy-checklist'"):
        workspace.store.find("deploy-cheklist")


def test_select_filters_and_lists_newest_first(opened: Opened) -> None:
    """FolderScan passes the same filters as recall."""
    workspace = opened()
    for number, kind in enumerate(["episodic", "knowledge", "episodic"]):
        workspace.store.put(MemoryItem(f"n{number}", kind, id=f"n{number}", timestamp=f"2026-01-0{number + 1}"))  # type: ignore[arg-type]
    assert [item.id for item in workspace.store.select(Query())] == ["n2", "n1", "n0"]
    assert [item.id for item in workspace.store.select(Query(types=frozenset({"episodic"})))] == ["n2", "n0"]
    assert [item.id for item in workspace.store.select(Query(layers=frozenset({"semantic"})))] == ["n1"]
    nothing = Query(layers=frozenset({"semantic"}), types=frozenset({"episodic"}))
    assert workspace.store.select(nothing) == []


def test_a_second_process_reads_what_the_first_wrote(opened: Opened) -> None:
    """Memories persist across processes without a commit (M7)."""
    first = opened()
    stored = first.store.put(MemoryItem("kept for later", "knowledge"))
    with open_workspace(first.root, watch=False, settings={"index.engine": "memory"}) as second:
        assert second.store.get(stored.id) == stored
        assert [hit.item.id for hit in second.recaller.search("kept").hits] == [stored.id]


def test_two_handles_see_each_others_writes(opened: Opened) -> None:
    """A write through one handle is visible at once through another of the same process."""
    one = opened()
    two = opened(one.root)
    stored = one.store.put(MemoryItem("from one", "knowledge"))
    assert [hit.item.id for hit in two.recaller.search("one").hits] == [stored.id]
    one.store.delete(stored.id)
    assert two.recaller.search("one").hits == ()


def test_an_item_is_a_frozen_value() -> None:
    """Items cannot be changed in place; replace makes a copy."""
    item = MemoryItem("x", "semantic", timestamp="2026-01-02T03:04:05")  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.content = "y"  # type: ignore[misc]
    assert item.timestamp is not None
    assert item.timestamp.isoformat() == "2026-01-02T03:04:05+00:00"
    assert item.replace(content="y").content == "y"
    assert item.type == item.memory_type == "semantic"

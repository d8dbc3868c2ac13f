"""Folders taken away under a running process: what is acknowledged is where the path says, or is refused (row 44)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem, Query
from memfs.errors import StorageIO
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Git = Callable[..., str]


def with_one(opened: Opened) -> Workspace:
    """A workspace with one item."""
    workspace = opened()
    workspace.store.put(MemoryItem("one", "knowledge", id="one"))
    return workspace


def stored(root: Path) -> set[str]:
    """The ids of the files below a root."""
    return {path.stem for path in (root / "ContextMemory/memories").rglob("*.yaml")}


def test_44_a_workspace_replaced_by_a_copy_takes_the_next_write(opened: Opened, git: Git) -> None:
    """After ``mv w old; cp -r old w`` a write lands in w, where journal and history are, and not in old (row 44)."""
    workspace = with_one(opened)
    root = workspace.root
    old = root.rename(root.with_name("old"))
    shutil.copytree(old, root)
    workspace.store.put(MemoryItem("two", "knowledge", id="two"))
    assert (stored(root), stored(old)) == ({"one", "two"}, {"one"})
    assert workspace.store.get("two") is not None
    assert workspace.store.flush().reason == ""
    assert git(root, "status", "--porcelain") == ""
    assert {item.id for item in opened(root).store.select(_everything())} == {"one", "two"}


def _everything() -> Query:
    return Query(limit=100)


def test_44_a_workspace_that_is_away_refuses_writes_and_takes_them_once_it_is_back(opened: Opened) -> None:
    """While the folder is elsewhere nothing is acknowledged; nothing is made in its old place (row 44)."""
    workspace = with_one(opened)
    root = workspace.root
    away = root.rename(root.with_name("away"))
    with pytest.raises(StorageIO):
        workspace.store.put(MemoryItem("two", "knowledge", id="two"))
    assert not root.exists()
    assert stored(away) == {"one"}
    away.rename(root)
    workspace.store.put(MemoryItem("two", "knowledge", id="two"))
    assert stored(root) == {"one", "two"}


def test_44_a_repository_that_was_removed_is_reported_and_not_made_again(opened: Opened) -> None:
    """Without ``.git`` a write is refused with a typed error, and no half of a repository appears."""
    workspace = with_one(opened)
    shutil.rmtree(workspace.root / ".git")
    with pytest.raises(StorageIO, match="No such file"):
        workspace.store.put(MemoryItem("two", "knowledge", id="two"))
    assert workspace.store.flush().reason
    assert not (workspace.root / ".git").exists()
    assert [hit.item.id for hit in workspace.recaller.search("one").hits] == ["one"]


def test_44_the_state_folder_removed_by_hand_is_made_again(opened: Opened, git: Git) -> None:
    """``rm -rf .git/memfs`` costs the history of what waited, not its files, and later writes are as safe as ever."""
    workspace = with_one(opened)
    shutil.rmtree(workspace.root / ".git/memfs")
    workspace.store.put(MemoryItem("two", "knowledge", id="two"))
    assert workspace.store.flush(adopt=True).reason == ""
    assert git(workspace.root, "status", "--porcelain") == ""
    tree = git(workspace.root, "ls-tree", "-r", "--name-only", "HEAD")
    assert "one.yaml" in tree
    assert "two.yaml" in tree


def test_44_all_memory_removed_by_hand_is_followed(opened: Opened) -> None:
    """``rm -rf ContextMemory`` is a person's change: recall finds nothing, and the next write makes its folders."""
    workspace = with_one(opened)
    shutil.rmtree(workspace.root / "ContextMemory")
    assert workspace.recaller.search("one").hits == ()
    workspace.store.put(MemoryItem("two", "knowledge", id="two"))
    assert stored(workspace.root) == {"two"}

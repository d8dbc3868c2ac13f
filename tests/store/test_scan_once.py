"""Several questions of one thread look at the files once, where anyone who asks them says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memfs.fs.tree import FolderScan, Tree
from memfs.model import MemoryItem
from memfs.model.episode import StateSnapshot
from memfs.workspace import Workspace

Open = Callable[..., Workspace]


@pytest.fixture
def looks(opened: Open, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, list[str]]:
    """A workspace, and the names of the threads that looked at all its files so far."""
    workspace, found = opened(), list[str]()
    refresh = workspace.store.index_sync.refresh

    def noted(paths: Any = None, progress: Any = None) -> Any:
        if paths is None:
            found.append(threading.current_thread().name)
        return refresh(paths, progress)

    monkeypatch.setattr(workspace.store.index_sync, "refresh", noted)
    return workspace, found


def test_within_it_only_the_first_question_looks(looks: tuple[Workspace, list[str]]) -> None:
    """Also within another one, and after an error; afterwards, and in other threads, each question looks."""
    workspace, found = looks
    store = workspace.store
    with store.scan_once():
        store.follow()
        with store.scan_once():
            store.follow()
        store.follow()
        other = threading.Thread(target=store.follow, name="other")
        other.start()
        other.join()
    assert found == ["MainThread", "other"]
    with pytest.raises(KeyError), store.scan_once():
        raise KeyError
    store.follow()
    store.follow()
    assert len(found) == 4


def test_what_is_written_within_it_is_known(looks: tuple[Workspace, list[str]]) -> None:
    """A process needs no look to know what it wrote itself."""
    workspace, _ = looks
    with workspace.store.scan_once():
        workspace.store.follow()
        stored = workspace.store.put(MemoryItem("Deploys are frozen.", "semantic"))
        assert workspace.store.get(stored.id) == stored


def test_p1_a_warning_looks_at_the_files_once(looks: tuple[Workspace, list[str]]) -> None:
    """Two sources are asked before a step, and the files are looked at once (P1, design 14)."""
    workspace, found = looks
    state = StateSnapshot.create(["src/auth.py"], "change the login")
    workspace.sources.delivery.triggered(state)
    found.clear()
    workspace.sources.delivery.triggered(state)
    assert len(found) == 1


def test_hand_edits_are_found_by_one_walk_over_the_files(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Updating the index and comparing with git take one walk, whatever is there (design 14)."""
    workspace = opened()
    store, walked = workspace.store, list[str]()
    stored = store.put(MemoryItem("Deploys are frozen.", "semantic", id="freeze"))
    store.flush()
    listings = Tree.listings

    def noted(tree: Tree, folder: str, hidden: bool = False) -> Iterator[FolderScan]:
        walked.append(folder)
        return listings(tree, folder, hidden)

    monkeypatch.setattr(Tree, "listings", noted)
    file = workspace.root / stored.path
    file.write_text(file.read_text().replace("frozen", "free"))
    hidden = file.parent / ".draft.yaml"
    hidden.write_text("content: nothing")
    fresh = file.with_name("by-hand.yaml")
    fresh.write_text("content: By hand\n")
    assert store.edit_finder.look()[0].changed == (stored.path,)
    assert sorted(store.hand_edits()) == [stored.path.replace("freeze", "by-hand"), stored.path]
    assert walked == ["ContextMemory"] * 2
    assert store.get("by-hand") is not None
    assert not store.problems()


def test_a_write_taken_back_by_hand_is_let_go_of(opened: Open) -> None:
    """Restoring what HEAD has while a write waits leaves nothing to commit; the write's bytes can be brought back."""
    first = opened()
    stored = first.store.put(MemoryItem("Deploys are frozen.", "semantic", id="freeze"))
    first.store.flush()
    file = first.root / stored.path
    before = file.read_bytes()
    first.store.put(stored.replace(content="Deploys are free."))
    first.close()
    file.write_bytes(before)
    second = opened(first.root)
    assert second.store.hand_edits() == []
    assert second.store.pending().count == 0
    assert second.store.flush(adopt=True).commits == ()
    assert [row.path for row in second.recovered.list()] == [stored.path]
    third = opened(first.root)
    assert third.store.hand_edits() == []
    assert len(third.parts.index.stamps()) == 0


@pytest.mark.parametrize("folder", ["", "memories", "memories/semantic"])
def test_behind_a_link_nothing_is_taken_for_removed(opened: Open, folder: str, tmp_path: Path) -> None:
    """A link in a folder's place hides its files: no index forgets them, and it is not an edit by hand."""
    workspace = opened()
    workspace.store.put(MemoryItem("Deploys are frozen.", "semantic", id="freeze"))
    workspace.store.flush()
    place = workspace.root / "ContextMemory" / folder
    place.rename(tmp_path / "aside")
    place.symlink_to(tmp_path / "aside")
    learned, edits = workspace.store.edit_finder.look()
    problems = workspace.store.problems()
    assert (bool(learned), [path for path in edits if "freeze" in path]) == (False, [])
    assert not workspace.store.refresh()
    assert problems == workspace.store.problems()
    assert workspace.store.index_sync.ids() == ["freeze"]

"""Bringing back one item looks at its own file for edits, not at every file's (B5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.errors import Conflict
from memfs.model import MemoryItem
from memfs.store.hand_edits import HandEdits
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


def test_one_item_is_brought_back_without_a_look_at_all(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edit that would be lost is found all the same; what was removed comes back. Other files do not matter."""
    workspace = opened(history__commit="session")
    store = workspace.store
    item = store.put(MemoryItem("Deploy on Mondays.", "semantic", id="deploy"))
    other = store.put(MemoryItem("Review on Tuesdays.", "semantic", id="review"))
    store.flush(adopt=False)
    before = workspace.repository.resolve("HEAD")
    item = store.put(item.replace(content="Deploy on Fridays."), expected=item.sha256)
    store.flush(adopt=False)
    (workspace.root / other.path).write_text("type: semantic\ncontent: Edited by hand.\n", encoding="utf-8")

    def no_look(self: HandEdits) -> None:
        raise AssertionError("looked at every file")

    monkeypatch.setattr(HandEdits, "look", no_look)
    assert workspace.history.restore(before, "deploy").restored == (item.path,)
    assert "Mondays" in (workspace.root / item.path).read_text(encoding="utf-8")
    (workspace.root / item.path).write_text("type: semantic\ncontent: Deploy never.\n", encoding="utf-8")
    with pytest.raises(Conflict, match="not committed"):
        workspace.history.restore("HEAD~1", "deploy")
    (workspace.root / item.path).unlink()
    assert workspace.history.restore("HEAD~1", "deploy").restored == (item.path,)

"""Workspace: its parts, made when first used and closed together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs import MemoryItem, StorageIO, Workspace

Opened = Callable[..., Workspace]


@pytest.mark.parametrize("name", ["intake", "meaning", "patterns"])
def test_threads_that_make_a_part_at_once_share_it(opened: Opened, name: str) -> None:
    """What keeps a lock, a thread or a file of its own is there once, also where Python makes it twice."""
    workspace = opened()
    make = vars(Workspace)[name].func
    assert make(workspace) is make(workspace) is getattr(workspace, name)


def test_a_part_that_cannot_be_closed_keeps_no_other_open(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is closed, the store last, and the failure is told."""
    workspace = opened()
    closed: list[str] = []

    def refused() -> None:
        closed.append("meaning")
        raise StorageIO("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(workspace.meaning, "close", refused)
        for name in ("patterns", "usage", "store"):
            patched.setattr(getattr(workspace, name), "close", lambda name=name: closed.append(name))
        with pytest.raises(StorageIO, match="the disk is gone"):
            workspace.close()
    assert closed == ["meaning", "patterns", "usage", "store"]


def test_a_workspace_that_wrote_may_be_closed_twice(opened: Opened) -> None:
    """What is due after a write is done once: the second time, its files are closed."""
    workspace = opened()
    workspace.store.put(MemoryItem("a text", "semantic"))
    workspace.close()
    workspace.close()
    assert not workspace.quota.written

"""Workspace: its parts, made when first used and closed together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kit.faults import Stopped
from kit.patience import until
from memfs import MemoryItem, StorageIO, Workspace
from memfs.fs import lock
from memfs.fs.lock import locked, locked_within
from memfs.store import Store
from memfs.workspace import open_workspace

Opened = Callable[..., Workspace]


@pytest.mark.parametrize("name", ["intake", "meaning", "patterns"])
def test_threads_that_make_a_part_at_once_share_it(opened: Opened, name: str) -> None:
    """What keeps a lock, a thread or a file of its own is there once, also where Python makes it twice."""
    workspace = opened()
    part = vars(Workspace)[name]
    assert part.__get__(workspace) is part.__get__(workspace) is getattr(workspace, name)


def test_a_part_that_cannot_be_closed_keeps_no_other_open(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is closed, the store last, and the failure is reported."""
    workspace = opened()
    closed: list[str] = []

    def refused() -> None:
        closed.append("meaning")
        raise StorageIO("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(workspace.meaning, "close", refused)
        for name in ("patterns", "usage", "store"):
            patched.setattr(getattr(workspace, name), "close", lambda name=name, **_: closed.append(name))
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


def test_who_makes_a_workspace_at_once_makes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one waits, and finds it made: by the policies of a repository of its own, and no file twice (C1)."""
    planned: list[int] = []
    waits = threading.Event()
    carry_out = Store.carry_out

    def late(store: Store, plans: list[Any], *given: Any, **more: Any) -> Any:
        planned.append(len(plans))
        assert len(planned) > 1 or until(lambda: waits.is_set() or len(planned) > 1)
        return carry_out(store, plans, *given, **more)

    def tried(fd: int, seconds: float) -> bool:
        if locked(fd):
            return True
        waits.set()
        return locked_within(fd, seconds)

    monkeypatch.setattr(Store, "carry_out", late)
    monkeypatch.setattr(lock, "locked_within", tried)
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: open_workspace(tmp_path / "w", create=True, watch=False), range(2)))
    for workspace in made:
        workspace.close()
        assert workspace.settings.history.adopt == "auto"
    assert sorted(map(bool, planned)) == [False, True]


def test_making_ones_own_is_taken_up_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that was made for it and stayed empty is not a person's, and gets no such policies (C1)."""
    with monkeypatch.context() as patched:
        patched.setattr(Store, "carry_out", Mock(side_effect=Stopped))
        with pytest.raises(Stopped):
            open_workspace(tmp_path / "w", create=True, watch=False, own_repository=True)
    with open_workspace(tmp_path / "w", create=True, watch=False, own_repository=True) as again:
        assert (again.settings.history.commit, again.settings.history.adopt) == ("interval", "auto")
        assert again.created is not None
        assert again.created.repository_made
    with open_workspace(tmp_path / "w", create=True, watch=False, own_repository=True) as made:
        assert made.created is not None
        assert not made.created.repository_made


@pytest.mark.parametrize("begun", [("add", "app.py"), ("checkout", "--quiet", "--orphan", "fresh")])
def test_a_repository_that_a_person_began_is_theirs(tmp_path: Path, git: Callable[..., str], begun: tuple[str]) -> None:
    """What has no commit yet may have something staged, or commits on other branches (C1)."""
    root = tmp_path / "w"
    git(tmp_path, "init", "--quiet", str(root))
    (root / "app.py").write_text("print()\n")
    if begun[0] != "add":
        git(root, "add", "app.py")
        git(root, "commit", "--quiet", "-m", "Begin")
    git(root, *begun)
    with open_workspace(root, create=True, watch=False, own_repository=True) as workspace:
        assert workspace.settings.history.adopt == "leave"
        assert workspace.created is not None
        assert not workspace.created.repository_made


def test_a_workspace_whose_making_was_interrupted_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves no thread; once its files are there it is opened as any other, and git knows how to join them (B4)."""
    before = set(threading.enumerate())
    with monkeypatch.context() as patched:
        patched.setattr(Store, "flush", Mock(side_effect=Stopped))
        with pytest.raises(Stopped):
            open_workspace(tmp_path / "w", create=True, watch=False)
    assert set(threading.enumerate()) <= before
    with open_workspace(tmp_path / "w", watch=False) as again:
        assert again.checker.check() == []

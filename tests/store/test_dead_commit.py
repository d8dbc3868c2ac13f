"""Opening a workspace ends the commit that a killed process left in the middle (faults rows 21, 39)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kit.faults import Fault, Stopped, injected
from memfs import MemoryItem
from memfs.fs.atomic_replace import is_temporary
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]


class StopsBeforeUnlocking(Fault):
    """Stops right before our lock on the person's index is removed."""

    def __call__(self, name: str, path: str) -> None:
        """The hook itself."""
        if name == "unlink" and path.endswith("index.lock"):
            self.at = len(self.seen) + 1
        Fault.__call__(self, name, path)


def interrupted(opened: Opened) -> Path:
    """A workspace whose writer died while it held the lock on the person's index."""
    workspace = opened()
    workspace.store.put(MemoryItem("x", "knowledge", id="a"))
    with suppress(Stopped), injected(StopsBeforeUnlocking()):
        workspace.store.flush()
    assert (workspace.root / ".git/index.lock").exists()
    return workspace.root


def test_21_opening_removes_the_lock_of_a_dead_process(opened: Opened, git: Git) -> None:
    """A person can use git as soon as memfs was opened once, without a commit; what happened is said."""
    root = interrupted(opened)
    fresh = opened(root)
    assert not (root / ".git/index.lock").exists()
    assert [problem.code for problem in fresh.store.problems()] == ["InterruptedCommit"]
    (root / "notes.txt").write_text("mine\n")
    git(root, "add", "notes.txt")
    git(root, "commit", "-qm", "by a person")
    assert fresh.store.flush().waiting == 0
    assert git(root, "status", "--porcelain") == ""


def test_39_opening_never_waits_for_a_live_committer(opened: Opened) -> None:
    """While somebody holds the commit lock nothing is ended, and opening goes on at once."""
    root = interrupted(opened)
    holder = opened()
    lock = root / ".git/index.lock"
    assert not lock.exists()
    lock.write_bytes(b"")
    (holder.repository.state / "index.next").write_bytes(b"")
    with holder.parts.commit_lock.hold("test"):
        assert opened(root).store.problems() == []
    assert (holder.repository.state / "index.next").exists()
    lock.unlink()


class StopsWhileItTakesOut(Fault):
    """Stops when a file has lost its name, before it is removed."""

    def __call__(self, name: str, path: str) -> None:
        """The hook itself."""
        if name == "unlink" and is_temporary(os.path.basename(path)):
            self.at = len(self.seen) + 1
        Fault.__call__(self, name, path)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("saved", [b"", b"content: saved by a person in that moment\n"])
def test_21_a_process_killed_while_it_took_files_of_another_branch_out_leaves_nothing(
    opened: Opened, git: Git, saved: bytes, back: bool
) -> None:
    """The next commit clears away what it left under a temporary name, on whichever branch; a person's save is kept."""
    workspace = opened(history__commit="session")
    root = workspace.root
    path = workspace.store.put(MemoryItem("x", "knowledge", id="a")).path
    git(root, "checkout", "-q", "-b", "other")
    with suppress(Stopped), injected(StopsWhileItTakesOut()):
        workspace.store.flush()
    (left,) = root.rglob(".memfs-*")
    if saved:
        left.write_bytes(saved)
    for part in (workspace.parts.journal, workspace.parts.tree):
        part.close()  # as a killed process leaves it
    if back:
        (root / ".git/index.lock").unlink()  # as git tells a person to do
        git(root, "checkout", "-q", "main")
    fresh = opened(root, history__commit="session")
    assert (flushed := fresh.store.flush()).waiting == 0
    assert list(root.rglob(".memfs-*")) == []
    assert [row.path for row in fresh.recovered.list()] == [path] * bool(saved)
    assert [note.code for note in flushed.notes] == ["KeptPersonsChange"] * bool(saved)
    assert git(root, "show", f"main:{path}")

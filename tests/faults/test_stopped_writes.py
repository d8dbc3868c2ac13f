"""A process stopped, or a disk failing, at any operation of a write (faults rows 21, 24, 25)."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem
from memfs.errors import MemfsError
from memfs.testing.faults import Fault, Stopped, injected
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.faults
SETTINGS = {"index.engine": "memory", "history.commit": "manual"}
Act = Callable[[Workspace], object]


def create(workspace: Workspace) -> None:
    """A new item."""
    workspace.store.put(MemoryItem("new", "knowledge", id="made"))


def update(workspace: Workspace) -> None:
    """A new version of an item."""
    workspace.store.put(MemoryItem("new", "knowledge", id="kept"))


def retype(workspace: Workspace) -> None:
    """An item that moves to another folder."""
    workspace.store.put(MemoryItem("new", "episodic", id="kept"))


def delete(workspace: Workspace) -> None:
    """An item removed."""
    workspace.store.delete("kept")


def batch(workspace: Workspace) -> None:
    """Several files at once."""
    with workspace.store.batch("All") as writes:
        writes.put(MemoryItem("new", "knowledge", id="made"))
        writes.put(MemoryItem("new", "knowledge", id="kept"))
        writes.delete("gone")


def flush(workspace: Workspace) -> None:
    """A commit of what waits."""
    assert workspace.store.flush(adopt=False).reason == ""


ACTS = [create, update, retype, delete, batch, flush]


class Prepared:
    """A workspace with two committed items and one that waits, quick to set up again at the same place."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self._first = folder / "first"
        workspace = open_workspace(self.root, create=True, watch=False, settings=SETTINGS)
        workspace.store.put(MemoryItem("old", "knowledge", id="kept"))
        workspace.store.put(MemoryItem("old", "knowledge", id="gone"))
        workspace.store.flush()
        workspace.store.put(MemoryItem("waits", "knowledge", id="waiting"))
        workspace.close()
        shutil.copytree(self.root, self._first)

    def open(self) -> Workspace:
        """The workspace as it first was."""
        shutil.rmtree(self.root)
        shutil.copytree(self._first, self.root)
        return self.reopen()

    def reopen(self) -> Workspace:
        """The workspace as it is, with every file looked at."""
        workspace = open_workspace(self.root, watch=False, settings=SETTINGS)
        workspace.store.follow()
        return workspace


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    """See ``Prepared``."""
    return Prepared(tmp_path)


def snapshot(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """Type and content by id, as files say."""
    workspace.store.refresh()
    found = {}
    for path in workspace.store.edits.own_paths():
        if workspace.store.following.is_item(path):
            item = workspace.store.read(path)
            found[item.id] = (item.type, item.content)
    return found


def leftovers(root: Path) -> list[str]:
    """Temporary files and git locks that should not be there."""
    return [str(path) for path in root.rglob("*") if path.name.endswith((".tmp", "index.lock", "HEAD.lock"))]


def abandon(workspace: Workspace) -> None:
    """Release a workspace's descriptors as the death of its process would."""
    for part in (workspace.parts.journal, workspace.parts.tree):
        part.close()


def states(prepared: Prepared, act: Act) -> tuple[list[dict[str, tuple[str, str]]], int]:
    """What the files say before and after the act, and how many disk operations it takes."""
    workspace = prepared.open()
    before = snapshot(workspace)
    with injected(Fault()) as counted:
        act(workspace)
    after = snapshot(workspace)
    workspace.close()
    return [before, after], len(counted.seen)


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_21_stopped_at_any_operation_leaves_old_or_new(prepared: Prepared, act: Act, git: Callable[..., str]) -> None:
    """After a stop at each operation in turn: old state or new, nothing lost, nothing left over, git whole."""
    allowed, total = states(prepared, act)
    stops = 0
    for number in range(1, total + 1):
        workspace = prepared.open()
        fault = Fault(at=number)
        with injected(fault), contextlib.suppress(Stopped):
            act(workspace)
        abandon(workspace)
        stops += fault.stopped
        with prepared.reopen() as reopened:
            assert snapshot(reopened) in allowed, fault.seen[-1]
            flushed = reopened.store.flush(adopt=False)
            assert flushed.reason == "", fault.seen[-1]
            assert snapshot(reopened) in allowed
        assert leftovers(prepared.root) == [], fault.seen[-1]
        assert git(prepared.root, "status", "--porcelain") == "", fault.seen[-1]
    assert stops >= total * 0.9
    git(prepared.root, "fsck", "--full", "--strict")


@pytest.mark.parametrize(
    ("act", "code"),
    [*((act, errno.ENOSPC) for act in ACTS[:5]), (update, errno.EIO), (update, errno.EROFS), (create, errno.EMFILE)],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else value.__name__,
)
def test_24_25_a_failing_disk_is_a_typed_error_and_the_old_state(prepared: Prepared, act: Act, code: int) -> None:
    """When any one operation fails, the caller is told or all is done; nothing is torn, and writing works again."""
    (before, after), total = states(prepared, act)
    refused = 0
    for number in range(1, total + 1):
        workspace = prepared.open()
        fault = Fault(at=number, error=code)
        try:
            with injected(fault):
                act(workspace)
        except MemfsError:
            refused += 1
            assert snapshot(workspace) == before, fault.seen[-1]
            act(workspace)
        assert snapshot(workspace) == after, fault.seen[-1]
        assert leftovers(prepared.root) == [], fault.seen[-1]
        workspace.close()
    assert refused > total / 3

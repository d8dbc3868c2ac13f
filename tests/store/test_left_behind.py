"""What a process that was killed left waiting is committed by the next one, or named where nobody may commit it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.patience import until
from memfs import MemoryItem
from memfs.fs import io
from memfs.store import store as storing
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
ALL = ["interval", "each", "batch", "session", "manual"]


@pytest.fixture
def left(opened: Opened) -> Workspace:
    """A closed workspace in which one acknowledged write waits, as if its writer had been killed within its window."""
    writer = opened()
    writer.store.put(MemoryItem("left behind", "knowledge", id="left"))
    writer.close()
    return writer


def in_head(workspace: Workspace, git: Git, name: str = "left") -> bool:
    return f"/{name}.yaml" in git(workspace.root, "ls-tree", "-r", "--name-only", "HEAD")


@pytest.mark.parametrize("policy", ["interval", "each", "batch"])
def test_the_next_to_open_commits_what_was_left(left: Workspace, opened: Opened, git: Git, policy: str) -> None:
    """A writer killed within its window loses no history: the next process that stays commits it, without a write."""
    opened(left.root, history__commit=policy, history__interval_seconds=86400.0)
    assert until(lambda: in_head(left, git))


@pytest.mark.parametrize("policy", ["interval", "each", "batch"])
def test_the_first_write_commits_what_was_left(
    left: Workspace, opened: Opened, git: Git, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that is always killed within its window commits all but its last writes."""
    monkeypatch.setattr(storing, "_GRACE", -86401.0)
    next_one = opened(left.root, history__commit=policy, history__interval_seconds=86400.0)
    next_one.store.put(MemoryItem("as short-lived", "knowledge", id="next"))
    assert in_head(left, git)


def test_a_resident_process_commits_what_others_leave(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that watches takes up what another wrote and never committed, once that one's window is over."""
    resident = opened(history__commit="interval", history__interval_seconds=0.01)
    other = opened(resident.root)
    other.store.put(MemoryItem("left behind", "knowledge", id="left"))
    monkeypatch.setattr(storing, "_GRACE", 86400.0)
    resident.store.maintain()
    assert not resident.store.pending().late
    assert not in_head(resident, git)
    monkeypatch.setattr(storing, "_GRACE", -1.0)
    resident.store.maintain()
    assert until(lambda: in_head(resident, git))


def test_what_a_session_left_is_named(left: Workspace, opened: Opened, git: Git) -> None:
    """Where a session commits at its end, what a killed one left stays, is named by check, and goes with the next."""
    again = opened(left.root, history__commit="session")
    again.store.put(MemoryItem("one more", "knowledge", id="own"))
    (problem,) = (one for one in again.checker.check() if one.code == "CommitsWaiting")
    assert problem.message.startswith("writes wait for their commit: 2, to ")
    assert "/left.yaml" in problem.message
    assert "memfs commit" in problem.hint
    assert not in_head(again, git)
    again.store.flush()
    assert in_head(again, git)
    assert again.checker.check() == []


def test_what_a_person_commits_by_hand_is_no_problem(left: Workspace, opened: Opened) -> None:
    """Under ``manual`` writes wait until the person commits them: ``check`` has nothing to say about that."""
    assert opened(left.root, history__commit="manual").checker.check() == []


@pytest.mark.parametrize("policy", ALL)
def test_nothing_is_named_while_its_own_writer_is_here(opened: Opened, policy: str) -> None:
    """Within its window a write waits as it should: that is no problem."""
    workspace = opened(history__commit=policy, history__interval_seconds=86400.0)
    workspace.store.put(MemoryItem("on its way", "knowledge"))
    assert workspace.checker.check() == []


def test_what_is_overdue_is_named(left: Workspace, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check names a write whose window is over, by its file, though git would take it."""
    monkeypatch.setattr("memfs.store.store._LATE_SECONDS", 86400.0)
    again = opened(left.root, history__commit="interval", history__interval_seconds=86400.0)
    monkeypatch.setattr(storing, "_GRACE", -86401.0)
    (problem,) = again.checker.check()
    assert (problem.code, "/left.yaml" in problem.message) == ("CommitsWaiting", True)


def test_a_repair_commits_what_was_left(
    left: Workspace, opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``check --fix`` leaves nothing out of HEAD that the policy would have committed."""
    monkeypatch.setattr("memfs.store.store._LATE_SECONDS", 86400.0)
    again = opened(left.root, history__commit="interval", history__interval_seconds=86400.0)
    assert any("committed" in done.sentence for done in again.checker.repair())
    assert in_head(again, git)


def test_what_is_in_the_secondary_location_is_named(opened: Opened, tmp_path: Path) -> None:
    """What another disk took waits, too: check names it for as long as the workspace's own takes no writes (S17)."""
    (tmp_path / "secondary").mkdir(0o700)
    writer = opened(storage__secondary=str(tmp_path / "secondary"))

    def full(name: str, path: str) -> None:
        if name in {"write", "fsync", "fdatasync"} and not path.startswith(str(tmp_path / "secondary")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = io.set_hook(full)
    try:
        writer.store.put(MemoryItem("left behind", "knowledge", id="left"))
        writer.close()
        again = opened(writer.root, storage__secondary=str(tmp_path / "secondary"))
        assert [path.rpartition("/")[2] for path in again.store.pending().paths] == ["left.yaml"]
        (problem,) = (one for one in again.checker.check() if one.code == "CommitsWaiting")
        assert "/left.yaml" in problem.message
    finally:
        io.set_hook(before)

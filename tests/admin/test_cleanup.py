"""Cleanup: room without loss (S16)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem
from memfs.admin import prune
from memfs.errors import StorageIO
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
Git = Callable[..., str]


def cluttered(workspace: Workspace, place: Path) -> None:
    """Something for each step to find."""
    for number in range(30):
        workspace.store.put(MemoryItem(f"version {number}", "knowledge", id="often"))
        workspace.store.flush()
    item = workspace.store.get("often")
    assert item is not None
    (workspace.root / "ContextMemory/.memfs-0123456789ab.tmp").write_text("half a file")
    aside = workspace.repository.state / "recovered"
    aside.mkdir()
    kept = (workspace.root / item.path).read_bytes()
    (aside / "same-0.kept").write_bytes(b'{"path": "%s"}\n' % item.path.encode() + kept)
    (aside / "other-0.kept").write_bytes(b'{"path": "%s"}\n' % item.path.encode() + b"content: only here\n")
    for _ in range(3):
        workspace.backups.make(place)


def test_cleanup_makes_room_and_loses_nothing(opened: Open, tmp_path: Path, git: Git) -> None:
    """Leftovers, contents kept twice, loose history go; what is only there stays, history and files are whole."""
    workspace = opened(history__adopt="auto", history__commit="interval", history__interval_seconds=3600)
    cluttered(workspace, tmp_path / "place")
    workspace.store.put(MemoryItem("waits", "knowledge", id="waiting"))
    before = git(workspace.root, "log", "--format=%H")
    done = workspace.cleaner.clean()
    assert {step.error for step in done} == {""}
    assert sum(step.bytes for step in done) > 100
    assert not (workspace.root / "ContextMemory/.memfs-0123456789ab.tmp").exists()
    left = [path.name for path in (workspace.repository.state / "recovered").iterdir()]
    assert left == ["other-0.kept"]
    assert git(workspace.root, "log", "--format=%H").endswith(before)
    assert workspace.store.pending().count == 0
    git(workspace.root, "fsck", "--full", "--strict")
    assert [step for step in workspace.cleaner.clean() if "index" not in step.what] == []


def test_a_repository_that_memfs_joined_is_not_packed(opened: Open, tmp_path: Path) -> None:
    """By itself cleanup packs only what memfs made: elsewhere it is the person's decision."""
    workspace = opened(history__adopt="leave")
    packs = set((workspace.root / ".git/objects/pack").glob("*.pack"))
    cluttered(workspace, tmp_path / "place")
    assert not [step for step in workspace.cleaner.clean() if "history" in step.what]
    assert set((workspace.root / ".git/objects/pack").glob("*.pack")) == packs


def test_what_waits_is_committed_only_where_the_policy_allows_it(opened: Open) -> None:
    """Under ``manual`` and ``session`` cleanup makes no commit."""
    workspace = opened(history__commit="manual")
    workspace.store.put(MemoryItem("waits", "knowledge"))
    workspace.cleaner.clean()
    assert workspace.store.pending().count == 1


def test_a_step_that_fails_is_reported_and_the_others_go_on(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step's error is its own."""
    workspace = opened()

    def fail(_: prune.Cleaner) -> int:
        raise StorageIO("the disk is gone")

    monkeypatch.setattr(prune, "STEPS", {"tried": fail, "worked": lambda _: 5})
    assert [(step.what, step.error) for step in workspace.cleaner.clean()] == [
        ("tried", "the disk is gone"),
        ("worked", ""),
    ]

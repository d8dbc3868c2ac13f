"""Moving memory from the code's branches to a branch of its own loses neither files nor history (D1, K4)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from codebeside import Git, Said, begin_code, ids

from kit.stops import killed_before
from memfs.doors.cli.app import run
from memfs.fs import workspace_location

LINK = "ContextMemory"


@pytest.fixture
def code(tmp_path: Path, git: Git, memfs: Said) -> Path:
    """A repository of code with two memories among the code, one of them changed on a branch that was merged."""
    root = begin_code(tmp_path / "code", git)
    memfs(root, "init", "--here")
    memfs(root, "remember", "A fact", "--id", "fact")
    memfs(root, "commit")
    git(root, "switch", "-qc", "topic")
    memfs(root, "remember", "Learned on a branch", "--id", "learned")
    memfs(root, "commit")
    git(root, "switch", "-q", "main")
    (root / "main.py").write_text("x = 2\n")
    git(root, "commit", "-qam", "Only code")
    git(root, "merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    return root


def test_the_history_of_the_memory_goes_along(code: Path, git: Git, memfs: Said) -> None:
    """Each commit that changed memory keeps author, date and message; those of code alone are left out (K4)."""
    form = ("--format=%an %at %cn %ct %s", "--", "ContextMemory", "memfs.toml")
    before = set(git(code, "log", *form).splitlines())
    memfs(code, "admin", "move")
    after = git(code, "log", "--format=%an %at %cn %ct %s", "context-memory").splitlines()
    assert before <= set(after)
    assert not any("Only code" in line for line in after)
    assert any("Merge topic" in line for line in after)
    assert ids(memfs, code) == {"fact", "learned"}
    assert "A fact" in memfs(code, "show", "fact")
    assert "A fact" in git(
        code,
        "show",
        "context-memory:"
        + git(code, "ls-tree", "-r", "--name-only", "context-memory").split("fact.yaml")[0].splitlines()[-1]
        + "fact.yaml",
    )
    assert all(line.startswith(" D") for line in git(code, "status", "--porcelain").splitlines())
    git(code, "commit", "-qam", "Move the memory")
    assert git(code, "status", "--porcelain") == ""
    assert (code / LINK).is_symlink()
    memfs(code, "remember", "After the move", "--id", "later")
    assert git(code, "log", "-1", "--format=%s", "main").strip() == "Move the memory"
    assert ids(memfs, code) == {"fact", "learned", "later"}


def test_a_dry_run_changes_nothing(code: Path, git: Git, memfs: Said) -> None:
    """--dry-run says how many files and commits would move; every file, ref and working tree stays (D1)."""
    before = git(code, "for-each-ref"), sorted(str(path) for path in code.rglob("*") if ".git" not in path.parts)
    assert "Would move 5 files" in memfs(code, "admin", "move", "--dry-run")
    now = git(code, "for-each-ref"), sorted(str(path) for path in code.rglob("*") if ".git" not in path.parts)
    assert now == before


def test_what_no_commit_has_keeps_it_from_moving(code: Path, git: Git, memfs: Said) -> None:
    """A memory that is not committed yet is named, and nothing moves (D1)."""
    memfs(code, "remember", "Not committed", "--id", "fresh")
    assert "fresh.yaml" in memfs(code, "admin", "move", code=1)
    assert ids(memfs, code) == {"fact", "learned", "fresh"}
    assert "context-memory" not in git(code, "branch")


def test_a_killed_move_is_completed_by_the_next(code: Path, memfs: Said, scale: Callable[[int, int], int]) -> None:
    """Stopped at any write, every memory is still in one place or both, and the next call completes the move (D1)."""
    trial, number, killed = code.with_name("trial"), 3, True
    while killed:
        shutil.copytree(code, trial, symlinks=True)
        killed = killed_before(number, lambda: run(["-C", str(trial), "admin", "move"]))
        memfs(trial, "admin", "move") if killed else None
        assert ids(memfs, trial) == {"fact", "learned"}
        assert workspace_location.place_in(trial / ".git") is not None
        assert not os.path.lexists(trial / "memfs.toml")
        shutil.rmtree(trial)
        number += scale(79, 3)
    assert number > 100

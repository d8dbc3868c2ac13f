"""A day in a repository whose memory has a branch of its own: whatever git does to code, nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]
LINK = "ContextMemory"
BRANCHES = ("main", "feature", "fix", "docs")


def memfs(folder: Path, *words: str) -> str:
    """What a command prints, each in a process of its own, as a person and an agent call it."""
    done = subprocess.run(["memfs", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def known(folder: Path) -> set[str]:
    """The ids of all that is remembered, as seen from a folder."""
    return {item["id"] for item in json.loads(memfs(folder, "list", "--json"))["items"]}


@pytest.fixture
def trees(tmp_path: Path, git: Git, memfs_on_path: Path) -> tuple[Path, Path]:
    """A repository of code with a remote and four branches, one of which is checked out in a second working tree."""
    code, other = tmp_path / "work" / "shop", tmp_path / "docs"
    git(tmp_path, "init", "-q", "--bare", "hub.git")
    git(tmp_path, "clone", "-q", str(tmp_path / "hub.git"), str(code))
    (code / "app.py").write_text("pass\n")
    git(code, "add", "-A")
    git(code, "commit", "-qm", "Begin")
    for branch in BRANCHES[1:]:
        git(code, "branch", branch)
    git(code, "push", "-q", "--all", "origin")
    git(code, "worktree", "add", "-q", str(other), "docs")
    memfs(code, "init", "--own-branch")
    return code, other


def test_nothing_that_git_does_to_code_loses_memory(trees: tuple[Path, Path], git: Git, tmp_path: Path) -> None:
    """One memory from four branches and two working trees, through everything that empties a working tree (D1)."""
    code, other = trees
    acknowledged: set[str] = set()

    def remember(folder: Path, name: str) -> None:
        memfs(folder, "remember", f"Known since {name}", "--id", name)
        acknowledged.add(name)

    def settled(*folders: Path) -> None:
        for folder in folders:
            assert known(folder) == acknowledged
            assert (folder / LINK / "memories").is_dir()
            assert git(folder, "status", "--porcelain", "-uno") == ""

    for branch in BRANCHES[:3]:
        git(code, "checkout", "-q", branch)
        remember(code, f"on-{branch}")
    remember(other, "on-docs")
    settled(code, other)

    git(code, "checkout", "-q", "feature")
    (code / "feature.py").write_text("pass\n")
    git(code, "add", "-A")
    git(code, "commit", "-qm", "Add a feature")
    git(code, "checkout", "-q", "main")
    (code / "app.py").write_text("print()\n")
    git(code, "commit", "-qam", "Print")
    steps = (
        ("stash", "-u"),
        ("clean", "-fdxq"),
        ("clean", "-ffdxq"),
        ("checkout", "-q", "feature"),
        ("rebase", "-q", "main"),
        ("reset", "-q", "--hard", "origin/feature"),
        ("worktree", "prune", "--expire=now"),
        ("gc", "-q", "--prune=now"),
    )
    for number, words in enumerate(steps):
        if words[0] == "stash":
            (code / "app.py").write_text("print(1)\n")
        (code / "scratch.txt").write_text("scratch\n")
        git(code, *words)
        remember(other if number % 2 else code, f"after-{number}")
    settled(code, other)
    git(code, "checkout", "-qf", "main")
    git(code, "stash", "drop", "-q")

    for folder in (code, other):
        (folder / LINK).unlink()
    memfs(code, "commit")
    settled(code, other)
    remember(other, "after-unlink")

    moved = tmp_path / "elsewhere" / "shop"
    moved.parent.mkdir()
    code.parent.rename(moved.parent)
    git(moved, "worktree", "repair", str(other))
    settled(moved, other)
    remember(moved, "after-move")
    git(moved, "worktree", "remove", "--force", str(other))
    git(moved, "branch", "-qD", "docs", "fix", "feature")
    git(moved, "gc", "-q", "--prune=now")
    settled(moved)

    memfs(moved, "commit")
    assert "No problems found" in memfs(moved, "check")
    names = git(moved, "ls-tree", "-r", "--name-only", "context-memory").splitlines()
    assert {Path(name).stem for name in names if "/memories/" in name} == acknowledged
    subjects = git(moved, "log", "--format=%s", "context-memory").splitlines()
    assert not any(line.startswith("Forget") for line in subjects)
    assert git(moved, "log", "--format=%s", "main").splitlines() == ["Print", "Begin"]


def test_a_pull_request_is_reviewed_and_merged_by_a_colleague(
    trees: tuple[Path, Path], git: Git, tmp_path: Path
) -> None:
    """A branch off the memory is pushed, reviewed in another clone, merged there, and known to all (D1, K8)."""
    code, other = trees
    memfs(code, "remember", "Deploys happen on Tuesdays", "--id", "deploys")
    (code / "app.py").write_text("print()\n")
    git(code, "commit", "-qam", "Not ready to be pushed")
    memfs(code, "sync")
    request = tmp_path / "request"
    git(code, "worktree", "add", "-q", "-b", "memory/utc", str(request), "context-memory")
    memfs(request, "team", "convention", "propose", "Columns hold UTC.", "--title", "Times are UTC", "--id", "utc")
    memfs(request, "team", "convention", "accept", "utc")
    memfs(request, "commit")
    git(request, "push", "-q", "origin", "memory/utc")
    assert known(code) == {"deploys"}

    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}/hub.git", str(clone))
    memfs(clone, "init", "--own-branch")
    git(clone, "fetch", "-q", "origin", "+refs/heads/memory/utc:refs/remotes/origin/memory/utc")
    report = memfs(clone, "review", "context-memory..origin/memory/utc")
    assert "utc" in report
    assert "deploys" not in report
    place = clone / ".git/memfs/memory"
    git(place, "merge", "-q", "--no-ff", "-m", "Times are UTC", "origin/memory/utc")
    memfs(clone, "sync")
    memfs(other, "sync")
    for folder in (code, other, clone):
        assert "Times are UTC" in memfs(folder, "team", "convention", "list")
        assert known(folder) >= {"deploys"}
        assert git(folder, "status", "--porcelain") == ""
    pushed = git(tmp_path / "hub.git", "log", "--format=%s", *BRANCHES)
    assert "Not ready" not in pushed
    assert os.path.islink(clone / LINK)

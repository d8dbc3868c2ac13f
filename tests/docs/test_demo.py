"""``make demo`` does what it says, wherever it is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path, git: Callable[..., str]) -> Path:
    """A small checkout with what the demo needs, in git."""
    root = tmp_path / "checkout"
    root.mkdir()
    for name in ("examples", "example-workspace"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / ".gitignore", root)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Checkout")
    return root


def demo(checkout: Path, tour: str = "demo", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as make does."""
    variables = {**os.environ, **environment}
    return subprocess.run(
        ["sh", f"examples/{tour}.sh"],
        cwd=checkout,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_the_demo_runs_over_leftovers_and_leaves_the_checkout_clean(
    checkout: Path, memfs_on_path: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    """It needs no git identity, minds no settings in the environment, and begins again over what an old run left."""
    (checkout / ".demo/waybill/ContextMemory").mkdir(parents=True)
    (checkout / ".demo/waybill/ContextMemory/left.yaml").write_text("title: [")
    done = demo(checkout, HOME=str(tmp_path / "nobody"), GIT_DIR="/nonexistent", MEMFS_WORKSPACE="/nonexistent")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "That was the main job" in done.stdout
    assert git(checkout, "status", "--short") == ""


def test_the_demo_fails_when_a_step_does_not_do_what_it_says(checkout: Path, memfs_on_path: Path) -> None:
    """A recall that misses the edit ends the demo with the text it expected."""
    real = memfs_on_path / "memfs"
    real.rename(memfs_on_path / "real")
    real.write_text(f'#!/bin/sh\n"{memfs_on_path}/real" "$@" | sed "s/tried eight times/tried five times/"\n')
    real.chmod(0o755)
    done = demo(checkout)
    assert done.returncode == 1
    assert "demo: expected to see: tried eight times" in done.stderr
    assert sys.executable not in done.stdout


def test_a_team_of_two_shares_contradicts_undoes_and_merges(
    checkout: Path, memfs_on_path: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    """Two clones, a poisoned session, a convention and a branch: each step does what it says (K8, B1, B2, B3, B4)."""
    done = demo(
        checkout, "teams", HOME=str(tmp_path / "nobody"), GIT_DIR="/nonexistent", MEMFS_WORKSPACE="/nonexistent"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "That was a team" in done.stdout
    assert git(checkout, "status", "--short") == ""

"""The example source, built, installed and found by its entry point in processes of their own (P2)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs import trust

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "memfs_todo_source"
AGENT = """
import asyncio, memfs
layer = memfs.MemoryLayer.default(".")
state = memfs.StateSnapshot.create(files=["auth.py"], context="change the login")
print(asyncio.run(layer.check_triggers(state)))
"""
Python = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder into which the package was installed, as ``pip install`` does it."""
    for wanted in ("hatchling", "pip"):
        pytest.importorskip(wanted)
    package, target = tmp_path / "package", tmp_path / "site"
    shutil.copytree(EXAMPLE, package, ignore=shutil.ignore_patterns("__pycache__"))
    words = ["install", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile", "--no-cache-dir", "-q"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words, "--target", target, package]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return target


@pytest.fixture
def python(installed: Path, opened: Callable[..., Any]) -> Python:
    """Runs Python where the package is installed, in a workspace that names its source."""
    with opened() as workspace:
        root: Path = workspace.root
    (root / "auth.py").write_text("# TODO: refuse a token that has expired\n")
    settings = (root / "memfs.toml").read_text()
    tables = '\n[memory]\ntriggered = ["semantic", "todo"]\n\n[memory.todo]\nmax_items = 3\n'
    (root / "memfs.toml").write_text(settings + tables)
    found = {"PYTHONPATH": f"{installed}{os.pathsep}{ROOT}", "MEMFS_INDEX_ENGINE": "memory"}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        environ = {**os.environ, **found, "MEMFS_WORKSPACE": str(root)}
        return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, timeout=60, check=False)

    return call


def test_p2_an_installed_package_is_a_source_by_its_entry_point(python: Python, tmp_path: Path) -> None:
    """It counts when the workspace is trusted, and then speaks before a step (P2)."""
    ran = python("-m", "memfs", "agent", "warn", "deploy it")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "is ignored: nobody has trusted this workspace" in ran.stderr
    trust.grant(tmp_path / "workspace")
    ran = python("-c", AGENT)
    assert ran.returncode == 0, ran.stderr
    assert "auth.py:1 TODO: refuse a token that has expired" in ran.stdout

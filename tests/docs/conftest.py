"""The pages and the command, for tests that hold one against the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.admin.store_builder import install_driver
from memfs.git.repository import Repository

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page() -> Callable[[str], str]:
    """The text of a page by its path below the checkout."""
    return lambda path: (ROOT / path).read_text(encoding="utf-8")


@pytest.fixture
def example(tmp_path: Path, git: Callable[..., str]) -> Path:
    """A copy of the example workspace, committed to a repository of its own, whose git knows the merge driver."""
    root = tmp_path / "waybill"
    shutil.copytree(ROOT / "example-workspace", root)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "The memory so far")
    repository = Repository.find(root)
    assert repository is not None
    install_driver(repository)
    repository.close()
    return root


@pytest.fixture
def folder(tmp_path: Path, memfs_on_path: Path, forked_python: Path, git: Callable[..., str]) -> Path:
    """An empty repository in which a page's commands run, with memfs and python on PATH."""
    shutil.copy(forked_python, memfs_on_path / "python")
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet")
    return root

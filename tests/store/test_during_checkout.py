"""Writes while a person's checkout changes the files, before it has moved HEAD (faults: another branch)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memfs.fs.tree import Tree
from memfs.git import busy
from memfs.git.commits import index_lock
from memfs.git.repository import Repository
from memfs.model import MemoryItem
from memfs.store import commits
from memfs.workspace import Workspace, open_workspace

Git = Callable[..., str]
SETTINGS: dict[str, Any] = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "auto"}
SESSION: dict[str, Any] = {**SETTINGS, "history.commit": "session"}


def _has_content(path: Path, words: bytes) -> bool:
    """Whether the file is there and holds the words; git removes a file before it writes it again."""
    try:
        return words in path.read_bytes()
    except FileNotFoundError:
        return False


def test_a_write_during_a_checkout_goes_to_the_branch_that_comes(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The branch that is left keeps what it had: nothing of the other is put in its place."""
    with open_workspace(tmp_path, create=True, watch=False, settings=SETTINGS) as workspace:
        store = workspace.store
        item = store.put(MemoryItem("as on the first branch", "semantic", id="shared-note-abcdef"))
        store.flush()
        first, path = git(tmp_path, "symbolic-ref", "--short", "HEAD").strip(), item.path
        git(tmp_path, "checkout", "-q", "-b", "other")
        store.put(MemoryItem("as on the other branch", "semantic", id="shared-note-abcdef"))
        store.flush()
        (tmp_path / ".gitattributes").write_text("zz.txt filter=slow\n")
        (tmp_path / "zz.txt").write_text("of the other branch\n")
        git(tmp_path, "add", ".gitattributes", "zz.txt")
        git(tmp_path, "commit", "-q", "-m", "a file that takes long to check out")
        git(tmp_path, "checkout", "-q", first)
        done = tmp_path / ".git/done"
        git(tmp_path, "config", "filter.slow.smudge", f"while [ ! -e '{done}' ]; do sleep 0.02; done; cat")
        checkout = subprocess.Popen(["git", "checkout", "-q", "other"], cwd=tmp_path)
        while not _has_content(tmp_path / path, b"other"):
            time.sleep(0.005)
        assert git(tmp_path, "symbolic-ref", "--short", "HEAD").strip() == first
        waits = SimpleNamespace(time=time.time, monotonic=lambda: 0.0, sleep=lambda _: done.touch())
        monkeypatch.setattr(busy, "time", waits)
        try:
            store.put(MemoryItem("said during the checkout", "semantic", id="shared-note-abcdef"))
            assert done.exists()  # it waited, and meanwhile the checkout came to its end
        finally:
            done.touch()
        assert checkout.wait(60) == 0
        store.flush()
    assert "as on the first branch" in git(tmp_path, "show", f"{first}:{path}")
    assert "said during the checkout" in git(tmp_path, "show", f"other:{path}")


def waiting_for_other(workspace: Workspace, git: Git) -> str:
    """An item that is in the branch ``other`` already while its write still waits, with ``main`` checked out."""
    root = workspace.root
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    git(root, "checkout", "-q", "-b", "other")
    path = workspace.store.put(MemoryItem("as on the other branch", "semantic", id="shared-note-abcdef")).path
    git(root, "add", path)
    git(root, "commit", "-q", "-m", "by hand")
    git(root, "checkout", "-q", "-")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(
        git(root, "show", f"other:{path}").encode()
    )  # as a write that was not committed leaves it
    return path


def test_a_checkout_that_begins_while_files_leave_the_tree_is_not_undone(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that it lays out stay: the person's next ``commit -a`` would else remove them from their branch."""
    with open_workspace(tmp_path, create=True, watch=False, settings=SESSION) as workspace:
        path = waiting_for_other(workspace, git)
        remove = Tree.remove
        tries: list[int] = []

        def beside(tree: Tree, name: str, **options: Any) -> None:
            if name == path and not tries:
                os.rename(tmp_path / path, tmp_path / "aside")  # git does not lay a file over one it does not know
                tries.append(subprocess.run(["git", "checkout", "-q", "other"], cwd=tmp_path).returncode)
                os.replace(tmp_path / "aside", tmp_path / path)
            remove(tree, name, **options)

        monkeypatch.setattr(Tree, "remove", beside)
        assert workspace.store.flush(adopt=False).waiting == 0
        assert tries
        assert not (tmp_path / path).exists() or tries == [0]
        git(tmp_path, "checkout", "-q", "other")
        assert git(tmp_path, "status", "--porcelain") == ""
        assert (tmp_path / path).exists()


def test_files_of_a_checkout_that_has_not_moved_head_yet_stay(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its last file and the moved HEAD, the index says what the files belong to."""
    with open_workspace(tmp_path, create=True, watch=False, settings=SESSION) as workspace:
        path = waiting_for_other(workspace, git)
        (tmp_path / path).unlink()
        hook, done, there = (tmp_path / ".git" / name for name in ("hooks/post-index-change", "done", "there"))
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n> '{there}'; while [ ! -e '{done}' ]; do sleep 0.02; done\n")
        begun: list[subprocess.Popen[bytes]] = []

        def late(repository: Repository) -> Any:
            hook.chmod(0o755)
            begun.append(subprocess.Popen(["git", "checkout", "-q", "other"], cwd=tmp_path))
            while not there.exists():
                time.sleep(0.005)
            return index_lock(repository)

        # the file is as the write left it when that is looked at first, and a checkout's own a moment later
        monkeypatch.setattr("memfs.git.commits.index_lock", late)
        monkeypatch.setattr(commits.Committer, "_is_still", lambda *_: True)
        try:
            workspace.store.flush(adopt=False)
            assert (tmp_path / path).exists()
        finally:
            done.touch()
        assert begun[0].wait(60) == 0
        assert git(tmp_path, "status", "--porcelain") == ""

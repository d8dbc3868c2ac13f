"""Writes while a person's checkout changes the files, before it has moved HEAD (faults: another branch)."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memfs.history import busy
from memfs.model import MemoryItem
from memfs.workspace import open_workspace

Git = Callable[..., str]
SETTINGS: dict[str, Any] = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "auto"}


def _says(path: Path, words: bytes) -> bool:
    """Whether the file is there and holds the words; git removes a file before it writes it anew."""
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
        while not _says(tmp_path / path, b"other"):
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

"""Every test runs in a world of its own: home, git configuration, caches and environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@pytest.fixture(autouse=True)
def own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clear ``GIT_*`` and ``MEMFS_*``, and give the test its own HOME and git identity."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "MEMFS_", "XDG_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada Person\n\temail = ada@example.org\n"
        "[init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture
def git() -> Callable[..., str]:
    """Run git as a person would, in a folder: ``git(folder, "log", "--oneline")``."""

    def run(folder: Path, *words: str, check: bool = True, **options: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **options},
        )
        if check and done.returncode:
            raise AssertionError(f"git {' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout

    return run


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Workspace]]:
    """Open workspaces that are closed at the end of the test; without a path, a new one of its own."""
    from memfs.workspace import open_workspace

    with ExitStack() as stack:

        def open_one(path: Path | None = None, **settings: Any) -> Workspace:
            dotted = {name.replace("__", "."): value for name, value in settings.items()}
            dotted = {"index.engine": "memory", "history.commit": "manual", **dotted}
            root = path or tmp_path / "workspace"
            create = not (root / "ContextMemory").exists()
            workspace = open_workspace(root, create=create, watch=False, settings=dotted)
            stack.callback(workspace.close)
            return workspace

        yield open_one

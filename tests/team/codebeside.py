"""A repository of code with memory beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Git = Callable[..., str]
RunMemfs = Callable[..., str]


def begin_code(root: Path, git: Git) -> Path:
    """Make a repository with one file of code in one commit on ``main``."""
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "main.py").write_text("x = 1\n")
    git(root, "add", "main.py")
    git(root, "commit", "-qm", "Begin")
    return root


def ids(memfs: RunMemfs, root: Path) -> set[str]:
    """What is remembered, as seen from a folder."""
    return {item["id"] for item in json.JSONDecoder().raw_decode(memfs(root, "list", "--json"))[0]["items"]}

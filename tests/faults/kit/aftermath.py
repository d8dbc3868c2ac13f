"""Aftermath: what a workspace is like after a fault.

Opens it afresh and looks at what it holds, what was left lying about, and whether git and ``memfs check`` find it
whole. It changes nothing but what opening and committing change.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.script import State, Value
from memfs.workspace import Workspace, open_workspace

SETTINGS = {"index.engine": "memory", "history.commit": "manual"}
_LEFT_BEHIND = (".tmp", "index.lock", "HEAD.lock", ".next", ".before", ".put")
_GIT_OWN = "tmp_obj_"


@dataclass(frozen=True, slots=True)
class Found:
    """What was found after a fault.

    Attributes:
        state: what the files hold.
        seconds: how long opening took.
    """

    state: State
    seconds: float


def reopened(root: Path, **settings: Any) -> Workspace:
    """The workspace, opened again."""
    return open_workspace(root, watch=False, settings={**SETTINGS, **settings})


def held(workspace: Workspace) -> State:
    """Type and content by id, read from the files themselves.

    Raises:
        ContentError: a file is not an item, so that it is torn.
    """
    store = workspace.store
    items = [store.read(path) for path in store.edit_finder.own_paths() if store.index_sync.is_item(path)]
    found: dict[str, Value] = {item.id: (item.type, item.content) for item in items}
    assert len(found) == len(items), "an item is there twice"
    return found


def look(root: Path) -> Found:
    """Open, which recovers, and read everything; assert that nothing was left lying about."""
    began = time.monotonic()
    with reopened(root) as workspace:
        seconds = time.monotonic() - began
        found = Found(held(workspace), seconds)
    assert leftovers(root) == []
    return found


def leftovers(root: Path) -> list[str]:
    """Temporary files and git locks that should not be there. Git's own unfinished objects are git's to sweep."""
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if name.endswith(_LEFT_BEHIND) and not name.startswith(_GIT_OWN)
    ]


def assert_whole(root: Path, state: State, known: Collection[str] = ()) -> None:
    """Assert that what waits can be committed, and that git and ``memfs check`` then find nothing wrong.

    Args:
        known: codes of problems that were there before.
    """
    with reopened(root) as workspace:
        flushed = workspace.store.flush(adopt=True)
        assert (flushed.waiting, flushed.reason) == (0, "")
        assert held(workspace) == state
    with reopened(root) as workspace:
        assert [str(problem) for problem in workspace.checker.check() if problem.code not in known] == []
    assert git(root, "status", "--porcelain") == ""
    git(root, "fsck", "--full", "--strict")
    assert leftovers(root) == []


def git(root: Path, *words: str) -> str:
    """Run git as a person would."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr or done.stdout}"
    return done.stdout


def lost(state: State, possible: Sequence[State]) -> list[str]:
    """Ids whose content is in none of the states that are possible."""
    names = {name for each in (state, *possible) for name in each}
    return sorted(name for name in names if state.get(name) not in [each.get(name) for each in possible])

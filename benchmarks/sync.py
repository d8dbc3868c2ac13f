"""Syncing two clones with a bare remote, beside what git alone takes for the same exchange, in the same run.

``python -m benchmarks.sync [ITEMS] [CHANGED]`` makes a memory of so many items in two clones, changes so many of them
in each, and syncs; a tenth of the changed items is changed on both sides, in different fields.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.corpus import Text, read
from benchmarks.surroundings import git, hermetic
from memfs.model import MemoryItem
from memfs.workspace import Workspace, open_workspace

_SETTINGS = {"index.engine": "sqlite", "history.commit": "manual"}
_ROUNDS = 5
_BOTH = 10


def main(arguments: list[str]) -> int:
    """Measure, and print one line for each figure."""
    count = int(arguments[0]) if arguments else 1_000
    changed = int(arguments[1]) if len(arguments) > 1 else 20
    with hermetic(None) as folder:
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
        with open_workspace(folder / "a", create=True, watch=False, settings=_SETTINGS) as a:
            git(a.root, "remote", "add", "origin", str(folder / "remote.git"))
            ids = _fill(a, read(count, 1).texts)
            _print(f"first sync of {count:,} items", _seconds(a.teams.syncer.sync))
            git(folder, "clone", "--quiet", "remote.git", "b")
            with open_workspace(folder / "b", watch=False, settings=_SETTINGS) as b:
                b.store.follow()
                _measure(a, b, ids, changed)
    return 0


def _fill(workspace: Workspace, texts: Sequence[Text]) -> list[str]:
    with workspace.store.batch("all") as batch:
        stored = [batch.put(MemoryItem(text.content, text.type, title=text.title, tags=text.tags)) for text in texts]
    workspace.store.flush()
    return [item.id for item in stored]


def _measure(a: Workspace, b: Workspace, ids: Sequence[str], changed: int) -> None:
    idle = statistics.median(_seconds(a.teams.syncer.sync) for _ in range(_ROUNDS))
    asked = statistics.median(_seconds(lambda: git(a.root, "ls-remote", "--heads", "origin")) for _ in range(_ROUNDS))
    _print("nothing to do", idle, "git ls-remote", asked)
    merged, forward, plain = [], [], []
    for number in range(_ROUNDS):
        both = ids[: max(1, changed // _BOTH)]
        first = ids[number * changed + len(both) : (number + 1) * changed]
        second = ids[-(number + 1) * changed : len(ids) - number * changed]
        _change(a, [*both, *first], tags=(f"a{number}",))
        _change(b, [*both, *second], title=f"Title {number}")
        a.teams.syncer.sync()
        plain.append(_seconds(lambda: _by_git(b.root)))
        merged.append(_seconds(b.teams.syncer.sync))
        forward.append(_seconds(a.teams.syncer.sync))
    _print(f"{changed} changed on both sides: merge and push", statistics.median(merged))
    _print(f"{changed} changed there: move forward", statistics.median(forward), "git fetch", statistics.median(plain))


def _change(workspace: Workspace, ids: Sequence[str], **values: object) -> None:
    with workspace.store.batch("some") as batch:
        for item_id in ids:
            item = workspace.store.get(item_id)
            if item is not None:
                batch.put(item.replace(**values))
    workspace.store.flush()


def _by_git(root: Path) -> None:
    git(root, "fetch", "--quiet", "origin", "+refs/heads/main:refs/bench/main")


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _print(name: str, seconds: float, beside: str = "", floor: float = 0.0) -> None:
    ratio = f"   {beside} {floor * 1000:.1f} ms, {seconds / floor:.1f} times" if floor else ""
    print(f"{name:<52} {seconds * 1000:8.1f} ms{ratio}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

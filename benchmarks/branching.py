"""Branches of agents, and ``status``, as whole processes, each beside what git alone takes for the like, in one run.

``python -m benchmarks.branching [ITEMS] [CHANGED] [ENGINE]`` makes a memory of so many items, and branches that change
so many of them. What is removed lay on the disk before, on both sides: to remove a file that was never written there
takes a fifth of the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import read
from benchmarks.starting import compile_all
from benchmarks.surroundings import hermetic
from memfs.workspace import Workspace, open_workspace

_MEMFS = (sys.executable, "-m", "memfs")
_ROUNDS = 5
_OTHER = {"sqlite": "whoosh", "whoosh": "sqlite", "memory": "sqlite"}


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds that a process and those it waited for took: by the clock, and of the processor."""

    clock: float
    processor: float


def main(arguments: Sequence[str]) -> int:
    """Measure, and print one line for each figure."""
    count, changed = (
        int(arguments[place]) if len(arguments) > place else usual for place, usual in ((0, 1_000), (1, 50))
    )
    engine = arguments[2] if len(arguments) > 2 else "sqlite"
    compile_all()
    with hermetic(None) as folder:
        os.environ.update(MEMFS_INDEX_ENGINE=engine, MEMFS_HISTORY_COMMIT="manual")
        root = folder / "w"
        with open_workspace(root, create=True, watch=False) as workspace:
            paths = _fill(workspace, count)
        _status(root)
        _branches(root, paths, changed, engine)
    return 0


def _status(root: Path) -> None:
    """The medians of some rounds in turn; the first one fills caches."""
    rounds = [(_run(root, *_MEMFS, "status"), _run(root, "git", "status", "--short")) for _ in range(_ROUNDS + 1)][1:]
    took, floor = (sorted(row, key=lambda one: one.processor)[_ROUNDS // 2] for row in zip(*rounds, strict=True))
    _print("status", took, "git status", floor)


def _branches(root: Path, paths: Sequence[str], changed: int, engine: str) -> None:
    started = _run(root, *_MEMFS, "branch", "start", "one")
    _change(root, paths[-1:], "here")
    _print(
        "branch start",
        started,
        "git worktree add",
        _run(root, "git", "worktree", "add", "-q", "-b", "plain", "../plain"),
    )
    place = root.with_name(f"{root.name}.branches") / "one"
    _change(place, paths[:changed], "once")
    merged = _run(root, *_MEMFS, "branch", "merge", "one")
    plain = ("git", "merge", "--quiet", "--no-edit", "-X", "ours", "memfs/one")
    _print(f"branch merge of {changed}", merged, "git merge", _run(root.with_name("plain"), *plain))
    _change(place, paths[:changed], "twice")
    os.environ["MEMFS_INDEX_ENGINE"] = _OTHER[engine]
    merged = _run(root, *_MEMFS, "branch", "merge", "one")
    os.environ["MEMFS_INDEX_ENGINE"] = engine
    _print("the same, no index of this engine", merged, "git merge", _run(root.with_name("plain"), *plain))
    _run(root, *_MEMFS, "branch", "start", "two")
    os.sync()
    dropped = _run(root, *_MEMFS, "branch", "drop", "two")
    os.sync()
    _print("branch drop, unused", dropped, "git worktree remove", _run(root, "git", "worktree", "remove", "../plain"))


def _fill(workspace: Workspace, count: int) -> list[str]:
    with workspace.store.batch("all") as batch:
        stored = [batch.put(text.item()) for text in read(count, 1).texts]
    workspace.store.flush()
    return [item.path for item in stored]


def _change(root: Path, paths: Sequence[str], tag: str) -> None:
    with open_workspace(root, watch=False) as workspace:
        with workspace.store.batch(f"some {tag}") as batch:
            for path in paths:
                batch.put(workspace.store.read(path).replace(tags=(tag,)))
        workspace.store.flush()


def _run(root: Path, *words: str) -> Took:
    start = time.perf_counter()
    with subprocess.Popen(words, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        told = process.stderr.read() if process.stderr else b""
        _, ended, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)}: {told.decode()}")
    return Took(time.perf_counter() - start, used.ru_utime + used.ru_stime)


def _print(name: str, took: Took, beside: str, floor: Took) -> None:
    ratio = took.processor / floor.processor
    print(
        f"{name:<34} {took.clock:7.2f} s, {took.processor:6.2f} of the processor   "
        f"{beside:<20} {floor.clock:6.2f} s, {floor.processor:5.2f} of the processor: {ratio:5.1f} times",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

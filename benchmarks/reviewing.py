"""Reviewing a change, beside the ``git diff`` of the same commits, as whole processes in turn.

``python -m benchmarks.reviewing [ITEMS] [CHANGED] [ROUNDS]`` makes a memory of so many items and a branch that changes
so many of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.corpus import read
from benchmarks.samples import Samples
from benchmarks.starting import compile_all
from benchmarks.surroundings import git, hermetic, memfs_command
from benchmarks.yardsticks import PYTHON
from memfs.model import MemoryItem
from memfs.workspace import open_workspace

REVIEW, DIFF = "memfs review", "git diff"
_SETTINGS = {"index.engine": "sqlite", "history.commit": "manual"}


def main(arguments: Sequence[str]) -> int:
    """Measure, and print one line for each figure."""
    count, changed, rounds = (
        int(arguments[place]) if len(arguments) > place else usual for place, usual in enumerate((1_000, 50, 5))
    )
    compile_all()
    with hermetic(None) as folder:
        _build(folder / "a", count, changed)
        review, diff, floor = Samples(), Samples(), Samples()
        commands = (
            (floor, [sys.executable, "-c", "pass"]),
            (diff, ["git", "diff", "base...HEAD"]),
            (review, [*memfs_command(), "review", "base..HEAD"]),
        )
        for number in range(rounds + 1):
            for samples, words in commands:
                samples.time(lambda words=words: _run(folder / "a", words))  # type: ignore[misc]
            if number == 0:  # the first round fills caches
                for samples, _ in commands:
                    samples.values.clear()
        beside = ", ".join(f"{review.p50 / one.p50:.1f} x {name}" for name, one in ((DIFF, diff), (PYTHON, floor)))
        print(f"{REVIEW}, {changed:,} of {count:,} changed   {review.p50:.0f} ms, {beside}", flush=True)
    return 0


def _build(root: object, count: int, changed: int) -> None:
    with open_workspace(str(root), create=True, watch=False, settings=_SETTINGS) as workspace:
        with workspace.store.batch("all") as batch:
            stored = [batch.put(MemoryItem(one.content, one.type, title=one.title)) for one in read(count, 1).texts]
        workspace.store.flush()
        git(workspace.root, "branch", "base")
        with workspace.store.batch("some") as batch:
            for item in stored[:changed]:
                batch.put(item.replace(content=f"{item.content} It was measured."))
        workspace.store.flush()


def _run(root: object, words: Sequence[str]) -> None:
    subprocess.run(words, cwd=str(root), check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

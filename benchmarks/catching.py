"""Catching up: the index after a checkout that changes every file, and when nothing changed at all."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.checkout import SETTLED_SECONDS
from benchmarks.rows import CAUGHT_UP, NOTHING, NOTHING_FIRST, Row, timed
from benchmarks.samples import Samples
from benchmarks.surroundings import git
from memfs.model import Query

_ROUNDS = 7
_EDIT = b"metadata:\n  edition: secunda\n"


def catch_up(bench: Bench) -> Iterator[Row]:
    """Nothing changed; then a checkout of a commit with every file edited; then nothing again."""
    yield from _nothing(bench, "")
    _edit_everything(bench)
    took, folded, back = Samples(), Samples(), Samples()
    with bench.open() as workspace:
        seen = took.time(workspace.store.refresh)
        count = len(seen.changed) + len(seen.added)  # an engine that keeps nothing knew none of them
        if count < bench.size or not workspace.recaller.search(Query(text="secunda")).hits:
            raise RuntimeError(f"only {count} of {bench.size} changes were seen")
        time.sleep(SETTLED_SECONDS)
        folded.time(workspace.store.fold)
    yield timed("catch-up", CAUGHT_UP, bench.size, bench.engine, took)
    yield timed("catch-up", "fold after that", bench.size, bench.engine, folded)
    yield from _nothing(bench, ", after that")
    git(bench.root, "checkout", "--quiet", "before")
    git(bench.root, "checkout", "--quiet", "edited")
    time.sleep(SETTLED_SECONDS)
    with bench.open() as workspace:
        back.time(workspace.store.refresh)
    yield timed("catch-up", "catch-up, every file rewritten as it was", bench.size, bench.engine, back)
    yield from _nothing(bench, ", after that rewrite")


def _nothing(bench: Bench, when: str) -> Iterator[Row]:
    if bench.engine == "memory":
        return  # it keeps nothing: the first scan of a process reads every file
    first, later = Samples(), Samples()
    for _ in range(bench.rounds(_ROUNDS)):
        with bench.open() as workspace:
            first.time(workspace.store.refresh)
            later.time(workspace.store.refresh)
    yield timed("catch-up", NOTHING_FIRST + when, bench.size, bench.engine, first)
    yield timed("catch-up", NOTHING + when, bench.size, bench.engine, later)


def _edit_everything(bench: Bench) -> None:
    """Commit an edit of every item on a branch ``edited``; check out ``before`` and then ``edited``."""
    git(bench.root, "switch", "--quiet", "--create", "before")
    git(bench.root, "switch", "--quiet", "--create", "edited")
    for path in (bench.root / "ContextMemory" / "memories").rglob("*.yaml"):
        path.write_bytes(path.read_bytes() + _EDIT)
    git(bench.root, "commit", "--quiet", "--all", "--message", "Edit every memory")
    git(bench.root, "checkout", "--quiet", "before")
    git(bench.root, "checkout", "--quiet", "edited")

"""Writing: puts and commits in a workspace that stays open, beside bare writes and the git command line."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.rows import COMMIT_1, COMMIT_50, PUT, UPDATE, Row, timed
from benchmarks.samples import Samples
from benchmarks.yardsticks import GIT, WRITE, BareWrites, GitFolder
from memfs.workspace import Workspace

_PUTS = 300
_WINDOWS = 10


def put(bench: Bench) -> Iterator[Row]:
    """New items and changed ones, one by one, while commit windows close in the background as they do."""
    bare = BareWrites(bench.folder / "bare")
    with bench.open() as workspace:
        workspace.store.refresh()
        stored = workspace.store.put(bench.item())  # the first one reads schemas; the cold command line pays that
        data = bench.root.joinpath(stored.path).read_bytes()
        fresh, changed, floor, again = Samples(), Samples(), Samples(), Samples()
        for _ in range(bench.rounds(_PUTS)):
            item = bench.item()
            floor.time(lambda: bare.write(data))
            stored = fresh.time(lambda item=item: workspace.store.put(item))  # type: ignore[misc]
            edited = stored.replace(content=f"{stored.content} Said again.")
            again.time(lambda: bare.write(data))
            changed.time(lambda edited=edited: workspace.store.put(edited))  # type: ignore[misc]
    yield timed("put", PUT, bench.size, bench.engine, fresh, WRITE, floor)
    yield timed("put", UPDATE, bench.size, bench.engine, changed, WRITE, again)


def commit(bench: Bench) -> Iterator[Row]:
    """Windows of 1 and of 50 items, each beside a person who commits as many files in a clone."""
    person = GitFolder(bench.root, bench.folder / "person")
    with bench.open(commit="manual") as workspace:
        workspace.store.refresh()
        workspace.store.put(bench.item())
        workspace.store.flush(adopt=False)
        for name, count in ((COMMIT_1, 1), (COMMIT_50, 50)):
            yield _windows(bench, workspace, person, name, count)
        adopting = Samples()
        for _ in range(bench.rounds(_WINDOWS)):
            workspace.store.put(bench.item())
            adopting.time(lambda: workspace.store.flush(adopt=True))
    name = "commit of 1, and a look for hand edits"
    yield timed("commit", name, bench.size, bench.engine, adopting)


def _windows(bench: Bench, workspace: Workspace, person: GitFolder, name: str, count: int) -> Row:
    ours, theirs = Samples(), Samples()
    for _ in range(bench.rounds(_WINDOWS)):
        stored = [workspace.store.put(bench.item()) for _ in range(count)]
        for item in stored:
            person.write(item.path, bench.root.joinpath(item.path).read_bytes())
        theirs.time(lambda stored=stored: person.commit([item.path for item in stored]))  # type: ignore[misc]
        flushed = ours.time(lambda: workspace.store.flush(adopt=False))
        if len(flushed.commits) != 1 or flushed.waiting:
            raise RuntimeError(f"{len(flushed.commits)} commits, {flushed.waiting} waiting: {flushed.reason}")
    return timed("commit", name, bench.size, bench.engine, ours, GIT, theirs)


def fold(bench: Bench) -> Iterator[Row]:
    """Fresh items moved into the base of the index, and the whole index made anew."""
    count = 50 if bench.quick else 500
    folded, rebuilt = Samples(), Samples()
    with bench.open(commit="manual") as workspace:
        workspace.store.refresh()
        workspace.store.fold()
        with workspace.store.batch("Fold these") as batch:
            for _ in range(count):
                batch.put(bench.item())
        folded.time(workspace.store.fold)
        rebuilt.time(workspace.store.reindex)
        workspace.store.flush(adopt=False)
    yield timed("fold", f"fold {count} fresh items", bench.size, bench.engine, folded)
    yield timed("fold", "reindex", bench.size, bench.engine, rebuilt)

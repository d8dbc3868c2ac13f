"""Writing: puts and commits in a workspace that stays open, beside bare writes and the git command line."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.rows import ACCOUNTED, COMMIT_1, COMMIT_50, PUT, SCAN, UPDATE, Row, timed
from benchmarks.samples import Samples
from benchmarks.yardsticks import GIT, WRITE, BareWrites, GitFolder
from memfs.config_names import SYSTEM_CONFIG
from memfs.format.secrets import refuse_item
from memfs.workspace import Workspace

_PUTS = 300
_SERIALISING = "serialising it"
_WINDOWS = 10
_TURN = 20


def put(bench: Bench) -> Iterator[Row]:
    """New items and changed ones, one by one, while commit windows close in the background as they do."""
    bare = BareWrites(bench.folder / "bare")
    with bench.open() as workspace:
        workspace.store.refresh()
        stored = workspace.store.put(bench.item())  # the first one reads schemas; the cold command line pays that
        data = bench.root.joinpath(stored.path).read_bytes()
        fresh, changed, floor, again = Samples(), Samples(), Samples(), Samples()
        scanned, serialised = Samples(), Samples()
        codec = workspace.parts.codec
        for _ in range(bench.rounds(_PUTS)):
            item = bench.item()
            floor.time(lambda: bare.write(data))
            stored = fresh.time(lambda item=item: workspace.store.put(item))  # type: ignore[misc]
            edited = stored.replace(content=f"{stored.content} Said again.")
            again.time(lambda: bare.write(data))
            changed.time(lambda edited=edited: workspace.store.put(edited))  # type: ignore[misc]
            scanned.time(lambda stored=stored: refuse_item(stored))  # type: ignore[misc]
            serialised.time(lambda stored=stored: codec.write(stored, stored.path))  # type: ignore[misc]
    yield timed("put", PUT, bench.size, bench.engine, fresh, WRITE, floor)
    yield timed("put", UPDATE, bench.size, bench.engine, changed, WRITE, again)
    yield timed("put", SCAN, bench.size, bench.engine, scanned, _SERIALISING, serialised)


def accounted(bench: Bench) -> Iterator[Row]:
    """Puts while quotas are set, each beside one without: what keeping the account costs."""
    config = bench.root / SYSTEM_CONFIG
    before = config.read_bytes()
    free = b'{"format_version": 1}'
    limited = b'{"format_version": 1, "quotas": {"total_bytes": 1099511627776, "items_bytes": 1099511627776}}'
    without, with_quota = Samples(), Samples()
    try:
        with bench.open(commit="manual") as workspace:
            workspace.store.refresh()
            for _ in range(bench.rounds(_PUTS) // _TURN + 1):
                for text, samples in ((free, without), (limited, with_quota)):
                    config.write_bytes(text)
                    workspace.store.put(bench.item())  # this one reads the quotas, and measures
                    for _ in range(_TURN):
                        item = bench.item()
                        samples.time(lambda item=item: workspace.store.put(item))  # type: ignore[misc]
    finally:
        config.write_bytes(before)
    yield timed("quota", ACCOUNTED, bench.size, bench.engine, with_quota, "put without a quota", without)


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
    """Fresh items moved into the base of the index, and the whole index rebuilt."""
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

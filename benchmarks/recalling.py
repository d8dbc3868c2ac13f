"""Recalling: questions to a workspace that stays open, beside raw FTS5 over the same texts."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.rows import FILTERED, RECALL, Row, timed
from benchmarks.samples import Samples
from benchmarks.yardsticks import FTS5, Fts5
from memfs.model import Query
from memfs.workspace import Workspace

_ROUNDS = 200
_WARM = 5


def recall(bench: Bench) -> Iterator[Row]:
    """With a watcher, as in a resident process: plain, filtered, and what the index alone takes of it."""
    raw = Fts5(bench.folder / "recall.db", bench.texts)
    with bench.open(watch=True) as workspace:
        for number in range(_WARM):
            workspace.recaller.search(bench.query(number))
            workspace.recaller.search(bench.query(number, filtered=True))
        for name, filtered in ((RECALL, False), (FILTERED, True)):
            yield from _race(bench, workspace, raw, name, filtered)
    raw.close()


def _race(bench: Bench, workspace: Workspace, raw: Fts5, name: str, filtered: bool) -> Iterator[Row]:
    whole, alone, floor = Samples(), Samples(), Samples()
    for number in range(bench.rounds(_ROUNDS)):
        asked = bench.asked[number % len(bench.asked)]
        query = bench.query(number, filtered=filtered)
        floor.time(lambda asked=asked: raw.search_filtered(asked) if filtered else raw.search(asked))  # type: ignore[misc]
        found = whole.time(lambda query=query: workspace.recaller.search(query))  # type: ignore[misc]
        if not found.hits:
            raise RuntimeError(f"nothing found for {query.text!r}, which is in a memory")
        alone.time(lambda query=query: workspace.store.candidates(query))  # type: ignore[misc]
    yield timed("recall", name, bench.size, bench.engine, whole, FTS5, floor)
    yield timed("recall", f"{name}: without loading files", bench.size, bench.engine, alone, FTS5, floor)


def fresh(bench: Bench) -> Iterator[Row]:
    """A put, and the first recall after it that finds the item; a word nobody else has tells."""
    put, found = Samples(), Samples()
    with bench.open(watch=True, commit="manual") as workspace:
        workspace.recaller.search(bench.query(0))
        for number in range(bench.rounds(50)):
            word = f"zyx{number:04}qua"
            item = bench.item()
            item = item.replace(content=f"{item.content} {word}")
            stored = put.time(lambda item=item: workspace.store.put(item))  # type: ignore[misc]
            answer = found.time(lambda word=word: workspace.recaller.search(Query(text=word)))  # type: ignore[misc]
            if [hit.item.id for hit in answer.hits] != [stored.id]:
                raise RuntimeError("a stored item was not found at once")
        workspace.store.flush(adopt=False)
    yield timed("fresh", "fresh item: the recall that finds it", bench.size, bench.engine, found)
    both = Samples([one + other for one, other in zip(put.values, found.values, strict=True)])
    yield timed("fresh", "fresh item: put and recall", bench.size, bench.engine, both)

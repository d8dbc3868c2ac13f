"""Building: a workspace from nothing, as ``memfs import`` does it, and what it weighs then."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.checkout import SETTLED_SECONDS
from benchmarks.rows import BESIDE, CONTENT, HISTORY, IMPORT, INDEX, TOGETHER, Row
from benchmarks.samples import Samples
from benchmarks.yardsticks import FTS5, Fts5


def imported(bench: Bench) -> Iterator[Row]:
    """Validate, store, commit and index every text, in one process of its own."""
    bench.open(create=True).close()
    lines = bench.folder / "texts.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(text.line()) + "\n" for text in bench.texts)
    took, raw = Samples(), Samples()
    took.time(lambda: bench.cli("import", str(lines)))
    lines.unlink()
    raw.time(lambda: Fts5(bench.folder / "yardstick.db", bench.texts).close())
    rate, floor = (1e3 * bench.size / samples.p50 for samples in (took, raw))
    yield Row(
        part="import",
        name=IMPORT,
        size=bench.size,
        engine=bench.engine,
        value=rate,
        unit="items/s",
        yardstick=FTS5,
        floor=floor,
    )
    time.sleep(SETTLED_SECONDS)


def sizes(bench: Bench) -> Iterator[Row]:
    """What the workspace of the whole benchmark weighs."""
    yield from weights(bench, "sizes", "")


def weights(bench: Bench, part: str, of: str) -> Iterator[Row]:
    """Bytes in files, not blocks on disk: content, history after maintenance, index.

    Args:
        of: what to add to the names of the rows.
    """
    with bench.open() as workspace:
        workspace.store.refresh()
        maintained = Samples()
        maintained.time(workspace.history.maintain)
        index = workspace.parts.index
        bytes_of_index = _bytes(index.folder / f"gen-{index.generation}")
    content = _bytes(bench.root / "ContextMemory" / "memories")
    history = _bytes(bench.root / ".git" / "objects")
    parts = {
        CONTENT: content,
        HISTORY: history,
        INDEX: bytes_of_index,
        TOGETHER: content + history + bytes_of_index,
        BESIDE: _bytes(bench.root / ".git") - history,
    }
    for name, size in parts.items():
        yield Row(part=part, name=name + of, size=bench.size, engine=bench.engine, value=size, unit="bytes")
    yield Row(part=part, name=f"maintain{of}", size=bench.size, engine=bench.engine, value=maintained.p50)


def _bytes(folder: Path) -> int:
    return sum(os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(folder) for name in names)

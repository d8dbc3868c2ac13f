"""``python -m benchmarks.retrieval.unanswerable FOLDER``: of how many questions it is said that nothing fits.

Asks each memory its own questions, the same with the evidence left out, those of the set that have no evidence, and
questions of other memories and other sets. Prints the share of each sort of which ``nothing_fits`` is said.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.retrieval.contenders import Memfs
from benchmarks.retrieval.sets import Asked, Memory, read_set
from benchmarks.surroundings import hermetic

_OTHERS = 25
_SORTS = ("found", "missed", "left out", "no evidence", "other store", "other set")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one line a set, and one of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval.unanswerable", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder that holds the sets, one folder each")
    folder: Path = parser.parse_args(arguments).folder
    sets = {
        path.name: read_set(path, every=True) for path in sorted(folder.iterdir()) if (path / "queries.jsonl").exists()
    }
    print(f"{'':14}" + "".join(f"{sort:>20}" for sort in _SORTS))
    every: Counter[tuple[str, bool]] = Counter()
    with hermetic() as place:
        for name, memories in sets.items():
            others = [asked for other, them in sets.items() if other != name for one in them for asked in one.questions]
            counted = Counter(
                row
                for number, memory in enumerate(memories)
                for row in _asked(memory, memories, others, place / f"{name}-{number}")
            )
            print(_line(name, counted), flush=True)
            every += counted
    print(_line("all", every))
    return 0


def _asked(
    memory: Memory, memories: Sequence[Memory], others: Sequence[Asked], folder: Path
) -> Iterator[tuple[str, bool]]:
    """Each question of one memory: its sort, and whether it is said that nothing fits."""
    rng = random.Random(memory.name)
    contender = Memfs(memory.entries, folder, {"index.engine": "memory"})
    for asked in memory.questions:
        answer, fits = contender.fitting(asked)
        if not asked.relevant:
            yield "no evidence", fits
            continue
        yield "found" if asked.relevant.intersection(answer) else "missed", fits
        yield "left out", contender.fitting(asked, without=asked.relevant)[1]
    beside = [asked for other in memories if other is not memory for asked in other.questions]
    for sort, strange in (("other store", beside), ("other set", others)):
        for asked in rng.sample(strange, min(_OTHERS, len(strange))):
            yield sort, contender.fitting(asked)[1]
    contender.close()


def _line(name: str, counted: Counter[tuple[str, bool]]) -> str:
    cells = []
    for sort in _SORTS:
        yes, total = counted[sort, True], counted[sort, True] + counted[sort, False]
        cells.append(f"{yes:,} of {total:,} {yes / total:6.1%}" if total else "-")
    return f"{name:14}" + "".join(f"{cell:>20}" for cell in cells)


if __name__ == "__main__":
    sys.exit(main())

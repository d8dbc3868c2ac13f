"""``python -m benchmarks.retrieval FOLDER``: ask every question of every set, and print how good the answers are."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import quantiles

from benchmarks.retrieval.contenders import Fts5, Make, Memfs, PlainBm25
from benchmarks.retrieval.measures import Measured, averaged, measure
from benchmarks.retrieval.sets import Memory, read_set
from benchmarks.surroundings import hermetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contender on one set: its name, the means over all questions, and milliseconds a question took."""

    contender: str
    questions: int
    means: Measured
    p50: float
    p95: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one table a set."""
    chosen = _options().parse_args(arguments)
    contenders = _contenders(chosen.engine, chosen.set, chosen.embedder)
    with hermetic() as folder:
        for path in sorted(chosen.folder.iterdir()):
            if (path / "queries.jsonl").exists() and (not chosen.sets or path.name in chosen.sets):
                memories = read_set(path)
                print(f"\n{path.name}: {sum(len(memory.entries) for memory in memories):,} items")
                print(_heading())
                for name, make in contenders.items():
                    if not chosen.only or name in chosen.only:
                        print(_line(asked_all(name, make, memories, folder / "store")), flush=True)
    return 0


def asked_all(name: str, make: Make, memories: Sequence[Memory], folder: Path) -> Row:
    """Ask one contender every question of a set."""
    found: list[Measured] = []
    times: list[float] = []
    for memory in memories:
        contender = make(memory.entries, folder)
        for asked in memory.questions:
            began = time.perf_counter()
            answer = contender.answer(asked)
            times.append((time.perf_counter() - began) * 1000)
            found.append(measure(answer, asked))
        contender.close()
        shutil.rmtree(folder, ignore_errors=True)
    cut = quantiles(times, n=20) if len(times) > 1 else times * 20
    return Row(contender=name, questions=len(found), means=averaged(found), p50=cut[9], p95=cut[18])


def _contenders(engine: str, settings: Sequence[str], embedders: Sequence[str]) -> Mapping[str, Make]:
    chosen = {"index.engine": engine, **dict(word.split("=", 1) for word in settings)}

    def memfs(embedder: str = "") -> Make:
        return lambda entries, folder: Memfs(entries, folder, chosen, embedder)

    by_meaning = {f"+ {name}": memfs(name) for name in embedders}
    return {"memfs": memfs(), **by_meaning, "bm25": PlainBm25, "fts5": Fts5}


def _heading() -> str:
    names = [field.name for field in fields(Measured)]
    return f"{'':12}{'asked':>7}" + "".join(f"{name:>12}" for name in names) + f"{'p50 ms':>9}{'p95 ms':>9}"


def _line(row: Row) -> str:
    means = "".join(f"{getattr(row.means, field.name):>12.3f}" for field in fields(Measured))
    return f"{row.contender:12}{row.questions:>7}{means}{row.p50:>9.2f}{row.p95:>9.2f}"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder that holds the sets, one folder each")
    parser.add_argument("--sets", nargs="*", default=(), help="only these sets")
    parser.add_argument("--only", nargs="*", default=(), help="only these contenders: memfs, bm25, fts5")
    parser.add_argument(
        "--embedder",
        action="append",
        default=[],
        metavar="MODEL",
        help="also memfs with this embedder: minilm, hashing",
    )
    parser.add_argument("--engine", default="memory", help="search engine of memfs")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of memfs")
    return parser


if __name__ == "__main__":
    sys.exit(main())

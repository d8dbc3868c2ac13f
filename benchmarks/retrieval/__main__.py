"""``python -m benchmarks.retrieval [FOLDER]``: ask every question of every set, and print how good the answers are.

Without a folder it is the set in ten languages, which comes with memfs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import mean, quantiles

from benchmarks.retrieval.contenders import Fts5, Make, Memfs, PlainBm25, Reference
from benchmarks.retrieval.measures import Measured, averaged, half_widths, measure
from benchmarks.retrieval.sets import Memory, read_languages, read_set
from benchmarks.surroundings import hermetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contender on one set.

    Attributes:
        contender: its name.
        questions: how many were asked.
        means: over all questions.
        halves: half the width of the 95 % interval of each mean.
        shares: recall among the first ten by category of question; empty where the set has none.
        p50, p95: milliseconds that a question took.
    """

    contender: str
    questions: int
    means: Measured
    halves: Measured
    shares: Mapping[str, float]
    p50: float
    p95: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one table a set."""
    chosen = _options().parse_args(arguments)
    contenders = _contenders(chosen.engine, chosen.set, chosen.embedder)
    if chosen.folder is None:
        contenders |= {name: partial(Fts5, tokenizer=name) for name in ("unicode61", "trigram")}
    wanted = {name: make for name, make in contenders.items() if not chosen.only or name in chosen.only}
    with hermetic() as folder:
        for title, memories in _sets(chosen.folder, chosen.sets):
            print(f"\n{title}: {sum(len(memory.entries) for memory in memories):,} items\n{_heading()}")
            rows = []
            for name, make in wanted.items():
                rows.append(asked_all(name, make, memories, folder / "store"))
                print(_line(rows[-1]), flush=True)
            print("\n".join(_by_category(rows)))
    return 0


def _sets(folder: Path | None, names: Sequence[str]) -> Iterator[tuple[str, list[Memory]]]:
    if folder is None:
        yield "languages", read_languages()
        return
    for path in sorted(folder.iterdir()):
        if (path / "queries.jsonl").exists() and (not names or path.name in names):
            yield path.name, read_set(path)


def asked_all(name: str, make: Make, memories: Sequence[Memory], folder: Path) -> Row:
    """Ask one contender every question of a set."""
    found: list[Measured] = []
    shares: dict[str, list[float]] = {}
    times: list[float] = []
    for memory in memories:
        contender = make(memory.entries, folder)
        for asked in memory.questions:
            began = time.perf_counter()
            answer = contender.answer(asked)
            times.append((time.perf_counter() - began) * 1000)
            found.append(measure(answer, asked))
            if asked.category:
                shares.setdefault(asked.category, []).append(found[-1].recall_10)
        contender.close()
        shutil.rmtree(folder, ignore_errors=True)
    cut = quantiles(times, n=20) if len(times) > 1 else times * 20
    means = {category: mean(kept) for category, kept in sorted(shares.items())}
    return Row(
        contender=name,
        questions=len(found),
        means=averaged(found),
        halves=half_widths(found),
        shares=means,
        p50=cut[9],
        p95=cut[18],
    )


def _contenders(engine: str, settings: Sequence[str], embedders: Sequence[str]) -> dict[str, Make]:
    chosen = {"index.engine": engine, **dict(word.split("=", 1) for word in settings)}

    def memfs(embedder: str = "") -> Make:
        return lambda entries, folder: Memfs(entries, folder, chosen, embedder)

    by_meaning = {f"+ {name}": memfs(name) for name in embedders}
    return {"memfs": memfs(), **by_meaning, "reference": Reference, "bm25": PlainBm25, "fts5": Fts5}


def _heading() -> str:
    names = [field.name for field in fields(Measured)]
    return f"{'':12}{'asked':>7}" + "".join(f"{name:>12}" for name in names) + f"{'p50 ms':>9}{'p95 ms':>9}"


def _line(row: Row) -> str:
    names = [field.name for field in fields(Measured)]
    means = "".join(f"{getattr(row.means, name):>12.3f}" for name in names)
    halves = "".join(f"{f'±{getattr(row.halves, name):.3f}':>12}" for name in names)
    return f"{row.contender:12}{row.questions:>7}{means}{row.p50:>9.2f}{row.p95:>9.2f}\n{'':19}{halves}"


def _by_category(rows: Sequence[Row]) -> Iterator[str]:
    """Recall among the first ten, a line for each category of question."""
    if rows and rows[0].shares:
        yield f"{'':32}" + "".join(f"{row.contender:>12}" for row in rows)
        for category in rows[0].shares:
            yield f"recall_10 of {category:19}" + "".join(f"{row.shares[category]:>12.3f}" for row in rows)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="folder that holds the sets, one folder each")
    parser.add_argument("--sets", nargs="*", default=(), help="only these sets")
    parser.add_argument(
        "--only", nargs="*", default=(), help="only these contenders: memfs, reference, bm25, fts5, unicode61, trigram"
    )
    parser.add_argument(
        "--embedder",
        action="append",
        default=[],
        metavar="MODEL",
        help="also memfs with this embedder: wordllama, minilm, hashing",
    )
    parser.add_argument("--engine", default="memory", help="search engine of memfs")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of memfs")
    return parser


if __name__ == "__main__":
    sys.exit(main())

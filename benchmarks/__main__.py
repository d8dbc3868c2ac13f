"""``python -m benchmarks``: choose sizes, engines and parts; print each row as it is measured."""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import building, catching, delivery, learning, recalling, report, starting, writing
from benchmarks.bench import SPARE, SPARE_QUICK, Bench
from benchmarks.corpus import Corpus, questions, read
from benchmarks.rows import Row, growth, limits
from benchmarks.surroundings import facts, hermetic

_ENGINES = ("whoosh", "sqlite", "memory")
_SIZES = (1_000, 10_000, 100_000)
_QUESTIONS = 200
PARTS: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    "sizes": building.sizes,
    "bytes": learning.short,
    "intake": learning.intake,
    "delivery": delivery.warned,
    "recall": recalling.recall,
    "cold": starting.cold,
    "put": writing.put,
    "quota": writing.accounted,
    "fresh": recalling.fresh,
    "commit": writing.commit,
    "fold": writing.fold,
    "catch-up": catching.catch_up,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` keep the result in ``benchmarks/README.md``."""
    chosen = _options().parse_args(arguments)
    started = time.monotonic()
    with hermetic(chosen.folder) as folder:
        known = facts(folder)
        spare = SPARE_QUICK if chosen.quick else SPARE
        corpus = read(max(chosen.sizes) + spare, chosen.seed)
        known.append(("text", _described(corpus, chosen.seed)))
        for name, value in known:
            print(f"{name}: {value}")
        rows: list[Row] = []
        for row in _measured(chosen, folder, corpus, spare):
            rows.append(row)
            print(report.line(row), flush=True)
    for row in growth(rows):
        rows.append(row)
        print(report.line(row))
    known.append(("took", f"{(time.monotonic() - started) / 60:.0f} minutes, load at the end {_load():.1f}"))
    print(report.summary(rows))
    if chosen.write:
        report.write(Path(__file__).with_name("README.md"), report.markdown(rows, known))
    missed = any(limit.used(row) > 1 for row in rows for limit in limits(row))
    return 1 if missed and chosen.strict else 0


def _measured(chosen: argparse.Namespace, folder: Path, corpus: Corpus, spare: int) -> Iterator[Row]:
    gc.collect()
    gc.freeze()  # the texts stay for the whole run; walking them again and again would be measured, too
    for size in chosen.sizes:
        texts = corpus.texts[:size]
        asked = questions(texts, _QUESTIONS)
        for engine in chosen.engines:
            place = folder / f"{engine}-{size}"
            place.mkdir()
            more = iter(corpus.texts[-spare:])
            bench = Bench(place, size, engine, texts, more, asked, quick=chosen.quick)
            for row in building.imported(bench):
                if "import" in chosen.only:
                    yield row
            for name in PARTS:
                if name in chosen.only:
                    _say(f"measuring {name} ...")
                    yield from PARTS[name](bench)
            shutil.rmtree(place)


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"{text:<60}", end="\r", file=sys.stderr, flush=True)


def _described(corpus: Corpus, seed: int) -> str:
    count = len(corpus.texts)
    average = sum(len(text.content) for text in corpus.texts) / count
    whole = "" if corpus.distinct == count else f" ({corpus.distinct:,} passages, the rest made of their halves)"
    return f"{count:,} memories{whole}, {average:.0f} characters on average, seed {seed}, digest {corpus.digest}"


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure memfs against its budgets.")
    parts = ("import", *PARTS)
    parser.add_argument("--sizes", type=_numbers, default=_SIZES, help="numbers of items, such as 1000,10000")
    parser.add_argument("--engines", type=_among(_ENGINES), default=_ENGINES, help="of " + ",".join(_ENGINES))
    parser.add_argument("--only", type=_among(parts), default=parts, help="parts to measure, of " + ",".join(parts))
    parser.add_argument("--seed", type=int, default=1, help="of the texts")
    parser.add_argument("--quick", action="store_true", help="repeat as little as possible")
    parser.add_argument("--strict", action="store_true", help="end with 1 if a budget was missed")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/README.md")
    parser.add_argument("--folder", type=Path, help="work below this folder, which must be in no git repository")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(word.replace("_", "")) for word in text.split(",")))


def _among(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def chosen(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return chosen


if __name__ == "__main__":
    sys.exit(main())

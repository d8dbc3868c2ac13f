"""Delivery: what it costs an agent to be warned, to record an outcome and to be given its context (seed 004).

``python -m benchmarks.delivery`` makes workspaces of so many episodes and rules, half of each, and asks as an agent's
loop does. Texts are windows of English sentences; two of five episodes report a failure.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.checkout import lay
from benchmarks.rows import NOTHING_MATCHES as NOTHING
from benchmarks.rows import RECORD, Row, timed
from benchmarks.samples import Samples
from benchmarks.surroundings import facts, hermetic
from benchmarks.yardsticks import FTS5, WRITE, BareWrites
from memfs.intake.episode_item import item_of
from memfs.model import MemoryItem
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.workspace import Workspace, open_workspace

SETTINGS = {"history.commit": "manual", "history.adopt": "leave", "watch.enabled": True}
SOMETHING = "check_triggers, something matches"
CACHED, FROM_FILES = "first question of a process, cache there", "first question of a process, no cache"
AUTOMATIC = "get_automatic"
_ASKED, _LARGEST = 200, 10_000
_TOOLS = ("edit", "bash", "read", "write")
_COLD = """
import sys, time
from memfs.workspace import open_workspace
from memfs.model.episode import StateSnapshot
with open_workspace(sys.argv[1], watch=False, settings={"history.commit": "manual"}) as workspace:
    workspace.store.follow()
    began = time.perf_counter()
    workspace.sources.triggers.episodes(StateSnapshot.create(["nothing/of/that.name"], "zzz"))
    print(1000 * (time.perf_counter() - began))
"""


class Work:
    """What agents do: the same seed gives the same."""

    def __init__(self, seed: int, size: int) -> None:
        self._rng = random.Random(seed)
        self._words = _texts()
        folders = [f"src/{name}/{part}" for name in "abcdefghij" for part in ("api", "core", "store", "web")]
        self.files = [f"{self._rng.choice(folders)}/module_{number}.py" for number in range(max(20, size // 20))]

    def sentence(self) -> str:
        """Four to nine words in a row of some English text."""
        words = self._rng.choice(self._words)
        length = self._rng.randint(4, 9)
        start = self._rng.randrange(max(1, len(words) - length))
        return " ".join(words[start : start + length])

    def state(self, files: Sequence[str] = ()) -> StateSnapshot:
        """A situation."""
        return StateSnapshot.create(files, self.sentence(), tool=self._rng.choice(_TOOLS), agent="coder")

    def episode(self) -> Episode:
        """What an agent did in one."""
        state = self.state([self._rng.choice(self.files)])
        outcome = "failure" if self._rng.random() < 0.4 else "success"
        when = datetime.now(UTC) - timedelta(days=self._rng.uniform(0, 300))
        error = self.sentence() if outcome == "failure" else ""
        return Episode.create(state, Action(state.tool, self.sentence()), outcome, error, timestamp=when)

    def rule(self) -> MemoryItem:
        """Advice for one."""
        data = {"pattern": self.sentence(), "action": self.sentence(), "confidence": 0.8}
        if self._rng.random() < 0.5:
            data["files"] = [self._rng.choice(self.files)]
        return MemoryItem(self.sentence(), "rule", data=data, trust="agent")


@cache
def _texts() -> list[list[str]]:
    return [text.content.split() for text in corpus.read(1_000, seed=1).texts]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    options = _options().parse_args(arguments)
    sizes = sorted(int(word) for word in options.sizes.split(","))
    table: dict[str, dict[int, str]] = {}
    with hermetic(options.folder) as place:
        print(", ".join(f"{name} {value}" for name, value in facts(place)))
        for size in sizes:
            root = place / f"workspace-{size}"
            for name, text in _measured(root, place, size, options.rounds):
                table.setdefault(name, {})[size] = text
                print(f"{size:>8,}  {name:<60} {text}", file=sys.stderr, flush=True)
    print(_table(table, sizes))
    return 0


def _measured(root: Path, place: Path, size: int, rounds: int) -> Iterator[tuple[str, str]]:
    work = Work(1, size)
    build(root, work, size)
    yield FROM_FILES, f"{_cold(root):.0f} ms"
    yield CACHED, f"{min(_cold(root) for _ in range(min(rounds, 3))):.0f} ms"
    with open_workspace(root, watch=True, settings=SETTINGS) as workspace:
        workspace.sources.triggers.count()
        unseen = Work(2, size)
        strange = [unseen.state(["somewhere/else.py"]) for _ in range(4 * rounds)]
        quiet = [state for state in strange if not _ask(workspace, state)][:rounds]
        known = [unseen.state([work.files[number % len(work.files)]]) for number in range(rounds)]
        yardstick = _Fts5(work, size)
        bare = _timed(lambda number: yardstick.ask(quiet[number % len(quiet)].context), rounds)
        yield "one question to SQLite FTS5", _formatted(bare)
        yield NOTHING, _formatted(_timed(lambda number: _ask(workspace, quiet[number % len(quiet)]), rounds))
        yield SOMETHING, _formatted(_timed(lambda number: _ask(workspace, known[number]), rounds))
        yield from _layer(workspace, quiet, known, rounds)
        plain, record = _recorded(workspace, work, BareWrites(place / f"bare-{size}"), min(rounds, 100))
        yield "write + fsync + rename", _formatted(plain)
        yield RECORD, _formatted(record)
    yield "peak memory of the process until then", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"


def _recorded(workspace: Workspace, work: Work, floor: BareWrites, rounds: int) -> tuple[Samples, Samples]:
    """What bare durable writes take, and what recording episodes does, in turns."""
    plain, record = Samples(), Samples()
    for _ in range(rounds):
        episode = work.episode()
        plain.time(lambda: floor.write(b"x" * 700))
        record.time(lambda episode=episode: workspace.sources.episodes.record(episode))  # type: ignore[misc]
    return plain, record


def _layer(
    workspace: Workspace, quiet: Sequence[StateSnapshot], known: Sequence[StateSnapshot], rounds: int
) -> Iterator[tuple[str, str]]:
    """The same through the facade, as an agent's loop asks."""
    from memfs.facades.memory_layer import MemoryLayer

    layer = MemoryLayer(workspace=workspace)

    async def ask() -> Iterator[tuple[str, str]]:
        rows = []
        for name, states in ((NOTHING, quiet), (SOMETHING, known)):
            took = Samples()
            for number in range(rounds):
                began = time.perf_counter_ns()
                await layer.check_triggers(states[number % len(states)])
                took.values.append((time.perf_counter_ns() - began) / 1e6)
            rows.append((f"MemoryLayer.{name}", _formatted(took)))
        took = Samples()
        for _ in range(min(rounds, 50)):
            began = time.perf_counter_ns()
            await layer.get_automatic()
            took.values.append((time.perf_counter_ns() - began) / 1e6)
        rows.append((f"MemoryLayer.{AUTOMATIC}", _formatted(took)))
        return iter(rows)

    return asyncio.run(ask())


def warned(bench: Bench) -> Iterator[Row]:
    """The rows of the whole benchmark: a question that nothing answers, and recording, each beside its yardstick."""
    if bench.size > _LARGEST:
        return
    settings = {**SETTINGS, "index.engine": bench.engine}
    root, work, unseen = bench.folder / "delivery", Work(1, bench.size), Work(2, bench.size)
    build(root, work, bench.size, settings, 0 if bench.quick else None)
    with open_workspace(root, watch=True, settings=settings) as workspace:
        states = [unseen.state(["somewhere/else.py"]) for _ in range(4 * bench.rounds(_ASKED))]
        quiet = [state for state in states if not _ask(workspace, state)][: bench.rounds(_ASKED)]
        table, writes = _Fts5(work, bench.size), BareWrites(bench.folder / "bare-delivery")
        bare, asked = Samples(), Samples()
        for state in quiet:
            bare.time(lambda state=state: table.ask(state.context))  # type: ignore[misc]
            asked.time(lambda state=state: _ask(workspace, state))  # type: ignore[misc]
        plain, record = _recorded(workspace, work, writes, bench.rounds(_ASKED) // 2 + 1)
        yield timed("delivery", NOTHING, bench.size, bench.engine, asked, FTS5, bare)
        yield timed("delivery", RECORD, bench.size, bench.engine, record, WRITE, plain)


def build(root: Path, work: Work, size: int, settings: Mapping[str, Any] = SETTINGS, rest: float | None = None) -> None:
    """Write so many episodes and rules as a checkout does: what storing takes is measured apart.

    Args:
        rest: seconds after which stamps are trusted; None for as long as that takes.
    """
    with open_workspace(root, create=True, watch=False, settings=dict(settings)) as workspace:
        lay(workspace, (item_of(work.episode()) if number % 2 else work.rule() for number in range(size)), rest)


def _ask(workspace: Workspace, state: StateSnapshot) -> list[Any]:
    """What the two sources of ``check_triggers`` ask, with the files of what matches read again."""
    triggers = workspace.sources.triggers
    failures = [one for one in triggers.episodes(state) if one.outcome == "failure"]
    return [*map(triggers.load, failures), *map(triggers.load, triggers.rules(state)[:3])]


class _Fts5:
    """A full-text table of as many texts, in memory."""

    def __init__(self, work: Work, size: int) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE item USING fts5(text, tokenize='porter unicode61')")
        rows = [(f"{work.sentence()} {work.sentence()}",) for _ in range(size)]
        self._db.executemany("INSERT INTO item VALUES (?)", rows)

    def ask(self, text: str) -> list[Any]:
        words = " OR ".join(f'"{word}"' for word in text.replace('"', " ").split())
        return self._db.execute("SELECT rowid FROM item WHERE item MATCH ? ORDER BY rank LIMIT 3", (words,)).fetchall()


def _timed(act: Callable[[int], object], rounds: int) -> Samples:
    took = Samples()
    for number in range(rounds):
        took.time(lambda number=number: act(number))  # type: ignore[misc]
    return took


def _formatted(samples: Samples) -> str:
    return f"{samples.p50:.2f} ms, p95 {samples.p95:.2f}"


def _cold(root: Path) -> float:
    done = subprocess.run([sys.executable, "-c", _COLD, str(root)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def _table(table: Mapping[str, Mapping[int, str]], sizes: Sequence[int]) -> str:
    lines = [f"| what | {' | '.join(f'{size:,}' for size in sizes)} |", "|---" * (len(sizes) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(row.get(size, '') for size in sizes)} |" for name, row in table.items()]
    return "\n".join(lines)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delivery", description="Measure seed 004.")
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of episodes and rules together")
    parser.add_argument("--rounds", type=int, default=300, help="how often each question is asked")
    parser.add_argument("--folder", type=Path, help="work below this folder, which must be in no git repository")
    return parser


if __name__ == "__main__":
    sys.exit(main())

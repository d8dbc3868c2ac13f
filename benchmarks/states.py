"""``python -m benchmarks.states``: how retrieving state grows with the iterations, and how often a cache answers.

Says what is asked, and makes the access pattern of a supervisor. The documents are those of
``benchmarks.state_corpus``.
"""

from __future__ import annotations

import argparse
import math
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import state_corpus as corpus
from benchmarks.surroundings import hermetic
from memfs.format import json_text
from memfs.model import state_paths as paths
from memfs.state.aggregates import hypothesis_history
from memfs.state.parts import States
from memfs.state.reader import DocumentChange
from memfs.state.retrieval import Retrieval, find_similar_states
from memfs.workspace import open_workspace

_COLD = (
    "import sys, time\nfrom memfs.workspace import open_workspace\n"
    "began = time.perf_counter()\n"
    "with open_workspace(sys.argv[1], watch=False) as w:\n"
    "    w.states.retrieval.retrieve('full', deadline=float('inf'))\n    print(time.perf_counter() - began)\n"
)
_SETTINGS = {"history.commit": "manual", "index.engine": "memory"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.states", description=__doc__)
    parser.add_argument("--iterations", default="10,100,1000", help="sizes, e.g. 10,1000")
    parser.add_argument("--folder", type=Path, help="where to write")
    parser.add_argument("--hours", type=float, default=10.0, help="how long the supervisor works")
    parser.add_argument("--rounds", type=int, default=25, help="of how many answers the median is taken")
    chosen = parser.parse_args(arguments)
    sizes = [int(size) for size in chosen.iterations.split(",")]
    table: dict[str, dict[int, float]] = {}
    work: dict[str, dict[int, float]] = {}
    with hermetic(chosen.folder) as folder:
        for size in sizes:
            root = folder / f"states-{size}"
            for name, milliseconds in _measured(root, size, chosen.rounds):
                table.setdefault(name, {})[size] = milliseconds
                print(f"{size:>6} iterations  {name:<44} {milliseconds:9.2f} ms", flush=True)
            for name, steps in _work(root, size):
                work.setdefault(name, {})[size] = steps
        figures = pattern(folder / "pattern", chosen.hours)
    print(_table(table, sizes, ".2f", " ms"))
    print("\nSteps of the index, which no other program on the machine changes:\n")
    print(_table(work, sizes, ",.0f"))
    print(f"access pattern: {figures}")
    return 0


def _measured(root: Path, size: int, rounds: int) -> Iterator[tuple[str, float]]:
    with open_workspace(root, create=True, watch=False, settings=_SETTINGS) as workspace:
        states = workspace.states
        for number in range(1, size + 1):
            _lay(root, corpus.iteration_documents(number, closed=number < size))
        began = time.perf_counter()
        states.reading.reindex()
        yield "make the index", 1000 * (time.perf_counter() - began)
        yield "look for changes, nothing changed", _median(states.reading.catch_up, rounds)
        for name, ask in _questions(states, size).items():
            yield name, _median(ask, rounds)
        retrieval = states.retrieval
        retrieval.retrieve("full", deadline=math.inf)
        yield "full, from the cache", _median(lambda: retrieval.retrieve("full", deadline=math.inf), rounds)
    yield "first answer of a process, full", 1000 * statistics.median(_cold(root) for _ in range(min(rounds, 5)))


def _work(root: Path, size: int) -> Iterator[tuple[str, int]]:
    """How many steps SQLite takes for each question."""
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    def connected(*arguments: Any, **named: Any) -> sqlite3.Connection:
        base: sqlite3.Connection = connect(*arguments, **named)
        base.set_progress_handler(step, 1)
        return base

    connect = sqlite3.connect
    with patch("sqlite3.connect", connected), open_workspace(root, watch=False, settings=_SETTINGS) as workspace:
        states = workspace.states
        for name, ask in _questions(states, size).items():
            states.reading.catch_up()
            steps[0] = 0
            ask()
            yield name, steps[0]


def _questions(states: States, size: int) -> Mapping[str, Callable[[], Any]]:
    """What is asked, each answered without the cache of answers."""
    middle = max(1, size // 2)
    last_ten = list(range(max(1, size - 9), size + 1))
    start, end = corpus.opening(middle), corpus.opening(middle + 1)
    retrieve = Retrieval
    return {
        "full, the present": lambda: retrieve(states.reading).retrieve("full"),
        "summary, the present": lambda: retrieve(states.reading).retrieve("summary"),
        "partial, one agent": lambda: retrieve(states.reading).retrieve("partial", agents=["Judge"]),
        "partial, one hypothesis": lambda: retrieve(states.reading).retrieve("partial", hypotheses=[f"H {middle}-2"]),
        "full, one hour in the middle": lambda: retrieve(states.reading).retrieve("full", start=start, end=end),
        "full, one iteration": lambda: retrieve(states.reading).retrieve("full", iterations=[middle]),
        "metrics of ten iterations": lambda: retrieve(states.reading).retrieve(
            "partial", metrics=["yield"], agents=["Judge"], iterations=last_ten
        ),
        "find_similar_states": lambda: find_similar_states(
            states.reading, {**corpus.update(middle), "timestamp": None}
        ),
        "hypothesis_history, a new line of ten": _lineage(states, size),
    }


def _lineage(states: States, size: int) -> Callable[[], Any]:
    """A hypothesis with ten ancestors, whatever the number of iterations."""
    made: corpus.Documents = {}
    for step in range(11):
        parents = [f"line {step - 1}"] if step else []
        made[paths.hypothesis_path(size, f"line {step}")] = {"id": f"line {step}", "parents": parents}
    _put(states, made)
    return lambda: hypothesis_history(states.reading, "line 10")


def _lay(root: Path, documents: corpus.Documents) -> None:
    """Write documents as a checkout does: what storing takes is not the matter here."""
    for path, values in documents.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json_text.document(values), encoding="utf-8")


def _put(states: States, documents: corpus.Documents) -> None:
    states.files.write([DocumentChange(path, values) for path, values in documents.items()], "Benchmark")


def _median(act: Callable[[], Any], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def _cold(root: Path) -> float:
    done = subprocess.run([sys.executable, "-c", _COLD, str(root)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def _table(table: Mapping[str, Mapping[int, float]], sizes: Sequence[int], form: str, unit: str = "") -> str:
    lines = [
        f"| what | {' | '.join(f'{size:,} iterations' for size in sizes)} | growth |",
        "|---" * (len(sizes) + 2) + "|",
    ]
    for name, row in table.items():
        cells = [f"{row[size]:{form}}{unit}" for size in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} | {row[sizes[-1]] / row[sizes[0]]:.2f} x |")
    return "\n".join(lines)


# -- a supervisor at work -----------------------------------------------------------------------------------------
def pattern(root: Path, hours: float, seed: int = 1) -> dict[str, Any]:
    """How often the cache answers a supervisor and five agents at work.

    Something is written every one to five minutes: in turn a state update, an agent's output, a hypothesis and a
    tournament result. Each agent works on a task for two to four minutes and reads six times meanwhile: twice its own
    state, and once each the hypotheses, the feedback, the summary and the system's state. The supervisor looks at
    summary and system once a minute. Time passes as fast as the answers come; every hour is an iteration.
    """
    rng = random.Random(seed)
    with open_workspace(root, create=True, watch=False, settings=_SETTINGS) as workspace:
        states = workspace.states
        events = sorted([*_writes(rng, hours), *_reads(rng, hours)], key=lambda event: event[0])
        iteration = 0
        for minute, act, agent in events:
            if 1 + int(minute // 60) > iteration:
                iteration = 1 + int(minute // 60)
                for number in range(max(1, iteration - 1), iteration + 1):
                    _put(states, corpus.iteration_documents(number, updates=1, tasks=1, closed=number < iteration))
            if act in _READS:
                _read(states.retrieval, act, agent)
            else:
                _put(states, _written(act, iteration, int(minute * 1000), agent))
        statistics = states.retrieval.cache_statistics()
        reads = sum(act in _READS for _, act, _ in events)
        return {
            "hours": hours,
            "reads": reads,
            "writes": len(events) - reads,
            "hits": statistics["hits"],
            "misses": statistics["misses"],
            "rate": statistics["rate"],
        }


_READS = ("own", "hypotheses", "feedback", "summary", "system")
_WRITES = ("update", "output", "hypothesis", "output", "result")


def _writes(rng: random.Random, hours: float) -> Iterator[tuple[float, str, str]]:
    minute, turn = 0.0, 0
    while (minute := minute + rng.uniform(1, 5)) < 60 * hours:
        yield minute, _WRITES[turn % len(_WRITES)], rng.choice(corpus.AGENTS)
        turn += 1


def _reads(rng: random.Random, hours: float) -> Iterator[tuple[float, str, str]]:
    for agent in corpus.AGENTS:
        begin = rng.uniform(0, 2)
        while begin < 60 * hours:
            end = begin + rng.uniform(2, 4)
            for act in ("own", "own", "hypotheses", "feedback", "summary", "system"):
                yield rng.uniform(begin, end), act, agent
            begin = end
    for minute in range(int(60 * hours)):
        yield minute + 0.5, "summary", ""
        yield minute + 0.5, "system", ""


def _read(retrieval: Retrieval, act: str, agent: str) -> None:
    if act == "own":
        retrieval.retrieve("partial", agents=[agent])
    elif act == "summary":
        retrieval.retrieve("summary")
    else:
        retrieval.retrieve("partial", components=[act])


def _written(act: str, iteration: int, turn: int, agent: str) -> corpus.Documents:
    if act == "update":
        moment = corpus.opening(iteration).replace(microsecond=turn % 1_000_000)
        return {paths.update_path(iteration, moment): corpus.update(iteration, turn % 10)}
    if act == "output":
        values = {**corpus.output(iteration, agent), "task_id": f"t{turn}"}
        return {paths.output_path(iteration, agent, f"t{turn}"): values}
    if act == "hypothesis":
        return {paths.hypothesis_path(iteration, f"n{turn}"): {"id": f"n{turn}", "agent": agent, "state": "active"}}
    return {paths.tournament_path(iteration, f"m{turn}"): {"id": f"m{turn}", "participants": ["a", "b"], "winner": "a"}}


if __name__ == "__main__":
    sys.exit(main())

"""Iterations archived, verified, searched and unpacked: ratio, seconds and peak memory.

``python -m benchmarks.archive FOLDER [ITERATIONS] [MEGABYTES]`` makes so many closed iterations of so many megabytes
each in FOLDER, which must not exist, archives them, and removes the folder again. What agents write is real English of
docstrings and package descriptions, used as agents use it: a hypothesis is written once, quoted by its reviews, by
each match it plays and by the agent that evolves it, and the supervisor's state repeats every few minutes with other
figures. The last row is the worst case: the same bytes of English that repeats nothing.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.corpus import read
from benchmarks.surroundings import hermetic
from memfs.admin.archive_file import FRAME_BYTES
from memfs.fs.archive import compress
from memfs.model.state_paths import hypothesis_path, output_path, system_state_path, tournament_path, update_path
from memfs.model.time import format_time
from memfs.workspace import Workspace, open_workspace

SETTINGS = {"index.engine": "memory", "history.commit": "manual"}
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_REVIEWS = 3
_MATCHES = 4

Documents = Iterator[tuple[str, dict[str, Any]]]


def iteration(number: int, size: int, sentences: list[str], rng: random.Random) -> Documents:
    """The documents of one iteration, of about so many bytes."""
    opened = FIRST + timedelta(days=number)
    timestamp = format_time(opened)
    weight = turn = 0
    earlier: list[str] = []
    while weight < size:
        moment = opened + timedelta(minutes=turn)
        claim = " ".join(rng.sample(sentences, 12))
        earlier.append(claim)
        made = list(_around(number, turn, claim, rng.choice(earlier), sentences, rng, moment))
        weight += sum(len(json.dumps(values, indent=2)) for _, values in made)
        turn += 1
        yield from made
    closed = format_time(opened + timedelta(hours=20))
    header = {
        "iteration": number,
        "status": "closed",
        "opened": timestamp,
        "closed": closed,
        "statistics": {"outputs": turn},
    }
    yield system_state_path(number), header


def _around(
    number: int, turn: int, claim: str, rival: str, sentences: list[str], rng: random.Random, moment: datetime
) -> Documents:
    """One hypothesis and what the agents make of it."""
    name, timestamp = f"h{number}-{turn}", format_time(moment)
    yield (
        output_path(number, "Generation Agent", name),
        _output("Generation Agent", name, {"text": claim}, rng, timestamp),
    )
    values = {"id": name, "parents": [], "state": "reviewed", "rating": rng.gauss(1200, 90), "text": claim}
    yield hypothesis_path(number, name), values
    for review in range(_REVIEWS):
        text = " ".join(rng.sample(sentences, 3))
        reviewed = {"hypothesis": name, "quoted": claim, "review": text, "score": rng.random()}
        task = f"{name}-review-{review}"
        yield output_path(number, "Reflection Agent", task), _output("Reflection Agent", task, reviewed, rng, timestamp)
    for match in range(_MATCHES):
        task = f"{name}-match-{match}"
        debate = {"first": claim, "second": rival, "because": rng.choice(sentences)}
        yield output_path(number, "Ranking Agent", task), _output("Ranking Agent", task, debate, rng, timestamp)
        result = {"id": task, "participants": [name, "h0"], "winner": name, "ratings": {name: rng.gauss(1200, 90)}}
        yield tournament_path(number, task), {**result, "timestamp": timestamp}
    better = f"{claim} {rng.choice(sentences)}"
    evolved = {"from": name, "text": better, "strategy": "combine"}
    yield output_path(number, "Evolution Agent", name), _output("Evolution Agent", name, evolved, rng, timestamp)
    yield update_path(number, moment), _update(turn, rng, timestamp)


def _output(agent: str, task: str, made: dict[str, Any], rng: random.Random, timestamp: str) -> dict[str, Any]:
    results = {
        "primary_output": made,
        "metadata": {"model": "large", "tokens": rng.randint(400, 4000)},
        "confidence_score": round(rng.random(), 3),
        "resource_consumed": round(rng.random() * 10, 2),
    }
    return {"agent_type": agent, "task_id": task, "timestamp": timestamp, "results": results}


def _update(turn: int, rng: random.Random, timestamp: str) -> dict[str, Any]:
    agents = ("Generation Agent", "Reflection Agent", "Ranking Agent", "Evolution Agent", "Proximity Agent")
    return {
        "timestamp": timestamp,
        "update_type": "periodic",
        "system_statistics": {
            "total_hypotheses": turn,
            "tournament_progress": round(rng.random(), 3),
            "agent_effectiveness": {name: {"success": round(rng.random(), 3)} for name in agents},
        },
        "orchestration_state": {"agent_weights": {name: round(rng.random(), 2) for name in agents}},
    }


def build(root: Path, iterations: int, size: int, sentences: list[str]) -> int:
    """Write the iterations as files and commit them; return how many documents there are."""
    rng, made = random.Random(7), 0
    open_workspace(root, create=True, watch=False, settings=SETTINGS).close()
    for number in range(1, iterations + 1):
        for path, values in iteration(number, size, sentences, rng):
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            made += 1
    return made


def measure(workspace: Workspace) -> None:
    """Archive, verify, read, list, unpack; print what each took."""
    workspace.store.flush(adopt=True)
    archives = workspace.states.archives
    began = time.perf_counter()
    done = workspace.states.archiver.run(active_days=0).archived
    _row("archive", time.perf_counter() - began, f"{done.documents:,} documents, {done.removed:,} left the tree")
    smaller = 100 - done.packed * 100 / done.bytes
    print(f"{'ratio':<28}{smaller:9.1f} %  {done.bytes / 1e6:.1f} MB in {done.packed / 1e6:.1f} MB")
    began = time.perf_counter()
    sound = not list(archives.problems())
    _row("verify every byte", time.perf_counter() - began, "sound" if sound else "DAMAGED")
    paths = [member.path for name in archives.stamp() for member in archives.index(name).members]
    rng, taken = random.Random(1), []
    for path in rng.sample(paths, min(200, len(paths))):
        archives._decoded.cache_clear()
        began = time.perf_counter()
        archives.read(path)
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    worst = taken[len(taken) * 95 // 100]
    print(f"{'read one, nothing kept':<28}{statistics.median(taken):9.2f} ms  p50; p95 {worst:.2f} ms")
    began = time.perf_counter()
    for path in paths[:500]:
        archives.read(path)
    print(f"{'read 500 in order':<28}{(time.perf_counter() - began) * 1000 / min(500, len(paths)):9.2f} ms  each")
    began = time.perf_counter()
    back = workspace.states.archiver.unpack(1)
    _row(
        "unpack one iteration", time.perf_counter() - began, f"{back.documents:,} documents, {back.bytes / 1e6:.1f} MB"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'peak memory':<28}{peak:9.0f} MB")


def worst_case(sentences: list[str], level: int) -> None:
    """Text that repeats nothing, in frames as an archive has them."""
    raw = json.dumps(sentences, ensure_ascii=False).encode()[: 4 * FRAME_BYTES]
    packed = sum(len(compress(raw[at : at + FRAME_BYTES], level)) for at in range(0, len(raw), FRAME_BYTES))
    print(f"{'English without repeats':<28}{100 - packed * 100 / len(raw):9.1f} %  smaller: the worst case")


def _row(what: str, seconds: float, detail: str) -> None:
    print(f"{what:<28}{seconds:9.2f} s  {detail}", flush=True)


def main(words: list[str]) -> None:
    """Make, measure, remove."""
    folder = Path(words[0])
    iterations = int(words[1]) if len(words) > 1 else 10
    size = int(float(words[2]) * 1e6) if len(words) > 2 else 10_000_000
    if folder.exists():
        raise SystemExit(f"{folder} exists: name a folder that does not")
    folder.mkdir(parents=True)
    try:
        with hermetic(folder):
            sentences = sorted({text.content for text in read(20_000).texts})
            documents = build(folder / "workspace", iterations, size, sentences)
            print(f"{iterations} iterations of {size / 1e6:.0f} MB, {documents:,} documents")
            workspace = open_workspace(folder / "workspace", watch=False, settings=SETTINGS)
            measure(workspace)
            worst_case(sentences, workspace.states.archiver.policy().level)
            workspace.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])

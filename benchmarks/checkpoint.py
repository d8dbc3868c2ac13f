"""A large state checkpointed, verified and recovered: seconds and peak memory of each, in a process of its own.

``python -m benchmarks.checkpoint FOLDER [MEGABYTES]`` makes the state in FOLDER, which must not exist, and removes it
again. ``--kill`` kills a process in the middle of a checkpoint first, and shows that it left nothing that counts.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from memfs.model.state_paths import (
    CHECKPOINTS,
    hypothesis_path,
    output_path,
    system_state_path,
    tournament_path,
    update_path,
)
from memfs.model.time import format_time, utc_now
from memfs.workspace import open_workspace

SETTINGS = {"index.engine": "memory", "history.commit": "manual", "history.adopt": "leave"}
_AGENTS = ("Generation", "Reflection", "Ranking", "Evolution", "Proximity")
_PER_ITERATION = 100_000_000
_OUTPUT = 60_000


def build(root: Path, size: int) -> int:
    """Write a state of about so many bytes as a system's agents would leave it; return how many documents it has."""
    open_workspace(root, create=True, watch=False, settings=SETTINGS).close()
    made, weight, number, rng = 0, 0, 0, random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 11))) for _ in range(8_000)]
    now = utc_now()
    while weight < size:
        number += 1
        documents = _iteration(number, min(_PER_ITERATION, size - weight), rng, words, format_time(now), now)
        for path, values in documents:
            data = json.dumps(values, indent=2).encode()
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            weight += len(data)
            made += 1
    return made


def _iteration(number: int, size: int, rng: random.Random, words: list[str], now: str, moment: Any) -> Any:
    yield system_state_path(number), {"iteration": number, "status": "open", "opened": now}
    tasks = [{"task_id": f"t{turn}", "agent": "Ranking"} for turn in range(3)]
    checkpoint = {"in_flight_tasks": tasks, "recovery_metadata": {"tournament": {"round": number}}}
    yield update_path(number, moment), {"timestamp": now, "update_type": "periodic", "checkpoint_data": checkpoint}
    for turn in range(max(1, size // (_OUTPUT + 2_000))):
        agent, task = _AGENTS[turn % len(_AGENTS)], f"task-{number}-{turn}"
        text = " ".join(rng.choices(words, k=_OUTPUT // 8))
        results = {"primary_output": {"text": text}, "confidence_score": rng.random()}
        output = {"agent_type": agent, "task_id": task, "timestamp": now, "results": results}
        yield output_path(number, agent, task), {**output, "state_data": {"internal_state": {"cursor": turn}}}
        hypothesis = {"id": f"h{turn}", "state": "reviewed", "rating": rng.gauss(1200, 90), "text": text[:1_200]}
        yield hypothesis_path(number, f"h{turn}"), hypothesis
        yield tournament_path(number, f"m{turn}"), {"id": f"m{turn}", "participants": [f"h{turn}", "h0"]}


def act(root: Path, action: str) -> dict[str, Any]:
    """Do one thing and say how long it took and how much memory the process had at most."""
    workspace = open_workspace(root, watch=False, settings=SETTINGS)
    began = time.perf_counter()
    if action == "look":
        result: Any = workspace.states.reading.catch_up()
    elif action == "create":
        result = workspace.states.checkpoints.create().id
    elif action == "verify":
        result = [(one.id, not one.problem) for one in workspace.states.checkpoints.verify()]
    else:
        state = workspace.states.checkpoints.recover()
        result = [state.checkpoint_id, len(state.active_tasks), sorted(state.resume_points)]
    seconds = time.perf_counter() - began
    workspace.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"action": action, "seconds": round(seconds, 2), "peak_mb": round(peak / 1e6), "result": result}


def in_process(root: Path, action: str) -> dict[str, Any]:
    """``act`` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.checkpoint", str(root), "--act", action]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kill_in_the_middle(root: Path, seconds: float) -> None:
    """Kill a process with kill -9 while it makes a checkpoint."""
    command = [sys.executable, "-m", "benchmarks.checkpoint", str(root), "--act", "create"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    known = set(os.listdir(root / CHECKPOINTS))
    while process.poll() is None and set(os.listdir(root / CHECKPOINTS)) == known:
        time.sleep(0.01)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def main(words: list[str]) -> None:
    """Run it; see the module."""
    if not words or words[0].startswith("-"):
        raise SystemExit(__doc__)
    root = Path(words[0]).absolute()
    if "--act" in words:
        print(json.dumps(act(root, words[words.index("--act") + 1])))
        return
    if root.exists():
        raise SystemExit(f"{root} exists")
    megabytes = int(words[1]) if len(words) > 1 and words[1].isdigit() else 500
    try:
        documents = build(root, megabytes * 1_000_000)
        os.sync()
        print(f"{megabytes} MB in {documents:,} documents")
        in_process(root, "look")  # the index knows what agents stored
        print(in_process(root, "create"))
        if "--kill" in words:
            kill_in_the_middle(root, 1.0)
            print("killed in the middle of a second checkpoint")
        for action in ("recover", "verify"):
            print(in_process(root, action))
        payloads = sum(path.stat().st_size for path in (root / CHECKPOINTS).rglob("*.zst"))
        print(f"payloads: {payloads / 1e6:.0f} MB")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])

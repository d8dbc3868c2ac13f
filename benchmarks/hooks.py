"""Hooks: what each event of an agent's session costs the person who waits for it, as whole processes (C6).

``python -m benchmarks.hooks`` makes a workspace of so many memories, a twentieth of them episodes, and hands each event
to ``memfs hook`` as an agent's program does, in turns, beside a Python that does nothing; then the tool calls of one
session, ``PreToolUse`` and ``PostToolUse`` each, with a resident and without.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.checkout import lay
from benchmarks.delivery import Work
from benchmarks.rows import Row, timed
from benchmarks.samples import Samples
from benchmarks.starting import compile_all
from benchmarks.surroundings import facts, hermetic, memfs_command
from benchmarks.yardsticks import PYTHON
from memfs.intake.episode_item import item_of
from memfs.model import MemoryItem
from memfs.workspace import open_workspace

KEPT = ("PostToolUse", "PostToolUseFailure", "TaskCompleted", "SessionEnd")
ANSWERED = ("SessionStart", "UserPromptSubmit", "PreToolUse")
_OF_A_CALL = ("PreToolUse", "PostToolUse")
_EPISODE_EVERY = 20
_PATIENCE = "2000"  # a busy machine greets late, and that is not what is measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    options = _options().parse_args(arguments)
    with hermetic(options.folder) as place:
        print(", ".join(f"{name} {value}" for name, value in facts(place)))
        compile_all()
        rows = []
        for size, engine in itertools.product(map(int, options.sizes.split(",")), options.engines.split(",")):
            root = place / f"workspace-{size}-{engine}"
            _build(root, size, engine)
            for row in measured(root, size, engine, options.rounds):
                rows.append(row)
                print(f"{row.name:<44} {row.size:>7,} {row.engine:<7} {_formatted(row)}", file=sys.stderr, flush=True)
            for line in session(root, options.calls):
                print(f"{size:,} {engine}: {line}")
    print(_table(rows))
    return 0


def measured(root: Path, size: int, engine: str, rounds: int) -> Iterator[Row]:
    """Each event in turn, round by round; of the first round nothing counts."""
    work = Work(2, size)
    took = {name: Samples() for name in (*ANSWERED, *KEPT, "Stop")}
    floor = Samples()
    for number in range(rounds + 1):
        floor.time(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
        for name, samples in took.items():
            event = _event(root, name, number, work)
            samples.time(lambda event=event: _hook(root, event))  # type: ignore[misc]
        if number == 0:
            for samples in (floor, *took.values()):
                samples.values.clear()
    for name, samples in took.items():
        yield timed("hooks", f"memfs hook {name}", size, engine, samples, PYTHON, floor)


def session(root: Path, calls: int) -> list[str]:
    """What the tool calls of a session cost the person who waits, in turn by the hook alone and by a resident."""
    work, floor = Work(2, calls), Samples()
    took = {"alone": Samples(), "with a resident": Samples()}
    subprocess.run([*memfs_command(), "serve", "--detach"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    try:
        for _ in range(calls):
            floor.time(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
            for (how, samples), switch in zip(took.items(), ("off", _PATIENCE), strict=True):
                events = [_event(root, name, 0, work) | {"session_id": how} for name in _OF_A_CALL]
                samples.time(partial(_send_events, root, events, switch))
    finally:
        subprocess.run([*memfs_command(), "serve", "--stop"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    bare = floor.p50
    return [
        f"{calls} tool calls {how}: {sum(samples.values):.0f} ms, {samples.p50:.0f} a call, for each of its two"
        f" hooks {samples.p50 / bare / len(_OF_A_CALL):.1f} x {PYTHON}"
        for how, samples in took.items()
    ]


def _event(root: Path, name: str, number: int, work: Work) -> dict[str, Any]:
    """An event as Claude Code sends it, of a session of its own each round, so that nothing was given before."""
    given = {"command": work.sentence(), "file_path": work.files[number % len(work.files)]}
    return {
        "hook_event_name": name,
        "session_id": f"session-{number}",
        "cwd": str(root),
        "source": "startup" if name == "SessionStart" else "user",
        "prompt": f"{work.sentence()} {work.sentence()}",
        "tool_name": "Bash",
        "tool_input": given,
        "tool_response": {"stdout": work.sentence() * 20, "stderr": ""},
        "last_assistant_message": f"We decided to {work.sentence()}.",
        "task_id": "1",
        "task_subject": work.sentence(),
    }


def _send_events(root: Path, events: Sequence[dict[str, Any]], switch: str) -> None:
    for event in events:
        _hook(root, event, switch)


def _hook(root: Path, event: dict[str, Any], switch: str = "off") -> None:
    words, env = [*memfs_command(), "hook", event["hook_event_name"]], {**os.environ, "MEMFS_RESIDENT": switch}
    done = subprocess.run(words, input=json.dumps(event).encode(), cwd=root, env=env, capture_output=True, check=True)
    if done.stderr:  # on a machine that does much else a hook gives up in time: its time counts all the same
        print(done.stderr.decode().strip(), file=sys.stderr)


def _build(root: Path, size: int, engine: str) -> None:
    """Memories of texts, and episodes among them, written as a checkout does."""
    work, texts = Work(1, size), corpus.read(size, 1).texts
    items = (text.item() if number % _EPISODE_EVERY else _recorded(work) for number, text in enumerate(texts))
    open_workspace(root, create=True, watch=False, settings={"history.commit": "manual"}).close()
    (root / "memfs.toml").write_text(
        f'[index]\nengine = "{engine}"\n[history]\ncommit = "interval"\n', encoding="utf-8"
    )
    with open_workspace(root, watch=False, settings={"history.commit": "manual"}) as workspace:
        lay(workspace, items)
        workspace.sources.preferences.record("Always use spaces, never tabs.")
        workspace.learner.run()  # else each start of a session learns for a second


def _recorded(work: Work) -> MemoryItem:
    """An episode as the store writes it."""
    item = item_of(work.episode())
    return item.replace(created=item.timestamp)


def _formatted(row: Row) -> str:
    return f"{row.value:.0f} ms, p95 {row.p95 or 0:.0f}, {row.ratio or 0:.1f} x {row.yardstick}"


def _table(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys((row.size, row.engine) for row in rows))
    lines = [f"| event | {' | '.join(f'{size:,} {engine}' for size, engine in columns)} |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for name in dict.fromkeys(row.name for row in rows):
        cells = {(row.size, row.engine): _formatted(row) for row in rows if row.name == name}
        lines.append(f"| `{name}` | {' | '.join(cells[column] for column in columns)} |")
    return "\n".join(lines)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hooks", description="Measure the hooks (C6).")
    parser.add_argument("--sizes", default="10000", help="numbers of memories")
    parser.add_argument("--engines", default="whoosh,sqlite", help="search engines")
    parser.add_argument("--rounds", type=int, default=9, help="how often each event is sent")
    parser.add_argument("--calls", type=int, default=200, help="how many tool calls a session has")
    parser.add_argument("--folder", type=Path, help="work below this folder, which must be in no git repository")
    return parser


if __name__ == "__main__":
    sys.exit(main())

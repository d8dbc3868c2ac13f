"""Whole processes of the command line in one workspace, cold and with a resident, beside a Python that does nothing.

``python -m benchmarks.commands FOLDER [ROUNDS]`` asks in turn, round by round, so that a busy machine is busy for all.
CPU is that of the command's own process; wall is what a person waits. It stores one memory a round.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks.starting import compile_all

_QUESTION = "parse the arguments of a command"
_ROUNDS = 15
_PATIENCE = "2000"  # a busy machine greets late, and that is not what is measured
Taken = tuple[float, float]
"""Milliseconds on the wall, and of CPU."""


def measured(command: Sequence[str], folder: str, switch: str) -> Taken:
    """What one process takes."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "MEMFS_RESIDENT": switch},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, spent * 1000


def commands(folder: str) -> dict[str, list[str]]:
    """The commands by name; the memory that is shown is the first that is listed."""
    listed = subprocess.run(
        [_program(), "list", "--limit", "1"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.split()
    shown = {"show": ["show", listed[0]]} if listed else {}
    return {
        "recall": ["recall", _QUESTION],
        "list": ["list"],
        **shown,
        "status": ["status"],
        "remember": ["remember", "A small memory of the benchmark"],
    }


def _program() -> str:
    return os.path.join(os.path.dirname(sys.executable), "memfs")


def main(folder: str, rounds: int = _ROUNDS) -> None:
    """Measure, and print a row for each command."""
    compile_all()
    asked = commands(folder)
    subprocess.run([_program(), "serve", "--detach"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    taken: dict[tuple[str, str], list[Taken]] = {}
    try:
        for number in range(rounds + 1):
            found = {("pass", ""): measured([sys.executable, "-c", "pass"], folder, "off")}
            for name, words in asked.items():
                more = [str(number), str(time.time_ns())] if name == "remember" else []
                for how, switch in (("cold", "off"), ("resident", _PATIENCE)):
                    found[name, how] = measured([_program(), *words, *more], folder, switch)
            for row, one in found.items() if number else ():  # the first round fills caches
                taken.setdefault(row, []).append(one)
    finally:
        subprocess.run([_program(), "serve", "--stop"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    wall, spent = (median(one[kind] for one in taken["pass", ""]) for kind in (0, 1))
    print(f"{'command':<10} {'':<9} {'wall ms':>8} {'x pass':>7} {'CPU ms':>8} {'x pass':>7}")
    for (name, how), rows in taken.items():
        own_wall, own = (median(one[kind] for one in rows) for kind in (0, 1))
        print(f"{name:<10} {how:<9} {own_wall:8.1f} {own_wall / wall:7.1f} {own:8.1f} {own / spent:7.1f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))

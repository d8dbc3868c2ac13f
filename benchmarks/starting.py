"""Starting: the command line, cold, as whole processes; beside a Python that does nothing."""

from __future__ import annotations

import compileall
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks.bench import Bench
from benchmarks.rows import Row, timed
from benchmarks.samples import Samples
from benchmarks.yardsticks import PYTHON

_ROUNDS = 9
_LARGEST_IN_MEMORY = 10_000


def cold(bench: Bench) -> Iterator[Row]:
    """Each verb in turn, round by round; bytecode is compiled, the file system's cache is warm."""
    if bench.engine == "memory" and bench.size > _LARGEST_IN_MEMORY:
        return  # it keeps nothing on disk: each process would read every file
    compile_all()
    asked = bench.asked[0]
    dates = ("--since", f"{asked.since:%Y-%m-%d}", "--until", f"{asked.until:%Y-%m-%d}")
    commands = {
        "memfs --help": ("--help",),
        "memfs recall": ("recall", asked.words),
        "memfs recall, type and date": ("recall", asked.words, "--type", asked.type, *dates),
        "memfs recall --json": ("recall", asked.words, "--json"),
        "memfs list": ("list",),
        "memfs status": ("status",),
        "memfs remember": ("remember",),
    }
    took = {name: Samples() for name in commands}
    floor = Samples()
    for number in range(bench.rounds(_ROUNDS) + 1):
        floor.time(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
        for name, arguments in commands.items():
            words = (*arguments, "--", next(bench.spare).content) if name == "memfs remember" else arguments
            took[name].time(lambda words=words: bench.cli(*words))  # type: ignore[misc]
        if number == 0:  # the first round fills caches
            floor.values.clear()
            for samples in took.values():
                samples.values.clear()
    for name, samples in took.items():
        yield timed("cold", name, bench.size, bench.engine, samples, PYTHON, floor)


def compile_all() -> None:
    """Compile the bytecode of memfs, as an installation has it."""
    found = find_spec("memfs")
    for place in (found.submodule_search_locations or ()) if found else ():
        compileall.compile_dir(place, quiet=2)

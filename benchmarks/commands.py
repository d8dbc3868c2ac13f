"""Whole processes of the command line, cold and with a resident, beside Python, ``git grep`` and ``git commit``.

``python -m benchmarks.commands`` makes a workspace of each size with each engine, and runs everything in turn, round by
round, so that a busy machine is busy for all. ``FOLDER`` measures in a workspace that is there; it stores one memory a
round. With ``--write`` the result is the page ``benchmarks/commands.md`` and its picture.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks import corpus, phases
from benchmarks.checkout import lay
from benchmarks.starting import compile_all
from benchmarks.surroundings import facts, git, hermetic, memfs_command
from memfs.workspace import open_workspace

_QUESTION = "parse the arguments of a command"
_PATIENCE = "60000"  # a busy machine greets late, and that is not what is measured
_HOOKS = ("UserPromptSubmit", "PreToolUse", "PostToolUse")
_NAMES = {
    **{name: f"`memfs {name}`" for name in ("recall", "list", "show", "status", "remember")},
    **{name: f"hook `{name}`" for name in _HOOKS},
}
_YARDSTICKS = ("git grep", "git commit")
_BEGIN, _END = "<!-- figures -->\n", "<!-- end of figures -->\n"
_DRAWN = (10_000, "sqlite")
_PAGE = Path(__file__).with_name("commands.md")
Taken = tuple[float, float]
"""Milliseconds on the wall, and of CPU."""
Words = tuple[list[str], bytes]
"""A command line, and what is piped into it."""


@dataclass(slots=True)
class Measured:
    """What was measured in one workspace: runs by command and manner, and of the resident its megabytes."""

    size: int
    engine: str
    taken: dict[tuple[str, str], list[Taken]] = field(default_factory=dict)
    resident: float = 0.0
    bars: Mapping[str, phases.Taken] = field(default_factory=dict)

    def at(self, name: str, how: str, kind: int) -> float:
        """The median of a command in a manner: on the wall (0), or of CPU (1)."""
        return median(one[kind] for one in self.taken[name, how])

    def ratio(self, name: str, how: str, kind: int) -> str:
        """The same in times of ``python -c pass``, and in milliseconds."""
        value = self.at(name, how, kind)
        return f"**{value / self.at('pass', '', kind):.1f}** ({value:.0f} ms)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table for each workspace."""
    options = _options().parse_args(arguments)
    compile_all()
    if options.workspace:
        print(_table(measured(str(options.workspace), 0, "", options.rounds)))
        return 0
    done = []
    with hermetic(options.folder) as place:
        surroundings = facts(place)
        for size, engine in itertools.product(map(int, options.sizes.split(",")), options.engines.split(",")):
            root = place / f"{engine}-{size}" / "workspace"
            build(root, size, engine)
            one = measured(str(root), size, engine, options.rounds)
            done.append(one)
            print(f"{_title(one)}\n\n{_table(one)}", flush=True)
    if options.write:
        _write(done, surroundings)
    return 0


def measured(folder: str, size: int, engine: str, rounds: int) -> Measured:
    """Everything in turn, round by round; of the first round nothing counts."""
    found = Measured(size, engine)
    asked = _commands(folder)
    _memfs(folder, "serve", "--detach")
    try:
        process = json.loads(_memfs(folder, "status", "--json"))["resident"]["pid"]
        for number in range(rounds + 1):
            row = dict(_round(folder, asked, number, process))
            for name, one in row.items() if number else ():
                found.taken.setdefault(name, []).append(one)
        found.resident = _megabytes(process)
    finally:
        _memfs(folder, "serve", "--stop")
    found.bars = _bars(folder, rounds)
    return found


def _round(
    folder: str, asked: Mapping[str, Words], number: int, resident: int
) -> Iterator[tuple[tuple[str, str], Taken]]:
    yield ("pass", ""), timed([sys.executable, "-c", "pass"], folder)
    yield ("git grep", ""), timed(["git", "grep", "-il", "argument", "--", "ContextMemory"], folder)
    (Path(folder) / "note.txt").write_text(f"{number} {time.time_ns()}\n")
    git(Path(folder), "add", "note.txt")
    yield ("git commit", ""), timed(["git", "commit", "-qm", "Note"], folder)
    for name, (words, stdin) in asked.items():
        more = [str(number), str(time.time_ns())] if name == "remember" else []
        yield (name, "cold"), timed([*memfs_command(), *words, *more], folder, stdin)
        before = _cpu(resident)
        wall, own = timed([*memfs_command(), *words, *more], folder, stdin, _PATIENCE)
        time.sleep(0.01)  # the child ends
        yield (name, "resident"), (wall, own + _cpu(resident) - before)


def timed(command: Sequence[str], folder: str, stdin: bytes = b"", switch: str = "off") -> Taken:
    """What one process takes, with those that it waits for."""
    env = {**os.environ, "MEMFS_RESIDENT": switch}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=env, input=stdin, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, spent * 1000


def _cpu(process: int) -> float:
    """Milliseconds of CPU that a process, and the children that it has waited for, used so far."""
    columns = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, columns[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def _megabytes(process: int) -> float:
    rows = dict(row.split(":", 1) for row in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(rows["VmRSS"].split()[0]) * 1024 / 1e6


def _bars(folder: str, rounds: int) -> dict[str, phases.Taken]:
    """Where the time of a question goes, cold and by a resident, in turn."""
    words = ["recall", _QUESTION]
    alone, served = [], []
    with phases.Serving(folder):
        for _ in range(rounds + 2):
            alone.append(phases.taken(folder, words, "off"))
            served.append(phases.taken(folder, words, _PATIENCE))
    return {"cold": phases.medians(alone[2:]), "with a resident": phases.medians(served[2:])}


def _memfs(folder: str, *words: str) -> str:
    return subprocess.run([*memfs_command(), *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def _commands(folder: str) -> dict[str, Words]:
    """The commands by name; the memory that is shown is the first that is listed."""
    first = json.loads(_memfs(folder, "list", "--limit", "1", "--json"))["items"][0]
    plain = {
        "recall": ["recall", _QUESTION],
        "list": ["list"],
        "show": ["show", first["id"]],
        "status": ["status"],
        "remember": ["remember", "A small memory of the benchmark"],
    }
    return {name: (words, b"") for name, words in plain.items()} | {
        name: (["hook", name], json.dumps(_event(folder, name)).encode()) for name in _HOOKS
    }


def _event(folder: str, name: str) -> dict[str, object]:
    """An event as an agent's program hands it over."""
    return {
        "hook_event_name": name,
        "session_id": "benchmark",
        "cwd": folder,
        "prompt": f"How does one {_QUESTION}?",
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "3 passed", "stderr": ""},
    }


def build(root: Path, size: int, engine: str) -> None:
    """Memories of texts, written as a checkout does, and committed."""
    with open_workspace(root, create=True, watch=False, settings={"history.commit": "manual"}):
        pass
    with (root / "memfs.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[index]\nengine = "{engine}"\n')
    with open_workspace(root, watch=False, settings={"history.commit": "manual"}) as workspace:
        lay(workspace, (text.item() for text in corpus.read(size, 1).texts))
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "The memory so far")
    git(root, "gc", "--quiet")
    _memfs(str(root), "recall", _QUESTION)


# -- the page -------------------------------------------------------------------------------------------------------
def _title(one: Measured) -> str:
    return f"{one.size:,} memories, `{one.engine}`"


def _table(one: Measured) -> str:
    lines = [
        "| | CPU, cold | clock, cold | CPU, resident | clock, resident |",
        "|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(name for name, how in one.taken if how):
        cells = [one.ratio(name, how, kind) for how in ("cold", "resident") for kind in (1, 0)]
        lines.append(f"| {_NAMES[name]} | {' | '.join(cells)} |")
    lines += (f"| `{name}` | {one.ratio(name, '', 1)} | {one.ratio(name, '', 0)} | | |" for name in _YARDSTICKS)
    lines.append(f"| `python -c pass` | {one.at('pass', '', 1):.0f} ms | {one.at('pass', '', 0):.0f} ms | | |")
    lines.append(f"\nThe resident took {one.resident:.0f} MB.")
    return "\n".join(lines)


def _write(done: Sequence[Measured], surroundings: Sequence[tuple[str, str]]) -> None:
    """Put the tables into the page, each in its place, and draw the picture of the run at 10,000 memories."""
    before, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    old, _, after = rest.partition(_END)
    sections = dict(section.split("\n", 1) for section in old.split("### ")[1:])
    conditions = "; ".join(f"{name}: {value}" for name, value in surroundings)
    for one in done:
        sections[_title(one)] = f"\n{_table(one)}\nOn {conditions.removeprefix('date: ')}.\n\n"
        if (one.size, one.engine) == _DRAWN:
            title = f"memfs recall over {one.size:,} memories ({one.engine}): milliseconds of a whole process"
            _PAGE.with_suffix(".svg").write_text(phases.picture(one.bars, title), encoding="utf-8")
    rows = sorted(sections.items(), key=lambda row: (len(row[0].partition(" ")[0]), row[0]))
    text = "".join(f"### {title}\n{section}" for title, section in rows)
    _PAGE.write_text(f"{before}{_BEGIN}\n{text}{_END}{after}", encoding="utf-8")


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description="Measure whole commands.")
    parser.add_argument("workspace", nargs="?", type=Path, help="measure in this workspace, which gets more memories")
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of memories")
    parser.add_argument("--engines", default="sqlite,whoosh", help="search engines")
    parser.add_argument("--rounds", type=int, default=11, help="how often each command runs")
    parser.add_argument("--folder", type=Path, help="work below this folder, which must be in no git repository")
    parser.add_argument("--write", action="store_true", help="put the result into commands.md, and draw its picture")
    return parser


if __name__ == "__main__":
    sys.exit(main())

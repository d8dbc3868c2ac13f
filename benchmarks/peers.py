"""One search and one write through the command lines of memfs and of its peers, as whole processes, in turn.

``python -m benchmarks.peers`` stores the same texts with each of ``agentlore``, ``memgit`` and ``markmem`` that is on
the ``PATH``, through its own command line, and with memfs; then everything runs round by round beside
``python -c pass``, so that a busy machine is busy for all. agentlore writes no commit, memgit has a store of its own,
markmem and memfs commit.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks import commands, corpus
from benchmarks.starting import compile_all
from benchmarks.surroundings import facts, git, hermetic, memfs_command

_QUESTION = "parse the arguments of a command"
_NOTE = "A small memory of the benchmark"
_PATIENCE = "60000"
PEERS = ("agentlore", "memgit", "markmem")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Measure memfs beside its peers.")
    parser.add_argument("--size", type=int, default=1000, help="number of memories")
    parser.add_argument("--rounds", type=int, default=9, help="how often each command runs")
    parser.add_argument("--folder", type=Path, help="work below this folder, which must be in no git repository")
    options = parser.parse_args(arguments)
    compile_all()
    with hermetic(options.folder) as place:
        for name, value in facts(place):
            print(f"{name}: {value}")
        texts = corpus.read(options.size, 1).texts
        folders = {name: _filled(name, place, texts) for name in PEERS if shutil.which(name)}
        for engine in ("sqlite", "whoosh"):
            folders[f"memfs, {engine}"] = place / f"{engine}-{options.size}" / "workspace"
            commands.build(folders[f"memfs, {engine}"], options.size, engine)
        print(_table(_taken(folders, options.rounds)))
    return 0


def _filled(name: str, place: Path, texts: Sequence[corpus.Text]) -> Path:
    """A folder in which a peer has stored the texts."""
    folder = place / name
    folder.mkdir()
    git(folder, "init", "--quiet")
    if name == "markmem":
        _run(folder, name, "init", ".")
        rows = ({**_page(text), "id": f"g/note/{number}"} for number, text in enumerate(texts))
        (place / "pages.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        _run(folder, name, "import", str(place / "pages.jsonl"))
        return folder
    _run(folder, name, "init")
    for number, text in enumerate(texts):
        words = _writes(name, f"{number}", text.title, text.content)
        # agentlore refuses what looks like a key, and has so much less to search
        subprocess.run(words, cwd=folder, capture_output=True, check=False)
    return folder


def _page(text: corpus.Text) -> dict[str, str]:
    moment = text.timestamp.isoformat()
    return {"type": "note", "title": text.title, "created": moment, "updated": moment, "body": text.content}


def _writes(name: str, key: str, title: str, text: str) -> list[str]:
    """The command by which one memory is stored."""
    if name == "agentlore":
        return [name, "add", "--type=convention", f"--title={title}", f"--body={text}"]
    if name == "memgit":
        return [name, "add", f"--body={text}", f"note-{key}", "--", title]
    if name == "markmem":
        return [name, "ingest", f"{title} {text}"]
    return [*memfs_command(), "remember", f"{title} {text}"]


def _searches(name: str) -> list[str]:
    if name in PEERS:
        return [name, "recall" if name == "agentlore" else "search", _QUESTION]
    return [*memfs_command(), "recall", _QUESTION]


def _taken(folders: Mapping[str, Path], rounds: int) -> dict[tuple[str, str], list[commands.Taken]]:
    """What each command took, by whose it is and what it does; of the first round nothing counts."""
    found: dict[tuple[str, str], list[commands.Taken]] = {}
    for number in range(rounds + 1):
        key = f"{number}-{time.time_ns() % 100_000}"  # longer figures look like the number of a card
        row = {("python -c pass", what): commands.timed([sys.executable, "-c", "pass"], ".") for what in _VERBS}
        for name, folder in folders.items():
            row[name, "search"] = commands.timed(_searches(name), str(folder))
            row[name, "write"] = commands.timed(_writes(name, key, _NOTE, key), str(folder))
            if name not in PEERS:
                served = f"{name}, with a resident"
                _run(folder, *memfs_command(), "serve", "--detach")
                commands.timed(_searches(name), str(folder), switch=_PATIENCE)
                row[served, "search"] = commands.timed(_searches(name), str(folder), switch=_PATIENCE)
                words = _writes(name, key, _NOTE, f"{key} again")
                row[served, "write"] = commands.timed(words, str(folder), switch=_PATIENCE)
                _run(folder, *memfs_command(), "serve", "--stop")
        for what, one in row.items() if number else ():
            found.setdefault(what, []).append(one)
    return found


_VERBS = ("search", "write")


def _table(found: Mapping[tuple[str, str], Sequence[commands.Taken]]) -> str:
    lines = ["| | search, CPU | search, clock | write, CPU | write, clock |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(name for name, _ in found):
        cells = (f"{median(one[kind] for one in found[name, what]):.0f} ms" for what in _VERBS for kind in (1, 0))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, check=True)


if __name__ == "__main__":
    sys.exit(main())

"""MCP: how long a client waits for the server, as a whole process over standard input and output (B5).

``python -m benchmarks.mcp`` makes a workspace of so many memories and starts a server for each round: until it has
answered ``initialize``, its first search, and what a search and a store cost it then; beside a Python that does nothing
but import the protocol's package.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.checkout import lay
from benchmarks.rows import Row, timed
from benchmarks.samples import Samples
from benchmarks.starting import compile_all
from benchmarks.surroundings import facts, hermetic, memfs_command
from memfs.workspace import open_workspace

FLOOR = "import of the package"
INITIALIZE, TOOLS = "initialize, cold", "initialize and tools/list, cold"
FIRST, SEARCH, STORE = "first memory_search", "memory_search", "memory_store"
_FLOOR_CODE = "from mcp.server.lowlevel import Server"
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
_WARM = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    options = _options().parse_args(arguments)
    with hermetic(options.folder) as place:
        print(", ".join(f"{name} {value}" for name, value in facts(place)))
        compile_all()
        rows: list[Row] = []
        for size in map(int, options.sizes.split(",")):
            root = place / f"workspace-{size}"
            _build(root, size)
            rows += measured(root, size, options.rounds)
    print(_table(rows))
    return 0


def measured(root: Path, size: int, rounds: int) -> Iterator[Row]:
    """A server a round; of the first round nothing counts, as it fills the file system's cache."""
    floor = Samples()
    took = {name: Samples() for name in (INITIALIZE, TOOLS, FIRST, SEARCH, STORE)}
    texts = iter(corpus.read(rounds * (2 * _WARM + 2) + 50, 2).texts)
    for number in range(rounds + 1):
        floor.time(lambda: subprocess.run([sys.executable, "-c", _FLOOR_CODE], check=True))
        began = time.perf_counter()
        with _server(root) as server:
            server.ask("initialize", **_HELLO)
            took[INITIALIZE].values.append((time.perf_counter() - began) * 1_000)
            server.ask("tools/list")
            took[TOOLS].values.append((time.perf_counter() - began) * 1_000)
            took[FIRST].time(lambda server=server: server.search(next(texts).title))  # type: ignore[misc]
            for _ in range(_WARM):
                took[SEARCH].time(lambda server=server: server.search(next(texts).title))  # type: ignore[misc]
                took[STORE].time(lambda server=server: server.store(next(texts).content))  # type: ignore[misc]
        if number == 0:
            for samples in (floor, *took.values()):
                samples.values.clear()
    for name, samples in took.items():
        yield timed("mcp", name, size, "", samples, FLOOR, floor)


class _Server:
    """The client's side of a server."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "result" not in answer or answer["result"].get("isError"):
            raise RuntimeError(str(answer))
        return answer

    def search(self, text: str) -> None:
        """Ask for memories."""
        self.ask("tools/call", name="memory_search", arguments={"query": text})

    def store(self, text: str) -> None:
        """Keep a memory."""
        self.ask("tools/call", name="memory_store", arguments={"content": text})


@contextmanager
def _server(root: Path) -> Iterator[_Server]:
    command = [*memfs_command(), "mcp"]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield _Server(process)
        assert process.stdin is not None
        process.stdin.close()


def _build(root: Path, size: int) -> None:
    """Memories of texts, written as a checkout does."""
    open_workspace(root, create=True, watch=False, settings={"history.commit": "manual"}).close()
    with open_workspace(root, watch=False, settings={"history.commit": "manual"}) as workspace:
        lay(workspace, (text.item() for text in corpus.read(size, 1).texts))


def _table(rows: Sequence[Row]) -> str:
    sizes = list(dict.fromkeys(row.size for row in rows))
    lines = [f"| a client waits for | {' | '.join(f'{size:,}' for size in sizes)} |", "|---" * (len(sizes) + 1) + "|"]
    for name in dict.fromkeys(row.name for row in rows):
        cells = {row.size: row for row in rows if row.name == name}
        lines.append(f"| {name} | {' | '.join(_formatted(cells[size]) for size in sizes)} |")
    return "\n".join(lines)


def _formatted(row: Row) -> str:
    return f"{row.value:.0f} ms, p95 {row.p95 or 0:.0f}, {row.ratio or 0:.2f} x {row.yardstick}"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mcp", description="Measure the MCP server (B5).")
    parser.add_argument("--sizes", default="1000,10000", help="sizes, e.g. 1000,10000")
    parser.add_argument("--rounds", type=int, default=9, help="how many servers are started")
    parser.add_argument("--folder", type=Path, help="where to write")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

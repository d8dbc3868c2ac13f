"""Runs the co-scientist once more and puts what it leaves behind into the example workspace.

Run it after a change of ``examples/co_scientist/`` or of the state documents:
``.venv/bin/python tests/docs/example_states.py``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "example-workspace"
CODE = ROOT / "examples" / "co_scientist"
PARTS = ("iterations", "aggregates", "checkpoints")
ITERATIONS = 10


@contextmanager
def _at_hand() -> Iterator[None]:
    """The example's modules can be imported."""
    sys.path.insert(0, str(CODE))
    try:
        yield
    finally:
        sys.path.remove(str(CODE))
        for name in ("agents", "parcels", "supervisor"):
            sys.modules.pop(name, None)


def simulate(folder: Path, iterations: int = ITERATIONS) -> None:
    """Work through the iterations in a copy of the example workspace, by a clock that goes the same way each time."""
    from memfs import ContextMemory

    now = [datetime(2026, 4, 13, 7, 30, tzinfo=UTC)]

    def step() -> None:
        now[0] += timedelta(minutes=4, seconds=7)

    def told() -> datetime:
        return now[0]

    with _at_hand(), mock.patch("memfs.workspace.utc_now", told):
        from supervisor import Supervisor

        with ContextMemory(folder) as memory:
            supervisor = Supervisor(memory, say=lambda _: None, between=step)
            for iteration in range(1, iterations + 1):
                supervisor.run(iteration)
                now[0] += timedelta(days=2)


def copy(folder: Path) -> None:
    """Lay a copy of the example's memory into a repository of its own, without what the co-scientist left."""
    shutil.copytree(EXAMPLE, folder, ignore=lambda _, names: [name for name in names if name in PARTS])
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)


def documents(folder: Path) -> dict[str, bytes]:
    """What the co-scientist left, by path below ``ContextMemory/``; what git ignores is left out."""
    content = folder / "ContextMemory"
    files = (path for part in PARTS for path in sorted((content / part).rglob("*")) if path.is_file())
    return {path.relative_to(content).as_posix(): path.read_bytes() for path in files if path.suffix != ".zst"}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "waybill"
        copy(work)
        simulate(work)
        for part in PARTS:
            shutil.rmtree(EXAMPLE / "ContextMemory" / part, ignore_errors=True)
        for path, data in documents(work).items():
            target = EXAMPLE / "ContextMemory" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

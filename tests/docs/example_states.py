"""Runs the co-scientist once more and puts what it leaves behind into the example workspace, with what only time
brings: an archive, the thread of an agent graph, and an item that two people changed at once.

Run it after a change of ``examples/co_scientist/`` or of the state documents:
``.venv/bin/python tests/docs/example_states.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from memfs.format.file_merge import FileMerger

if TYPE_CHECKING:
    from memfs.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "example-workspace"
CODE = ROOT / "examples" / "co_scientist"
PARTS = ("iterations", "aggregates", "checkpoints", "archive", "threads")
ARCHIVED = 1
"""The iteration that is archived."""
THREAD = "triage-parcel-7f3k"
DISPUTED = "memories/knowledge/2026-04/how-often-kestrel-is-asked.yaml"
"""An item of which a merge kept one version of a field and recorded the other."""
_ASKED = """\
content: The poller asks Kestrel for new scans every {}.
tags: [kestrel, polling]
timestamp: 2026-04-02
updated: {}
origin: {{agent: scout}}
trust: reviewed
"""
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

    def clock() -> datetime:
        return now[0]

    with _at_hand(), mock.patch("memfs.workspace.utc_now", clock):
        from supervisor import Supervisor

        with ContextMemory(folder) as memory:
            supervisor = Supervisor(memory, say=lambda _: None, between=step)
            for iteration in range(1, iterations + 1):
                supervisor.run(iteration)
                now[0] += timedelta(days=2)


def grow(folder: Path) -> None:
    """Archive the first iteration, keep a thread as LangGraph's saver does, and merge two edits of one item."""
    from memfs.workspace import open_workspace

    now = [datetime(2026, 5, 4, 9, tzinfo=UTC)]

    def clock() -> datetime:
        now[0] += timedelta(seconds=2)
        return now[0]

    with mock.patch("memfs.workspace.utc_now", clock), open_workspace(folder, watch=False) as workspace:
        _keep_thread(workspace)
        archiver = workspace.states.archiver
        done = archiver.archive({ARCHIVED: archiver.closed()[ARCHIVED]}, archiver.policy().level)
        assert done.removed, done
        path = f"ContextMemory/{DISPUTED}"
        versions = [
            _ASKED.format("ten minutes", "2026-04-02T08:00:00Z"),
            _ASKED.format("five minutes", "2026-04-20T10:15:00Z"),
            _ASKED.format("two minutes", "2026-04-20T14:40:00Z"),
        ]
        base, ours, theirs = (version.encode() for version in versions)
        merged = FileMerger(workspace.parts.codec).merge(path, base, ours, theirs)
        assert merged.recorded
        assert merged.data is not None
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(merged.data.replace(b"by: scout", b"by: Ines"))  # a person, who signs nothing


def _keep_thread(workspace: Workspace) -> None:
    """Two steps of a graph that sorts a question of a customer; the second waits for a person."""
    from langgraph.checkpoint.base import empty_checkpoint

    from memfs.doors.langgraph import MemfsSaver

    config: Any = {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}
    question = "Where is parcel 7F3K? It has stood at Kestrel for two days."
    with MemfsSaver(workspace=workspace) as saver:
        values: dict[str, Any] = {}
        for step, new in enumerate(({"question": question}, {"carrier": "kestrel", "verdict": "ask the carrier"})):
            values.update(new)
            checkpoint = empty_checkpoint()
            checkpoint["id"] = f"1f140000-0000-6000-800{step}-000000000000"
            checkpoint["ts"] = f"2026-05-04T08:5{step}:00+00:00"
            checkpoint["channel_values"] = dict(values)
            checkpoint["channel_versions"] = dict.fromkeys(values, step + 1)
            versions: Any = dict.fromkeys(new, step + 1)
            config = saver.put(config, checkpoint, {"source": "loop", "step": step}, versions)
        saver.put_writes(config, [("answer", "We have asked Kestrel and write again by noon.")], "answer-task")


def copy(folder: Path) -> None:
    """Lay a copy of the example's memory into a repository of its own, without what the co-scientist left."""
    shutil.copytree(EXAMPLE, folder, ignore=lambda _, names: [name for name in names if name in PARTS])
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)


def documents(folder: Path) -> dict[str, bytes]:
    """What the co-scientist left, by path below ``ContextMemory/``; of what git ignores, only archives."""
    content = folder / "ContextMemory"
    files = (path for part in PARTS for path in sorted((content / part).rglob("*")) if path.is_file())
    kept = (path for path in files if path.suffix != ".zst" or path.parent.name == "archive")
    return {path.relative_to(content).as_posix(): path.read_bytes() for path in kept}


if __name__ == "__main__":
    os.environ["MEMFS_RECALL_STATE_SECONDS"] = "0"  # an answer is whole on a busy machine, too
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "waybill"
        copy(work)
        simulate(work)
        grow(work)
        for part in PARTS:
            shutil.rmtree(EXAMPLE / "ContextMemory" / part, ignore_errors=True)
        for path, data in [*documents(work).items(), (DISPUTED, (work / "ContextMemory" / DISPUTED).read_bytes())]:
            target = EXAMPLE / "ContextMemory" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

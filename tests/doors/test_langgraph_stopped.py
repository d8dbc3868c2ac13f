"""LangGraph checkpointer: stopped at an operation of the disk, as by kill -9, and opened again (B5)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from kit.copies import copy_workspace
from kit.faults import Fault, Stopped, injected
from memfs.doors.langgraph import MemfsSaver
from memfs.workspace import open_workspace

SETTINGS: dict[str, Any] = {"index.engine": "memory", "history.commit": "manual"}
CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
IDS = [str(uuid6(clock_seq=step)) for step in range(4)]


def put(saver: MemfsSaver, step: int) -> None:
    """Put the checkpoint of a step: one value that all share, and one of its own."""
    checkpoint = empty_checkpoint()
    checkpoint["id"] = IDS[step]
    checkpoint["channel_values"] = {"shared": "from the first", "turn": step}
    checkpoint["channel_versions"] = {"shared": 1, "turn": step + 1}
    before = {"checkpoint_id": IDS[step - 1]} if step else {}
    changed = {"turn": step + 1} if step else dict(checkpoint["channel_versions"])
    saver.put({"configurable": {**CONFIG["configurable"], **before}}, checkpoint, {"step": step}, changed)


def put_another(saver: MemfsSaver) -> None:
    """One more checkpoint."""
    put(saver, 3)


def put_writes(saver: MemfsSaver) -> None:
    """Writes of another task."""
    config: Any = {"configurable": {**CONFIG["configurable"], "checkpoint_id": IDS[2]}}
    saver.put_writes(config, [("turn", 3), ("shared", "new")], "second task")


def remove(saver: MemfsSaver) -> None:
    """The thread goes."""
    saver.delete_thread("t")


def state(saver: MemfsSaver) -> list[Any]:
    """Everything that is kept."""
    return [(one.config, one.checkpoint["channel_values"], one.pending_writes) for one in saver.list(None)]


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A workspace with three checkpoints and a task's writes, not committed."""
    root = tmp_path / "begun"
    with open_workspace(root, create=True, watch=False, settings=SETTINGS) as workspace:
        saver = MemfsSaver(workspace=workspace)
        for step in range(3):
            put(saver, step)
        saver.put_writes(state(saver)[0][0], [("turn", 3)], "task")
    return root


@pytest.mark.parametrize("act", [put_another, put_writes, remove])
def test_stopped_anywhere_it_was_done_or_it_was_not(
    act: Callable[[MemfsSaver], None], begun: Path, tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    """Whole before or whole after, no value lost, nothing left to be repaired; and the act can be repeated (B5)."""

    def run(at: int) -> tuple[Fault, bool, Path]:
        root = tmp_path / str(at)
        copy_workspace(begun, root)
        workspace = open_workspace(root, watch=False, settings=SETTINGS)
        fault, done = Fault(at), False
        with suppress(Stopped), injected(fault):
            act(MemfsSaver(workspace=workspace))
            done = True
        with suppress(Stopped), injected(Fault(1)):  # a dead process closes nothing by itself
            workspace.close()
        return fault, done, root

    def found(root: Path) -> list[Any]:
        with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
            left = {"LeftoverTemporary", "CommitsWaiting"}
            assert [problem for problem in workspace.checker.check() if problem.code not in left] == []
            return state(MemfsSaver(workspace=workspace))

    counted, _, root = run(0)
    after, before = found(root), found(begun)
    assert after != before
    step = scale(max(1, len(counted.seen) // 3), 1)
    for at in range(1, len(counted.seen) + 1, step):
        _, done, root = run(at)
        assert found(root) in ([after] if done else [before, after]), counted.seen[at - 1]
        with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
            act(MemfsSaver(workspace=workspace))
        assert found(root) == after

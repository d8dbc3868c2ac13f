"""LangGraph checkpointer: a person checks out another branch while a graph runs (B5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from memfs.doors.langgraph import MemfsSaver
from memfs.workspace import open_workspace

Git = Callable[..., str]
SETTINGS: dict[str, Any] = {"index.engine": "memory", "history.commit": "manual"}
IDS = [str(uuid6(clock_seq=step)) for step in range(3)]


def put(saver: MemfsSaver, step: int) -> None:
    """Put the checkpoint of a step: one value that all share, and one of its own."""
    checkpoint = empty_checkpoint()
    checkpoint["id"] = IDS[step]
    checkpoint["channel_values"] = {"shared": "from the first", "turn": step}
    checkpoint["channel_versions"] = {"shared": 1, "turn": step + 1}
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": IDS[step - 1]}}
    saver.put(config, checkpoint, {"step": step}, {"turn": step + 1})


def test_a_value_is_not_left_on_the_branch_that_was_left(tmp_path: Path, git: Git) -> None:
    """What waits for the branch before goes there; a checkpoint of the next one has its values with it."""
    with open_workspace(
        tmp_path, create=True, watch=False, settings={**SETTINGS, "history.commit": "session"}
    ) as workspace:
        saver = MemfsSaver(workspace=workspace)
        put(saver, 0)
        put(saver, 1)
        git(tmp_path, "checkout", "-q", "-b", "other")
        put(saver, 2)
        workspace.store.flush()
        kept = [path.stem for path in (tmp_path / "ContextMemory/threads/t/checkpoints").iterdir()]
        assert kept == [IDS[2]]
        found = saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert found is not None
        assert found.checkpoint["channel_values"] == {"shared": "from the first", "turn": 2}
        assert workspace.states.threads.problems() == []

"""Killed while recording: what was acknowledged is there, and documents that belong together came together (S1, S9)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs import Workspace
from memfs.errors import TokenInvalid
from memfs.fs import io
from memfs.model.state_facts import StateQuery
from memfs.workspace import open_workspace

Opened = Callable[..., Workspace]
SETTINGS = {"index.engine": "memory", "history.commit": "manual"}
pytestmark = pytest.mark.faults


def record(root: Path, report: Callable[[dict[str, Any]], object], begun: Callable[[], None]) -> None:
    """Store documents one after another, and report what is acknowledged."""
    with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
        assert workspace.states.recorder
        begun()
        for number in range(1, 100):
            store(workspace, number, report)


def store(workspace: Workspace, number: int, report: Callable[[dict[str, Any]], object] = lambda _facts: None) -> None:
    """Store one document of each sort."""
    recorder = workspace.states.recorder
    update = recorder.state_update({"system_statistics": {"total_hypotheses": number}})
    report({"path": update.path})
    state = {"internal_state": {"step": number}}
    output = recorder.agent_output({"agent_type": "a", "task_id": "t", "state_data": state})
    report({"path": output.path, "token": output.continuation_token, "step": number})
    hypothesis = recorder.hypothesis({"id": "h", "wins": number})
    report({"path": hypothesis.path, "wins": number})


def killed_before(operation: int, root: Path) -> list[dict[str, Any]]:
    """What a process acknowledged that was killed right before that disk operation, counted from its first write."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        left = [operation]

        def reap(_name: str, _place: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            report = lambda acknowledged: os.write(writing, json.dumps(acknowledged).encode() + b"\n")  # noqa: E731
            record(root, report, lambda: io.set_hook(reap))
        finally:
            os._exit(1)  # it was to be killed
    os.close(writing)
    with os.fdopen(reading) as pipe:
        acknowledged = [json.loads(line) for line in pipe]
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    return acknowledged


def test_21_nothing_acknowledged_is_lost_and_batches_are_whole(
    opened: Opened, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """Killed at any disk operation: header and update, output and token, come together or not at all (row 21)."""
    workspace = opened()
    store(workspace, 0)
    root = workspace.root
    kills, acknowledged = scale(8, 200), 0
    for kill in range(kills):
        reported = killed_before(20 + 53 * kill % 1_201, root)
        acknowledged += len(reported)
        with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
            look(workspace, reported)
    assert acknowledged > kills
    figures("kill -9 while recording state", points=kills, acknowledged=acknowledged, lost=0)


def look(workspace: Workspace, acknowledged: list[dict[str, Any]]) -> None:
    """Check a workspace after a kill, against what was acknowledged before it."""
    states = workspace.states
    header = states.reading.load("ContextMemory/iterations/iteration_001/system_state.json")
    updates = states.reading.rows(StateQuery(kinds=("state_update",), newest=True))
    assert header["update"] == states.reading.load(updates[0])
    for one in acknowledged:
        assert states.files.exists(one["path"])
    kept = [states.reading.load(row) for row in states.reading.rows(StateQuery(kinds=("continuation",)))]
    outputs = [states.reading.load(row) for row in states.reading.rows(StateQuery(kinds=("agent_output",)))]
    assert len(kept) >= len(outputs)
    (newest,) = [one for one in kept if not one.get("superseded_by")]
    tokens = [one for one in acknowledged if "token" in one]
    if tokens:
        assert states.continuations.resume(newest["token"])["step"] >= tokens[-1]["step"]
        for one in tokens[:-1]:
            with pytest.raises(TokenInvalid, match="superseded"):
                states.continuations.resume(one["token"])
    wins: int = states.reading.load("ContextMemory/iterations/iteration_001/hypotheses/h.json")["wins"]
    assert wins >= max((one["wins"] for one in acknowledged if "wins" in one), default=0)
    assert [one for one in workspace.checker.check() if one.path.startswith("ContextMemory/iterations/")] == []

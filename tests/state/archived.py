"""Closed iterations for the tests of archives, without the parts that usually make them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from memfs.model import state_paths
from memfs.state.reader import DocumentChange

if TYPE_CHECKING:
    from memfs.workspace import Workspace

FIRST = datetime(2020, 3, 1, tzinfo=UTC)


def output(agent: str, task: str, text: str) -> dict[str, Any]:
    """An agent's output."""
    return {
        "agent_type": agent,
        "task_id": task,
        "timestamp": "2020-03-01T10:00:00Z",
        "results": {"primary_output": text, "metadata": {}, "confidence_score": 0.5, "resource_consumed": 1.0},
    }


def iteration(workspace: Workspace, number: int, *, outputs: int = 3, status: str = "closed") -> list[str]:
    """Write an iteration, closed ``number`` days after the first of March 2020; return its paths."""
    opened = FIRST + timedelta(days=number - 1)
    header: dict[str, Any] = {"iteration": number, "status": status, "opened": opened.isoformat()}
    if status == "closed":
        header["closed"] = (opened + timedelta(days=1)).isoformat()
    documents = {state_paths.system_state_path(number): header}
    for turn in range(outputs):
        path = state_paths.output_path(number, "Ranking Agent", f"task-{turn}")
        documents[path] = output("Ranking Agent", f"task-{turn}", f"ranked {turn} of iteration {number}: " + "x" * 200)
    workspace.states.files.write(
        [DocumentChange(path, values) for path, values in documents.items()], f"Iteration {number}"
    )
    return sorted(documents)


def contents(workspace: Workspace, paths: list[str]) -> dict[str, bytes]:
    """The bytes of files in the tree, by path; those that are not there are left out."""
    return {path: (workspace.root / path).read_bytes() for path in paths if (workspace.root / path).exists()}


def policy(workspace: Workspace, **values: Any) -> None:
    """Write the retention policy."""
    path = "ContextMemory/configuration/retention_policy.json"
    plans = workspace.store.plan_restore({path: json.dumps(values).encode()})
    workspace.store.carry_out(plans, "Set the retention policy")

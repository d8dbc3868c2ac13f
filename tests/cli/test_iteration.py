"""``memfs state iteration``: rounds of work, opened, closed and shown (S12)."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from memfs.workspace import open_workspace
from tests.cli.conftest import Memfs, git


def test_an_iteration_is_started_shown_closed_and_listed(memfs: Memfs, root: Path) -> None:
    """Each step is a command, committed when it ends, for people and as JSON (S12)."""
    assert "0 iterations; 'memfs state iteration start' opens one" in memfs("state", "iteration", "list").err
    assert memfs("state", "iteration", "start").out.startswith("Iteration 1 is open")
    with open_workspace(root, watch=False) as workspace:
        output = {"agent_type": "Evolution Agent", "task_id": "t", "results": {"confidence_score": 0.5}}
        workspace.states.recorder.agent_output(output)

    shown = memfs("state", "iteration", "show", "--json").json["iteration"]
    closed = memfs("state", "iteration", "close")

    assert (shown["number"], shown["status"], shown["closed"]) == (1, "open", None)
    assert shown["counts"] == {"agent_output": 1, "system_state": 1}
    assert "Iteration 1 is closed" in closed.out
    assert git(root, "status", "--porcelain") == ""
    assert "Close iteration 1" in git(root, "log", "--format=%s")
    assert memfs("state", "iteration", "start", "--json").json["iteration"]["number"] == 2
    assert yaml.safe_load(memfs("state", "iteration", "show").out)["status"] == "open"
    assert [one["status"] for one in memfs("state", "iteration", "list", "--json").json["iterations"]] == [
        "closed",
        "open",
    ]
    listed = memfs("state", "iteration", "list")
    assert [line.split()[:2] for line in listed.out.splitlines()] == [["1", "closed"], ["2", "open"]]


def test_what_cannot_be_done_is_reported(memfs: Memfs) -> None:
    """With the remedy and the usual exit codes."""
    for words, message in (
        (("show",), "there is no iteration yet"),
        (("close",), "no iteration is open"),
        (("close", "7"), "there is no iteration 7"),
    ):
        ran = memfs("state", "iteration", *words)
        assert ran.code == 1
        assert message in ran.err
    assert memfs("state", "iteration", "list", "7").code == 2
    assert memfs("state", "iteration", "start", "first").code == 2
    memfs("state", "iteration", "start", "7")
    memfs("state", "iteration", "close", "7")
    again = memfs("state", "iteration", "start", "7")
    assert (again.code, "iteration 7 is closed" in again.err, "the next is 8" in again.err) == (1, True, True)


def test_statistics_that_somebody_wrote_by_hand_are_shown_as_far_as_they_make_sense(memfs: Memfs, root: Path) -> None:
    """A header is a file like any other (S18)."""
    memfs("state", "iteration", "start")
    header = root / "ContextMemory/iterations/iteration_001/system_state.json"
    statistics = {"duration_seconds": "long", "outputs_by_agent": {"a": "x", "b": {}, "c\x1b[31m": 2}}
    values = {**json.loads(header.read_text()), "status": "closed", "statistics": statistics}
    header.write_text(json.dumps(values))

    shown = memfs("state", "iteration", "show", "1")

    assert shown.code == 0
    assert yaml.safe_load(shown.out)["statistics"]["duration_seconds"] == "long"
    assert "\x1b" not in shown.out

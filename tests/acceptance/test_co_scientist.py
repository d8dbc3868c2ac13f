"""The seed's three scenarios with other agents and data, through public names only (S20; S4-S7, S10, S11)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import foundry
import pytest
from foundry import FURNACE, JUDGE, LEFT, MIXER

from memfs import ContextMemory


class Works:
    """Processes that share a folder, and a home of their own."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.root, self._python = folder / "works", python
        self._home = folder / "home"
        self._home.mkdir()

    def run(self, command: str, ends: int = 0) -> dict[str, Any]:
        """Run one command of ``foundry.py`` in a process of its own, and what it printed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MEMFS_", "XDG_"))}
        home = {"HOME": str(self._home), "XDG_CACHE_HOME": str(self._home / "cache"), "GIT_CONFIG_NOSYSTEM": "1"}
        words = (str(self._python), str(foundry.__file__), command, str(self.root))
        done = subprocess.run(words, check=False, capture_output=True, text=True, env={**kept, **home})
        assert done.returncode == ends, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory, forked_python: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a process printed before it was killed in the middle of an iteration, and what the next one finds."""
    works = Works(tmp_path_factory.mktemp("foundry"), forked_python)
    return works.run("melt", ends=-signal.SIGKILL), works.run("recover")


def test_a_crash_loses_nothing_that_was_acknowledged(crashed: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Scenario 1: every document that was stored is there, those after the checkpoint too (S7)."""
    before, after = crashed
    assert [path for path in before["stored"] if not any(one.endswith(path) for one in after["present"])] == []
    assert after["hypotheses"] == ["alloy-1", "alloy-2", "alloy-3", "alloy-4"]
    assert after["agents"] == {MIXER: "mix alloy-4", JUDGE: "weigh/alloy-1"}


def test_only_what_was_in_flight_is_to_be_done_again(crashed: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Scenario 1: the latest checkpoint names the tasks as they were, and each component's state to go on from (S7)."""
    before, after = crashed
    recovery = after["recovery"]
    assert recovery["checkpoint_id"] == before["checkpoint"]
    assert recovery["checkpoint_id"].startswith("ckpt_20")
    assert recovery["active_tasks"] == LEFT
    assert recovery["resume_points"]["comparison"] == {"next": ["alloy-3", "alloy-4"]}
    assert "alloy-4" in str(recovery["resume_points"][MIXER])
    assert recovery["data_integrity"]["verified"] is True
    assert recovery["data_integrity"]["rejected"] == {}
    assert recovery["system_configuration"] == {}
    assert MIXER in str(recovery["completed_work"])


def test_a_component_can_be_recovered_alone(crashed: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Scenario 1: recovery of one component gives that one's resume point and no other (S7)."""
    assert crashed[1]["only"]["resume_points"] == {"stove": {"kelvin": 1170}}


# -- scenarios 2 and 3 --------------------------------------------------------------------------------------------
@pytest.fixture
def memory(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[ContextMemory]:
    """A context memory over a fresh workspace."""
    for name, value in {"INDEX_ENGINE": "memory", "HISTORY_COMMIT": "manual", "WATCH_ENABLED": "false"}.items():
        monkeypatch.setenv(f"MEMFS_{name}", value)
    with opened() as workspace:
        root = workspace.root
    with ContextMemory(root) as made:
        yield made


def test_feedback_of_one_iteration_is_in_the_prompts_of_the_next(memory: ContextMemory) -> None:
    """Scenario 2: each agent gets its own feedback and what is meant for all, in a recorded version (S4, S5)."""
    memory.start_iteration(3)
    foundry.review(memory, 3, ["porous castings"], mixer=["stir longer", "less lead"], furnace=["cool slowly"])
    memory.close_iteration(3)
    memory.start_iteration(4)
    feedback = memory.feedback_for(MIXER)
    assert [word for word in ("stir longer", "less lead", "cast three of each") if word not in feedback.text] == []
    assert "cool slowly" not in feedback.text
    assert (feedback.from_iteration, feedback.iteration, feedback.recorded) == (3, 4, True)
    found = memory.get_feedback("latest", MIXER)
    content = found.feedback_content
    assert (found.iteration_requested, found.iteration, found.version) == ("latest", 3, feedback.version)
    assert {name: list(comments) for name, comments in content.agent_specific.items()} == {
        MIXER: ["stir longer", "less lead"]
    }
    assert list(content.priority_improvements) == ["try antimony"]
    assert "porous castings" in str(content.success_patterns)


def test_feedback_that_changes_gets_another_version(memory: ContextMemory) -> None:
    """Scenario 2: a corrected review is what agents are given from then on (S5)."""
    memory.start_iteration(1)
    foundry.review(memory, 1, [], mixer=["stir longer"])
    first = memory.feedback_for(MIXER)
    foundry.review(memory, 1, [], mixer=["do not stir"])
    second = memory.feedback_for(MIXER)
    assert first.version != second.version
    assert "do not stir" in second.text


def test_an_agent_is_analysed_over_ten_iterations(memory: ContextMemory) -> None:
    """Scenario 3: improvement, diversity and strategies are named, and the weight follows them, with reasons (S11)."""
    foundry.season(memory)
    better, worse = memory.analyze_agent(MIXER), memory.analyze_agent(FURNACE)
    assert better.iterations == tuple(range(1, 11))
    assert better.improvement_rate == pytest.approx(0.035)
    assert better.diversity == pytest.approx(0.7)
    assert [one.name for one in better.strategies] == ["antimony", "plain tin"]
    assert better.suggested_weight > better.current_weight == 1.0
    assert worse.suggested_weight < worse.current_weight == 1.0
    assert better.reasons
    assert memory.analyze_agent(MIXER, iterations=4).iterations == (7, 8, 9, 10)


def test_patterns_are_followed_through_the_iterations(memory: ContextMemory) -> None:
    """Scenario 2: the meta-reviewer reads which patterns come and which go (S10)."""
    foundry.season(memory, 8)
    found = {one.name: (one.first_seen, one.last_seen, one.total) for one in memory.trends().patterns}
    assert found == {"porous castings": (1, 4, 4), "cracks": (5, 8, 4)}

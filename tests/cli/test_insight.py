"""``memfs state`` feedback, analyze, trends and aggregates (S5, S10, S11, S12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.workspace import open_workspace

from .conftest import Memfs


@pytest.fixture
def worked(root: Path) -> Path:
    """Two iterations of one agent; the first is reviewed."""
    with open_workspace(root, watch=False, settings={"history.commit": "manual"}) as workspace:
        states = workspace.states
        for number in (1, 2):
            states.iterations.start(number)
            for task in range(3):
                results = {"metadata": {"strategy": "swap", "improvement": 0.1 * number}, "confidence_score": 0.5}
                states.recorder.agent_output({"agent_type": "Scout", "task_id": f"t{task}", "results": results})
            if number == 1:
                critique = {"agent_feedback": {"Scout": "look \u200b wider"}, "common_patterns": ["drift"]}
                states.recorder.meta_review({"iteration_number": 1, "critique": critique})
                states.iterations.close(1)
    return root


def test_feedback_is_printed_for_a_prompt(worked: Path, memfs: Memfs) -> None:
    """The text on standard output, recorded once; nothing in it hides (S5)."""
    ran = memfs("state", "feedback", "scout")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Feedback for Scout from the meta-review of iteration 1")
    assert "| - look \\u{200B} wider" in ran.out
    assert (worked / "ContextMemory/iterations/iteration_002/feedback/Scout.json").exists()
    again = memfs("state", "feedback", "Scout", "--json").json
    assert (again["recorded"], again["from_iteration"], again["iteration"]) == (True, 1, 2)
    assert again["text"].strip() == ran.out.strip()


def test_looking_at_feedback_records_nothing(worked: Path, memfs: Memfs) -> None:
    """--no-record is for people (S5)."""
    assert memfs("state", "feedback", "Scout", "--no-record", "--json").json["recorded"] is False
    assert not (worked / "ContextMemory/iterations/iteration_002/feedback").exists()


def test_the_effect_of_feedback_is_shown(worked: Path, memfs: Memfs) -> None:
    """A line for each feedback that an agent was given, with the verdict (S5)."""
    memfs("state", "feedback", "Scout")
    effect = memfs("state", "analyze", "Scout", "--json").json["feedback"][0]
    assert (effect["verdict"], effect["before"], effect["after"]) == ("better", [1], [2])


def test_an_analysis_is_shown_with_its_reasons(worked: Path, memfs: Memfs) -> None:
    """Figures, strategies and the suggested weight (S11)."""
    ran = memfs("state", "analyze", "scout")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Scout  6 outputs\n")
    assert "strategy swap: 0.15 in 6 uses, works" in ran.out
    assert "suggested weight  1 -> " in ran.out
    found = memfs("state", "analyze", "Scout", "--iterations", "1", "--json").json
    assert (found["iterations"], found["outputs"]) == ([2], 3)


def test_an_unknown_agent_is_an_error(worked: Path, memfs: Memfs) -> None:
    """Exit code 1, and the nearest name (S11)."""
    ran = memfs("state", "analyze", "Scuot")
    assert ran.code != 0
    assert "Scout" in ran.err


def test_trends_are_listed(worked: Path, memfs: Memfs) -> None:
    """The weightiest pattern first (S10)."""
    ran = memfs("state", "trends")
    assert ran.out.split()[:3] == ["new", "1", "review"]
    assert "1 pattern in the reviews of 1 iteration" in ran.err
    assert memfs("state", "trends", "--limit", "1", "--json").json["patterns"][0]["name"] == "drift"


def test_an_empty_workspace_has_little_to_say(memfs: Memfs) -> None:
    """Nothing to show is not an error, except for an agent that is not there."""
    assert "no meta-review yet" in memfs("state", "feedback", "Scout").err
    assert memfs("state", "trends").code == 0
    assert memfs("state", "analyze", "Scout").code == 1

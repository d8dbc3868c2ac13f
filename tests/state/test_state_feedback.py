"""Feedback: from the meta-review into an agent's prompt, recorded, and its effect measured (S4, S5)."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import IterationInvalid, QueryInvalid, StorageFull
from memfs.model.state_documents import AgentFeedback
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
RECORD = "ContextMemory/iterations/iteration_002/feedback/Scout.json"


def review(workspace: Workspace, number: int, advice: str = "look wider", **critique: Any) -> None:
    """Store a review of an iteration, which is started where it was not."""
    states = workspace.states
    if number not in [one.number for one in states.iterations.list()]:
        states.iterations.start(number)
    feedback = {"agent_feedback": {"Scout": [advice], "Ranker": "be fair"}, **critique}
    overview = {"next_priorities": ["kinases"]}
    states.recorder.meta_review({"iteration_number": number, "critique": feedback, "research_overview": overview})


def output(workspace: Workspace, agent: str, task: str, confidence: float = 0.5) -> None:
    """Store an output in the present iteration."""
    results = {"primary_output": "text", "confidence_score": confidence}
    workspace.states.recorder.agent_output({"agent_type": agent, "task_id": task, "results": results})


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """A workspace whose iteration 1 is reviewed and closed, and whose iteration 2 is open."""
    made = opened()
    review(made, 1)
    made.states.iterations.close(1)
    made.states.iterations.start(2)
    return made


def scout(workspace: Workspace, **options: Any) -> AgentFeedback:
    """What Scout is reported."""
    return workspace.states.feedback.for_agent("Scout", **options)


def test_a_mistyped_name_is_distinguished_from_one_without_feedback(workspace: Workspace) -> None:
    """A name that is nearly another one gets a remark that names it; a new agent is not (S5)."""
    workspace.states.recorder.meta_review({"iteration_number": 2, "critique": {"agent_feedback": {"Scout": ["look"]}}})
    assert "did you mean 'Scout'?" in workspace.states.feedback.for_agent("Scuot").remarks[-1]
    assert "did you mean" not in workspace.states.feedback.for_agent("Librarian").remarks[-1]


# -- what a review recommends -------------------------------------------------------------------------------------
def test_latest_is_the_newest_iteration_with_a_review(workspace: Workspace) -> None:
    """Open or closed: an open iteration without a review is passed over, one with a review counts (S4)."""
    feedback = workspace.states.feedback
    assert (feedback.get().iteration, feedback.get().iteration_requested) == (1, "latest")
    review(workspace, 2, "look deeper")
    found = feedback.get("latest", "Scout")
    assert found.iteration == 2
    assert found.feedback_content.agent_specific == {"Scout": ("look deeper",)}
    assert found.feedback_content.priority_improvements == ("kinases",)
    assert feedback.get(1).feedback_content.agent_specific["Scout"] == ("look wider",)


def test_an_old_review_is_found_behind_many_iterations_without(opened: Opened) -> None:
    """However long ago the newest review was (S4)."""
    workspace = opened()
    review(workspace, 1)
    workspace.states.iterations.start(400)
    assert workspace.states.feedback.get().iteration == 1
    assert scout(workspace).from_iteration == 1


def test_the_filter_finds_an_agent_written_alike(workspace: Workspace) -> None:
    """An agent may ask by its own name while the review abbreviates it; everybody's part stays (S4)."""
    found = workspace.states.feedback.get(agent_type="scout agent")
    assert list(found.feedback_content.agent_specific) == ["Scout"]
    other = workspace.states.feedback.get(agent_type="Nobody")
    assert other.feedback_content.agent_specific == {}
    assert other.feedback_content.priority_improvements == ("kinases",)


def test_no_review_is_empty_feedback(opened: Opened) -> None:
    """Before the first review there is nothing to say, which is not an error (S4)."""
    workspace = opened()
    found = workspace.states.feedback.get()
    assert (found.iteration, found.version) == (None, "")
    assert scout(workspace) == AgentFeedback(agent="Scout")
    workspace.states.iterations.start(1)
    assert workspace.states.feedback.get(1).version == ""


@pytest.mark.parametrize("iteration", ["newest", True, -1, 1.5, None])
def test_a_wrong_iteration_is_named(workspace: Workspace, iteration: Any) -> None:
    """The error says what would be right (S4)."""
    with pytest.raises((QueryInvalid, IterationInvalid), match=r"iteration"):
        workspace.states.feedback.get(iteration)
    with pytest.raises(IterationInvalid, match=r"there is no iteration 9.*the newest is 2"):
        workspace.states.feedback.get(9)


@pytest.mark.parametrize("agent", ["", "  ", None, 3, "x" * 1001])
def test_an_agent_needs_a_name(workspace: Workspace, agent: Any) -> None:
    """A prompt without an agent is a mistake of the caller's (S5)."""
    with pytest.raises(QueryInvalid, match="name of an agent"):
        workspace.states.feedback.for_agent(agent)


# -- for a prompt -------------------------------------------------------------------------------------------------
def test_an_agent_gets_feedback_in_the_next_iteration(workspace: Workspace) -> None:
    """Its own part, everybody's, and what was given is recorded with its version (S5)."""
    given = scout(workspace)
    assert "| - look wider" in given.text
    assert "be fair" not in given.text
    assert (given.iteration, given.from_iteration, given.recorded, given.path) == (2, 1, True, RECORD)
    assert given.text_sha256 == hashlib.sha256(given.text.encode()).hexdigest()
    stored = json.loads((workspace.root / RECORD).read_text())
    assert stored["version"] == given.version == workspace.states.feedback.get().version
    assert (stored["agent"], stored["iteration"], stored["from_iteration"]) == ("Scout", 2, 1)


def test_it_is_recorded_once_in_an_iteration(workspace: Workspace) -> None:
    """Asking again gives the same text and writes nothing (S5)."""
    first = scout(workspace)
    before = (workspace.root / RECORD).stat().st_mtime_ns
    assert scout(workspace) == first
    assert (workspace.root / RECORD).stat().st_mtime_ns == before


def test_a_changed_review_is_a_new_version(workspace: Workspace) -> None:
    """The record has what the agent was given last, and history what it was given before (S5)."""
    first = scout(workspace)
    review(workspace, 1, "look closer")
    second = scout(workspace)
    assert "look closer" in second.text
    assert second.version != first.version
    stored = json.loads((workspace.root / RECORD).read_text())
    assert stored["version"] == second.version
    assert workspace.states.feedback.versions("Scout", [2]) == {2: second.version}


def test_looking_records_nothing(workspace: Workspace) -> None:
    """A person may look at what an agent would be reported (S5)."""
    given = scout(workspace, record=False)
    assert given.text
    assert not given.recorded
    assert not (workspace.root / RECORD).exists()


def test_a_name_written_alike_is_recorded_under_the_agents_own(workspace: Workspace) -> None:
    """Outputs and feedback of one agent belong together (S5)."""
    output(workspace, "Scout Agent", "t1")
    given = workspace.states.feedback.for_agent("scout")
    assert given.agent == "Scout Agent"
    assert "| - look wider" in given.text


def test_a_name_of_any_kind_is_recorded(workspace: Workspace) -> None:
    """Names are free text and never a path (S5)."""
    given = workspace.states.feedback.for_agent("../../Größe/№1")
    assert given.recorded
    assert json.loads((workspace.root / given.path).read_text())["agent"] == "../../Größe/№1"


def test_a_full_disk_keeps_no_feedback_back(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets its feedback, and a remark says that it could not be recorded (S5)."""

    def full(*_: Any, **__: Any) -> None:
        raise StorageFull("no room", path=RECORD)

    monkeypatch.setattr(workspace.states.files, "write", full)
    given = scout(workspace)
    assert "| - look wider" in given.text
    assert not given.recorded
    assert "could not be recorded" in given.remarks[0]


def test_an_unreadable_review_falls_back_to_the_one_before(workspace: Workspace) -> None:
    """An agent is better given what was said before than nothing, and a remark names the file (S5)."""
    path = workspace.root / "ContextMemory/iterations/iteration_002/meta_review.json"
    path.write_text("{ half")
    given = scout(workspace)
    assert given.from_iteration == 1
    assert any("iteration_002/meta_review.json" in remark for remark in given.remarks)


def test_agents_may_ask_at_once(workspace: Workspace) -> None:
    """Several threads of one agent make one record (S5)."""
    found: list[AgentFeedback] = []
    threads = [threading.Thread(target=lambda: found.append(scout(workspace))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.given for one in found}) == 1
    assert all(one.recorded for one in found)


# -- effect -------------------------------------------------------------------------------------------------------
def test_the_effect_of_feedback_is_measured(opened: Opened) -> None:
    """Confidence before and after each version, with a verdict (S5)."""
    workspace = opened()
    states = workspace.states
    for number, confidence in ((1, 0.4), (2, 0.6), (3, 0.6)):
        states.iterations.start(number)
        scout(workspace)
        for task in range(4):
            output(workspace, "Scout", f"t{task}", confidence + 0.01 * task)
        review(workspace, number, f"advice {number}")
        states.iterations.close(number)
    first, second = states.feedback.effectiveness("Scout", [1, 2, 3])
    assert (first.from_iteration, first.given_in, first.before, first.after) == (1, (2,), (1,), (2,))
    assert (first.verdict, first.n_before, first.n_after) == ("better", 4, 4)
    assert (second.before, second.after, second.verdict) == ((2,), (3,), "no clear change")
    assert states.feedback.effectiveness("Nobody", [1, 2, 3]) == ()
    assert [one.version for one in states.feedback.effectiveness("scout agent", [2])] == [first.version]


def test_a_spoilt_record_is_left_out(workspace: Workspace) -> None:
    """What a person made of a record does no harm to the others (S5)."""
    scout(workspace)
    workspace.states.feedback.for_agent("Ranker")
    (workspace.root / RECORD).write_text('{"agent": "Scout", "iteration": 2, "given": "2026-01-01T00:00:00Z"}')
    feedback = workspace.states.feedback
    assert [len(feedback.effectiveness(agent, [1, 2])) for agent in ("Scout", "Ranker")] == [0, 1]


def test_a_record_survives_in_another_handle(workspace: Workspace, opened: Opened) -> None:
    """Another process sees that the agent has it already (S5)."""
    first = scout(workspace)
    other = opened(Path(workspace.root))
    assert scout(other) == first


def test_what_is_given_while_the_newest_iteration_is_archived_is_reported_as_not_recorded(workspace: Workspace) -> None:
    """The agent gets it all the same; the record comes with the next iteration (S5, S15)."""
    states = workspace.states
    closed = states.iterations.close(2).closed
    assert closed is not None
    states.archiver.archive({1: closed, 2: closed}, 1)
    given = scout(workspace)
    states.iterations.start(3)

    assert "look wider" in given.text
    assert (given.recorded, given.iteration) == (False, 2)
    (remark,) = given.remarks
    assert "2, the newest, is archived" in remark
    assert (scout(workspace).recorded, scout(workspace).remarks) == (True, ())


def test_a_review_that_says_nothing_to_an_agent_gives_no_text(opened: Opened) -> None:
    """No introduction without what it introduces: a remark says why, and nothing counts as given (S5)."""
    workspace = opened()
    workspace.states.recorder.meta_review(
        {"iteration_number": 1, "critique": {"agent_feedback": {"Judge": ["be fair"]}}}
    )
    given = scout(workspace)
    assert (given.text, given.recorded, given.from_iteration) == ("", False, 1)
    assert given.remarks == ("the meta-review of iteration 1 says nothing to Scout",)

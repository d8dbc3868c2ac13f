"""Iterations: opened, closed, summed up, and found again (S12)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memfs import Workspace
from memfs.errors import IterationInvalid, MemfsError
from memfs.model.state_facts import Iteration
from tests.state.rig import NOON, Rig

Opened = Callable[..., Workspace]


@pytest.fixture
def rig(opened: Opened) -> Rig:
    """A new workspace."""
    return Rig(opened())


def output(agent: str, task: str, **results: Any) -> dict[str, Any]:
    """An agent's output."""
    return {"agent_type": agent, "task_id": task, "results": {"primary_output": task, **results}}


# -- opening and closing ------------------------------------------------------------------------------------------
def test_iterations_are_counted_from_one(rig: Rig) -> None:
    """There is no iteration 0: neither is it started, nor does a document go into it (S12)."""
    for act in (
        lambda: rig.iterations.start(0),
        lambda: rig.recorder.agent_output(output("a", "t"), iteration=0),
        lambda: rig.recorder.meta_review({"iteration_number": 0, "critique": {}, "research_overview": {}}),
    ):
        with pytest.raises(IterationInvalid) as caught:
            act()
        assert (caught.value.field, "from 1 to" in str(caught.value)) == ("iteration", True)
    assert rig.workspace.states.reading.latest_iteration() is None


def test_an_iteration_is_a_folder_with_a_header(rig: Rig) -> None:
    """Opening writes ``iteration_001/system_state.json``; opening it again changes nothing (S12)."""
    one = rig.iterations.start(1)
    rig.later(hours=1)

    assert (one.number, one.status, one.opened) == (1, "open", NOON)
    assert rig.read("iteration_001/system_state.json") == {
        "iteration": 1,
        "status": "open",
        "opened": "2026-03-01T12:00:00Z",
    }
    assert rig.iterations.start(1).opened == NOON
    assert rig.iterations.current() == 1


def test_the_first_iteration_writes_the_retention_policy_out(rig: Rig) -> None:
    """``configuration/`` is complete from then on, by what counts anyway; what a person did with it stays (S12)."""
    path = rig.workspace.root / "ContextMemory" / "configuration" / "retention_policy.json"
    unwritten = rig.workspace.states.archiver.policy()
    rig.iterations.start()
    written = json.loads(path.read_text())
    assert (written["active_days"], written["checkpoints"]) == (30, {"keep": 5, "keep_days": 7})
    assert "prune" not in written
    assert rig.workspace.states.archiver.policy() == unwritten
    path.unlink()
    rig.iterations.start()
    assert not path.exists()


def test_a_retention_policy_that_is_there_stays(rig: Rig) -> None:
    """What a person wrote before the first iteration counts (S12, S15)."""
    path = rig.workspace.root / "ContextMemory" / "configuration" / "retention_policy.json"
    path.write_text('{"active_days": 3}')
    rig.iterations.start()
    assert path.read_text() == '{"active_days": 3}'


def test_iterations_are_counted_on_from_the_newest(rig: Rig) -> None:
    """Without a number the one after the newest is started, open or closed; numbers have as many digits as needed."""
    rig.iterations.start(3)

    assert rig.iterations.start().number == 4
    assert rig.iterations.close().number == 4
    assert rig.iterations.current() == 3
    assert rig.iterations.start(1200).number == 1200
    assert rig.names("") == ["iteration_003", "iteration_004", "iteration_1200"]
    assert [(one.number, one.status) for one in rig.iterations.list()] == [(3, "open"), (4, "closed"), (1200, "open")]
    assert rig.iterations.show(3).counts == {"system_state": 1}


def test_what_is_stored_while_none_is_open_opens_the_next(rig: Rig) -> None:
    """The first document starts iteration 1, the first after closing it iteration 2 (S2)."""
    assert rig.iterations.current() == 1
    rig.iterations.close()

    ack = rig.recorder.agent_output(output("critic", "t1"))

    assert ack.path == "ContextMemory/iterations/iteration_002/agent_outputs/critic/t1.json"
    assert rig.iterations.show(2).status == "open"


def test_an_iteration_that_another_handle_started_is_the_current_one(opened: Opened) -> None:
    """A handle that knows of iteration 1 stores in iteration 2 once another has opened that, and when it was closed."""
    one = Rig(opened())
    other = Rig(opened(one.workspace.root))
    assert one.iterations.current() == 1

    other.iterations.start(2)
    assert one.iterations.current() == 2
    other.iterations.close(2)
    assert one.iterations.current() == 1


def test_handles_that_start_the_next_one_at_once_get_one_each(opened: Opened) -> None:
    """Threads with workspaces of their own never share a number they did not ask for."""
    root = opened().root
    rigs = [Rig(opened(root)) for _ in range(4)]
    numbers: list[int] = []

    threads = [threading.Thread(target=lambda rig=rig: numbers.append(rig.iterations.start().number)) for rig in rigs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(numbers) == [1, 2, 3, 4]


def test_a_closed_iteration_is_not_opened_again(rig: Rig) -> None:
    """The error names the next one; what belongs to a closed iteration and comes late is still taken."""
    rig.iterations.start(1)
    rig.iterations.close(1)

    with pytest.raises(IterationInvalid, match=r"iteration 1 is closed.*the next is 2"):
        rig.iterations.start(1)
    assert rig.recorder.agent_output(output("late", "t"), iteration=1).path.startswith(
        "ContextMemory/iterations/iteration_001/"
    )
    assert rig.iterations.close(1).statistics["outputs_by_agent"] == {"late": 1}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda rig: rig.iterations.close(), "no iteration is open"),
        (lambda rig: rig.iterations.close(7), "there is no iteration 7.*iteration start"),
        (lambda rig: rig.iterations.show(7), "there is no iteration 7"),
        (lambda rig: rig.iterations.start(-1), "iteration: -1 is not the number"),
        (lambda rig: rig.iterations.start(True), "True is not the number"),
        (lambda rig: rig.recorder.meta_review({"iteration_number": "x"}), "'x' is not the number"),
    ],
)
def test_an_invalid_iteration_is_a_clear_error(rig: Rig, act: Callable[[Rig], Any], message: str) -> None:
    """Nothing is written, and the hint says what can be done."""
    with pytest.raises(MemfsError, match=message):
        act(rig)
    assert rig.names("") == []


def test_an_archived_iteration_takes_nothing_in(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What belongs to one is refused, and the hint says how to bring it back (S15)."""
    row = Iteration(number=1, status="closed", opened=NOON, archive="2026-03")
    monkeypatch.setattr(rig.workspace.states.reading, "iterations", lambda: [row])

    for act in (rig.iterations.start, rig.iterations.close):
        with pytest.raises(IterationInvalid, match=r"iteration 1 is archived .*memfs admin archive unpack 1"):
            act(1)
    with pytest.raises(IterationInvalid, match="archived"):
        rig.recorder.agent_output(output("late", "t"), iteration=1)
    assert [(one.number, one.archive, one.counts) for one in rig.iterations.list()] == [(1, "2026-03", {})]


# -- statistics ---------------------------------------------------------------------------------------------------
def test_closing_sums_up_what_agents_did(rig: Rig) -> None:
    """Outputs by agent, hypotheses by state, the tournament, the time (S2)."""
    rig.iterations.start(1)
    rig.recorder.agent_output(output("Evolution Agent", "t1", confidence_score=0.5))
    rig.recorder.agent_output(output("Evolution Agent", "t1", confidence_score=0.7))
    rig.recorder.agent_output(output("critic", "t2", confidence_score=0.9))
    for name, state in (("a", "new"), ("b", "new"), ("c", "retired")):
        rig.recorder.hypothesis({"id": name, "state": state})
    rig.recorder.tournament_result({"participants": ["a", "b"], "winner": "a"})
    rig.later(minutes=10)

    closed = rig.iterations.close()

    figures = closed.statistics
    assert (closed.status, closed.closed, figures["duration_seconds"]) == ("closed", NOON + timedelta(minutes=10), 600)
    assert (figures["outputs"], figures["outputs_by_agent"]) == (3, {"Evolution Agent": 2, "critic": 1})
    assert figures["hypotheses"] == {"total": 3, "by_state": {"new": 2, "retired": 1}}
    assert figures["tournament"] == {"results": 1, "participants": 2}
    assert rig.fired[-1] == ("iteration_closed", {"iteration": 1, "statistics": figures})
    assert rig.read("iteration_001/system_state.json")["statistics"] == figures
    assert rig.iterations.show(1) == closed


def test_closing_an_empty_iteration_sums_up_nothing(rig: Rig) -> None:
    """Closing twice writes once."""
    rig.iterations.start(1)
    first = rig.iterations.close(1)
    header = rig.workspace.root / "ContextMemory/iterations/iteration_001/system_state.json"
    written = header.stat().st_ino
    rig.later(days=1)

    assert rig.iterations.close(1) == first
    assert first.statistics["outputs_by_agent"] == {}
    assert header.stat().st_ino == written


def test_a_header_edited_by_hand_is_followed(rig: Rig) -> None:
    """Closing an iteration in its file closes it; what is not valid is not obeyed (S18)."""
    rig.iterations.start(1)
    path = rig.workspace.root / "ContextMemory/iterations/iteration_001/system_state.json"
    path.write_text(path.read_text().replace('"open"', '"closed"'))

    assert rig.iterations.current() == 2
    path.write_text("{")
    assert rig.iterations.show(1).number == 1
    assert [one.number for one in rig.iterations.list()] == [1, 2]


def test_a_list_has_the_counts_of_every_iteration_from_one_question(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``show`` says of each one's documents, however many there are (S14)."""
    rig.iterations.start(1)
    rig.recorder.agent_output(output("critic", "t", confidence_score=0.9))
    rig.recorder.hypothesis({"id": "h"})
    rig.iterations.start(2)
    shown = [rig.iterations.show(number).counts for number in (1, 2)]
    monkeypatch.setattr(rig.workspace.states.index, "counts", None)

    assert [one.counts for one in rig.iterations.list()] == shown
    assert shown == [{"agent_output": 1, "hypothesis": 1, "system_state": 1}, {"system_state": 1}]


def test_a_list_counts_what_came_in_by_hand(rig: Rig) -> None:
    """Files that a checkout or a person brought are counted by the very first list (K5)."""
    rig.iterations.start(1)
    rig.recorder.agent_output(output("critic", "t"))
    assert rig.iterations.list()[0].counts["agent_output"] == 1
    folder = rig.workspace.root / "ContextMemory/iterations/iteration_001/agent_outputs/critic"
    (folder / "u.json").write_text((folder / "t.json").read_text().replace('"t"', '"u"'))

    assert rig.iterations.list()[0].counts["agent_output"] == 2

"""The three aggregates follow from the documents alone, bit by bit as well as at once (S12)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import StorageFull
from memfs.fs import io
from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path
from memfs.state import aggregates as aggregates_module
from memfs.state.aggregates import pattern_trends
from memfs.state.parts import States
from memfs.workspace import Workspace, open_workspace

Opened = Callable[..., Workspace]


def work(states: States, number: int, review: bool = True, outputs: int = 2, close: bool = True) -> None:
    """One iteration of two agents, with a hypothesis that goes on from the one before."""
    states.iterations.start(number)
    for agent in ("Scout", "Größe/Ranker"):
        for task in range(outputs):
            results = {
                "primary_output": {"text": f"{agent} found {task} things", "improvement": 0.1 * number},
                "metadata": {"strategy": ("swap", "merge")[task % 2], "success": task % 2 == 0},
                "confidence_score": 0.5 + 0.01 * number,
                "resource_consumed": 1.0 + task,
            }
            states.recorder.agent_output({"agent_type": agent, "task_id": f"t{task}", "results": results})
    hypothesis = {"id": f"h{number}", "agent": "Scout", "state": "active", "rating": 1200.0 + 5 * number}
    states.recorder.hypothesis(hypothesis, parents=[f"h{number - 1}"] if number > 1 else [])
    if review:
        critique = {"common_patterns": ["drift", {"name": "echo", "count": number}]}
        states.recorder.meta_review({"iteration_number": number, "critique": critique})
    if close:
        states.iterations.close(number)


def rebuilt(states: States) -> list[str]:
    """Bring the aggregates up to date after a look at every file; the paths whose bytes changed."""
    states.reading.looking.look(everywhere=True)
    return states.aggregates.update()


def on_disk(workspace: Workspace) -> dict[str, bytes]:
    """The bytes of the aggregates."""
    folder = workspace.root / "ContextMemory" / "aggregates"
    return {path.stem: path.read_bytes() for path in folder.glob("*.json")}


def agents(workspace: Workspace, number: int) -> Any:
    """What the file says of the agents in an iteration."""
    values = workspace.states.files.read(aggregate_path("effectiveness_metrics")).values
    return values["iterations"][str(number)]["agents"]


def test_closing_an_iteration_sums_it_up(opened: Opened) -> None:
    """After a close all three files are there, with the agents by their names (S12)."""
    workspace = opened()
    for number in (1, 2):
        work(workspace.states, number)
    assert set(on_disk(workspace)) == set(AGGREGATE_NAMES)
    scout = agents(workspace, 2)["Scout"]
    assert scout["outputs"] == 2
    assert scout["confidence"] == [2, 0.52, 0.0]
    assert scout["cost"] == [2, 1.5, 0.5]
    assert scout["gains"] == [1, 5.0, 0.0]
    assert scout["better"] == 1
    assert scout["metrics"] == {"improvement": [2, 0.2, 0.0]}
    assert scout["strategies"]["swap"]["successes"] == [1, 1]
    assert set(agents(workspace, 2)) == {"Scout", "Größe/Ranker"}


def test_patterns_and_progress_are_summed_up(opened: Opened) -> None:
    """Patterns by iteration, and how far the research is, with the best hypothesis (S10, S12)."""
    workspace = opened()
    for number in (1, 2, 3):
        work(workspace.states, number)
    history = workspace.states.files.read(aggregate_path("pattern_history")).values
    assert [history["iterations"][n]["patterns"]["echo"]["count"] for n in "123"] == [1, 2, 3]
    assert history["iterations"]["3"]["patterns"]["drift"] == {"name": "drift", "count": 1}
    progress = workspace.states.files.read(aggregate_path("research_progress")).values
    assert progress["iterations"]["3"]["best"] == {"id": "h3", "rating": 1215.0}
    assert progress["iterations"]["3"]["status"] == "closed"
    assert progress["iterations"]["2"]["by_state"] == {"active": 1}


def test_bringing_up_to_date_gives_the_bytes_of_a_rebuild(opened: Opened) -> None:
    """Whatever came in between, both give the same file (S12)."""
    workspace = opened()
    states = workspace.states
    for number in (1, 2, 3):
        work(states, number)
    work(states, 4, review=False, close=False)
    states.aggregates.update()
    grown = on_disk(workspace)
    assert rebuilt(states) == []
    assert on_disk(workspace) == grown
    for path in (workspace.root / "ContextMemory/aggregates").glob("*.json"):
        path.unlink()
    assert sorted(rebuilt(states)) == sorted(map(aggregate_path, AGGREGATE_NAMES))
    assert on_disk(workspace) == grown


def test_a_review_that_changes_is_taken_up(opened: Opened) -> None:
    """Storing a review of a closed iteration brings the pattern history up to date, and nothing it does not touch."""
    workspace = opened()
    work(workspace.states, 1)
    before = on_disk(workspace)
    critique = {"common_patterns": ["another"]}
    workspace.states.recorder.meta_review({"iteration_number": 1, "critique": critique})
    after = on_disk(workspace)
    history = workspace.states.files.read(aggregate_path("pattern_history")).values
    assert list(history["iterations"]["1"]["patterns"]) == ["another"]
    assert after["effectiveness_metrics"] == before["effectiveness_metrics"]
    assert rebuilt(workspace.states) == []


def test_a_change_by_hand_of_an_old_document_is_found(opened: Opened) -> None:
    """Somebody edits an output of a closed iteration: the next update brings it into the aggregates (S12)."""
    workspace = opened()
    for number in (1, 2):
        work(workspace.states, number)
    path = next((workspace.root / "ContextMemory/iterations/iteration_001/agent_outputs/Scout").glob("t0.json"))
    values = json.loads(path.read_text())
    values["results"]["confidence_score"] = 0.99
    path.write_text(json.dumps(values))
    workspace.states.reading.looking.look(everywhere=True)
    assert aggregate_path("effectiveness_metrics") in workspace.states.aggregates.update()
    assert agents(workspace, 1)["Scout"]["confidence"][1] == 0.75
    assert rebuilt(workspace.states) == []


@pytest.mark.parametrize(
    "damage",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"version": 2, "iterations": {"1": {"agents": 3}}}',
        b'{"version": 99, "iterations": 3}',
    ],
)
def test_a_file_that_somebody_spoilt_is_made_again(opened: Opened, damage: bytes) -> None:
    """The aggregates are derived: what was written over them does no harm (S12)."""
    workspace = opened()
    work(workspace.states, 1)
    good = on_disk(workspace)
    for name in AGGREGATE_NAMES:
        (workspace.root / aggregate_path(name)).write_bytes(damage)
    workspace.states.aggregates.update()
    assert on_disk(workspace) == good
    assert workspace.states.analysis.analyze("Scout").outputs == 2


def test_a_document_that_cannot_be_read_is_counted_and_looked_at_again(opened: Opened) -> None:
    """One damaged output leaves the others; once it is fixed, the entry is made again (S12)."""
    workspace = opened()
    work(workspace.states, 1)
    good = on_disk(workspace)
    path = workspace.root / "ContextMemory/iterations/iteration_001/agent_outputs/Scout/t1.json"
    data = path.read_bytes()
    path.unlink()
    rebuilt(workspace.states)
    assert agents(workspace, 1)["Scout"]["outputs"] == 1
    path.write_bytes(data)
    rebuilt(workspace.states)
    assert on_disk(workspace) == good


def test_nothing_is_written_where_there_is_nothing(opened: Opened) -> None:
    """A workspace without iterations gets no aggregates (S12)."""
    workspace = opened()
    assert rebuilt(workspace.states) == []
    assert on_disk(workspace) == {}


def test_a_full_disk_keeps_no_iteration_open(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Aggregates that cannot be written are noted and made later: the close itself is done (S12)."""
    workspace = opened()
    work(workspace.states, 1, close=False)
    real = workspace.states.files.write

    def full(changes: Any, message: str, **more: Any) -> Any:
        if any("/aggregates/" in change.path for change in changes):
            raise StorageFull("no room", path=changes[0].path)
        return real(changes, message, **more)

    monkeypatch.setattr(workspace.states.files, "write", full)
    assert workspace.states.iterations.close(1).status == "closed"
    monkeypatch.undo()
    work(workspace.states, 2)


def test_a_second_handle_sees_what_the_first_summed_up(opened: Opened) -> None:
    """Two processes may close iterations by turns (S12)."""
    one = opened()
    other = opened(one.root)
    for number in range(1, 5):
        work((one if number % 2 else other).states, number)
    assert rebuilt(one.states) == []


def test_the_newest_iterations_are_listed_one_by_one(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stays small however many iterations there are, and growing it still equals making it again (S12)."""
    monkeypatch.setattr(aggregates_module, "ROOM", 2_000)
    workspace = opened()
    for number in range(1, 7):
        work(workspace.states, number, outputs=1 + number % 2)
    values = workspace.states.files.read(aggregate_path("effectiveness_metrics")).values
    assert 0 < len(values["iterations"]) < 6
    assert max(map(int, values["iterations"])) == 6
    grown = on_disk(workspace)
    assert rebuilt(workspace.states) == []
    (workspace.root / "ContextMemory/iterations/iteration_006/agent_outputs/Scout/t0.json").unlink()
    rebuilt(workspace.states)
    assert on_disk(workspace)["effectiveness_metrics"] != grown["effectiveness_metrics"]
    assert [len(analysis.points) for analysis in [workspace.states.analysis.analyze("Scout", 6)]] == [6]


def test_an_entry_whose_documents_change_while_it_is_made_is_not_kept(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was summed up from older documents is worked out again (S12)."""
    workspace = opened()
    states = workspace.states
    work(states, 1, close=False)
    find = states.index.find

    def overtaken(question: Any) -> Any:
        rows = find(question)
        monkeypatch.undo()
        states.recorder.agent_output({"agent_type": "Scout", "task_id": "late", "results": {}}, iteration=1)
        return rows

    monkeypatch.setattr(states.index, "find", overtaken)
    assert states.aggregates.agents([1])[1]["Scout"]["outputs"] == 2
    assert states.aggregates.agents([1])[1]["Scout"]["outputs"] == 3


def test_hand_made_trees_without_a_header_are_summed_up(opened: Opened) -> None:
    """Files that came by copying count like any (S12)."""
    workspace = opened()
    folder = workspace.root / "ContextMemory/iterations/iteration_007/agent_outputs/Lone"
    folder.mkdir(parents=True)
    output = {"agent_type": "Lone", "task_id": "t", "timestamp": "2026-01-01T00:00:00Z", "results": {}}
    Path(folder / "t.json").write_text(json.dumps(output))
    workspace.states.aggregates.update()
    assert agents(workspace, 7) == {"Lone": {"outputs": 1}}


def test_archived_iterations_count_the_same(opened: Opened) -> None:
    """Whether an iteration is in the tree or in an archive, the aggregates have the same bytes (S12, S15)."""
    workspace = opened()
    for number in (1, 2, 3):
        work(workspace.states, number)
    workspace.store.flush()
    before, analysis = on_disk(workspace), workspace.states.analysis.analyze("Scout")
    archiver = workspace.states.archiver
    archiver.archive({number: archiver.closed()[number] for number in (1, 2)}, 3)
    assert not (workspace.root / "ContextMemory/iterations/iteration_001").exists()
    assert rebuilt(workspace.states) == []
    for path in (workspace.root / "ContextMemory/aggregates").glob("*.json"):
        path.unlink()
    rebuilt(workspace.states)
    assert on_disk(workspace) == before
    assert workspace.states.analysis.analyze("Scout") == analysis
    assert pattern_trends(workspace.states.reading).iterations == (1, 2, 3)


@pytest.mark.faults
def test_21_a_kill_while_summing_up_leaves_aggregates_that_can_be_brought_up_to_date(
    opened: Opened, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """Killed at any disk operation of a close, the next update gives what a rebuild gives (S12, row 21)."""
    workspace = opened()
    work(workspace.states, 1)
    root = workspace.root
    workspace.close()
    kills = scale(3, 60)
    for kill in range(kills):
        killed_while_working(root, kill + 2, 3 + 17 * kill)
        with open_workspace(
            root, watch=False, settings={"index.engine": "memory", "history.commit": "manual"}
        ) as again:
            again.states.aggregates.update()
            updated = on_disk(again)
            assert rebuilt(again.states) == []
            assert on_disk(again) == updated
    figures("kill -9 while summing up an iteration", points=kills, lost=0)


def killed_while_working(root: Path, number: int, operation: int) -> None:
    """Work in a process that is killed right before that disk operation of its close."""
    child = os.fork()
    if child == 0:
        left = [operation]

        def reap(_name: str, _place: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            settings = {"index.engine": "memory", "history.commit": "manual"}
            with open_workspace(root, watch=False, settings=settings) as workspace:
                work(workspace.states, number, close=False)
                io.set_hook(reap)
                workspace.states.iterations.close(number)
                os.kill(os.getpid(), signal.SIGKILL)  # fewer operations than that
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_a_rating_that_changed_is_reported_in_the_iterations_of_its_children(opened: Opened) -> None:
    """A gain is judged by the parents' ratings, in whichever iteration they are (S12)."""
    workspace = opened()
    states = workspace.states
    for number in (1, 2, 3):
        work(states, number)
    states.recorder.hypothesis({"id": "h2", "rating": 1500.0}, iteration=2)
    states.recorder.hypothesis({"id": "odd", "rating": 1, "parents": ["h1", "h\u00e4", "h3"]}, iteration=3)
    before = json.loads(on_disk(workspace)["effectiveness_metrics"])["iterations"]
    states.aggregates.update()
    after = json.loads(on_disk(workspace)["effectiveness_metrics"])["iterations"]
    assert [number for number in after if after[number] != before[number]] == ["2", "3"]
    assert rebuilt(states) == []

"""Past states that are like a given one are found, and hypotheses followed both ways (S10, S13)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from benchmarks import state_corpus as corpus
from memfs.errors import CorruptItem, QueryInvalid
from memfs.model import state_paths as paths
from memfs.model.state_facts import StateRow
from memfs.state import retrieval
from memfs.state.aggregates import hypothesis_history
from memfs.state.parts import States
from memfs.state.reader import DocumentChange
from memfs.state.retrieval import find_similar_states, likeness
from memfs.workspace import Workspace
from tests.state.rig import NOON, Rig

Opened = Callable[..., Workspace]


def updates(states: States, *iterations: int) -> None:
    """Store one state update for each of these iterations."""
    changes = [
        DocumentChange(paths.update_path(number, corpus.opening(number)), corpus.update(number))
        for number in iterations
    ]
    states.files.write(changes, "Updates")


def hypothesis(states: States, iteration: int, name: str, *parents: str, **more: Any) -> None:
    """Store a hypothesis."""
    values = {"id": name, "parents": list(parents), **more}
    states.files.write([DocumentChange(paths.hypothesis_path(iteration, name), values)], "Hypothesis")


# -- similar states -----------------------------------------------------------------------------------------------
def test_the_nearest_states_come_first_and_a_stored_one_is_not_its_own_like(opened: Opened) -> None:
    """States are ranked by likeness from 0 to 1; the update that was given is left out (S13)."""
    states = opened().states
    updates(states, *range(1, 31))
    found = find_similar_states(states.reading, corpus.update(12), limit=3)
    assert found[0].iteration == 14  # the pending reviews are nearer than those of 11 and 13
    assert 12 not in {one.iteration for one in found}
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert 0 < found[0].score < 1
    assert found[0].state["system_statistics"]["total_hypotheses"] == 5 * (found[0].iteration or 0)


def test_any_figures_may_be_compared(opened: Opened) -> None:
    """A plain mapping of figures is enough (S13)."""
    states = opened().states
    updates(states, *range(1, 31))
    assert find_similar_states(states.reading, {"total_hypotheses": 100})[0].iteration == 20
    assert find_similar_states(states.reading, {"total_hypotheses": 100}, limit=0) == []


def test_of_very_many_states_the_like_are_found_without_comparing_all(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where few are compared, the likest is found all the same (S13)."""
    monkeypatch.setattr(retrieval, "_COMPARED", 4)
    monkeypatch.setattr(retrieval, "_NEAREST", 3)
    states = opened().states
    updates(states, *range(1, 61))
    wanted = {**corpus.update(40), "timestamp": "2100-03-01T00:00:00Z"}
    assert find_similar_states(states.reading, wanted, 1)[0].iteration == 40


def test_states_with_one_figure_are_distinguished_by_their_time_and_the_others(opened: Opened) -> None:
    """A figure that hundreds of states share brings up the newest of them (S13)."""
    states = opened().states
    changes = []
    for number in range(1, 201):
        values: dict[str, Any] = {"update_type": "periodic", "system_statistics": {"pending_reviews": 4}}
        moment = corpus.opening(number)
        changes.append(DocumentChange(paths.update_path(1, moment), {"timestamp": moment.isoformat(), **values}))
    states.files.write(changes, "Updates")
    newest = find_similar_states(states.reading, {"pending_reviews": 4}, 2)
    assert [one.timestamp for one in newest] == [corpus.opening(200), corpus.opening(199)]
    near = find_similar_states(states.reading, {"pending_reviews": 3}, 2)
    assert [one.timestamp for one in near] == [corpus.opening(200), corpus.opening(199)]


def test_a_changed_state_is_compared_as_it_is_now(opened: Opened) -> None:
    """What a person changed in a state's file counts in the answer that hands it out."""
    workspace = opened()
    updates(workspace.states, 1, 2, 3)
    path = paths.update_path(3, corpus.opening(3))
    place = workspace.root / path
    place.write_text(place.read_text().replace('"total_hypotheses": 15', '"total_hypotheses": 99'))
    found = find_similar_states(workspace.states.reading, {"total_hypotheses": 15})
    assert found[0].iteration == 2
    assert found[0].score == pytest.approx(2 / 3, abs=1e-6)


def test_a_state_that_cannot_be_read_keeps_no_other_from_being_found(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The likest state is on a damaged part of the disk: the next likest is the answer (S13, S18)."""
    states = opened().states
    updates(states, 1, 2, 3)
    loaded = states.reading.read

    def damaged(row: StateRow) -> Any:
        if row.facts.iteration == 3:
            raise CorruptItem("bytes changed", path=row.path)
        return loaded(row)

    monkeypatch.setattr(states.reading, "read", damaged)
    found = find_similar_states(states.reading, {"total_hypotheses": 15})
    assert [one.iteration for one in found] == [2, 1]


@pytest.mark.parametrize("state", [{}, {"orchestration_state": {"strategic_focus": "join"}}, "text", None])
def test_a_state_with_nothing_to_compare_is_refused(opened: Opened, state: Any) -> None:
    """What has no figure is like nothing: the error says what to give."""
    with pytest.raises(QueryInvalid) as caught:
        find_similar_states(opened().states.reading, state)
    assert caught.value.field == "state"


def test_likeness_is_a_share() -> None:
    """A state is wholly like itself; figures count by their own size."""
    one, other = ({"a": 10.0, "b": figure} for figure in (1.0, 2.0))
    figures = [{("", name): value for name, value in state.items()} for state in (one, other)]
    assert likeness(figures[0], figures[0]) == 1.0
    assert likeness(figures[0], figures[1]) == likeness(figures[1], figures[0]) == 0.75


# -- evolution ----------------------------------------------------------------------------------------------------
def test_ancestors_and_descendants_are_followed_over_iterations(opened: Opened) -> None:
    """A hypothesis knows where it came from and what came of it, nearest first, and by which way (S10)."""
    states = opened().states
    hypothesis(states, 1, "root", agent="Scout", rating=1200)
    hypothesis(states, 1, "aside")
    hypothesis(states, 2, "left", "root", state="retired")
    hypothesis(states, 2, "right", "root", "aside")
    hypothesis(states, 3, "joined", "left", "right", rating=1300, state="active")
    history = hypothesis_history(states.reading, "joined")
    assert [(one.id, one.steps) for one in history.ancestors] == [("left", 1), ("right", 1), ("aside", 2), ("root", 2)]
    assert history.ancestors[3].via == ("left", "right")
    assert (history.ancestors[3].agent, history.ancestors[3].rating, history.ancestors[3].iterations) == (
        "Scout",
        1200.0,
        (1,),
    )
    assert history.descendants == ()
    down = hypothesis_history(states.reading, "root").descendants
    assert [(one.id, one.steps, one.state) for one in down] == [
        ("left", 1, "retired"),
        ("right", 1, ""),
        ("joined", 2, "active"),
    ]


def test_versions_of_a_hypothesis_are_reported_in_order(opened: Opened) -> None:
    """What is in several iterations is one hypothesis with several versions, oldest first (S10)."""
    states = opened().states
    for iteration, rating in ((2, 1210), (1, 1200), (11, 1250)):
        hypothesis(states, iteration, "Idea/7", rating=rating, note="free")
    history = hypothesis_history(states.reading, "Idea/7")
    assert [(one.iteration, one.rating) for one in history.versions] == [(1, 1200.0), (2, 1210.0), (11, 1250.0)]
    assert history.versions[0].document["note"] == "free"


def test_every_version_within_an_iteration_stays(opened: Opened) -> None:
    """A hypothesis that changes several times within an iteration has each version in its history, oldest first, also
    where two have one time, a parent was taken back, and the iteration was archived (S10).
    """
    rig = Rig(opened())
    states = ("generated", "reviewed", "active", "rejected")
    for turn, state in enumerate(states):
        parents = {"parents": None if turn else ["root"]}
        rig.recorder.hypothesis({"id": "Idea/7", "state": state, "rating": 1200 + turn, **parents})
        rig.later(minutes=turn % 2)
    rig.recorder.hypothesis({"id": "Idea/7", "state": "rejected"})
    rig.iterations.close(1)
    rig.iterations.start(2)
    rig.recorder.hypothesis({"id": "Idea/7", "state": "active"})
    reading = rig.workspace.states.reading
    history = hypothesis_history(reading, "Idea/7")
    assert [(one.iteration, one.state) for one in history.versions] == [
        *((1, state) for state in states),
        (2, "active"),
    ]
    assert [one.document["rating"] for one in history.versions] == [1200, 1201, 1202, 1203, 1203]
    assert [one.id for one in history.ancestors] == ["root"]
    (child,) = hypothesis_history(reading, "root").descendants
    assert (child.iterations, child.state) == ((1, 2), "active")
    rig.workspace.store.flush()
    rig.workspace.states.archiver.archive({1: rig.now}, level=3)
    assert hypothesis_history(reading, "Idea/7").to_dict()["versions"] == [one.to_dict() for one in history.versions]


def test_a_moment_that_is_over_has_the_hypothesis_as_it_was(opened: Opened) -> None:
    """What was asked for until a time is as it was, whatever changed within its iteration since (S3, S10)."""
    rig = Rig(opened())
    for state in ("new", "active", "rejected"):
        rig.recorder.hypothesis({"id": "h", "state": state})
        rig.later(hours=1)
    retrieve = rig.workspace.states.retrieval.retrieve
    then = retrieve("partial", end=NOON + timedelta(minutes=90)).content.hypothesis_data
    assert [one["state"] for one in then] == ["active"]
    assert retrieve("summary", end=NOON).content.system_state["hypotheses_by_state"] == {"new": 1}
    every = retrieve("full", iterations=[1]).content.hypothesis_data
    assert [one["state"] for one in every] == ["new", "active", "rejected"]
    assert [one["state"] for one in retrieve("full").content.hypothesis_data] == ["rejected"]


def test_changed_hypotheses_share_a_commit(opened: Opened) -> None:
    """Keeping the other value costs no commit: what many writers change at once is committed together (S10)."""
    workspace = opened()
    rig = Rig(workspace)
    for state in ("new", "active"):
        for number in range(5):
            rig.recorder.hypothesis({"id": f"h{number}", "state": state})
        rig.later(hours=1)
    assert len(workspace.store.flush().commits) == 3  # the iteration's start, what was new, what changed


def test_a_circle_of_parents_ends(opened: Opened) -> None:
    """Hypotheses that name each other as parents, as a person may write, are each met once."""
    states = opened().states
    hypothesis(states, 1, "a", "b")
    hypothesis(states, 1, "b", "c", "b")
    hypothesis(states, 1, "c", "a")
    history = hypothesis_history(states.reading, "a")
    assert [one.id for one in history.ancestors] == ["b", "c"]
    assert [one.id for one in history.descendants] == ["c", "b"]


def test_a_parent_that_is_not_stored_is_named_as_such(opened: Opened) -> None:
    """A name that is only among parents is an ancestor nobody knows; its descendants are found."""
    states = opened().states
    hypothesis(states, 1, "child", "lost")
    (ancestor,) = hypothesis_history(states.reading, "child").ancestors
    assert (ancestor.id, ancestor.known) == ("lost", False)
    lost = hypothesis_history(states.reading, "lost")
    assert (lost.versions, [one.id for one in lost.descendants]) == ((), ["child"])


def test_a_name_must_be_given(opened: Opened) -> None:
    """Without an id there is nothing to follow."""
    with pytest.raises(QueryInvalid):
        hypothesis_history(opened().states.reading, "")

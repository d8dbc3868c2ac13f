"""The system's state comes back whole, in part or summed up, as it is or was (S3, S13, S14)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks import state_corpus as corpus
from memfs.errors import QueryInvalid
from memfs.fs.executor import Deadline
from memfs.model import state_paths as paths
from memfs.model.state_documents import RetrievedState
from memfs.state import retrieval
from memfs.state import retrieval as answering
from memfs.state.parts import States
from memfs.state.reader import DocumentChange
from memfs.state.retrieval import wanted_of
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """A system after two iterations, in the middle of its third."""
    made = opened()
    for number in (1, 2, 3):
        put(made.states, corpus.iteration_documents(number, closed=number < 3))
    return made


def put(states: States, documents: corpus.Documents) -> None:
    """Store documents as one batch."""
    states.files.write([DocumentChange(path, values) for path, values in documents.items()], "Store")


def ids(found: RetrievedState) -> list[str]:
    """The hypotheses in an answer."""
    return [one["id"] for one in found.content.hypothesis_data]


def age(place: Path) -> None:
    """Overwrite a file in place with another content of the same length."""
    place.write_text(place.read_text().replace('"active"', '"ACTIVE"'))


# -- what is in an answer -----------------------------------------------------------------------------------------
def test_the_present_is_the_newest_iteration_and_the_last_state_of_everybody(workspace: Workspace) -> None:
    """Without a range, ``full`` is how things are now: the last update, and everybody's last state (S3)."""
    put(workspace.states, {paths.output_path(1, "Once", "t"): {**corpus.output(1, "Once"), "task_id": "t"}})
    found = workspace.states.retrieval.retrieve("full")
    assert (found.request_type, found.partial, found.missing) == ("full", False, ())
    system = found.content.system_state
    assert (system["iteration"], system["status"]) == (3, "open")
    assert system["system_statistics"]["total_hypotheses"] == 15
    assert system["orchestration_state"]["strategic_focus"] == "prepare the report"
    assert [one["timestamp"] for one in system["updates"]] == [corpus.update(3, turn)["timestamp"] for turn in range(3)]
    assert set(found.content.agent_states) == {*corpus.AGENTS, "Once"}
    judge = found.content.agent_states["Judge"]
    assert judge["internal_state"] == {"iteration": 3, "task": 1}
    assert judge["last_output"] == corpus.output(3, "Judge", 1, 3)
    assert [one["task_id"] for one in judge["outputs"]] == ["task/3-0", "task/3-1"]
    assert found.content.agent_states["Once"]["last_output"]["task_id"] == "t"
    assert len(ids(found)) == 15
    results = found.content.tournament_results
    assert results["count"] == len(results["results"]) == 3
    assert results["standings"]["H 3-1"] == {"matches": 1, "wins": 1, "rating": 1218}
    assert [one["iteration_number"] for one in found.content.feedback_history] == [1, 2]


def test_a_range_reaches_over_iterations_and_has_all_of_it(workspace: Workspace) -> None:
    """``full`` over a range has every document with a time in it, both ends included, and says what it covers (S3)."""
    start, end = corpus.opening(1) + timedelta(minutes=3), corpus.opening(2) + timedelta(minutes=2)
    found = workspace.states.retrieval.retrieve("full", start=start.isoformat(), end=end)
    assert found.timestamp_range == (start, end)
    assert [one["timestamp"] for one in found.content.system_state["updates"]] == [
        corpus.update(1, 2)["timestamp"],
        corpus.update(2, 0)["timestamp"],
        corpus.update(2, 1)["timestamp"],
    ]
    assert len(found.content.agent_states["Scout"]["outputs"]) == 2
    assert ids(found) == [f"H 1-{place}" for place in range(5)]
    assert [one["iteration_number"] for one in found.content.feedback_history] == [1]


def test_iterations_are_chosen_by_number(workspace: Workspace) -> None:
    """``iterations`` gives exactly these, and names those that do not exist (S3)."""
    found = workspace.states.retrieval.retrieve("full", iterations=[2, 9])
    assert ids(found) == [f"H 2-{place}" for place in range(5)]
    assert found.content.agent_states["Judge"]["internal_state"]["iteration"] == 2
    assert found.content.system_state["iterations"][0]["iteration"] == 2
    assert found.timestamp_range == (corpus.opening(2), corpus.opening(2) + timedelta(minutes=58))
    assert (found.partial, found.missing) == (True, ("there is no iteration 9",))


def test_partial_has_what_is_named_and_nothing_else(workspace: Workspace) -> None:
    """``partial`` answers for the named agents, hypotheses, components and figures only (S3)."""
    retrieve = workspace.states.retrieval.retrieve
    found = retrieve("partial", agents=["Critic/2"])
    assert set(found.content.agent_states) == {"Critic/2"}
    assert "outputs" not in found.content.agent_states["Critic/2"]
    assert (found.content.system_state, ids(found), found.content.feedback_history) == ({}, [], ())
    found = retrieve("partial", hypotheses=["H 1-2", "H 1-1"])
    assert ids(found) == ["H 1-1", "H 1-2"]
    assert [one["id"] for one in found.content.tournament_results["results"]] == ["M 1"]
    found = retrieve("partial", components=["system"])
    assert found.content.system_state["system_statistics"]["total_hypotheses"] == 15
    assert "updates" not in found.content.system_state
    assert found.content.agent_states == {}
    found = retrieve("partial", components=["feedback", "tournament"])
    assert len(found.content.feedback_history) == 2
    assert found.content.tournament_results["count"] == 3


def test_a_component_is_an_agent_or_a_subject_of_a_state_update(workspace: Workspace) -> None:
    """Components in ``recovery_metadata`` and ``queue_statistics`` are found by name, as agents are (S3)."""
    found = workspace.states.retrieval.retrieve("partial", components=["ranking", "intake", "Weaver", "nobody"])
    parts = found.content.system_state["components"]
    assert parts["ranking"]["recovery_metadata"] == {"round": 2}
    assert parts["intake"]["queue_statistics"] == {"length": 2}
    assert found.content.agent_states["Weaver"]["internal_state"] == {"iteration": 3, "task": 1}
    assert found.missing == ("nothing is stored of the component 'nobody'",)


def test_summary_has_statistics_and_counts_only(workspace: Workspace) -> None:
    """``summary`` counts and sums up, and carries no output, hypothesis or review (S3)."""
    found = workspace.states.retrieval.retrieve("summary", iterations=[1, 2])
    system = found.content.system_state
    assert system["counts"] == {
        "agent_output": 20,
        "hypothesis": 10,
        "meta_review": 2,
        "state_update": 6,
        "system_state": 2,
        "tournament_result": 2,
    }
    assert system["hypotheses_by_state"] == {"active": 8, "retired": 2}
    assert system["system_statistics"]["total_hypotheses"] == 10
    assert found.content.agent_states["Judge"] == {
        "outputs": 4,
        "tasks": 4,
        "last_timestamp": corpus.output(2, "Judge", 1, 3)["timestamp"],
    }
    assert found.content.hypothesis_data == ()
    assert found.content.tournament_results == {"count": 2, "participants": 4}
    assert [one["patterns"] for one in found.content.feedback_history] == [2, 2]


def test_figures_come_with_their_history(workspace: Workspace) -> None:
    """``metrics`` brings the system's figures and each agent's over the iterations (S13)."""
    retrieve = workspace.states.retrieval.retrieve
    found = retrieve("partial", metrics=["total_hypotheses", "yield", "unheard of"], iterations=[1, 2])
    history = found.content.system_state["metrics"]["total_hypotheses"]
    assert [one["value"] for one in history] == [5.0] * 3 + [10.0] * 3
    assert found.content.agent_states["Scout"]["metrics"]["yield"][0]["value"] == 0.001
    assert found.missing == ("nothing measures 'unheard of' in the iterations 1, 2",)
    found = retrieve("partial", metrics=["improvement"], agents=["Judge"], iterations=[2])
    assert [one["value"] for one in found.content.agent_states["Judge"]["metrics"]["improvement"]] == [0.02, 0.02]
    assert list(found.content.agent_states) == ["Judge"]


def test_an_agents_state_is_the_last_it_handed_over(workspace: Workspace) -> None:
    """An output without state does not hide the state before it; a kept continuation counts as state (S2, S9)."""
    later = corpus.output(3, "Judge", 2)
    later |= {"task_id": "last", "timestamp": "2100-01-04T11:40:00Z"}
    del later["state_data"]
    put(workspace.states, {paths.output_path(3, "Judge", "last"): later})
    token = {"token": "T1", "agent": "Judge", "task_id": "w", "state": {"at": 5}, "created": "2100-01-04T11:45:00Z"}
    found = workspace.states.retrieval.retrieve("partial", agents=["Judge"]).content.agent_states["Judge"]
    assert (found["last_output"]["task_id"], found["internal_state"]) == ("last", {"iteration": 3, "task": 1})
    put(workspace.states, {paths.token_path(3, "T1"): token})
    found = workspace.states.retrieval.retrieve("partial", agents=["Judge"]).content.agent_states["Judge"]
    assert (found["last_output"]["task_id"], found["internal_state"], found["task_id"]) == ("last", {"at": 5}, "w")


def test_an_empty_workspace_has_an_empty_state(opened: Opened) -> None:
    """Before anything is stored, each request type answers, and what was named is missing."""
    retrieve = opened().states.retrieval.retrieve
    for request in ("full", "partial", "summary"):
        found = retrieve(request)
        assert (found.partial, found.timestamp_range) == (False, (None, None))
    assert retrieve("partial", hypotheses=["H"]).missing == ("there is no hypothesis 'H'",)


def test_the_present_is_bounded_and_says_so(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many hypotheses there are, the present has the last so many, and says that there are more (S14)."""
    monkeypatch.setattr(answering, "PRESENT_HYPOTHESES", 7)
    found = workspace.states.retrieval.retrieve("full")
    assert len(ids(found)) == 7
    assert "H 3-4" in ids(found)
    assert any("only the last 7 hypotheses" in sentence for sentence in found.missing)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"request_type": "everything"}, "request_type"),
        ({"start": "soon"}, "start"),
        ({"start": "2100-01-02", "end": "2100-01-01"}, "start"),
        ({"agents": [3]}, "agents"),
        ({"components": 5}, "components"),
        ({"iterations": ["latest"]}, "iterations"),
        ({"iterations": [-1]}, "iterations"),
        ({"metrics": [""]}, "metrics"),
        ({"deadline": -1}, "deadline"),
        ({"deadline": float("nan")}, "deadline"),
    ],
)
def test_an_argument_that_makes_no_sense_is_named(opened: Opened, arguments: dict[str, Any], field: str) -> None:
    """A question that cannot be understood is an error with the argument's name and a remedy (S3)."""
    with pytest.raises(QueryInvalid) as caught:
        opened().states.retrieval.retrieve(**{"request_type": "partial", **arguments})
    assert caught.value.field == field
    assert caught.value.hint


# -- time ---------------------------------------------------------------------------------------------------------
def test_a_deadline_brings_what_there_is_and_says_what_is_missing(workspace: Workspace) -> None:
    """With no time at all, nothing is read and each part is named (S14)."""
    retrieve = workspace.states.retrieval.retrieve
    found = retrieve("full", deadline=0)
    assert found.partial
    assert any("hypotheses were not read" in sentence for sentence in found.missing)
    assert any("agents were not read" in sentence for sentence in found.missing)
    assert any("not every file was looked at" in sentence for sentence in found.missing)
    whole = retrieve("full", deadline=60)
    assert (whole.partial, len(ids(whole))) == (False, 15)


def test_a_deadline_in_the_middle_says_how_many_were_not_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where time ends while hypotheses are read, those that were read come back with the number of the others (S14)."""
    reading = workspace.states.reading
    reading.catch_up()
    load, read = reading.read, [0]

    def counted(row: Any) -> Any:
        read[0] += 1
        return load(row)

    monkeypatch.setattr(reading, "read", counted)
    deadline = Deadline(2.5, tick=lambda: float(read[0]))
    made = answering.StateCollector(reading, wanted_of("partial", components=["hypotheses"]), deadline)
    assert len(made.content()["hypothesis_data"]) == 3
    assert made.missing == ["12 of 15 hypotheses were not read in time"]


def test_without_a_deadline_the_setting_bounds_an_answer(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second, or what the settings say, bounds an answer without a deadline; infinity brings all (S14)."""
    monkeypatch.delenv("MEMFS_RECALL_STATE_SECONDS")
    workspace = opened()
    assert workspace.settings.recall.state_seconds == 0.5
    states = workspace.states
    states.files.write(
        [DocumentChange(paths.hypothesis_path(1, f"h{number}"), {"id": f"h{number}"}) for number in range(20)],
        "Hypotheses",
    )
    load, slept = states.reading.read, [0.0]

    def slowly(row: Any) -> Any:
        slept[0] += 0.1
        return load(row)

    monkeypatch.setattr(states.reading, "read", slowly)
    monkeypatch.setattr(retrieval, "Deadline", lambda seconds: Deadline(seconds, tick=lambda: slept[0]))
    found = states.retrieval.retrieve("partial", components=["hypotheses"])
    assert found.partial
    assert len(ids(found)) in (5, 6)
    assert found.missing[-2].endswith("of 20 hypotheses were not read in time")
    assert found.missing[-1] == "the 0.5 s for this answer were over: a longer deadline finds more"
    whole = states.retrieval.retrieve("partial", components=["hypotheses"], deadline=math.inf)
    assert (whole.partial, whole.missing, len(ids(whole))) == (False, (), 20)


def test_a_deadline_bounds_what_is_counted_too(workspace: Workspace) -> None:
    """A summary and figures that time was lacking for say so: no row is decoded once the time is over (S14)."""
    reading = workspace.states.reading
    reading.catch_up()
    asked = wanted_of("summary", iterations=[3], metrics=["yield"])
    made = answering.StateCollector(reading, asked, Deadline(0))
    made.content()
    assert made.late
    assert "5 of 5 hypotheses were not counted in time" in made.missing
    assert "the figures yield were not read in time" in made.missing


def test_one_damaged_document_leaves_the_rest(workspace: Workspace) -> None:
    """A document that cannot be read is named in ``missing``; everything else is there (S14, S18)."""
    place = workspace.root / paths.hypothesis_path(3, "H 3-2")
    place.write_text("{")
    found = workspace.states.retrieval.retrieve("partial", components=["hypotheses"])
    assert len(ids(found)) in (14, 15)
    other = workspace.root / paths.hypothesis_path(3, "new")
    other.write_text("[")
    found = workspace.states.retrieval.retrieve("partial", components=["hypotheses"])
    assert found.partial
    assert any("hypotheses/new.json cannot be read" in sentence for sentence in found.missing)
    assert "H 3-1" in ids(found)


# -- the cache ----------------------------------------------------------------------------------------------------


def test_the_same_question_is_answered_from_the_cache(workspace: Workspace) -> None:
    """A question asked again reads no document again, has an equal answer, and the rate is reported (S14)."""
    retrieval = workspace.states.retrieval
    first = retrieval.retrieve("full")
    before = retrieval.cache_statistics()
    again = retrieval.retrieve("full")
    assert first.content == again.content
    statistics = retrieval.cache_statistics()
    assert (statistics["misses"] - before["misses"], statistics["hits"] - before["hits"] > 20) == (0, True)
    assert statistics["rate"] == round(statistics["hits"] / (statistics["hits"] + statistics["misses"]), 4)


def test_what_is_handed_out_may_be_changed(workspace: Workspace) -> None:
    """Changing an answer changes neither the cache nor the next answer."""
    retrieve = workspace.states.retrieval.retrieve
    retrieve("full").content.hypothesis_data[0]["state"] = "spoilt"  # type: ignore[index]
    again = retrieve("full")
    assert again.content.hypothesis_data[0]["state"] != "spoilt"


def test_a_change_by_hand_is_never_hidden_by_the_cache(workspace: Workspace) -> None:
    """A document that was read before and that a person changes in place, same length, is read again (S14)."""
    retrieve = workspace.states.retrieval.retrieve
    retrieve("partial", hypotheses=["H 1-2"])
    age(workspace.root / paths.hypothesis_path(1, "H 1-2"))
    found = retrieve("partial", hypotheses=["H 1-2"])
    assert found.content.hypothesis_data[0]["state"] == "ACTIVE"


def test_a_new_iteration_and_another_handle_are_noticed(workspace: Workspace, opened: Opened) -> None:
    """The present moves on with a new iteration, and with what another handle stores (S14)."""
    retrieve = workspace.states.retrieval.retrieve
    assert retrieve("summary").content.system_state["iteration"] == 3
    other = opened(workspace.root)
    put(other.states, corpus.iteration_documents(4, closed=False))
    found = retrieve("summary")
    assert found.content.system_state["iteration"] == 4


def test_an_answer_says_how_far_behind_commits_are(workspace: Workspace) -> None:
    """Writes that wait for their commit are counted in the answer (S14)."""
    retrieve = workspace.states.retrieval.retrieve
    assert retrieve("summary").behind["uncommitted_writes"] == 3
    workspace.store.flush()
    assert retrieve("summary").behind["uncommitted_writes"] == 0


def test_answers_are_plain_json(workspace: Workspace) -> None:
    """Whatever is asked, the answer can be written as JSON."""
    for request in ("full", "partial", "summary"):
        found = workspace.states.retrieval.retrieve(request, metrics=["yield"])
        assert json.loads(json.dumps(found.to_dict()))["request_type"] == request


def test_archived_iterations_answer_as_before(workspace: Workspace) -> None:
    """After an iteration was archived, the same question has the same content; so after it came back (S15)."""
    retrieval, archiver = workspace.states.retrieval, workspace.states.archiver
    before = retrieval.retrieve("full", iterations=[1, 2])
    workspace.store.flush()
    archiver.archive({1: corpus.opening(2), 2: corpus.opening(3)}, level=3)
    assert not (workspace.root / paths.system_state_path(1)).exists()
    after = retrieval.retrieve("full", iterations=[1, 2])
    assert after.content.to_dict() == before.content.to_dict()
    assert after.timestamp_range == before.timestamp_range
    assert workspace.states.index.row(paths.system_state_path(1)).archive
    assert workspace.states.reading.reindex() == 62
    assert retrieval.retrieve("full", iterations=[1, 2]).content.to_dict() == before.content.to_dict()
    archiver.unpack(1)
    assert retrieval.retrieve("full", iterations=[1, 2]).content.to_dict() == before.content.to_dict()
    assert not workspace.states.index.row(paths.system_state_path(1)).archive

"""Recording: state updates, agents' outputs and meta-reviews become documents (S1, S2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memfs import SchemaInvalid, Workspace
from memfs.errors import ContentError, IterationInvalid, StorageIO
from memfs.model.state_documents import AgentOutput, MetaReviewStorage, StateUpdate, SystemStatistics
from memfs.model.time import time_in
from tests.state.rig import NOON, Rig

Opened = Callable[..., Workspace]
FIRST = "ContextMemory/iterations/iteration_001"
UPDATE: dict[str, Any] = {
    "timestamp": "2026-03-01T12:00:00.25Z",
    "update_type": "periodic",
    "system_statistics": {
        "total_hypotheses": 12,
        "hypotheses_by_state": {"reviewed": 5, "new": 7},
        "pending_reviews": 3,
        "tournament_progress": 0.4,
        "agent_effectiveness": {"Ranking Agent": {"accuracy": 0.8}},
    },
    "orchestration_state": {
        "agent_weights": {"Ranking Agent": 1.5},
        "resource_allocation": {"Ranking Agent": {"tokens": 1000}},
        "queue_statistics": {"waiting": 4},
        "strategic_focus": "breadth",
    },
    "checkpoint_data": {"in_flight_tasks": [{"id": "rank-7"}], "recovery_metadata": {"ranking": {"at": 7}}},
}
OUTPUT: dict[str, Any] = {
    "agent_type": "Evolution Agent",
    "task_id": "Task/7",
    "timestamp": "2026-03-01T12:00:00Z",
    "results": {"primary_output": {"text": "x"}, "metadata": {"strategy": "merge"}, "confidence_score": 0.5},
}


@pytest.fixture
def rig(opened: Opened) -> Rig:
    """A new workspace."""
    return Rig(opened())


# -- state updates ------------------------------------------------------------------------------------------------
def test_a_state_update_is_kept_whole_and_shown_by_its_iteration(rig: Rig) -> None:
    """Every field of the seed comes back; the acknowledgement says where, how large and how long (S1)."""
    ack = rig.recorder.state_update(UPDATE)

    stored = rig.read("iteration_001/state_updates/20260301T120000.250000Z.json")
    assert ack.path == f"{FIRST}/state_updates/20260301T120000.250000Z.json"
    data = (rig.workspace.root / ack.path).read_bytes()
    assert (ack.bytes, ack.revision, ack.checkpoint_id, ack.durability) == (len(data), "", "", "file")
    assert ack.sha256 == rig.workspace.states.files.read(ack.path).sha256
    assert ack.duration_ms > 0
    assert stored == {**UPDATE, "timestamp": "2026-03-01T12:00:00.250Z"}
    assert rig.read("iteration_001/system_state.json")["update"] == stored
    facts = {"kind": "state_update", "path": ack.path, "iteration": 1, "update_type": "periodic"}
    assert rig.fired == [("state_stored", facts)]


def test_the_latest_update_by_its_own_time_is_shown(rig: Rig) -> None:
    """One that comes late is kept under its time, and does not take the place of a later one (S1)."""
    for minute, focus in ((5, "newest"), (1, "late")):
        moment = NOON + timedelta(minutes=minute)
        rig.recorder.state_update(StateUpdate(timestamp=moment, orchestration_state={"strategic_focus": focus}))

    assert len(rig.names("iteration_001/state_updates")) == 2
    shown = rig.read("iteration_001/system_state.json")["update"]
    assert shown["orchestration_state"]["strategic_focus"] == "newest"


def test_updates_of_one_moment_stay_apart_and_the_same_one_is_one(rig: Rig) -> None:
    """An update sent twice is one document; another of the same microsecond is a second (S1)."""
    first = rig.recorder.state_update(UPDATE)
    again = rig.recorder.state_update(UPDATE)
    other = rig.recorder.state_update({**UPDATE, "update_type": "critical"})

    assert (again.path, again.sha256) == (first.path, first.sha256)
    assert other.path == f"{FIRST}/state_updates/20260301T120000.250000Z.2.json"
    assert [facts["path"] for _, facts in rig.fired] == [first.path, other.path]
    assert rig.read("iteration_001/system_state.json")["update"]["update_type"] == "critical"


def test_an_update_without_a_time_has_that_of_its_storing(rig: Rig) -> None:
    """The clock says when (S1)."""
    assert rig.recorder.state_update({}).path.endswith("/20260301T120000.000000Z.json")


def test_a_checkpoint_update_creates_a_checkpoint_once(rig: Rig) -> None:
    """The acknowledgement has its id, and the update is there before the checkpoint is taken (S1, S6)."""
    ack = rig.recorder.state_update({**UPDATE, "update_type": "checkpoint"})

    assert ack.checkpoint_id == "ckpt_20260301_1200"
    assert [one.checkpoint_data.in_flight_tasks for one in rig.checkpoints] == [({"id": "rank-7"},)]
    assert rig.fired[-1][1]["update_type"] == "checkpoint"


def test_an_update_whose_checkpoint_fails_is_acknowledged_without_one(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored is acknowledged, with why there is no checkpoint; sending it again takes the one that is missing
    (S1, S6, S17).
    """

    def refuse(_update: StateUpdate) -> str:
        raise StorageIO("no room for a checkpoint")

    update = {**UPDATE, "update_type": "checkpoint"}
    with monkeypatch.context() as patched:
        patched.setattr(rig.recorder, "_checkpoint", refuse)
        ack = rig.recorder.state_update(update)
    assert (ack.checkpoint_id, ack.checkpoint_problem) == ("", "no room for a checkpoint")
    assert len(rig.names("iteration_001/state_updates")) == 1

    again = rig.recorder.state_update(update)
    assert (again.checkpoint_id, again.checkpoint_problem) == ("ckpt_20260301_1200", "")
    assert len(rig.names("iteration_001/state_updates")) == 1


def test_a_critical_update_is_committed_at_once(rig: Rig, git: Callable[..., str]) -> None:
    """Its acknowledgement has the commit that holds it, whatever the policy (S1)."""
    ack = rig.recorder.state_update({**UPDATE, "update_type": "critical"})

    root = rig.workspace.root
    assert git(root, "rev-parse", "HEAD").strip() == ack.revision
    assert git(root, "show", f"HEAD:{ack.path}") == (root / ack.path).read_text()


def test_critical_updates_land_where_the_quota_is_full(rig: Rig) -> None:
    """Periodic ones are refused with a clear error, critical and checkpoint ones are stored (S16)."""
    config = rig.workspace.root / "ContextMemory/configuration/system_config.json"
    rig.iterations.start(1)
    config.write_text('{"quotas": {"iterations_bytes": 300}}')

    with pytest.raises(StorageIO, match="quota"):
        rig.recorder.state_update(UPDATE)
    assert not (rig.workspace.root / FIRST / "state_updates").exists()
    for update_type in ("critical", "checkpoint"):
        rig.recorder.state_update({**UPDATE, "update_type": update_type})
    assert len(rig.names("iteration_001/state_updates")) == 2


# -- agents' outputs ----------------------------------------------------------------------------------------------
def test_an_output_is_under_its_agent_and_task(rig: Rig) -> None:
    """Names are verbatim in the document and encoded in its path (S2)."""
    ack = rig.recorder.agent_output(OUTPUT)

    assert ack.path == f"{FIRST}/agent_outputs/Evolution%20Agent/Task%2F7.json"
    assert rig.read("iteration_001/agent_outputs/Evolution%20Agent/Task%2F7.json") == {
        **OUTPUT,
        "results": {**OUTPUT["results"], "resource_consumed": 0.0},
    }
    assert (ack.continuation_token, ack.checkpoint_id) == ("", "")
    assert rig.fired == [
        ("state_stored", {"kind": "agent_output", "path": ack.path, "iteration": 1, "update_type": ""})
    ]


def test_the_same_output_again_is_the_same_document(rig: Rig) -> None:
    """An agent that was interrupted may hand it over again; one that differs gets the next number (S2)."""
    further = [{**OUTPUT, "results": {"primary_output": number}} for number in range(2, 6)]
    paths = [rig.recorder.agent_output(one).path for one in (OUTPUT, *further)]
    rig.later(hours=1)

    assert [rig.recorder.agent_output({**OUTPUT, "results": {"primary_output": 3}}).path] == paths[2:3]
    untimed = {**further[-1], "timestamp": None}
    assert rig.recorder.agent_output(untimed).path == paths[-1]
    assert rig.recorder.agent_output({**OUTPUT, "timestamp": None}).path.endswith("/Task%2F7.6.json")
    assert [path.rpartition("/")[2] for path in paths] == [
        "Task%2F7.json",
        *(f"Task%2F7.{number}.json" for number in range(2, 6)),
    ]


def test_many_outputs_of_a_task_are_numbered_without_a_look_at_each(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first free number is found in few steps."""
    taken = {f"{FIRST}/agent_outputs/a/t{f'.{turn}' if turn > 1 else ''}.json" for turn in range(1, 1001)}
    asked: list[str] = []
    monkeypatch.setattr(rig.workspace.states.files, "exists", lambda path: asked.append(path) or path in taken)

    assert rig.recorder.agent_output({"agent_type": "a", "task_id": "t"}).path.endswith("/t.1001.json")
    assert len(asked) < 25


def test_outputs_go_into_the_iteration_that_is_named(rig: Rig) -> None:
    """One that is not there yet is started (S2)."""
    assert "/iteration_005/" in rig.recorder.agent_output(OUTPUT, iteration=5).path
    assert "/iteration_002/" in rig.recorder.agent_output(AgentOutput.from_dict(OUTPUT), iteration=2).path
    assert "/iteration_005/" in rig.recorder.agent_output({**OUTPUT, "task_id": "x"}).path


# -- meta-reviews -------------------------------------------------------------------------------------------------
def test_a_meta_review_belongs_to_the_iteration_it_names(rig: Rig) -> None:
    """Also where that is closed by now, or was never started (S2)."""
    review = {
        "iteration_number": 3,
        "timestamp": "2026-03-01T12:00:00Z",
        "critique": {
            "common_patterns": ["vague claims", {"name": "no controls"}],
            "agent_feedback": {"Evolution Agent": ["vary more"]},
            "iteration_improvements": {"focus": "fewer"},
        },
        "research_overview": {"synthesis": "s", "research_areas": ["a"], "next_priorities": ["p"]},
    }
    ack = rig.recorder.meta_review(review)
    rig.iterations.close(3)

    assert ack.path == "ContextMemory/iterations/iteration_003/meta_review.json"
    assert rig.read("iteration_003/meta_review.json") == review
    assert rig.recorder.meta_review(MetaReviewStorage.from_dict(review)).sha256 == ack.sha256
    assert len(rig.fired) == 2
    changed = rig.recorder.meta_review({**review, "critique": {"common_patterns": ["other"]}})
    assert changed.path == ack.path
    assert rig.read("iteration_003/meta_review.json")["critique"]["common_patterns"] == ["other"]


# -- what is wrong ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("act", "field"),
    [
        (lambda recorder: recorder.state_update({**UPDATE, "update_type": "often"}), "update_type"),
        (
            lambda recorder: recorder.state_update({"system_statistics": {"tournament_progress": 1.5}}),
            "system_statistics.tournament_progress",
        ),
        (lambda recorder: recorder.state_update({"system_statistic": {}}), "system_statistic"),
        (lambda recorder: recorder.state_update(StateUpdate(system_statistics=SystemStatistics(pending_reviews="x"))),
         "system_statistics.pending_reviews"),
        (lambda recorder: recorder.agent_output({**OUTPUT, "agent_type": ""}), "agent_type"),
        (lambda recorder: recorder.agent_output({**OUTPUT, "task_id": 7}), "task_id"),
        (lambda recorder: recorder.agent_output({"agent_type": "a"}), "task_id"),
        (lambda recorder: recorder.agent_output({**OUTPUT, "timestamp": "soon"}), "timestamp"),
        (
            lambda recorder: recorder.agent_output({**OUTPUT, "results": {"confidence_score": "high"}}),
            "results.confidence_score",
        ),
        (lambda recorder: recorder.meta_review({}), "iteration_number"),
        (lambda recorder: recorder.meta_review({"iteration_number": 1, "critique": {"common_patterns": 3}}),
         "critique.common_patterns"),
        (lambda recorder: recorder.hypothesis({"id": ""}), "id"),
        (lambda recorder: recorder.hypothesis({"id": ["x"]}), "id"),
        (lambda recorder: recorder.hypothesis({"id": "x", "wins": "many"}), "wins"),
        (lambda recorder: recorder.hypothesis({"id": "x"}, ["y", "x"]), "parents"),
        (lambda recorder: recorder.tournament_result({"id": "x", "ratings": {"a": "high"}}), "ratings.a"),
    ],
)  # fmt: skip
def test_a_value_that_is_wrong_is_named_by_its_field(rig: Rig, act: Callable[[Any], Any], field: str) -> None:
    """Nothing is stored, and the error names the field with its place in the document (S1, S2)."""
    with pytest.raises(SchemaInvalid) as caught:
        act(rig.recorder)

    assert caught.value.field == field
    assert [one for one in rig.names("iteration_001") if one != "system_state.json"] == []


def test_a_document_leaves_no_iteration_out(rig: Rig) -> None:
    """The first may have any number and the next begins by itself; a number beyond it is a slip (S12)."""
    rig.recorder.meta_review({"iteration_number": 4})
    rig.recorder.meta_review({"iteration_number": 5})
    for act in (
        lambda: rig.recorder.meta_review({"iteration_number": 9}),
        lambda: rig.recorder.agent_output({"agent_type": "a", "task_id": "t"}, iteration=9),
    ):
        with pytest.raises(IterationInvalid, match="no iteration 9 was started") as refused:
            act()
        assert "up to 6" in str(refused.value)
    assert rig.iterations.start().number == 6
    rig.iterations.start(9)
    rig.recorder.meta_review({"iteration_number": 9})


def test_a_moment_beyond_the_calendar_is_refused_by_name(rig: Rig) -> None:
    """A time that is in no year once it is given in UTC is not a point in time, given or found in a file (S1)."""
    edge = "0001-01-01T00:00:00+10:00"
    with pytest.raises(SchemaInvalid) as caught:
        rig.recorder.state_update({"timestamp": edge})
    assert caught.value.field == "timestamp"
    assert time_in(edge) is None
    assert time_in(7) is None


# -- values that no document holds ----------------------------------------------------------------------------------
def test_a_name_that_is_not_unicode_is_refused_by_its_field(rig: Rig) -> None:
    """A lone surrogate in an agent's, a task's or a hypothesis' name is an error of memfs's that names it (S2)."""
    results = {"primary_output": 1}

    with pytest.raises(ContentError, match=r"agent_type: .*Unicode"):
        rig.recorder.agent_output({"agent_type": "\ud800", "task_id": "t", "results": results})
    with pytest.raises(ContentError, match=r"task_id: .*Unicode"):
        rig.recorder.agent_output({"agent_type": "a", "task_id": "\ud800", "results": results})
    with pytest.raises(ContentError, match=r"id: .*Unicode"):
        rig.recorder.hypothesis({"id": "\ud800"})


@pytest.mark.parametrize("depth", [100, 400, 100_000])
def test_what_nests_too_deep_or_holds_itself_is_refused(rig: Rig, depth: int) -> None:
    """Neither ends in a RecursionError, and nothing is stored (S2, S9)."""
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    endless: dict[str, Any] = {}
    endless["self"] = endless

    for value in (deep, endless):
        with pytest.raises(ContentError, match="nest"):
            rig.recorder.agent_output({"agent_type": "a", "task_id": "t", "results": {"primary_output": value}})
        with pytest.raises(ContentError, match="nest"):
            rig.recorder.hypothesis({"id": "h", "more": value})
        with pytest.raises(ContentError, match="nest"):
            rig.continuations.save("a", "t", value)
    assert not rig.names("iteration_001/agent_outputs/a")

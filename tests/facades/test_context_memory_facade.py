"""ContextMemory: what its calls take and give; what lies behind them is tested beside it (S1-S21)."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs import ContextMemory, SchemaInvalid, StateUpdate, Workspace, WorkspaceClosed

Opened = Callable[..., Workspace]


@pytest.fixture
def memory(opened: Opened) -> ContextMemory:
    """Over an open workspace."""
    return ContextMemory(workspace=opened())


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("start_iteration", ["iteration"]),
        ("close_iteration", ["iteration"]),
        ("store_state_update", ["update"]),
        ("store_agent_output", ["output"]),
        ("store_meta_review", ["review"]),
        ("store_hypothesis", ["hypothesis", "parents", "base"]),
        ("store_tournament_result", ["result"]),
        (
            "retrieve_state",
            ["request_type", "start", "end", "agents", "components", "hypotheses", "iterations", "metrics", "deadline"],
        ),
        ("get_feedback", ["iteration", "agent_type"]),
        ("feedback_for", ["agent"]),
        ("create_checkpoint", ["update"]),
        ("recover", ["checkpoint_id", "components", "restore"]),
        ("save_continuation", ["agent", "task_id", "state", "expires"]),
        ("resume", ["token"]),
        ("analyze_agent", ["name", "iterations"]),
        ("trends", []),
        ("get_configuration", []),
        ("hypothesis_history", ["hypothesis_id"]),
        ("find_similar_states", ["state", "limit"]),
    ],
)
def test_calls_take_what_the_seed_says(call: str, arguments: list[str]) -> None:
    """Each call of the seed is there, with its arguments in their order (S1-S14)."""
    taken = list(inspect.signature(getattr(ContextMemory, call)).parameters)[1:]
    assert taken[: len(arguments)] == arguments


@pytest.mark.parametrize("shape", [dict, lambda **values: StateUpdate(**values)])
def test_shapes_and_mappings_store_the_same(memory: ContextMemory, shape: Callable[..., Any]) -> None:
    """A shape and a mapping with its keys are one and the same to a call (S1)."""
    memory.store_state_update(shape(timestamp="2026-03-01T10:00:00Z", system_statistics={"total_hypotheses": 4}))
    (path,) = (memory.workspace.root / "ContextMemory/iterations/iteration_001/state_updates").iterdir()
    stored = json.loads(path.read_text())
    assert (stored["timestamp"], stored["system_statistics"]["total_hypotheses"]) == ("2026-03-01T10:00:00Z", 4)


def test_a_mapping_with_an_unknown_key_is_refused(memory: ContextMemory) -> None:
    """What no shape has is named, and nothing is stored (S1)."""
    with pytest.raises(SchemaInvalid) as refused:
        memory.store_state_update({"orchestration_state": {"agent_wheights": {}}})
    assert refused.value.field == "orchestration_state.agent_wheights"
    assert "agent_weights" in str(refused.value.hint)
    assert memory.list_iterations() == []


def test_an_update_given_to_a_checkpoint_is_stored_with_it(memory: ContextMemory) -> None:
    """``create_checkpoint(update)`` keeps the update, and recovery goes on from its tasks (S1, S6)."""
    made = memory.create_checkpoint({"checkpoint_data": {"in_flight_tasks": ["rank"]}})
    assert [one.id for one in memory.list_checkpoints()] == [made]
    assert [one.problem for one in memory.verify_checkpoints(made)] == [""]
    assert memory.recover(made).active_tasks == ("rank",)


def test_a_checkpoint_without_an_update_takes_the_latest(memory: ContextMemory) -> None:
    """``create_checkpoint()`` goes by the latest update that was stored (S6)."""
    memory.store_state_update({"checkpoint_data": {"in_flight_tasks": ["old"]}})
    memory.store_state_update({"checkpoint_data": {"in_flight_tasks": ["new"]}})
    assert memory.recover(memory.create_checkpoint()).active_tasks == ("new",)


def test_the_configuration_is_as_the_files_say(memory: ContextMemory) -> None:
    """``get_configuration`` follows an edit by hand, and one that is invalid is named with its field (S12)."""
    path = memory.workspace.root / "ContextMemory" / "configuration" / "retention_policy.json"
    assert memory.get_configuration()["system_config"] == {}
    path.write_text('{"active_days": 7}')
    assert memory.get_configuration()["retention_policy"] == {"active_days": 7}
    path.write_text('{"active_days": -1}')
    with pytest.raises(SchemaInvalid) as refused:
        memory.get_configuration()
    assert (refused.value.path, refused.value.field) == (
        "ContextMemory/configuration/retention_policy.json",
        "active_days",
    )
    path.unlink()
    assert memory.get_configuration()["retention_policy"] == {}


def test_what_was_retrieved_is_what_was_stored_and_may_be_handed_back(opened: Opened) -> None:
    """Nothing is added to a document on its way out, so that nothing comes in with it again (S2, S3)."""
    workspace = opened()
    memory, other = ContextMemory(workspace=workspace), ContextMemory(workspace=opened(workspace.root))
    given = {"id": "h", "state": "new", "rating": 1200, "custom": {"a": 1}, "timestamp": "2026-03-01T12:00:00Z"}
    first = memory.store_hypothesis(given, ["p"])
    memory.store_agent_output({"agent_type": "A", "task_id": "t", "results": {"primary_output": 1}})
    stored = {**given, "parents": ["p"]}

    for one in (memory, other):
        content = one.retrieve_state().content
        assert [dict(found) for found in content.hypothesis_data] == [stored]
        assert one.store_hypothesis(content.hypothesis_data[0]).sha256 == first.sha256
        assert one.store_hypothesis(one.hypothesis_history("h").versions[-1]).sha256 == first.sha256
        output = content.agent_states["A"]["last_output"]
        assert one.store_agent_output(output).path.endswith("/t.json")
    (seen,) = other.retrieve_state("partial", hypotheses=["h"]).content.hypothesis_data
    other.store_hypothesis({**seen, "rating": 1})
    assert memory.retrieve_state().content.hypothesis_data[0].keys() == stored.keys()


def test_an_export_goes_to_a_file_or_a_stream(memory: ContextMemory, tmp_path: Path) -> None:
    """``export`` writes the same to a path as to an open file, filtered by agent (S19)."""
    for agent in ("Ranking", "Evolution"):
        memory.store_agent_output({"agent_type": agent, "task_id": "t"})
    stream = io.BytesIO()
    assert memory.export(stream, agents=["Ranking"]).total == 1
    memory.export(tmp_path / "out.jsonl", agents=["Ranking"])
    assert (tmp_path / "out.jsonl").read_bytes() == stream.getvalue()
    assert b"Ranking" in stream.getvalue()
    assert b"Evolution" not in stream.getvalue()


def test_questions_are_answered_from_the_cache(memory: ContextMemory) -> None:
    """The same question again reads no document again (S14)."""
    memory.store_agent_output({"agent_type": "Ranking", "task_id": "t"})
    memory.retrieve_state("full")
    before = memory.cache_statistics()
    memory.retrieve_state("full")
    after = memory.cache_statistics()
    assert (after["misses"], after["hits"] > before["hits"]) == (before["misses"], True)


def test_a_closed_memory_says_so(memory: ContextMemory) -> None:
    """After ``close`` nothing is opened again behind one's back (C1)."""
    memory.close()
    with pytest.raises(WorkspaceClosed, match="ContextMemory was closed"):
        memory.trends()


@pytest.mark.parametrize("parents", ["root", ("root",), iter(["root"])])
def test_one_parent_may_be_given_as_text(memory: ContextMemory, parents: Any) -> None:
    """A text is the name of one parent, not a list of letters (S2)."""
    memory.store_hypothesis({"id": "child"}, parents)
    assert [one.id for one in memory.hypothesis_history("child").ancestors] == ["root"]


def test_standings_and_participants_follow_from_results_of_any_shape(memory: ContextMemory) -> None:
    """Whether a result lists participants, sides, or only who won and lost (S2, S3)."""
    memory.start_iteration(1)
    memory.store_tournament_result({"winner": "h2", "loser": "h1"})
    memory.store_tournament_result({"participants": [{"id": "h1"}, {"id": "h2", "rating": 1216}], "winner": "h2"})
    memory.store_tournament_result({"winner": "h1", "loser": "h2"})
    results = memory.retrieve_state(hypotheses=["h1"]).content.tournament_results
    assert results["standings"] == {"h1": {"matches": 3, "wins": 1}, "h2": {"matches": 3, "wins": 2, "rating": 1216}}
    assert memory.close_iteration(1).statistics["tournament"] == {"results": 3, "participants": 2}

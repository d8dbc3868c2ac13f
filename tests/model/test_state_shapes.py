"""The shapes of seed 001: every field of its interfaces is there, in the shape and in a schema of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from memfs import ContextMemory, Workspace
from memfs.errors import SchemaInvalid
from memfs.format.schema import Schemas
from memfs.model import state_documents
from memfs.model.shape import sorts_in
from memfs.resources import schema_text

SEED: Mapping[str, tuple[type[state_documents.Shape], Mapping[str, Any]]] = {
    "state_update": (
        state_documents.StateUpdate,
        {
            "timestamp": None,
            "update_type": None,
            "system_statistics": {
                "total_hypotheses", "hypotheses_by_state", "pending_reviews", "tournament_progress",
                "agent_effectiveness",
            },
            "orchestration_state": {"agent_weights", "resource_allocation", "queue_statistics", "strategic_focus"},
            "checkpoint_data": {"in_flight_tasks", "recovery_metadata"},
        },
    ),
    "agent_output": (
        state_documents.AgentOutput,
        {
            "agent_type": None,
            "task_id": None,
            "timestamp": None,
            "results": {"primary_output", "metadata", "confidence_score", "resource_consumed"},
            "state_data": {"internal_state", "continuation_token"},
        },
    ),
    "meta_review": (
        state_documents.MetaReviewStorage,
        {
            "iteration_number": None,
            "timestamp": None,
            "critique": {"common_patterns", "agent_feedback", "iteration_improvements"},
            "research_overview": {"synthesis", "research_areas", "next_priorities"},
        },
    ),
    "retrieved_state": (
        state_documents.RetrievedState,
        {
            "request_type": None,
            "timestamp_range": None,
            "content": {
                "system_state", "agent_states", "hypothesis_data", "tournament_results", "feedback_history",
            },
        },
    ),
    "feedback_data": (
        state_documents.FeedbackData,
        {
            "iteration_requested": None,
            "agent_type": None,
            "feedback_content": {
                "general_recommendations", "agent_specific", "priority_improvements", "success_patterns",
            },
        },
    ),
    "recovery_state": (
        state_documents.RecoveryState,
        dict.fromkeys((
            "checkpoint_timestamp", "system_configuration", "active_tasks", "completed_work", "resume_points",
            "data_integrity",
        )),
    ),
}  # fmt: skip


def _names(shape: type[state_documents.Shape]) -> set[str]:
    return {one.name for one in fields(shape)}  # type: ignore[arg-type]  # every shape is a dataclass


@pytest.mark.parametrize("name", SEED)
def test_every_field_of_the_seed_is_in_the_shape_and_in_its_schema(name: str) -> None:
    """None of the seed's names is missing or written otherwise; shape and schema have the same fields (S1-S4, S7)."""
    shape, wanted = SEED[name]
    schema = json.loads(schema_text(name))
    properties = schema["properties"]

    assert wanted.keys() <= _names(shape)
    assert _names(shape) == properties.keys() - {"$schema"}
    assert schema["additionalProperties"] is False
    for field, inner in wanted.items():
        if inner is not None:
            assert inner == _names(sorts_in(shape)[field]) == properties[field]["properties"].keys()
            assert properties[field]["additionalProperties"] is False


@pytest.mark.parametrize("name", SEED)
def test_an_invalid_field_is_refused_by_its_whole_name(name: str) -> None:
    """A slip in a nested field is named with its place (S1, S2)."""
    shape, wanted = SEED[name]
    for field, inner in wanted.items():
        if inner is not None:
            with pytest.raises(SchemaInvalid) as refused:
                sorts_in(shape)[field].from_dict({"no_such": 1}, where=field)
            assert refused.value.field == f"{field}.no_such"


def test_a_missing_field_is_reported_by_the_name_of_its_document() -> None:
    """The hint has the name by which the document is stored, not that of a class."""
    with pytest.raises(SchemaInvalid) as caught:
        state_documents.AgentOutput.from_dict({})
    assert caught.value.hint == "agent_output needs it"


def test_what_calls_hand_back_obeys_its_schema(opened: Callable[..., Workspace]) -> None:
    """Answers are what their schemas say, full and empty ones (S3, S4, S7)."""
    memory = ContextMemory(workspace=opened())
    schemas = Schemas()
    assert schemas.check_document(memory.retrieve_state().to_dict(), "retrieved_state") == []
    assert schemas.check_document(memory.get_feedback().to_dict(), "feedback_data") == []
    memory.store_state_update({"checkpoint_data": {"in_flight_tasks": [{"task": 1}, "two"]}})
    memory.store_agent_output({"agent_type": "A/1", "task_id": "t", "state_data": {"internal_state": [1]}})
    memory.store_hypothesis({"id": "h", "rating": 1})
    memory.store_tournament_result({"participants": ["h", "g"], "winner": "h"})
    critique = {"common_patterns": ["plain", {"name": "p"}], "agent_feedback": {"A/1": "x"}}
    memory.store_meta_review({"iteration_number": 1, "critique": critique})

    for request in state_documents.REQUEST_TYPES:
        answer = memory.retrieve_state(request, agents=["A/1", "Nobody"], metrics=["confidence_score"])
        assert schemas.check_document(answer.to_dict(), "retrieved_state") == []
    for iteration in ("latest", 1, "1"):
        feedback = memory.get_feedback(iteration, "A/1")
        assert schemas.check_document(feedback.to_dict(), "feedback_data") == []
    made = memory.create_checkpoint()
    recovery = memory.recover(made)
    assert schemas.check_document(recovery.to_dict(), "recovery_state") == []
    wrong = {**recovery.to_dict(), "active_tasks": "none"}
    assert [".".join(map(str, one.path)) for one in schemas.check_document(wrong, "recovery_state")] == ["active_tasks"]
    assert recovery.checkpoint_timestamp.utcoffset() == timedelta(0)

"""What a state document is about is found in whatever it holds (S13)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import state_corpus as corpus
from memfs.model import state_paths as paths
from memfs.model.state_facts import STATEFUL, StateFacts, describe

PLACES = sorted(
    {
        paths.system_state_path(3),
        paths.update_path(3, corpus.BEGIN),
        paths.output_path(3, "a/b", "t"),
        paths.hypothesis_path(3, "h"),
        paths.tournament_path(3, "m"),
        paths.meta_review_path(3),
        paths.token_path(3, "tok"),
        paths.feedback_path(3, "a"),
        paths.conflict_path(3, paths.hypothesis_path(3, "h"), corpus.BEGIN),
        "ContextMemory/checkpoints/ckpt_1/manifest.json",
        "ContextMemory/aggregates/research_progress.json",
        "elsewhere.json",
    }
)


def test_a_state_update_is_about_its_agents_components_and_figures() -> None:
    """Figures of the system and of each agent, components and time of an update are known (S1, S13)."""
    facts = describe(paths.update_path(4, corpus.BEGIN), corpus.update(4, 1))
    assert (facts.kind, facts.iteration, facts.state) == ("state_update", 4, "periodic")
    assert facts.timestamp == datetime(2100, 1, 4, 12, 2, tzinfo=UTC)
    assert facts.components == ("system", "ranking", "intake")
    assert facts.agents == corpus.AGENTS
    assert facts.metrics["hypotheses_by_state.active"] == 12.0
    assert facts.metrics["queue_statistics.intake.length"] == 1.0
    assert facts.agent_metrics["Judge"] == {"yield": 3.004, "weight": 0.2}
    assert facts.fingerprint[("Judge", "weight")] == 0.2


def test_an_output_is_about_its_agent_task_and_figures() -> None:
    """Agent, task, figures and linked hypotheses of an output are known, and whether it has state (S2, S13)."""
    values = corpus.output(4, "Critic/2", 1)
    values["results"]["metadata"]["hypothesis_ids"] = ["H1", {"id": "H2"}]
    facts = describe(paths.output_path(4, "Critic/2", "task/4-1"), values)
    assert (facts.agent, facts.task, facts.state) == ("Critic/2", "task/4-1", STATEFUL)
    assert facts.hypotheses == ("H1", "H2")
    assert facts.agent_metrics == {"Critic/2": {"confidence_score": 0.7, "resource_consumed": 2.5, "improvement": 0.04}}


def test_names_come_from_the_path_where_the_document_lacks_them() -> None:
    """A hand-written document without its own name is known by its file's."""
    assert describe(paths.output_path(1, "Deep Thought", "t/1"), {}).agent == "Deep Thought"
    assert describe(paths.output_path(1, "Deep Thought", "t/1"), {}).task == "t/1"
    assert describe(paths.hypothesis_path(1, "H 7"), {}).hypotheses == ("H 7",)


def test_others_are_about_what_they_name() -> None:
    """Headers, results, reviews, tokens and records say what they are about (S2, S9)."""
    assert describe(paths.system_state_path(1), {"status": "closed", "closed": "2100-01-04"}).closed is not None
    result = describe(
        paths.tournament_path(1, "m"), {"participants": ["a", {"id": "b"}], "winner": "a", "ratings": {"c": 3}}
    )
    assert (result.name, result.hypotheses) == ("m", ("a", "b", "c"))
    assert describe(paths.meta_review_path(1), corpus.review(1)).agents == corpus.AGENTS
    token = describe(paths.token_path(1, "T"), {"token": "T", "agent": "x", "task_id": "y", "created": "2100-01-04"})
    assert (token.name, token.agent, token.task, token.timestamp is not None) == ("T", "x", "y", True)


WORDS = """system_statistics orchestration_state checkpoint_data agent_effectiveness agent_weights results metadata
critique agent_feedback id parents rating participants winner ratings timestamp opened status agent agent_type state"""
KEYS = st.sampled_from(WORDS.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(path=st.sampled_from(PLACES), values=st.dictionaries(KEYS, JSON))
def test_anything_can_be_described_and_kept_as_json(path: str, values: dict[str, Any]) -> None:
    """Whatever a person wrote, describing it never fails, and the facts survive JSON (S18)."""
    facts = describe(path, values)
    assert facts.path == path
    assert StateFacts.from_dict(json.loads(json.dumps(facts.to_dict(), allow_nan=False))) == facts


def test_figures_are_bounded() -> None:
    """A document of any size has a bounded number of figures, and none that is not finite."""
    many = {f"f{number}": number for number in range(5000)} | {"bad": float("nan"), "huge": 10**400, "yes": True}
    facts = describe(paths.update_path(1, corpus.BEGIN), {"system_statistics": many})
    assert len(facts.metrics) == 256
    assert "yes" not in describe(paths.update_path(1, corpus.BEGIN), {"system_statistics": {"yes": True}}).metrics


@pytest.mark.parametrize("values", [{"timestamp": "soon"}, {"timestamp": 5}, {}])
def test_a_document_without_a_time_has_none(values: dict[str, Any]) -> None:
    """What is not a point in time is passed over."""
    assert describe(paths.meta_review_path(1), values).timestamp is None

"""What a meta-review says becomes feedback, whatever form a reviewer gave it (S4)."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.state.feedback import content_of, sentences, version_of
from memfs.state.metrics import name_in


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("widen the search", ("widen the search",)),
        (["a", "b", "a", ""], ("a", "b")),
        ({"recommendations": ["a", "b"]}, ("a", "b")),
        ({"focus": "oncology", "rounds": 3}, ("focus: oncology", "rounds: 3")),
        ({"strengths": ["fast"], "weaknesses": ["shallow"]}, ("strengths: fast", "weaknesses: shallow")),
        ([{"text": "cite more", "priority": "high"}], ("cite more (priority: high)",)),
        ({"suggestion": "cite more"}, ("cite more",)),
        ({"ranking": {"notes": ["use Elo"], "pairs": {"most": 8}}}, ("ranking: use Elo", "ranking pairs most: 8")),
        ({"strict": True}, ("strict: yes",)),
        (None, ()),
        ({}, ()),
        (5, ("5",)),
    ],
)
def test_any_form_becomes_sentences(value: Any, expected: tuple[str, ...]) -> None:
    """Text, lists and objects all say something, and a key that says more than "advice" stays (S4)."""
    assert sentences(value) == expected


def test_an_endless_object_ends() -> None:
    """A review may be nested deep or long: the feedback stays bounded (S4)."""
    deep: Any = "x"
    for _ in range(50):
        deep = {"a": deep}
    assert sentences(deep) == ()
    assert len(sentences([str(number) for number in range(5_000)])) == 1_000


def test_each_part_of_a_review_has_its_place() -> None:
    """General, by agent, priority and success come from the parts of a review that say so (S4)."""
    pattern = {"name": "analogy", "count": 3}
    content = content_of(
        {
            "critique": {
                "common_patterns": ["short proofs", pattern],
                "agent_feedback": {"Curator": "be brief", "Scout": ["look wider"]},
                "iteration_improvements": {"general": ["test more"]},
            },
            "research_overview": {"next_priorities": ["kinases"]},
        }
    )
    assert content.general_recommendations == ("test more",)
    assert content.agent_specific == {"Curator": ("be brief",), "Scout": ("look wider",)}
    assert content.priority_improvements == ("kinases",)
    assert content.success_patterns == ("short proofs", pattern)


def test_a_changed_review_has_another_version() -> None:
    """The version names what a review says, not when it was stored (S5)."""
    review = {"iteration_number": 3, "timestamp": "2026-01-01T00:00:00Z", "critique": {"agent_feedback": {"a": "x"}}}
    later = {**review, "timestamp": "2026-01-02T00:00:00Z"}
    changed = {**review, "critique": {"agent_feedback": {"a": "y"}}}
    assert version_of(review) == version_of(later) != version_of(changed)
    assert version_of(review).startswith("3-")
    assert version_of({}) == ""


@pytest.mark.parametrize(
    ("names", "agent", "expected"),
    [
        (["Evolution Agent", "evolution"], "evolution", "evolution"),
        (["evolution"], "Evolution Agent", "evolution"),
        (["Evolution-Agent"], "evolution_agent", "Evolution-Agent"),
        (["Review Agent", "review"], "REVIEW", ""),
        (["Agent"], "agent", "Agent"),
        (["Ranker"], "Scout", ""),
    ],
)
def test_an_agent_is_found_by_a_name_written_alike(names: list[str], agent: str, expected: str) -> None:
    """A review may write an agent's name its own way, as long as only one can be meant (S4)."""
    assert name_in(names, agent) == expected

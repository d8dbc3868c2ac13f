"""Recall within bounds: an agent restricts what its question brings back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs.errors import QueryInvalid
from memfs.model import MemoryItem, Query
from memfs.model.episode import StateSnapshot
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


class Oracle:
    """A source that answers whatever is asked."""

    name = "oracle"
    layer = "on_demand"

    async def get_context(self, state: StateSnapshot) -> str:
        """Says one thing."""
        return "Oracle:\n- Ask again at noon"

    def configure(self, config: dict[str, Any]) -> None:
        """Takes anything."""


def test_a_question_is_answered_within_its_filters(opened: Opened) -> None:
    """Only items that pass the filters answer, and no source that knows none is asked (B5, P1)."""
    workspace = opened()
    workspace.store.put(MemoryItem("Deploys go to Frankfurt", "knowledge", id="new", tags=("ops",)))
    workspace.store.put(MemoryItem("Deploys went to Dublin", "episodic", id="old"))
    deliverer = workspace.sources.delivery.apart({})
    deliverer.plugins.add(Oracle())
    recall = deliverer.recall
    everything = recall("where do deploys go")
    assert {"new", "old"} <= set(everything.ids)
    assert "at noon" in everything.text
    within = recall("where do deploys go", within=Query(types=frozenset({"knowledge"}), text="ignored", limit=1))
    assert within.ids == ("new",)
    assert "at noon" not in within.text
    assert recall("deploys", within=Query(tags=frozenset({"ops"}))).ids == ("new",)
    with pytest.raises(QueryInvalid, match="knowledg"):
        recall("deploys", within=Query(types=frozenset({"knowledg"})))


def test_the_limit_is_the_questions_own(opened: Opened) -> None:
    """How many items answer is said with the question, whatever its filters say of it (B5)."""
    workspace = opened()
    for place in ("Frankfurt", "Dublin", "Paris"):
        workspace.store.put(MemoryItem(f"A deploy went to the servers in {place}, and {place} only", "knowledge"))
    within = Query(types=frozenset({"knowledge"}), limit=1)
    assert len(workspace.sources.delivery.recall("deploy", limit=3, within=within).ids) == 3

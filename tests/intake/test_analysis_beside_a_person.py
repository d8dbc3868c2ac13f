"""Failures are analysed while a person edits the episodes that teach something (P4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs import MemoryItem, Workspace
from memfs.model import Query
from memfs.model.episode import Action, Episode, StateSnapshot


def test_an_episode_that_is_edited_meanwhile_costs_no_rule(
    opened: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody saves in the moment in which a rule is learned is kept, and the rule is learned all the same."""
    workspace = opened()
    for number in range(3):
        state = StateSnapshot.create([f"db/{number}.sql"], "write a migration for the orders table", tool="Edit")
        workspace.sources.episodes.record(
            Episode.create(state, Action("Edit", "altered it"), "failure", "lock timeout")
        )
    real = workspace.store.batch
    edited: list[MemoryItem] = []

    def batch(*values: Any, **named: Any) -> Any:
        if not edited:
            episode = workspace.store.select(Query(types=frozenset({"episodic"}), limit=1))[0]
            edited.append(workspace.store.put(episode.replace(tags=("looked-at",))))
        return real(*values, **named)

    monkeypatch.setattr(workspace.store, "batch", batch)
    assert len(workspace.sources.rules.analyze_failures()) == 1
    kept = workspace.store.get(edited[0].id)
    assert kept is not None
    assert kept.tags == ("looked-at",)

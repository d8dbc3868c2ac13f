"""Decay: what is old and unused sinks when agents ask, and comes back by use (P7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from memfs import MemoryItem, MemoryLayer, Workspace
from memfs.model.time import utc_now

Opened = Callable[..., Workspace]

OLD = "Deploying with the old token failed: the token had expired, and the deploy token was refused."
NEW = "Deploying on Friday failed, as nobody was there who knew of the token."


@pytest.fixture
def layer(opened: Opened) -> Callable[..., MemoryLayer]:
    """A layer over a workspace with two episodes: an old one that says more of the question, and a recent one."""

    def make(**settings: object) -> MemoryLayer:
        workspace = opened(**settings)
        now = utc_now()
        for name, text, days in (("old", OLD, 400), ("new", NEW, 1)):
            workspace.store.put(MemoryItem(text, "episodic", id=name, timestamp=now - timedelta(days=days)))
        return MemoryLayer(workspace=workspace)

    return make


def _first(layer: MemoryLayer) -> str:
    answer = asyncio.run(layer.recall("deploy token"))
    places = {name: answer.find(text[:20]) for name, text in (("old", OLD), ("new", NEW))}
    assert min(places.values()) >= 0
    return min(places, key=lambda name: places[name])


def test_an_old_episode_sinks_and_comes_back_by_use(layer: Callable[..., MemoryLayer]) -> None:
    """P7: what nobody asked for in a year comes after what is recent; once it was brought back it does not."""
    made = layer()
    assert _first(made) == "new"
    made.workspace.usage.flush()
    assert _first(made) == "old"


def test_without_decay_the_words_decide(layer: Callable[..., MemoryLayer]) -> None:
    """P7: memory.decay = false leaves age out."""
    assert _first(layer(**{"memory.decay": False})) == "old"


def test_a_pinned_episode_does_not_sink(layer: Callable[..., MemoryLayer]) -> None:
    """P7: what a person pinned stays where it is."""
    made = layer()
    old = made.workspace.store.get("old")
    assert old is not None
    made.workspace.store.put(old.replace(pinned=True))
    assert _first(made) == "old"

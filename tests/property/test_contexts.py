"""A context is a mapping: whatever is set, it holds exactly what a dictionary would (L4)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memfs.errors import ContentError
from memfs.workspace import Workspace

KEYS = st.sampled_from(["phase", "ticket", "no", "1:30", "a b", "é", "x.y", "- z"])
LEAVES = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text("aZ \n:#-'\"[]{},0é", max_size=12)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
STEPS = st.lists(st.dictionaries(KEYS, VALUES))
NUMBERS = itertools.count()


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """One workspace for all examples; each has a context of its own name."""
    return opened()


@given(steps=STEPS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_context_holds_what_a_dictionary_would(workspace: Workspace, steps: list[dict[str, Any]]) -> None:
    """After each step the keys have their latest values, and there are no others."""
    name = f"c{next(NUMBERS)}"
    model: dict[str, Any] = {}
    for given_ in steps:
        try:
            left = workspace.contexts.set(given_, name)
            model.update(given_)
        except ContentError:  # refused as a whole, so that nothing changed
            left = workspace.contexts.read(name)
        assert left == model
    assert workspace.contexts.read(name) == model

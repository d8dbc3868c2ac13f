"""The first question of all: what the index is made of is not read again for the table of episodes and rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from memfs.errors import StorageIO
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.search.trigger_table import FILE
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
EDIT = StateSnapshot.create(["src/auth.py"], "change the login")


def recorded(opened: Open) -> Path:
    """A workspace with episodes, of which this user's cache knows nothing; its folder."""
    workspace = opened()
    for number in range(3):
        error = f"error {number}"
        workspace.sources.episodes.record(Episode.create(EDIT, Action("edit", f"step {number}"), "failure", error))
    workspace.close()
    for cache in Path.home().rglob(f"{FILE}*"):
        cache.unlink()
    return workspace.root


def test_a_file_is_read_once_for_index_and_table(opened: Open) -> None:
    """After a clone the first warning takes a quarter less time; nothing of it is held afterwards (design 14)."""
    workspace = opened(recorded(opened))
    with patch.object(workspace.store, "load", side_effect=AssertionError("read again")):
        assert workspace.sources.triggers.count() == 3
    assert workspace.sources.triggers._rows._first is None
    assert len(workspace.sources.episodes.find_similar(EDIT)) == 3


def test_what_changed_since_the_index_was_made_is_read_again(opened: Open) -> None:
    """What was read counts only for the very bytes that the index holds now."""
    workspace = opened(recorded(opened))
    triggers = workspace.sources.triggers
    with patch.object(triggers._rows._cache, "load", side_effect=lambda _: _spoilt(triggers._rows._first)):
        assert triggers.count() == 3
    assert {row.error for row in triggers.rows()} == {"error 0", "error 1", "error 2"}


def _spoilt(first: dict[str, tuple[object, str]] | None) -> list[object]:
    """Nothing is kept; meanwhile the files came to hold something else than what was read of them."""
    assert first
    for path, (item, _) in first.items():
        first[path] = (item, "0" * 40)
    return []


def test_a_first_look_that_fails_leaves_nothing_behind(opened: Open) -> None:
    """A disk that gives nothing at that moment costs that question alone."""
    workspace = opened(recorded(opened))
    triggers = workspace.sources.triggers
    failing = patch.object(workspace.store, "follow", side_effect=StorageIO("no answer", path="x"))
    with failing, pytest.raises(StorageIO):
        triggers.count()
    assert triggers._rows._first is None
    assert triggers.count() == 3

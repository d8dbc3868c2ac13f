"""Edits by hand become commits in a process that only writes (S18)."""

from __future__ import annotations

from collections.abc import Callable

from memfs.upkeep.adopting import Adopter
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]

CONFIG = "ContextMemory/configuration/system_config.json"


def test_a_process_that_writes_for_long_commits_edits_that_rested(opened: Opened, git: Git) -> None:
    """A supervisor's process never asks the search, so that nothing watches: it looks itself, once a minute (S18)."""
    workspace = opened()
    workspace.store.flush(adopt=True)
    now = [0.0]
    adopter = Adopter(workspace.store, 0.0, lambda: now[0])
    (workspace.root / CONFIG).write_text('{"update_interval_seconds": 60}\n')

    now[0] = 59.0
    adopter.keep_up()
    assert workspace.store.hand_edits() == [CONFIG]
    now[0] = 61.0
    adopter.keep_up()

    assert workspace.store.hand_edits() == []
    assert "update_interval_seconds" in git(workspace.root, "show", f"HEAD:{CONFIG}")


def test_edits_are_taken_over_by_themselves_only_where_the_settings_say_so(opened: Opened) -> None:
    """``history.adopt = "leave"`` leaves them to the person (S18)."""
    chores = [
        len(opened(**{"history.adopt": adopt}).store._parts.gate.chores)  # type: ignore[attr-defined]
        for adopt in ("leave", "auto")
    ]
    assert chores[1] == chores[0] + 1

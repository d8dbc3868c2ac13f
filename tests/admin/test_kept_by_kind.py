"""Memories of a type that is kept for so many days go into the archive, and come back (S15)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs import MemoryItem
from memfs.model.ids import stem_of
from memfs.model.time import utc_now
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
CONFIGURATION = "ContextMemory/configuration"


def write_policy(root: Path, **values: Any) -> None:
    """Write the retention policy by hand."""
    (root / CONFIGURATION / "retention_policy.json").write_text(json.dumps(values))


def later(workspace: Workspace, days: float) -> Workspace:
    """The same workspace, so many days on, with nothing looked at yet."""
    parts = workspace.parts
    object.__setattr__(parts, "clock", lambda: utc_now() + timedelta(days=days))
    workspace.__dict__.pop("pruner", None)
    return workspace


def ids(workspace: Workspace) -> set[str]:
    """The ids of what is remembered."""
    return {stem_of(path) for path in workspace.parts.index.stamps()}


@pytest.fixture
def talk(opened: Opened) -> Workspace:
    """One memory each of a type that is kept for 30 days, one for a year, and one forever."""
    workspace = opened(history__commit="session")
    for kind in ("interaction", "episodic", "knowledge"):
        workspace.store.put(MemoryItem(f"the {kind} of today", kind, id=f"one-{kind}"))
    workspace.store.put(MemoryItem("pinned talk", "interaction", id="pinned", pinned=True))
    workspace.store.flush()
    return workspace


def test_what_is_older_than_its_kind_is_kept_is_pruned(talk: Workspace, git: Git) -> None:
    """``prune`` moves it into the archive with the reason, from where it comes back; what is pinned stays (S15)."""
    assert later(talk, 29).pruner.prune(dry_run=True).items == ()
    done = later(talk, 31).pruner.prune()
    assert [(one.item.id, one.reason) for one in done.items] == [
        ("one-interaction", "interaction memories are kept for 30 days")
    ]
    assert ids(talk) == {"one-episodic", "one-knowledge", "pinned"}
    talk.store.flush()
    assert "interaction memories are kept for 30 days" in git(talk.root, "log", "-1", "--format=%s")
    assert {one.item.id for one in later(talk, 400).pruner.prune(dry_run=True).items} == {"one-episodic"}
    talk.history.restore("HEAD~1", "one-interaction")
    back = talk.store.find("one-interaction")
    assert back.content == "the interaction of today"
    then = (utc_now() + timedelta(days=31)).timestamp()
    os.utime(talk.root / back.path, (then, then))  # as it is when it is brought back on that day
    assert later(talk, 31).pruner.prune(dry_run=True).items == ()


def test_the_policy_wins_over_the_kind(talk: Workspace) -> None:
    """``retention_policy.kinds`` keeps a type for longer, forever, or for less (S15)."""
    write_policy(talk.root, kinds={"interaction": 0, "knowledge": 5})
    assert {one.item.id for one in later(talk, 31).pruner.prune(dry_run=True).items} == {"one-knowledge"}
    write_policy(talk.root, kinds={"interaction": 60})
    assert later(talk, 31).pruner.prune(dry_run=True).items == ()
    assert {one.item.id for one in later(talk, 61).pruner.prune(dry_run=True).items} == {"one-interaction"}


def test_each_reason_is_reported(talk: Workspace, git: Git) -> None:
    """Where several types are due, the result and the commit say for how long each is kept (S15)."""
    write_policy(talk.root, kinds={"knowledge": 5})
    done = later(talk, 31).pruner.prune()
    both = ["interaction memories are kept for 30 days", "knowledge memories are kept for 5 days"]
    assert sorted(done.reason.split("; ")) == both
    talk.store.flush()
    message = " ".join(git(talk.root, "log", "-2", "--format=%B").split())
    assert [one for one in both if one not in message] == [], message


def test_it_goes_by_itself_only_where_somebody_asked_for_it(talk: Workspace) -> None:
    """Anyone who writes takes along what the policy names, and leaves what only a built-in kind says (S15, D1)."""
    later(talk, 400)
    talk.quota.maintain()
    assert "one-episodic" in ids(talk)
    write_policy(talk.root, kinds={"knowledge": 5}, archive={"enabled": False})
    later(talk, 400).quota.maintain()
    assert "one-knowledge" in ids(talk)
    write_policy(talk.root, kinds={"knowledge": 5})
    later(talk, 400).quota.maintain()
    assert ids(talk) == {"one-episodic", "one-interaction", "pinned"}
    talk.store.flush()
    pruned = talk.history.log("one-knowledge")[0].commit
    talk.history.restore(f"{pruned}~1", "one-knowledge")
    talk.quota.maintain()
    assert "one-knowledge" in ids(talk)  # it was looked at within the hour


def test_nothing_goes_by_itself_where_the_person_commits(opened: Opened) -> None:
    """In a repository that memfs joined, what the policy names goes when somebody prunes, not before (D1)."""
    workspace = opened(history__commit="manual")
    workspace.store.put(MemoryItem("Old news", "knowledge", id="old"))
    write_policy(workspace.root, kinds={"knowledge": 5})
    later(workspace, 400).quota.maintain()
    assert ids(workspace) == {"old"}
    assert [one.item.id for one in workspace.pruner.prune().items] == ["old"]


def test_a_custom_kind_says_how_long_it_is_kept(opened: Opened, tmp_path: Path) -> None:
    """``retention_days`` in ``kinds.yaml`` is obeyed, by itself too (S15, C2)."""
    first = opened(tmp_path / "w", history__commit="session")
    (first.root / CONFIGURATION / "kinds.yaml").write_text(
        "kinds:\n  social:\n    layer: semantic\n    description: Who is who.\n    retention_days: 3\n"
    )
    first.close()
    workspace = opened(tmp_path / "w", history__commit="session")
    workspace.store.put(MemoryItem("Ada knows the depot", "social", id="ada"))
    later(workspace, 2).quota.maintain()
    assert ids(workspace) == {"ada"}
    later(workspace, 4).quota.maintain()
    assert ids(workspace) == set()
    assert [item.id for item in workspace.pruner.pruned.list()] == ["ada"]


def test_what_came_in_lately_is_kept_however_long_ago_it_happened(opened: Opened) -> None:
    """An old conversation that was imported today is as new here as any (S15)."""
    workspace = opened()
    then = utc_now() - timedelta(days=700)
    workspace.store.put(MemoryItem("we met in the spring", "interaction", id="spring", timestamp=then))
    assert later(workspace, 29).pruner.prune(dry_run=True).items == ()
    assert len(later(workspace, 31).pruner.prune(dry_run=True).items) == 1


def test_nothing_is_due_while_the_policy_is_invalid(talk: Workspace) -> None:
    """A mistake in the file stops the pruning and is reported, and no write fails for it (S15)."""
    write_policy(talk.root, kinds={"knowledge": "five"})
    later(talk, 400).quota.maintain()
    assert "one-knowledge" in ids(talk)
    assert any("retention_policy" in f"{one.path}{one.message}" for one in talk.store.problems())

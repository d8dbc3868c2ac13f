"""RecentSessionMemory: what the last session before this one did."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from memfs.context.builtin_sources import RecentSessionMemory
from memfs.model import MemoryItem, Origin
from memfs.model.episode import Action, Episode, Outcome, StateSnapshot
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE = StateSnapshot.create(session="s3")


def source(workspace: Workspace, now: datetime = NOW) -> RecentSessionMemory:
    """The source at a set time."""
    return RecentSessionMemory(workspace.store, lambda: now)


def keep(workspace: Workspace, text: str, kind: str, session: str = "s2", ago: float = 1, **fields: Any) -> None:
    """Store what a session left behind so many hours ago."""
    made = {"timestamp": NOW - timedelta(hours=ago), "trust": "agent", **fields}
    workspace.store.put(MemoryItem(text, kind, origin=Origin(session=session, agent="coder"), **made))


def did(workspace: Workspace, deed: str, outcome: Outcome, error: str = "", ago: float = 1) -> None:
    """Record what session s2 did."""
    state = StateSnapshot.create(files=["a.py"], context=deed, session="s2", agent="coder")
    when = NOW - timedelta(hours=ago)
    workspace.sources.episodes.record(Episode.create(state, Action("edit", deed), outcome, error, timestamp=when))


def lines(plugin: RecentSessionMemory, state: StateSnapshot = HERE) -> list[str]:
    """What it says, by lines."""
    return str(plugin.select(state)).splitlines()


def test_it_says_what_is_left_what_failed_and_what_was_learned(opened: Open) -> None:
    """P3: open tasks, failures that were not put right, learnings; each with its item."""
    workspace = opened()
    did(workspace, "Rename login", Outcome.FAILURE, "tests broke", ago=5)
    did(workspace, "Move the config", Outcome.FAILURE, "path not found", ago=4)
    did(workspace, "Move the config", Outcome.SUCCESS, ago=3)
    did(workspace, "Add a test", Outcome.SUCCESS, ago=2)
    keep(workspace, "update the docs", "prospective", status="pending")
    keep(workspace, "already done", "prospective", status="done")
    keep(workspace, "The cache must be warmed first.", "semantic", metadata={"promoted_from": "working"})
    plugin = source(workspace)
    assert lines(plugin) == [
        "Last session (2026-03-01):",
        "- to do: update the docs",
        "- Rename login: failure: tests broke",
        "- The cache must be warmed first.",
    ]
    entries = plugin.select(HERE).entries
    assert all(entry.id and entry.trust == "agent" and "session s2" in entry.origin for entry in entries)


def test_it_is_brief_and_gives_some_of_each(opened: Open) -> None:
    """P3: at most ``max_items`` lines, none longer than a glance, and no sort crowds out the others."""
    workspace = opened()
    for number in range(6):
        keep(workspace, f"task number {number} " + "word " * 100, "prospective", importance=float(number))
    did(workspace, "Rename login", Outcome.FAILURE, "tests broke\nin many\nlines")
    keep(workspace, "The cache must be warmed first.", "semantic")
    plugin = source(workspace)
    plugin.configure({"max_items": 4})
    found = lines(plugin)
    assert [line[:25] for line in found[1:]] == [
        "- to do: task number 5 wo",
        "- to do: task number 4 wo",
        "- Rename login: failure: ",
        "- The cache must be warme",
    ]
    assert max(map(len, found)) <= 210
    plugin.configure({"max_items": 0})
    assert lines(plugin) == []


def test_the_present_session_and_older_ones_are_not_the_last(opened: Open) -> None:
    """P3: only the one before counts, whichever wrote last."""
    workspace = opened()
    keep(workspace, "from the present one", "semantic", session="s3", ago=0)
    keep(workspace, "from the last one", "semantic", session="s2", ago=2)
    keep(workspace, "from long before", "semantic", session="s1", ago=9)
    keep(workspace, "from nobody's", "semantic", session="", ago=1)
    keep(workspace, "from a web page", "semantic", session="s2", ago=1, trust="tool")
    assert lines(source(workspace))[1:] == ["- from the last one"]
    assert lines(source(workspace), StateSnapshot())[1:] == ["- from the present one"]


def test_a_session_long_ago_is_not_mentioned(opened: Open) -> None:
    """P3: after ``max_age_days`` there is no last session."""
    workspace = opened()
    keep(workspace, "from the last one", "semantic")
    assert lines(source(workspace, NOW + timedelta(days=13)))[1:] == ["- from the last one"]
    assert lines(source(workspace, NOW + timedelta(days=15))) == []


def test_a_session_that_never_ended_says_what_it_was_busy_with(opened: Open) -> None:
    """P3: a crash leaves working memory, which is all there is to go on."""
    workspace = opened()
    keep(workspace, "halfway through the parser", "working")
    assert lines(source(workspace))[1:] == ["- was busy with: halfway through the parser"]

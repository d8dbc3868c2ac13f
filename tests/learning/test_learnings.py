"""What was learned in a task (M4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs import MemoryItem, Workspace
from memfs.learning import consolidation
from memfs.learning.consolidation import extract_learnings, states_lesson
from memfs.model import Origin

pytestmark = pytest.mark.usefixtures("learning_written")

Opened = Callable[..., Workspace]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It turned out that the cache is never invalidated", True),
        ("The root cause was a stale lock file", True),
        ("Decided to use PostgreSQL for transactions", True),
        ("We learned that retries must be idempotent", True),
        ("Always run migrations before the deploy", True),
        ("Fixed it by pinning the version", True),
        ("The fix was to close the file", True),
        ("Use a queue instead of polling", True),
        ("Looked at the log file", False),
        ("Running the tests now", False),
        ("Should we decide on a database?", False),
        ("What turned out to be the root cause?", False),
    ],
)
def test_what_states_a_lesson(text: str, expected: bool) -> None:
    """Decisions, causes and lessons teach; doings and questions do not (M4)."""
    assert states_lesson(text) is expected


def test_a_task_leaves_its_lessons(opened: Opened) -> None:
    """When a task is completed, what its notes teach is kept as semantic items with their origin (M4)."""
    workspace = opened()
    note = "Looked at the cache. It turned out that the cache is never invalidated.\n- Always clear it after a deploy."
    origin = Origin(session="s1", task="t1", agent="coder")
    stored = workspace.store.put(MemoryItem(note, "working", origin=origin, context={"project": "shop"}))
    workspace.store.put(MemoryItem("We decided to rest now", "working", origin=Origin(session="s1", task="t2")))

    workspace.behaviours.fire("task_completed", {"task": "t1", "session": "s1", "outcome": "success"})

    found = workspace.recaller.search("cache deploy invalidated").hits
    kept = {hit.item.content: hit.item for hit in found if hit.item.type == "semantic"}
    assert set(kept) == {"It turned out that the cache is never invalidated.", "Always clear it after a deploy."}
    item = kept["Always clear it after a deploy."]
    assert (item.origin.task, item.origin.agent, item.trust) == ("t1", "coder", "agent")
    assert [(link.to, link.relation) for link in item.links] == [(stored.id, "derived_from")]
    assert (item.metadata, item.context) == ({"learned_from": "t1"}, {"project": "shop"})


def test_what_is_known_is_not_kept_again(opened: Opened) -> None:
    """The same lesson, also in other case, and from a second end of the task, stays one item (M4)."""
    workspace = opened()
    workspace.store.put(MemoryItem("always clear the cache after a deploy", "semantic"))
    for text in ("Always clear the cache after a deploy.", "The root cause was a stale lock file."):
        workspace.store.put(MemoryItem(text, "working", origin=Origin(session="s1")))
    facts = {"task": "t1", "session": "s1"}

    assert [item.content for item in extract_learnings(workspace.store, facts)] == [
        "The root cause was a stale lock file."
    ]
    assert extract_learnings(workspace.store, facts) == []


@pytest.mark.parametrize("facts", [{}, {"task": "", "session": None}, {"task": "unknown"}, {"outcome": 5, "task": "x"}])
def test_nothing_to_learn_from(opened: Opened, facts: dict[str, Any]) -> None:
    """A task without notes, or nobody's, teaches nothing (M4)."""
    workspace = opened()
    workspace.store.put(MemoryItem("Always clear the cache after a deploy", "working"))

    assert extract_learnings(workspace.store, facts) == []


def test_the_outcome_teaches_too(opened: Opened) -> None:
    """An outcome as text is read as a note is (M4)."""
    workspace = opened()

    (item,) = extract_learnings(
        workspace.store, {"task": "t1", "outcome": "Failed at first. The cause was a missing index on orders."}
    )

    assert item.content == "The cause was a missing index on orders."
    assert item.links == ()


def test_a_task_leaves_a_bounded_number(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much was noted, few learnings are kept, and no more than a few hundred notes read (L7)."""
    monkeypatch.setattr(consolidation, "MOST_LEARNINGS", 3)
    workspace = opened()
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"]
    text = "\n".join(f"Never feed {one} with {two} again." for one, two in zip(words, reversed(words), strict=True))
    workspace.store.put(MemoryItem(text, "working", origin=Origin(session="s1")))

    assert len(extract_learnings(workspace.store, {"session": "s1"})) == 3

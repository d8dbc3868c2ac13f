"""Behaviour rules: what a memory context does on an occasion (M4)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from memfs import MemoryContext, MemoryInjector, MemoryLayer
from memfs.model import MemoryItem, Query
from memfs.model.episode import StateSnapshot
from memfs.workspace import DEEPEST, Workspace

pytestmark = pytest.mark.usefixtures("learning_written")

Open = Callable[..., Workspace]
CONTEXT = "ContextMemory/configuration/memory_context.yaml"
SITUATION = {"tool": "deploy", "params": {"intent": "roll out the shop"}, "project": "shop"}


def rules(workspace: Workspace, *pairs: tuple[str, str]) -> None:
    """Let the workspace's memory context have exactly these rules."""
    rows = "".join(f"\n- trigger: {trigger}\n  action: {action}" for trigger, action in pairs)
    text = f"metadata: {{type: memory, name: Mine}}\nbehavior_rules:{rows or ' []'}\n"
    (workspace.root / CONTEXT).write_text(text)


def pattern(**data: Any) -> MemoryItem:
    """A pattern as it is stored."""
    examples = ["create user login", "Create admin login", "create guest login"]
    return MemoryItem(
        "create {variable} login",
        "pattern",
        id="create-login-1a2b3c4d",
        context={"project": "shop"},
        data={"pattern_type": "interaction", "examples": examples, "occurrences": 3, "confidence": 0.75, **data},
    )


@pytest.fixture
def workspace(opened: Open) -> Workspace:
    """A workspace that knows how the shop is rolled out."""
    workspace = opened()
    workspace.store.put(MemoryItem("Deploy the shop with make ship", "procedural", context={"project": "shop"}))
    workspace.store.put(MemoryItem("The canteen closes at two", "knowledge"))
    return workspace


def test_an_accessed_context_gets_what_is_relevant(workspace: Workspace) -> None:
    """``context_accessed`` adds type, content, relevance and context of what the situation asks for (M4, M6)."""
    before = {"task": "ship it"}
    given = workspace.reactions.access(before, SITUATION)

    (row,) = given["relevant_memories"]
    assert (row["type"], row["content"]) == ("procedural", "Deploy the shop with make ship")
    assert (row["context"], row["relevance"] > 0) == ({"project": "shop"}, True)
    assert (given["task"], before) == ("ship it", {"task": "ship it"})


def test_all_of_a_situation_are_the_circumstances(workspace: Workspace) -> None:
    """What was noted in the circumstances of the situation comes first, and relevance is reported as 0 to 1 (M6)."""
    for key, circumstances in (("a-blog", {"tool": "build"}), ("b-shop", {"tool": "deploy"})):
        workspace.store.put(MemoryItem("To deploy take the lock", "knowledge", id=key, context=circumstances))

    rows = workspace.reactions.access({}, {"tool": "deploy", "params": {"intent": "take the lock"}})[
        "relevant_memories"
    ]

    assert rows[0]["context"] == {"tool": "deploy"}
    assert [0 <= row["relevance"] <= 1 for row in rows] == [True] * len(rows)


@pytest.mark.parametrize("situation", [{}, {"tool": ""}, {"tool": "xylophone"}, {"params": "no mapping"}])
def test_nothing_relevant_changes_nothing(workspace: Workspace, situation: dict[str, Any]) -> None:
    """A situation that asks nothing, or that nothing is known of, leaves the context as it was (M6)."""
    assert workspace.reactions.access({"task": "t"}, situation) == {"task": "t"}


@pytest.mark.parametrize("door", ["injector", "layer", "cli", "hook"])
def test_every_door_that_gives_context_obeys_the_rules(workspace: Workspace, door: str) -> None:
    """What gives an agent context raises ``context_accessed``, and gives nothing where no rule injects memories;
    what is asked for is answered all the same (M4).
    """
    workspace.store.put(MemoryItem("Always run make lint", "preference", trust="human"))
    accessed: list[Any] = []
    workspace.behaviours.on("context_accessed", accessed.append)

    def given() -> str:
        if door == "injector":
            memory = MemoryContext(workspace=workspace)
            return str(MemoryInjector(memory).inject({"task": "t"}, SITUATION).get("relevant_memories", ""))
        if door == "layer":
            return asyncio.run(MemoryLayer(workspace=workspace).get_automatic())
        event = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": str(workspace.root)}
        command = [
            sys.executable,
            "-m",
            "memfs",
            *(["agent", "inject"] if door == "cli" else ["hook", "--into=repository"]),
        ]
        done = subprocess.run(
            command, cwd=workspace.root, input=json.dumps(event), capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert "with make ship" in (context := given()) or "make lint" in context
    assert bool(accessed) == (door in ("injector", "layer"))  # the others are handles of their own
    rules(workspace, ("task_completed", "extract_learnings"))
    assert "make" not in given()
    assert workspace.recaller.search("make lint").hits


def test_a_rule_that_is_left_out_is_not_carried_out(workspace: Workspace) -> None:
    """The memory context decides, from its next version on (M4)."""
    rules(workspace)
    without = workspace.reactions.access({}, SITUATION)
    rules(workspace, ("context_accessed", "inject_relevant_memories"))

    assert without == {}
    assert "relevant_memories" in workspace.reactions.access({}, SITUATION)


def test_a_found_pattern_becomes_reusable_knowledge_once(workspace: Workspace) -> None:
    """``pattern_detected`` makes one item that states the pattern as text, no matter how often it is raised (M4)."""
    for _ in range(3):
        workspace.behaviours.fire("pattern_detected", {"pattern": pattern(), "found": True})
    workspace.behaviours.fire("pattern_detected", {"pattern": pattern(), "found": False})

    (made,) = workspace.store.select(Query(text="login", types=frozenset({"knowledge"})))
    assert made.content == (
        'What keeps coming up in interaction: "create {variable} login".\n'
        "So far with: user, admin, guest.\nIt holds where project is shop."
    )
    assert [(link.to, link.relation) for link in made.links] == [("create-login-1a2b3c4d", "derived_from")]
    assert made.context == {"project": "shop"}
    assert workspace.store.problems() == []


def test_a_pattern_that_held_again_makes_nothing(workspace: Workspace) -> None:
    """Knowledge that a person took away does not come back (M4)."""
    workspace.behaviours.fire("pattern_detected", {"pattern": pattern(), "found": False})

    assert workspace.store.select(Query(text="login")) == []


def test_a_completed_task_leaves_what_it_taught(workspace: Workspace) -> None:
    """``task_completed`` keeps decisions and lessons of the task's notes, unless the context has no such rule (M4)."""
    facts = {"task": "SHOP-12", "session": "s1", "outcome": "It turned out that the cache was never cleared"}
    rules(workspace)
    workspace.behaviours.fire("task_completed", facts)
    without = workspace.store.select(Query(types=frozenset({"semantic"})))
    rules(workspace, ("task_completed", "extract_learnings"), ("task_completed", "extract_learnings"))
    workspace.behaviours.fire("task_completed", facts)
    workspace.behaviours.fire("task_completed", facts)

    assert without == []
    (learned,) = workspace.store.select(Query(types=frozenset({"semantic"})))
    assert "the cache was never cleared" in learned.content


@pytest.mark.parametrize(
    "broken",
    ["metadata: {type: memory}\n", "metadata: {type: memory, name: x}\nintent_context: {extends: ../../../x.yaml}\n"],
    ids=["invalid", "outside"],
)
def test_rules_that_cannot_be_read_forbid_nothing_at_any_door(workspace: Workspace, broken: str) -> None:
    """With an invalid memory context the injector and the delivery give what is remembered, and it is reported (M4)."""
    (workspace.root / CONTEXT).parent.mkdir(parents=True, exist_ok=True)
    (workspace.root / CONTEXT).write_text(f"{broken}behavior_rules: []\n")
    workspace.store.put(MemoryItem("Always write tests", "preference"))

    assert "make ship" in str(workspace.reactions.access({}, SITUATION))
    assert "Always write tests" in str(workspace.sources.delivery.automatic(StateSnapshot()).texts)
    workspace.behaviours.fire("task_completed", {"task": "t", "session": "s", "outcome": "the cache was cleared"})
    assert workspace.store.select(Query(types=frozenset({"semantic"}))) == []
    assert any("memory_context" in problem.message for problem in workspace.store.problems())


def test_rules_that_cause_one_another_end(workspace: Workspace) -> None:
    """However occasions raise occasions, the chain ends at its stated depth (L7)."""
    raised: list[str] = []

    def again(facts: object) -> None:
        raised.append("once")
        workspace.behaviours.fire("pattern_detected", {"pattern": pattern(), "found": True})
        workspace.reactions.access({}, SITUATION)

    workspace.behaviours.on("context_accessed", again)
    workspace.behaviours.on("pattern_detected", lambda facts: workspace.reactions.access({}, SITUATION))
    workspace.reactions.access({}, SITUATION)

    assert 0 < len(raised) <= 2**DEEPEST
    assert any("deep" in problem.message for problem in workspace.store.problems())

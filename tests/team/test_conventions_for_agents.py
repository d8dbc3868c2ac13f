"""Only accepted conventions reach agents, by whichever door they come (K8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest

from memfs import MemoryItem, Workspace
from memfs.doors.mcp import memory_tools
from memfs.facades.memory_context import MemoryContext
from memfs.facades.memory_layer import MemoryLayer
from memfs.facades.pipelines import RetrievalPipeline, TimeWeightedRetrieval
from memfs.learning.consolidation import relevant
from memfs.sessions.respond import Responder
from memfs.sessions.spool import SessionLocation, parse
from tests.doors.agent_tool import tool

Opened = Callable[..., Workspace]
QUESTION = "how do we name the branches of the payment service"
HELD, NOT = "ticket number", ("a color", "a planet", "a river", "a flower")
"""What the accepted one says, and what those say that are not accepted."""


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One with an accepted convention, and one of each sort that is not."""
    workspace = opened(memory__automatic=["conventions", "preferences"])
    rows = [
        ("accepted", "human", HELD),
        ("proposed", "human", NOT[0]),
        ("retired", "human", NOT[1]),
        ("", "human", NOT[2]),
        ("accepted", "agent", NOT[3]),
    ]
    for number, (status, trust, text) in enumerate(rows):
        content = f"Branches of the payment service are named after {text}."
        workspace.store.put(
            MemoryItem(
                content, "convention", id=f"naming-{number}", status=status, trust=trust, importance=number + 1.0
            )
        )
    return workspace


def doors(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """What each door gives an agent that asks, or that begins to work."""
    yield "a tool's search", tool(workspace, "memory_search", query=QUESTION)["memories"]
    among = tool(workspace, "memory_search", query=QUESTION, types=["convention"])
    yield "a tool's search among types", among["memories"]
    yield "the beginning of a task", tool(workspace, "memory_context")["memories"]
    yield "a tool's list", " ".join(row["title"] for row in tool(workspace, "memory_list")["items"])
    layer = MemoryLayer(workspace=workspace)
    yield "the layer's recall", asyncio.run(layer.recall(QUESTION))
    yield "a situation", json.dumps(relevant(workspace.recaller, {"tool": QUESTION}))
    place = SessionLocation.within(workspace.root, workspace.repository.state)
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": QUESTION}
    yield "a prompt's hook", Responder(workspace, parse(json.dumps(event).encode()), place).at_prompt()
    start = {"hook_event_name": "SessionStart", "session_id": "s2"}
    yield "a session's hook", Responder(workspace, parse(json.dumps(start).encode()), place).at_start()
    yield "seed 002", " ".join(one.content for one in MemoryContext(workspace=workspace).recall(QUESTION))
    pipeline = RetrievalPipeline(workspace=workspace)
    yield "seed 003", " ".join(one.content for one in pipeline.retrieve(QUESTION))
    yield "seed 003, several", " ".join(one.content for one in pipeline.batch_retrieve([QUESTION])[QUESTION])
    weighted = TimeWeightedRetrieval(workspace=workspace).retrieve_time_weighted(QUESTION)
    yield "seed 003, by time", " ".join(one.content for one in weighted)
    yield "AGENTS.md", workspace.sources.agents_block.text()


def test_no_door_gives_what_is_not_accepted(workspace: Workspace) -> None:
    """Neither a proposal, nor a retired one, nor one without status, nor one that an agent accepted itself (K8)."""
    given = dict(doors(workspace))
    assert [name for name, text in given.items() if HELD not in text] == []
    assert [(name, word) for name, text in given.items() for word in NOT if word in text] == []


def test_an_agent_finds_its_own_proposal_where_it_asks_for_conventions(workspace: Workspace) -> None:
    """By its id, and in a list of conventions, with its status: it can fix what it proposed (K8)."""
    listed = tool(workspace, "memory_list", types=["convention"])["items"]
    assert {row.get("status", "") for row in listed} == {"accepted", "proposed", "retired", ""}
    assert tool(workspace, "memory_get", id="naming-1")["status"] == "proposed"
    assert tool(workspace, "memory_update", id="naming-1", status="accepted")["trust"] == "agent"
    assert workspace.store.find("naming-1").status == "accepted"
    assert NOT[0] not in tool(workspace, "memory_search", query=QUESTION)["memories"]
    workspace.sources.agreements.decide(["naming-1"], "accepted")
    assert NOT[0] in tool(workspace, "memory_search", query=QUESTION)["memories"]


def test_a_tools_list_says_the_status(workspace: Workspace) -> None:
    """Anyone who lists conventions by a tool sees which of them hold (K8)."""
    row = memory_tools.brief(workspace.store.find("naming-1"))
    assert row["status"] == "proposed"

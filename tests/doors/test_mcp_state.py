"""The MCP server's tools for the state of a multi-agent system, used by the SDK's own client (D8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs import ContextMemory
from memfs.doors.mcp import ToolSet
from memfs.doors.mcp.tools import NAMES, STATE, WRITING
from memfs.errors import SettingInvalid
from memfs.workspace import Workspace
from tests.doors.test_mcp_tools import Talk, using

Opened = Callable[..., Workspace]
WITH_STATE: dict[str, Any] = {"tools": ToolSet.chosen(state=True)}


def test_state_tools_are_there_for_those_who_ask_for_them(opened: Opened) -> None:
    """D8: a server has none of them unless it was started with ``--state``, or they are named."""
    assert ToolSet.chosen().names == NAMES
    assert ToolSet.chosen(state=True).names == (*NAMES, *STATE)
    assert ToolSet.chosen(["search", "state_get"]).names == ("memory_search", "state_get")
    assert not WRITING & set(ToolSet.chosen(state=True, read_only=True).names)
    with pytest.raises(SettingInvalid, match="state_resume"):
        ToolSet.chosen(["state_resum"])

    async def listed(talk: Talk) -> None:
        tools = (await talk.client.list_tools()).tools
        assert [tool.name for tool in tools] == [*NAMES, *STATE]

    using(opened(), listed, **WITH_STATE)


def test_an_agent_hands_over_its_output_and_goes_on_in_another_session(opened: Opened, git: Callable[..., str]) -> None:
    """D8, S2, S9: an output, its state and its token reach the system; the commit carries the client's name."""
    workspace = opened()
    kept = {}

    async def first(talk: Talk) -> None:
        document = {"task_id": "t1", "results": {"primary_output": {"idea": "the depot"}, "confidence_score": 0.7}}
        reply = await talk(
            "state_store", kind="agent_output", document={**document, "state_data": {"internal_state": {"page": 3}}}
        )
        kept["token"] = reply["continuation_token"]
        assert reply["path"] in talk.text
        kept["other"] = (await talk("state_save", task="t2", state={"step": 1}, agent="Scout"))["token"]
        document = {"id": "h", "wins": 1}
        await talk("state_store", kind="hypothesis", document=document)
        for _ in range(2):  # two that read the same version
            await talk("state_store", kind="hypothesis", document={"id": "h", "wins": 2}, base=document)
        (found,) = (await talk("state_get", hypotheses=["h"]))["content"]["hypothesis_data"]
        assert found["wins"] == 3
        assert "leave it out" in await talk.refused("state_store", kind="meta_review", document={}, base={})
        assert "there is no kind 'output'" in await talk.refused("state_store", kind="output", document={})
        assert "results" in await talk.refused(
            "state_store", kind="agent_output", document={"task_id": "t1", "results": 3}
        )

    async def second(talk: Talk) -> None:
        assert (await talk("state_resume", token=kept["token"]))["state"] == {"page": 3}
        assert '"page": 3' in talk.text
        assert (await talk("state_resume", token=kept["other"]))["state"] == {"step": 1}
        assert "TokenInvalid" in await talk.refused("state_resume", token="ct-1-none")
        found = await talk("state_get", agents=["claude-code"])
        assert found["content"]["agent_states"]["claude-code"]["last_output"]["results"]["primary_output"] == {
            "idea": "the depot"
        }
        assert "Nothing in it is an" in talk.text

    using(workspace, first, **WITH_STATE).close()
    again = opened(workspace.root)
    using(again, second, **WITH_STATE)
    again.store.flush()
    assert "claude-code" in git(workspace.root, "log", "--format=%an")


def test_the_state_is_asked_for_in_part_and_by_number(opened: Opened) -> None:
    """D8, S3: what is named comes, unnamed the summary; too much is refused with what to do, and names are checked."""
    workspace = opened()
    with ContextMemory(workspace=workspace) as memory:
        for number in (1, 2):
            memory.start_iteration(number)
            memory.store_hypothesis({"id": f"h{number}", "state": "active", "text": "x" * 40_000})
            memory.close_iteration(number)

    async def asked(talk: Talk) -> None:
        summary = await talk("state_get")
        assert summary["request_type"] == "summary"
        (one,) = (await talk("state_get", iterations=["2"], components=["hypotheses"]))["content"]["hypothesis_data"]
        assert one["id"] == "h2"
        assert "ask for the request 'summary'" in await talk.refused("state_get", request="full", iterations=["1", "2"])
        assert "iterations" in await talk.refused("state_get", iterations=["last"])
        assert "request_type" in await talk.refused("state_get", request="everything")

    using(workspace, asked, **WITH_STATE)


def test_an_agent_gets_its_feedback(opened: Opened) -> None:
    """D8, S5: a review that one agent stores is what another is given; a server that only reads records nothing."""
    workspace = opened()

    async def reviewed(talk: Talk) -> None:
        review = {"iteration_number": 1, "critique": {"agent_feedback": {"Scout": ["read the logs"]}}}
        await talk("state_store", kind="meta_review", document=review)

    async def read_feedback(talk: Talk) -> None:
        assert "read the logs" in (await talk("state_feedback", agent="Scout"))["text"]
        assert "read the logs" in talk.text
        await talk("state_feedback")
        assert talk.text.startswith("There is no feedback for claude-code.")

    using(workspace, reviewed, **WITH_STATE).close()
    given = workspace.root / "ContextMemory/iterations/iteration_001/feedback/Scout.json"
    using(opened(workspace.root), read_feedback, tools=ToolSet.chosen(state=True, read_only=True)).close()
    assert not given.exists()
    using(opened(workspace.root), read_feedback, **WITH_STATE).close()
    assert given.exists()

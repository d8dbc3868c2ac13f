"""Agents of four kinds at once on one workspace: nothing is lost, and each finds what the others said (B5, C6).

A coding agent with hooks, a client of the MCP server, Claude's memory tool and a LangGraph store write at the same
time, each in processes of its own. What each was reported is stored must be there afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memfs import open_workspace
from memfs.model import Query

pytest.importorskip("mcp")
pytest.importorskip("anthropic")
pytest.importorskip("langgraph")

pytestmark = pytest.mark.usefixtures("learning_written")

EACH = 4
SECONDS = 90
TOOL = """
import sys
from memfs.doors.anthropic import MemfsMemoryTool
from anthropic.types.beta import BetaMemoryTool20250818CreateCommand as Create
from anthropic.types.beta import BetaMemoryTool20250818StrReplaceCommand as Replace
with MemfsMemoryTool(sys.argv[1], agent="scribe") as tool:
    tool.create(Create(command="create", path="/memories/depots.md", file_text="Depot 0 closes at noon\\n"))
    for n in range(1, int(sys.argv[2])):
        old, new = f"Depot {n - 1} closes", f"Depot {n - 1} opens at six. Depot {n} closes"
        tool.str_replace(Replace(command="str_replace", path="/memories/depots.md", old_str=old, new_str=new))
        print(n, flush=True)
"""
GRAPH = """
import sys
from memfs.doors.langgraph import MemfsStore
with MemfsStore(sys.argv[1]) as store:
    for n in range(int(sys.argv[2])):
        store.put(("fleet", "vans"), f"van-{n}", {"text": f"Van {n} needs winter tyres", "number": n})
        print(n, flush=True)
"""
SESSION: list[dict[str, Any]] = [
    {"hook_event_name": "SessionStart", "source": "startup"},
    {"hook_event_name": "UserPromptSubmit", "prompt": "No, always write dates like 2026-03-01 in reports."},
    {
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "make labels"},
        "error": "HTTP 409: label exists, cancel it first",
    },
    {"hook_event_name": "Stop", "last_assistant_message": "We decided to keep labels for 30 days for the customs."},
    {"hook_event_name": "UserPromptSubmit", "prompt": "I prefer the invoices sorted by carrier."},
    {"hook_event_name": "Stop", "last_assistant_message": "Done."},
]


Hook = Callable[[Path, str, dict[str, Any]], str]


@pytest.fixture
def hook(forked: Path) -> Hook:
    """Send one event as Claude Code does; returns the context for the agent."""
    return partial(send, forked)


def send(program: Path, root: Path, session: str, event: dict[str, Any]) -> str:
    """See ``hook``."""
    given = {"session_id": session, "transcript_path": "/nowhere", "cwd": str(root), **event}
    words = [str(program), "hook", event["hook_event_name"], "--into=repository"]
    done = subprocess.run(words, input=json.dumps(given), capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""


def program(python: Path, root: Path, code: str) -> list[str]:
    """Run an agent's program; returns what it was acknowledged."""
    words = [str(python), "-c", code, str(root), str(EACH)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def client(python: Path, root: Path, talk: Callable[[Any], Any]) -> Any:
    """Talk to the MCP server, started as a client starts it."""
    from mcp import Client, StdioServerParameters

    async def run() -> Any:
        words = ["-m", "memfs", "-C", str(root), "mcp"]
        server = StdioServerParameters(command=str(python), args=words, env=dict(os.environ))
        async with Client(server) as connected:
            return await talk(connected)

    return asyncio.run(run())


async def store_facts(connected: Any) -> list[str]:
    """What a client of the MCP server remembers; returns what it was answered."""
    answers = []
    for number in range(EACH):
        fact = f"Carrier {number} picks parcels up at gate {number + 10}"
        answer = await connected.call_tool("memory_store", {"content": fact, "type": "knowledge"})
        assert not answer.is_error, answer
        answers.append(str(answer.structured_content["id"]))
    return answers


def agents(python: Path, root: Path, hook: Hook) -> list[Callable[[], object]]:
    """The agents beside the MCP server's client."""
    return [
        lambda: [hook(root, "s1", event) for event in SESSION],
        lambda: program(python, root, TOOL),
        lambda: program(python, root, GRAPH),
    ]


def text_of(answer: Any) -> str:
    """What a tool of the MCP server says."""
    return "\n".join(part.text for part in answer.content)


def test_nothing_is_lost_and_each_finds_what_the_others_said(
    tmp_path: Path, git: Callable[..., str], hook: Hook, forked_python: Path
) -> None:
    """Four agents write at once; all of it is stored, committed and sound, and comes up at the others' doors (B5)."""
    root = tmp_path / "shop"
    open_workspace(root, create=True, watch=False).close()
    with ThreadPoolExecutor() as pool:
        facts = pool.submit(client, forked_python, root, store_facts)
        others = [pool.submit(work) for work in agents(forked_python, root, hook)]
        stored = facts.result(SECONDS)
        for other in others:
            other.result(SECONDS)

    hook(root, "s1", {"hook_event_name": "SessionEnd", "reason": "other"})
    context = hook(root, "s2", {"hook_event_name": "SessionStart", "source": "startup"})
    assert "always write dates like 2026-03-01" in context
    assert "invoices sorted by carrier" in context

    with open_workspace(root, watch=False) as workspace:
        workspace.store.flush()
        assert workspace.checker.check() == []
        assert all(workspace.store.get(name) for name in stored)
        notes = workspace.store.select(Query(types=frozenset({"note"})))
        vans = workspace.store.select(Query(types=frozenset({"entry"})))
        doors = git(root, "log", "--format=%(trailers:key=Memfs-Source,valueonly)").split()
    assert [note.content.count("Depot") for note in notes] == [EACH]
    assert len(vans) == EACH
    assert len(set(stored)) == EACH
    assert len(set(doors)) >= 4, doors

    # each finds what another one said
    prompt = {"hook_event_name": "UserPromptSubmit", "prompt": "At which gate does carrier 3 pick parcels up?"}
    assert "gate 13" in hook(root, "s2", prompt)
    asked = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make labels"}}
    assert "cancel it first" in hook(root, "s2", asked)

    async def search(connected: Any) -> list[str]:
        questions = ("which van needs winter tyres", "when does a depot close", "how are dates written in reports")
        return [text_of(await connected.call_tool("memory_search", {"query": question})) for question in questions]

    vans_found, depots_found, dates_found = client(forked_python, root, search)
    assert "winter tyres" in vans_found
    assert "closes at noon" in depots_found
    assert "2026-03-01" in dates_found

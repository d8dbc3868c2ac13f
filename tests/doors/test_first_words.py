"""What the doors say to somebody who does not know memfs yet: where things are, and what to do next."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from memfs.context.deliver import origin_of
from memfs.doors.claude_code.hook import Hook
from memfs.doors.cli.app import run
from memfs.doors.cli.parser import cli
from memfs.errors import ContentError, QueryInvalid
from memfs.fs.workspace_location import user_folder
from memfs.model import MemoryItem
from memfs.model.item import Origin, count_tokens
from memfs.sessions import spool
from memfs.sessions.extract import failure
from memfs.sessions.respond import Responder
from memfs.sessions.spool import SessionLocation, parse
from memfs.workspace import Workspace, open_workspace

ROOT = Path(__file__).resolve().parents[2]
Typed = Callable[..., tuple[int, str]]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Run ``memfs`` in a repository without a workspace: exit code and remarks."""
    (tmp_path / "P/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "P")

    def call(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        return run(arguments), capsys.readouterr().err

    return call


# -- where it is ----------------------------------------------------------------------------------------------------
def test_installing_says_how_to_look_and_how_to_stop(typed: Typed, tmp_path: Path) -> None:
    """C6: a command that works here says where the memories are, and the way back has the same scope."""
    output = typed("agent", "install", "claude-code", "--user")[1]
    way_back = "'memfs agent uninstall claude-code --user' turns it off"
    assert f"'memfs status --private' shows where and what it keeps; {way_back}" in output
    (tmp_path / "P/memfs.toml").write_text("")
    assert "keeps; 'memfs agent uninstall claude-code' turns" in typed("agent", "install", "claude-code")[1]
    into = typed("agent", "install", "claude-code", "--into", "repository")[1]
    assert "'memfs status' shows where and what it keeps" in into


def test_an_unknown_program_is_answered_with_the_known_ones(typed: Typed) -> None:
    """C6: what memfs cannot install is refused with the names of what it can."""
    code, output = typed("agent", "install", "emacs")
    assert (code, "'claude-code'" in output) == (2, True)


def test_what_is_not_an_event_is_reported_by_status(tmp_path: Path) -> None:
    """C6: a program that begins to speak otherwise is noticed; nothing is made for that where nothing is."""
    printed: list[str] = []
    Hook("Stop", into="repository", folder="", say=printed.append, complain=printed.append).run(b"[1")
    assert not user_folder().exists()
    with open_workspace(tmp_path / "W", create=True) as workspace:
        Hook("", into="repository", folder=str(workspace.root), say=printed.append, complain=printed.append).run(
            b'{"session_id": "s"}'
        )
        [problem] = spool.problems(workspace.repository.state)
    assert "no event is named" in problem.message
    assert printed[1].startswith("memfs hook: ")


def test_status_reports_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C6: a prompt becomes a memory with the agent's answer; until then status says that it is kept."""
    with open_workspace(tmp_path / "W", create=True) as workspace:
        root = workspace.root
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Always pin the base image."}
    Hook("", into="repository", folder=str(root), say=print, complain=print).run(json.dumps(payload).encode())
    monkeypatch.chdir(root)
    assert run(["status"]) == 0
    assert "events of 1 session wait" in capsys.readouterr().out
    Hook("", into="repository", folder=str(root), say=print, complain=print).run(
        b'{"hook_event_name": "Stop", "session_id": "s1"}'
    )
    assert run(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hooks"] == {"waiting": 0}


# -- to a model -----------------------------------------------------------------------------------------------------
def test_a_long_session_costs_an_entry_little() -> None:
    """P1: programs name sessions by 36 random characters."""
    assert origin_of(Origin(agent="a", session="s1")) == "agent a, session s1"
    long = "3f0c2a4e-9d0b-4a55-8a37-0f6c7c1d2e3f"
    assert origin_of(Origin(agent="a", session=long)) == "agent a"


def test_a_refused_secret_asks_nothing_of_a_model_that_it_cannot_do(opened: Callable[..., Workspace]) -> None:
    """S1: Claude is asked to leave it out, not by which option a person lets it in."""
    anthropic = pytest.importorskip("memfs.doors.anthropic")
    from anthropic.lib.tools import ToolError

    tool = anthropic.MemfsMemoryTool(workspace=opened())
    key = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    with pytest.raises(ToolError) as refused:
        tool.call({"command": "create", "path": "/memories/k.md", "file_text": f"use {key}"})
    assert "leave it out" in str(refused.value.content)
    assert "allow" not in str(refused.value.content).replace("a person can allow it", "")


def test_an_agent_with_nothing_to_be_reported_knows_that_it_may_ask(opened: Callable[..., Workspace]) -> None:
    """B5: "nothing" means what comes unasked; facts are found by a search."""
    pytest.importorskip("mcp")
    from mcp import Client

    from memfs.doors.mcp import build_server

    async def ask(workspace: Workspace) -> str:
        async with Client(build_server(opener=lambda: workspace).protocol) as client:
            result = await client.call_tool("memory_context", {"situation": "x"})
            return str(result.content[0].text)  # type: ignore[union-attr]

    assert "memory_search" in asyncio.run(ask(opened()))
    assert "memory_search" not in asyncio.run(ask(opened(memory__on_demand=False)))


def test_a_wish_that_an_agent_noted_says_that_it_waits(opened: Callable[..., Workspace]) -> None:
    """B5: it is searched at once, and given unasked only when a person vouches for it."""
    pytest.importorskip("mcp")
    from mcp import Client

    from memfs.doors.mcp import build_server

    async def keep(kind: str, content: str) -> str:
        async with Client(build_server(opener=lambda: workspace).protocol) as client:
            result = await client.call_tool("memory_store", {"content": content, "type": kind})
            return str(result.content[0].text)  # type: ignore[union-attr]

    workspace = opened()
    assert "before the person has reviewed it" in asyncio.run(keep("preference", "I prefer short commits"))
    assert "reviewed" not in asyncio.run(keep("semantic", "The gateway listens on port 8443"))


def test_a_wrong_argument_is_taken_for_the_one_that_is_missing() -> None:
    """B5: ``text`` for ``content``, not for the ``context`` that it resembles."""
    pytest.importorskip("mcp")
    from memfs.doors.mcp.tools import TOOLS, checked

    rows = TOOLS["memory_store"].arguments
    with pytest.raises(QueryInvalid) as refused:
        checked(rows, {"text": "x"})
    assert "did you mean 'content'?" in str(refused.value.hint)


def test_wishes_have_the_room_that_reminders_leave(opened: Callable[..., Workspace]) -> None:
    """C6: six short wishes and an intention fit into the beginning of a session as it comes."""
    workspace = opened()
    for number in range(6):
        workspace.sources.preferences.record(f"Always use tool {number} for job {number}.", session="s0" * 18)
    workspace.store.put(
        MemoryItem("Rotate the keys later.", memory_type="prospective", status="pending", id="rotate-keys")
    )
    context = Responder(
        workspace,
        parse(b'{"hook_event_name": "SessionStart", "session_id": "s1"}'),
        SessionLocation.within(workspace.root, workspace.repository.state),
    ).at_start()
    assert [f"tool {number} " in context for number in range(6)] == [True] * 6
    assert "Rotate the keys later." in context
    assert count_tokens(context) <= workspace.settings.hooks.start_tokens


def test_a_task_that_is_done_does_not_sound_like_one_to_do(opened: Callable[..., Workspace]) -> None:
    """C6: a completed todo's words are those of an order; what is given says that it was carried out."""
    workspace = opened()
    facts = {"task_type": "coding", "success": True}
    workspace.store.put(MemoryItem("Add the CSV export of invoices", memory_type="procedural", metadata=facts))
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "is there a CSV export of invoices?"}
    assert (
        "- Done: Add the CSV export"
        in Responder(
            workspace,
            parse(json.dumps(prompt).encode()),
            SessionLocation.within(workspace.root, workspace.repository.state),
        ).at_prompt()
    )


def test_the_commands_that_the_skill_teaches_are_there() -> None:
    """C6: a model types them word for word."""
    page = (ROOT / "plugins/claude-code/skills/memory/SKILL.md").read_text()
    taught = [shlex.split(line[2:]) for line in page.split("\n") if line.startswith("$ memfs ")]
    assert len(taught) > 5
    for _, verb, *words in taught:
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        command.make_context(verb, words, parent=click.Context(cli))


@pytest.mark.parametrize(
    "error",
    [
        "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
        "File has been modified since read, either by the user or by a linter. Read it again.",
        "Found 3 matches of the string to replace, but replace_all is false.",
    ],
)
def test_an_edit_that_did_not_take_is_no_lesson(error: str) -> None:
    """P4: the agent looks again and goes on; a warning at each later edit of the file would help nobody."""
    payload = {"session_id": "s1", "hook_event_name": "PostToolUseFailure", "tool_name": "Edit", "error": error}
    assert failure(parse(json.dumps({**payload, "tool_input": {"file_path": "a.py"}}).encode())) == ""
    ran = {**payload, "tool_name": "Bash", "tool_input": {"command": "python edit.py"}}
    assert failure(parse(json.dumps(ran).encode())) == error


# -- to a program ---------------------------------------------------------------------------------------------------
def test_a_value_that_is_not_a_mapping_is_named(opened: Callable[..., Workspace]) -> None:
    """B5: with what to write instead, and not by an error from within."""
    langgraph = pytest.importorskip("memfs.doors.langgraph")
    store = langgraph.MemfsStore(workspace=opened())
    with pytest.raises(ContentError, match="a value is a mapping, got list"):
        store.put(("a",), "k", ["x"])

"""The hook at the edges: what is given at the moment for it and not at another, and what a program must never see."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import memfs
from memfs.doors.claude_code import answer
from memfs.doors.claude_code.hook import LIMITS, Hook
from memfs.model import MemoryItem, Query
from memfs.model.episode import Action, Episode, Outcome
from memfs.model.time import utc_now
from memfs.sessions.extract import situation_of
from memfs.sessions.respond import FOLDER
from memfs.sessions.spool import Spool, parse
from memfs.workspace import Workspace

SETTINGS = {"index.engine": "memory", "history.commit": "manual"}
SendEvent = Callable[..., str]


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """A workspace without a memory."""
    return opened()


@pytest.fixture
def remarks() -> list[str]:
    """What hooks say on standard error."""
    return []


@pytest.fixture
def send_event(workspace: Workspace, remarks: list[str]) -> SendEvent:
    """Hands an event to the hook; what it prints."""

    def call(event: str, settings: dict[str, Any] | None = None, **fields: Any) -> str:
        payload = {"hook_event_name": event, "session_id": "s1", "cwd": str(workspace.root), **fields}
        printed: list[str] = []
        chosen = {**SETTINGS, **(settings or {})}
        Hook("", into="repository", settings=chosen, say=printed.append, complain=remarks.append).run(
            json.dumps(payload).encode()
        )
        return "".join(printed)

    return call


def _failed(workspace: Workspace, command: str, error: str) -> None:
    payload = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}}
    state = situation_of(parse(json.dumps(payload)), workspace.root)
    workspace.sources.episodes.record(Episode.create(state, Action("Bash", command), Outcome.FAILURE, error))


def _put(workspace: Workspace, content: str, **fields: Any) -> MemoryItem:
    return workspace.store.put(MemoryItem(content, **{"memory_type": "knowledge", **fields}))


# -- at the start -------------------------------------------------------------------------------------------------
def test_an_agent_that_is_named_gets_its_feedback_at_the_start(workspace: Workspace, send_event: SendEvent) -> None:
    """S5: a session of an agent (``agent_type``) begins with its feedback, also where nothing else is remembered."""
    with memfs.ContextMemory(workspace=workspace) as states:
        states.store_meta_review({"iteration_number": 1, "critique": {"agent_feedback": {"Scout": ["read the logs"]}}})
    assert send_event("SessionStart", source="startup") == ""
    reply = send_event("SessionStart", source="startup", agent_type="Scout")
    assert "read the logs" in reply
    assert "recall" not in reply
    assert list((workspace.root / "ContextMemory/iterations").glob("*/feedback/Scout.json"))
    assert "read the logs" not in send_event("SessionStart", source="startup", agent_type="Other")


def test_a_subagent_gets_its_feedback_when_it_begins(workspace: Workspace, send_event: SendEvent) -> None:
    """D8, S5: ``SubagentStart`` gives an agent what the meta-review says to it, once, and records that; it gives no
    memories, nothing to an agent that the review does not name, and nothing where feedback is off.
    """
    _put(workspace, "We deploy to Frankfurt")
    workspace.sources.preferences.record("Always use spaces, never tabs.")
    assert send_event("SubagentStart", agent_type="Scout", agent_id="a1") == ""
    with memfs.ContextMemory(workspace=workspace) as states:
        states.store_meta_review({"iteration_number": 1, "critique": {"agent_feedback": {"Scout": ["read the logs"]}}})
    assert send_event("SubagentStart") == ""
    assert send_event("SubagentStart", agent_type="Other", agent_id="a2") == ""
    off = {"memory.feedback.enabled": False}
    assert send_event("SubagentStart", settings=off, agent_type="Scout", agent_id="a1") == ""
    reply = send_event("SubagentStart", agent_type="Scout", agent_id="a1")
    assert "read the logs" in reply
    assert "spaces" not in reply
    assert list((workspace.root / "ContextMemory/iterations").glob("*/feedback/Scout.json"))
    assert send_event("SubagentStart", agent_type="Scout", agent_id="a1") == ""
    assert "read the logs" in send_event("SubagentStart", agent_type="Scout", agent_id="a3")


def test_where_agents_may_not_ask_nothing_says_how_to(workspace: Workspace, send_event: SendEvent) -> None:
    """P1: ``on_demand = false`` withdraws the way to ask everywhere."""
    workspace.sources.preferences.record("Always use spaces, never tabs.")
    reply = send_event("SessionStart", {"memory.on_demand": False}, source="startup")
    assert "never tabs" in reply
    assert "recall" not in reply


def test_what_the_start_gave_no_prompt_repeats(workspace: Workspace, send_event: SendEvent) -> None:
    """C6: a wish from the start of a session is known when a prompt asks for it."""
    workspace.sources.preferences.record("Always name zeppelin services after rivers.")
    prompt = "how are zeppelin services named, after rivers?"
    assert "rivers" in send_event("SessionStart", source="startup")
    assert send_event("UserPromptSubmit", prompt=prompt) == ""
    assert "rivers" in send_event("UserPromptSubmit", prompt=prompt, session_id="s2")


def test_less_automatic_memory_can_be_had(workspace: Workspace, send_event: SendEvent) -> None:
    """P5: ``memory.automatic_tokens`` bounds what the start of a session gives unasked."""
    for number in range(12):
        workspace.sources.preferences.record(f"Always call the planet of variable number {number} planet {number}.")
    few = send_event("SessionStart", {"memory.automatic_tokens": 220}, source="startup")
    many = send_event("SessionStart", source="startup", session_id="s2")
    assert 0 < few.count("planet of variable") < many.count("planet of variable")


def test_old_notes_of_sessions_go(workspace: Workspace, send_event: SendEvent) -> None:
    """C6: what was given is noted for two weeks, and no longer than that."""
    import os

    workspace.sources.preferences.record("Always use spaces, never tabs.")
    send_event("SessionStart", source="startup")
    [path] = (workspace.repository.state / FOLDER).iterdir()
    send_event("SessionStart", source="startup", session_id="s2")
    assert path.exists()
    then = path.stat().st_mtime - 15 * 24 * 3600
    os.utime(path, (then, then))
    send_event("SessionStart", source="startup", session_id="s2")
    assert not path.exists()


# -- with a prompt ------------------------------------------------------------------------------------------------
def test_what_holds_no_more_is_not_brought_up(workspace: Workspace, send_event: SendEvent) -> None:
    """C6: neither what expired, nor the last good version of a file that is broken at present."""
    prompt = "what is the cache server called?"
    kept = _put(workspace, "The cache server is called Wombat.")
    past = utc_now() - timedelta(hours=1)
    _put(workspace, "The cache server is called Dingo.", expires=past, timestamp=past - timedelta(days=2))
    reply = send_event("UserPromptSubmit", prompt=prompt)
    assert "Wombat" in reply
    assert "Dingo" not in reply
    (workspace.root / kept.path).write_text("content: [broken")
    assert send_event("UserPromptSubmit", prompt=prompt, session_id="s2") == ""


def test_a_long_memory_comes_by_the_passage_that_fits(workspace: Workspace, send_event: SendEvent) -> None:
    """C6: with a prompt comes what fits of a long memory, not its beginning."""
    log = "Then the pressure is logged by whoever is on duty. " * 60
    _put(workspace, f"{log}The cache server Wombat restarts on Sundays. {log}")
    reply = send_event("UserPromptSubmit", prompt="when does the cache server Wombat restart?")
    assert "Wombat restarts on Sundays" in reply
    assert "(shortened)" not in reply


# -- before a step ------------------------------------------------------------------------------------------------
def test_one_hint_comes_before_a_step(workspace: Workspace, send_event: SendEvent) -> None:
    """C6: of two warnings one is given, and no prompt of the session repeats it."""
    _failed(workspace, "npm run migrate", "relation zeppelins does not exist")
    _failed(workspace, "npm run migrate", "column altitude is missing")
    step = {"tool_name": "Bash", "tool_input": {"command": "npm run migrate"}}
    reply = send_event("PreToolUse", **step)
    assert ("zeppelins" in reply) != ("altitude" in reply)
    assert json.loads(reply)["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    word = "zeppelins" if "zeppelins" in reply else "altitude"
    assert word not in send_event(
        "UserPromptSubmit", prompt="does npm run migrate miss relation zeppelins, column altitude?"
    )


def test_a_step_that_is_about_to_be_taken_is_not_kept(workspace: Workspace, send_event: SendEvent) -> None:
    """C6: PreToolUse is answered and leaves nothing behind: its outcome reports it again."""
    send_event("PreToolUse", tool_name="Bash", tool_input={"command": "make"})
    assert Spool(workspace.repository.state).waiting() == 0


# -- the other events ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("event", ["PreCompact", "Stop", "SubagentStop"])
def test_what_waits_is_taken_in_before_it_is_lost(workspace: Workspace, send_event: SendEvent, event: str) -> None:
    """C6: a compaction, and each answer, is a chance to make memories; nothing is printed then."""
    send_event("UserPromptSubmit", prompt="Which of the brokers is used in production?")
    send_event("UserPromptSubmit", prompt="And which of them in the tests?", session_id="s2")
    assert send_event(event, trigger="auto", custom_instructions=None, stop_hook_active=False) == ""
    workspace.store.refresh()
    found = workspace.store.select(Query(types=frozenset({"working"})))
    assert "s1" in {item.origin.session for item in found}
    assert send_event("SessionStart", source="resume", session_id="s3")
    workspace.store.refresh()
    assert len(workspace.store.select(Query(types=frozenset({"working"})))) == 2


def test_what_is_refused_is_reported_to_the_person_and_not_to_the_agent(
    workspace: Workspace, send_event: SendEvent, remarks: list[str]
) -> None:
    """C6: a secret in what was said is a remark on standard error and in the log."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    send_event("UserPromptSubmit", prompt=f"Use {secret} to reach the registry of the team")
    assert send_event("Stop", stop_hook_active=False) == ""
    assert [secret in line for line in remarks] == [False]
    assert "github-token" in remarks[0]


def test_trouble_of_any_sort_is_a_remark(
    send_event: SendEvent, remarks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C6: not even a mistake of memfs's own reaches the session."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("out\nof order")

    monkeypatch.setattr(answer, "answer", broken)
    assert send_event("Stop") == ""
    assert remarks == ["memfs hook Stop: ZeroDivisionError: out of order"]


def test_a_hook_without_its_script_finds_memfs_and_not_what_is_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: the command that an agent is given does not import from the folder it is called in."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("memfs.doors.claude_code.installer.os.access", lambda *_: False)
    assert answer.command().endswith(" -P -m memfs")


def test_every_limit_is_below_what_the_program_waits() -> None:
    """C6: SessionEnd's hooks share 1.5 s, and a prompt's have 30 s; a person waits for neither that long."""
    assert LIMITS["SessionEnd"] <= 1.0
    assert LIMITS["UserPromptSubmit"] <= 2.0
    assert LIMITS["PreToolUse"] <= 1.5

"""Draining what never can be stored: it holds nothing else up, and leaves no secret anywhere (C6, faults row 19)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import SchemaInvalid
from memfs.model import Query
from memfs.sessions import extract
from memfs.sessions.spool import SessionEvent, Spool, bounded
from memfs.sessions.store import Drain
from memfs.workspace import Workspace

Opener = Callable[..., Workspace]
SECRET = "sk-ant-api03-" + "Zx9" * 31 + "AA"
DECIDED = "We decided to use PostgreSQL for the ledger because it has transactions."


def spool_event(workspace: Workspace, event: str, session: str = "s1", **fields: Any) -> None:
    """Keep an event, as a hook does."""
    Spool(workspace.repository.state).append(bounded(SessionEvent(event, session, fields=fields)))


def contents(workspace: Workspace, kind: str) -> list[str]:
    """What the items of a kind say."""
    return sorted(item.content for item in workspace.store.select(Query(types=frozenset({kind}))))


def holding(workspace: Workspace, text: str) -> list[Path]:
    """The files of the workspace that hold a text, or are called by it."""
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    return [path for path in files if text in path.name or text.encode() in path.read_bytes()]


def test_a_secret_that_would_name_a_file_holds_nothing_up(opened: Opener) -> None:
    """An episode's id follows from what was done; a key in a command is not in it, and nothing waits forever."""
    workspace = opened()
    spool_event(
        workspace,
        "PostToolUseFailure",
        tool_name="Bash",
        tool_input={"command": f"deploy {SECRET}"},
        error="Exit code 2",
    )
    spool_event(workspace, "Stop", last_assistant_message=DECIDED)
    done = Drain(workspace).run()
    assert (done.events, done.left) == (2, 0)
    assert DECIDED in contents(workspace, "episodic")
    assert holding(workspace, SECRET) == []


def test_the_notes_of_a_session_hold_no_secret(opened: Opener) -> None:
    """A task is noted until it is done, which may be never: not the key in its words."""
    workspace = opened()
    answer = {"task": {"id": "1", "subject": f"Rotate {SECRET} today"}}
    given = {"subject": f"Rotate {SECRET} today"}
    spool_event(workspace, "PostToolUse", tool_name="TaskCreate", tool_input=given, tool_response=answer)
    spool_event(workspace, "PostToolUse", tool_name="TaskUpdate", tool_input={"taskId": "1", "status": "in_progress"})
    assert Drain(workspace).run().left == 0
    assert holding(workspace, SECRET) == []
    spool_event(workspace, "PostToolUse", tool_name="TaskUpdate", tool_input={"taskId": "1", "status": "completed"})
    Drain(workspace).run()
    assert len(contents(workspace, "procedural")) == 1
    assert holding(workspace, SECRET) == []


def test_what_a_killed_drain_left_is_removed(opened: Opener) -> None:
    """A rest of the spool that was being written when a drain was killed may hold what is refused since."""
    workspace = opened()
    spool_event(workspace, "Stop", last_assistant_message=DECIDED)
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    rest = Spool(workspace.repository.state).folder / f".s1.jsonl.{ended.pid}.tmp"
    rest.write_text(SECRET)
    Drain(workspace).run()
    assert not rest.exists()


@pytest.mark.parametrize("secret", ["", SECRET])
def test_one_unfit_event_is_taken_out_and_the_others_are_stored(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """What cannot be stored is dropped at once, and no session waits behind it."""
    workspace = opened()
    spool_event(workspace, "Stop", last_assistant_message=DECIDED)
    spool_event(workspace, "TaskCompleted", task_subject=f"Unfit {secret}")
    spool_event(workspace, "Stop", last_assistant_message="We decided to use Redis for the queue because it is fast.")
    spool_event(
        workspace, "Stop", "s2", last_assistant_message="We decided to use Kafka for the log because it keeps order."
    )
    whole = extract.completed

    def refusing(event: SessionEvent, notes: Any) -> Any:
        if event.text("task_subject").startswith("Unfit"):
            raise SchemaInvalid("no item can say this")
        return whole(event, notes)

    monkeypatch.setattr(extract, "completed", refusing)
    done = Drain(workspace).run()
    assert (done.events, done.left) == (4, 0)
    assert len(contents(workspace, "episodic")) == 3
    assert holding(workspace, SECRET) == []
    assert any("was dropped" in sentence for sentence in done.refused)


def test_one_name_for_two_uses_of_a_tool_hides_neither(opened: Opener) -> None:
    """A program that numbers its tools' uses again reports two failures, not of one twice."""
    workspace = opened()
    for name in ("lint", "build"):
        given = {"command": f"make {name}"}
        spool_event(
            workspace, "PostToolUseFailure", tool_name="Bash", tool_input=given, error="Exit code 2", tool_use_id="t1"
        )
    Drain(workspace).run()
    assert len(contents(workspace, "episodic")) == 2

"""Draining at the edges: who is ended, what closes an intention, and what is tried again (C6, C7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import LockTimeout
from memfs.fs import append_log
from memfs.model import MemoryItem, Query
from memfs.model.time import format_time
from memfs.sessions import extract
from memfs.sessions import store as drain
from memfs.sessions.respond import pending
from memfs.sessions.spool import SUFFIX, SessionEvent, SessionNotes, Spool, file_name, read_notes, write_notes
from memfs.sessions.store import Drain
from memfs.workspace import Workspace

Opener = Callable[..., Workspace]


def _spool_event(workspace: Workspace, name: str, session: str = "s1", *, ago: float = 0, **fields: Any) -> None:
    moment = format_time(datetime.now(UTC) - timedelta(hours=ago))
    Spool(workspace.repository.state).append(SessionEvent(name, session, moment, str(workspace.root), fields=fields))


def _kept(workspace: Workspace, kind: str) -> list[MemoryItem]:
    return workspace.store.select(Query(types=frozenset({kind}), limit=50))


def test_a_silent_session_is_ended_by_another_that_starts(opened: Opener) -> None:
    """C7: its own drain does not end it, however late; a start ends it though all its events were taken long before."""
    workspace = opened()
    _spool_event(
        workspace, "UserPromptSubmit", "dead", ago=13, prompt="Where is the migration of the orders described?"
    )
    done = Drain(workspace).run("dead")
    assert (done.events, done.consolidated) == (1, ())
    assert Drain(workspace).run("dead").consolidated == ()
    assert len(_kept(workspace, "working")) == 1
    assert Drain(workspace).run().consolidated == ("dead",)
    assert _kept(workspace, "working") == []
    assert Drain(workspace).run().consolidated == ()


def test_what_was_taken_and_not_removed_is_not_taken_again(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: killed between the notes and the removal, the next drain only removes."""
    workspace = opened()
    _spool_event(workspace, "UserPromptSubmit", prompt="Which of the two queues is drained first?")
    real = append_log.take_away

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(append_log, "take_away", killed)
    with pytest.raises(KeyboardInterrupt):
        Drain(workspace).run("s1")
    monkeypatch.setattr(append_log, "take_away", real)
    _spool_event(workspace, "UserPromptSubmit", prompt="And which of them is drained last?")
    assert Drain(workspace).run("s1").events == 1
    assert len(_kept(workspace, "working")) == 2


def test_a_workspace_that_is_busy_costs_no_try(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: what could not be stored for a lock or the disk waits, however often; only what kills drains is dropped."""
    workspace = opened()
    _spool_event(workspace, "UserPromptSubmit", prompt="Which of the two queues is drained first?")

    def busy(*_: Any) -> Any:
        raise LockTimeout("the store is busy", path="elsewhere", hint="wait")

    with monkeypatch.context() as patched:
        patched.setattr(drain, "keep_memories", busy)
        for _ in range(drain._GIVE_UP + 2):
            with pytest.raises(LockTimeout):
                Drain(workspace).run("s1")
    assert Drain(workspace).run("s1").events == 1


def test_a_task_closes_what_was_meant_in_its_project_only(opened: Opener) -> None:
    """C6: where memories of many projects meet, another project's intention stays open."""
    workspace = opened()
    for name in ("shop", "blog"):
        text = "TODO: renew the certificate"
        workspace.store.put(MemoryItem(text, "prospective", id=name, context={"project": name}, status="pending"))
    workspace.store.put(MemoryItem("TODO: renew the certificate", "prospective", id="here", status="pending"))
    _spool_event(workspace, "TaskCompleted", task_id="1", task_subject="Renew the certificate")
    Drain(workspace).run("s1")
    assert {one.id for one in pending(workspace)} == {"shop", "blog"}


@pytest.mark.usefixtures("private_memory")
def test_a_report_closes_only_what_was_meant_before_it(opened: Opener) -> None:
    """C6: what somebody means after the agent has answered is still to be done."""
    workspace = opened()
    report = "I've added rate limiting to the login endpoint, five tries a minute."
    _spool_event(workspace, "Stop", ago=2, last_assistant_message=report)
    _spool_event(workspace, "UserPromptSubmit", ago=1, prompt="We need to add rate limiting to the login endpoint")
    Drain(workspace).run("s1")
    assert len(pending(workspace)) == 1
    _spool_event(workspace, "Stop", last_assistant_message=report)
    Drain(workspace).run("s1")
    assert pending(workspace) == ()


@pytest.mark.usefixtures("private_memory")
def test_the_same_intention_twice_does_not_reopen_what_is_done(opened: Opener) -> None:
    """C6: an intention that was carried out is opened by who means it again, not by its own event."""
    workspace = opened()
    _spool_event(workspace, "UserPromptSubmit", ago=3, prompt="Please, we need to pin the version of numpy")
    Drain(workspace).run("s1")
    [item] = _kept(workspace, "prospective")
    workspace.store.put(item.replace(status="done"), expected=item.sha256)
    moment = item.timestamp
    assert moment is not None
    fields = {"prompt": "Please, we need to pin the version of numpy"}
    again = SessionEvent("UserPromptSubmit", "s1", format_time(moment), str(workspace.root), fields=fields)
    spool = Spool(workspace.repository.state)
    (spool.folder / f"{file_name('s1')}{SUFFIX}").unlink()
    spool.append(again)
    Drain(workspace).run("s1")
    assert [one.status for one in _kept(workspace, "prospective")] == ["done"]


def test_a_step_with_a_secret_costs_the_steps_and_not_the_task(opened: Opener) -> None:
    """C6: what a person typed in a task's steps may be refused; the task itself is remembered."""
    workspace = opened()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    _spool_event(
        workspace, "TaskCompleted", task_id="1", task_subject="Reach the registry", steps=[f"export KEY={secret}"]
    )
    done = Drain(workspace).run("s1")
    assert [item.content for item in _kept(workspace, "procedural")] == ["Reach the registry"]
    assert any("github-token" in sentence for sentence in done.refused)


def test_learners_hear_of_what_a_session_reported(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """M4, P4: a memory, an episode and a task each raise their occasion, a prompt none."""
    workspace = opened()
    fired: list[str] = []
    monkeypatch.setattr(workspace.behaviours, "fire", lambda name, *_: fired.append(name))
    _spool_event(workspace, "UserPromptSubmit", prompt="Which of the two queues is drained first?")
    Drain(workspace).run("s1")
    assert fired == []
    _spool_event(workspace, "TaskCompleted", task_id="1", task_subject="Fix the export")
    _spool_event(
        workspace, "PostToolUseFailure", tool_name="Bash", tool_input={"command": "make"}, error="Exit code 2\nno rule"
    )
    Drain(workspace).run("s1")
    assert {"memory_stored", "episode_recorded", "task_completed"} <= set(fired)


@pytest.mark.usefixtures("private_memory")
def test_an_edit_at_the_same_moment_is_kept(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """faults row 45: what a person saves between the look and the write is not written over: it is looked at again."""
    workspace = opened()
    _spool_event(workspace, "UserPromptSubmit", prompt="We need to write a guide for the plugin interface")
    Drain(workspace).run("s1")
    [item] = _kept(workspace, "prospective")
    path, real, edits = workspace.root / item.path, extract.mark_done, [1]

    def edited(known: MemoryItem, by: str) -> MemoryItem:
        if edits:
            edits.pop()
            path.write_text(path.read_text().replace("pending", "pending\nimportance: 7"))
        return real(known, by)

    monkeypatch.setattr(extract, "mark_done", edited)
    _spool_event(workspace, "TaskCompleted", task_id="1", task_subject="Write guide for plugin interface")
    Drain(workspace).run("s1")
    workspace.store.refresh()
    [after] = _kept(workspace, "prospective")
    assert (after.status, after.importance) == ("done", 7.0)


def test_a_correction_with_a_secret_ends_no_drain(opened: Opener) -> None:
    """faults row 19: it is refused, named by its rule, and what else was said is remembered."""
    workspace = opened()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    _spool_event(workspace, "UserPromptSubmit", prompt=f"Always use {secret} as the token.")
    _spool_event(workspace, "UserPromptSubmit", prompt="Which of the two queues is drained first?")
    done = Drain(workspace).run("s1")
    assert [sentence.partition(":")[0] for sentence in done.refused] == ["a correction was not stored"]
    assert "github-token" in done.refused[0]
    assert len(_kept(workspace, "working")) == 1


def test_an_event_that_comes_again_counts_no_second_time(opened: Opener) -> None:
    """C6: a task is done twice where two events say so, not where one is taken twice."""
    workspace = opened()
    spool = Spool(workspace.repository.state)
    fields = {"task_id": "1", "task_subject": "Fix the export"}
    moment = format_time(datetime.now(UTC) - timedelta(hours=1))
    for later in (moment, moment, format_time(datetime.now(UTC))):
        spool.append(SessionEvent("TaskCompleted", "s1", later, str(workspace.root), fields=fields))
        Drain(workspace).run("s1")
        (spool.folder / f"{file_name('s1')}{SUFFIX}").unlink()  # as after a resume, or somebody's broom
    [item] = _kept(workspace, "procedural")
    assert item.metadata["times"] == 2


def test_a_task_that_two_events_name_otherwise_is_one(opened: Opener) -> None:
    """C6: TaskUpdate and TaskCompleted report one task by its id, whatever each calls it."""
    workspace = opened()
    given = {"taskId": "4", "status": "completed", "subject": "Fix export"}
    _spool_event(workspace, "PostToolUse", tool_name="TaskUpdate", tool_input=given, tool_response={"success": True})
    _spool_event(workspace, "TaskCompleted", task_id="4", task_subject="Fix the export of large files")
    Drain(workspace).run("s1")
    assert [item.content for item in _kept(workspace, "procedural")] == ["Fix export"]


@pytest.mark.parametrize(
    ("did", "meant", "closes"),
    [
        ("Add rate limiting to login", "We need to add rate limiting to the login endpoint", True),
        ("Add rate limiting, docs, metrics, tests and alerts to login", "TODO: add rate limiting", False),
        ("Add rate limiting", "TODO: add rate limiting to the login, upload, search and export pages", False),
        ("Fix it", "TODO: fix it", False),
    ],
)
def test_a_task_carries_out_what_says_nearly_the_same(did: str, meant: str, closes: bool) -> None:
    """C6: most words of each are in the other; a task that is much more, or much less, is another."""
    task = MemoryItem(did, "procedural", id="t")
    assert bool(extract.completed_intentions(task, [MemoryItem(meant, "prospective", id="p")])) is closes


def test_a_report_names_nearly_all_that_was_meant() -> None:
    """C6: two shared words are not enough to call something done."""
    meant = MemoryItem("TODO: update docs", "prospective", id="p")
    assert extract.reported_intentions("I updated the docs of the uploader.", [meant]) == []
    longer = MemoryItem("TODO: update the upload docs page", "prospective", id="q")
    assert extract.reported_intentions("I updated the upload docs page.", [longer]) == [longer]


def test_what_closed_an_intention_is_known() -> None:
    """C6: ``done_by`` names the task's item, or that the agent reported it."""
    item = MemoryItem("TODO: tag it", "prospective", id="p", metadata={"priority": "low"})
    done = extract.mark_done(item, "tag-it-1")
    assert (done.status, done.metadata) == ("done", {"priority": "low", "done_by": "tag-it-1"})


def test_notes_keep_the_newest(tmp_path: Path) -> None:
    """C6: a session of weeks fills no disk: of what was seen the newest five hundred are kept."""
    path = tmp_path / "s.notes.json"
    write_notes(path, SessionNotes(session="s", seen={f"k{number}": "t" for number in range(700)}))
    kept = read_notes(path).seen
    assert len(kept) == 500
    assert "k699" in kept
    assert "k0" not in kept

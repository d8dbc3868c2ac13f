"""Draining: events of sessions become memories once, whatever is killed, and secrets do not stay (C6, C7)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.faults import DISK_FULL, Fault, Stopped, injected
from memfs.errors import LockTimeout, StorageFull
from memfs.fs import append_log
from memfs.fs.lock import FileLock
from memfs.model import MemoryItem, Query
from memfs.model.time import format_time
from memfs.sessions import store as draining
from memfs.sessions.extract import situation_of
from memfs.sessions.respond import pending
from memfs.sessions.spool import SUFFIX, SessionEvent, Spool, bounded
from memfs.sessions.store import Drain, DrainResult
from memfs.workspace import Workspace

Opener = Callable[..., Workspace]
Git = Callable[..., str]
_BEGAN = datetime.now(UTC) - timedelta(minutes=90)


class Session:
    """One agent's session: each event a minute after the one before."""

    def __init__(self, workspace: Workspace, name: str = "s1") -> None:
        self.workspace, self.name, self.clock = workspace, name, _BEGAN
        self.spool = Spool(workspace.repository.state)

    def send(self, event: str, minutes: float = 1, **fields: Any) -> SessionEvent:
        self.clock += timedelta(minutes=minutes)
        event_record = bounded(
            SessionEvent(event, self.name, format_time(self.clock), str(self.workspace.root), fields=fields)
        )
        self.spool.append(event_record)
        return event_record

    def prompt(self, text: str, **fields: Any) -> None:
        self.send("UserPromptSubmit", prompt=text, **fields)

    def todos(self, *rows: tuple[str, str], minutes: float = 1, **fields: Any) -> None:
        listed = [{"content": text, "status": stage, "activeForm": text} for text, stage in rows]
        self.send("PostToolUse", minutes, tool_name="TodoWrite", tool_input={"todos": listed}, **fields)

    def bash(self, command: str, error: str = "") -> SessionEvent:
        given = {"tool_name": "Bash", "tool_input": {"command": command}}
        if error:
            return self.send("PostToolUseFailure", error=error, **given)
        return self.send("PostToolUse", tool_response={"stdout": "", "stderr": "", "interrupted": False}, **given)

    def drain(self) -> DrainResult:
        return Drain(self.workspace).run(self.name)

    def items(self, kind: str) -> list[MemoryItem]:
        return kept(self.workspace, kind)


def kept(workspace: Workspace, kind: str) -> list[MemoryItem]:
    """The items of a kind, by id."""
    found = workspace.store.select(Query(types=frozenset({kind}), limit=200))
    return sorted(found, key=lambda item: item.id)


# -- prompts ------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("private_memory")
def test_a_prompt_is_working_memory_and_a_plan_is_prospective(opened: Opener) -> None:
    """UserPromptSubmit stores working memory, and prospective with its priority on later work (C6)."""
    session = Session(opened())
    session.prompt("How does the login page validate e-mail addresses?")
    session.prompt("We need to rotate the signing keys. That is urgent!")
    session.prompt("TODO: tidy up the changelog, no rush")
    done = session.drain()
    assert done.events == 3
    assert done.left == 0
    working = session.items("working")
    assert len(working) == 3
    assert {item.metadata["session_id"] for item in working} == {"s1"}
    assert {(item.trust, item.origin.session, item.origin.role) for item in working} == {("human", "s1", "user")}
    later = {item.content: (item.metadata["priority"], item.status) for item in session.items("prospective")}
    assert later == {
        "We need to rotate the signing keys. That is urgent!": ("high", "pending"),
        "TODO: tidy up the changelog, no rush": ("low", "pending"),
    }
    assert [str(one) for one in pending(session.workspace)] == [
        "[HIGH] We need to rotate the signing keys. That is urgent!",
        "[LOW] TODO: tidy up the changelog, no rush",
    ]


@pytest.mark.parametrize(
    ("prompt", "fields"),
    [
        ("hello", {}),
        ("ok, go on", {}),
        ("/compact keep the plan", {}),
        ("<command-name>/model</command-name> we need to know", {}),
        ("We need to look at the queue again", {"source": "loop_wakeup"}),
        ("Background task 3 is done: always read its output", {"source": "system"}),
        ("   ", {}),
    ],
)
def test_what_no_person_said_is_not_remembered(opened: Opener, prompt: str, fields: dict[str, Any]) -> None:
    """Trivial prompts, commands to the program, and what the program itself says leave nothing (C6)."""
    session = Session(opened())
    session.prompt(prompt, **fields)
    assert session.drain().stored == ()
    assert session.workspace.store.count() == 0


def test_a_correction_becomes_a_preference_of_the_person(opened: Opener) -> None:
    """UserPromptSubmit turns a person's corrections into preferences of trust human, where that is written (P4)."""
    session = Session(opened(learning__rules="write"))
    session.prompt("No, don't use requests, use httpx instead. Why does the retry test fail?")
    session.prompt("Always use tabs for indentation.")
    session.drain()
    found = session.items("preference")
    assert [item.trust for item in found] == ["human", "human"]
    assert {item.origin.session for item in found} == {"s1"}
    assert any("httpx" in item.content for item in found)
    assert [item.content for item in session.items("working")] == [
        "No, don't use requests, use httpx instead. Why does the retry test fail?"
    ]
    assert "httpx" in session.workspace.sources.delivery.automatic(situation_of(session.bash("ls"), Path("/"))).text


def test_an_event_sent_by_two_hooks_counts_once(opened: Opener) -> None:
    """A program that runs the hooks of two settings files sends each event twice."""
    session = Session(opened())
    event = session.send("UserPromptSubmit", prompt="Why is the import of large files so slow?")
    session.spool.append(event)
    session.drain()
    assert len(session.items("working")) == 1
    session.prompt("Why is the import of large files so slow?")
    session.drain()
    assert len(session.items("working")) == 2


def test_where_others_read_what_quotes_a_person_is_suggested(opened: Opener) -> None:
    """Outside private memory plans, notes and facts of a prompt, and what an agent repeats of it, wait in the inbox;
    a plan that is carried out waits no longer, and nothing is suggested twice (C6, D1).
    """
    workspace = opened()
    session = Session(workspace)
    plan = "We need to rotate the signing keys later."
    session.prompt(plan)
    session.prompt("remember: deploys need two people")
    session.prompt("The exporter lives in services/export.")
    session.drain()
    session.send("Stop", last_assistant_message=f"We decided to wait, as you said: {plan[:-1]} if at all.")
    session.send("Stop", last_assistant_message="We decided to round totals half to even.")
    session.drain()
    assert session.items("prospective") == session.items("semantic") == []
    assert [item.content for item in session.items("episodic")] == ["We decided to round totals half to even."]
    suggested = {one.item.content: one.item.type for one in workspace.inbox.waiting()}
    assert suggested.pop(plan) == "prospective"
    assert suggested.pop("deploys need two people") == suggested.pop("The exporter lives in services/export.")
    [echo] = suggested
    assert plan[:-1] in echo

    session.prompt(plan)
    session.todos(("Rotate the signing keys", "in_progress"))
    session.todos(("Rotate the signing keys", "completed"))
    session.drain()
    assert "prospective" not in [one.item.type for one in workspace.inbox.waiting()]


def test_what_a_program_keeps_in_a_session_is_written(opened: Opener) -> None:
    """Where a program keeps a session, it has asked for what is written (C6)."""
    workspace = opened()
    workspace.learner.program = True
    session = Session(workspace)
    session.prompt("We need to rotate the signing keys later.")
    session.drain()
    assert [item.status for item in session.items("prospective")] == ["pending"]


# -- tasks --------------------------------------------------------------------------------------------------------
def test_a_completed_todo_is_a_procedure(opened: Opener) -> None:
    """A todo that became completed is procedural, with its sort, success and duration (C6)."""
    session = Session(opened())
    session.todos(("Fix the login bug", "in_progress"), ("Write the docs", "pending"))
    session.drain()
    session.bash("pytest -q tests/test_login.py")
    session.todos(("Fix the login bug", "completed"), ("Write the docs", "in_progress"), minutes=11)
    session.drain()
    [item] = session.items("procedural")
    assert item.metadata["task_type"] == "bugfix"
    assert item.metadata["success"] is True
    assert item.metadata["duration_minutes"] == 12.0
    assert item.content == "Fix the login bug\nSteps:\n1. pytest -q tests/test_login.py"
    assert (item.trust, item.origin.agent, item.origin.session) == ("agent", "claude-code", "s1")
    session.todos(("Fix the login bug", "completed"), ("Write the docs", "in_progress"))
    assert session.drain().stored == ()


def test_a_task_reported_by_two_events_is_done_once(opened: Opener) -> None:
    """TaskUpdate and TaskCompleted report one task; so do they in the other order (C6)."""
    session = Session(opened())
    for number, subject in enumerate(("Add a retry to the uploader", "Explain the cache in the readme")):
        created = {"task": {"id": str(number), "subject": subject}}
        given = {"subject": subject, "description": "..."}
        session.send("PostToolUse", tool_name="TaskCreate", tool_input=given, tool_response=created)
        work = {"taskId": str(number), "status": "in_progress"}
        session.send("PostToolUse", tool_name="TaskUpdate", tool_input=work)
        events = [
            ("TaskCompleted", {"task_id": str(number), "task_subject": subject}),
            ("PostToolUse", {"tool_name": "TaskUpdate", "tool_input": {"taskId": str(number), "status": "completed"}}),
        ]
        for event, fields in events if number else reversed(events):
            session.send(event, 5, **fields)
            session.drain()
    found = session.items("procedural")
    assert sorted(item.content for item in found) == ["Add a retry to the uploader", "Explain the cache in the readme"]
    assert {item.metadata["duration_minutes"] for item in found} == {5.0}
    assert {item.metadata["task_type"] for item in found} == {"feature", "documentation"}


def test_a_task_done_again_counts_and_keeps_its_words(opened: Opener) -> None:
    """The same task in another session is the same procedure, done twice; a person's words in it stay."""
    workspace = opened()
    first = Session(workspace)
    first.todos(("Release version two", "completed"))
    first.drain()
    [item] = first.items("procedural")
    workspace.store.put(item.replace(content="Release version two: tag, then push"), expected=item.sha256)
    second = Session(workspace, "s2")
    second.todos(("Release version two", "completed"))
    second.drain()
    [again] = second.items("procedural")
    assert again.metadata["times"] == 2
    assert again.content == "Release version two: tag, then push"


@pytest.mark.usefixtures("private_memory")
def test_a_task_closes_the_intention_it_carries_out(opened: Opener) -> None:
    """What was meant to be done is done when a task clearly does it, and not when it only sounds like it."""
    session = Session(opened())
    session.prompt("We need to add rate limiting to the login endpoint later")
    session.prompt("TODO: add rate limiting to the upload service and document it")
    session.drain()
    session.todos(("Add rate limiting to login endpoint", "completed"))
    session.drain()
    stages = {item.content: item.status for item in session.items("prospective")}
    assert stages == {
        "We need to add rate limiting to the login endpoint later": "done",
        "TODO: add rate limiting to the upload service and document it": "pending",
    }
    assert len(pending(session.workspace)) == 1


@pytest.mark.usefixtures("private_memory")
def test_an_agents_report_closes_what_was_meant_in_its_session(opened: Opener) -> None:
    """What a person asked for and the agent reports as done is not a reminder; what it only speaks of is."""
    session = Session(opened())
    session.prompt("We need to add rate limiting to the login endpoint")
    session.prompt("And the upload page needs to show a progress bar")
    message = "I haven't added a progress bar to the upload page yet; that needs to be shown later."
    session.send("Stop", last_assistant_message=message)
    session.drain()
    assert len(pending(session.workspace)) == 2
    other = Session(session.workspace, "s2")
    report = "I've added rate limiting to the login endpoint, five tries a minute with a token bucket. All tests pass."
    other.send("Stop", last_assistant_message=report)
    other.drain()
    assert len(pending(session.workspace)) == 2
    session.send("Stop", last_assistant_message=report)
    session.drain()
    assert [one.text for one in pending(session.workspace)] == ["And the upload page needs to show a progress bar"]
    session.prompt("We need to rename the billing module to invoicing")
    session.send("Stop", last_assistant_message="Renamed the billing module to invoicing and updated its imports.")
    session.drain()
    assert len(pending(session.workspace)) == 1


@pytest.mark.usefixtures("private_memory")
def test_an_intention_and_its_task_may_come_in_one_drain(opened: Opener) -> None:
    """What was asked for and done before anybody looked is not a reminder."""
    session = Session(opened())
    session.prompt("Please, we need to pin the version of numpy")
    session.todos(("Pin numpy version", "completed"))
    session.drain()
    assert [item.status for item in session.items("prospective")] == ["done"]
    session.prompt("Please, we need to pin the version of numpy")
    session.drain()
    assert [item.status for item in session.items("prospective")] == ["pending"]


# -- steps --------------------------------------------------------------------------------------------------------
def test_a_failure_and_what_helped_teach(opened: Opener) -> None:
    """Of tools only what teaches is kept: a failure once, and the success that came after it (P4)."""
    session = Session(opened())
    session.bash("npm run build")
    session.bash("npm test", error="Exit code 1\nError: cannot find module 'left-pad'")
    session.bash("npm test", error="Exit code 1\nError: cannot find module 'left-pad'")
    session.bash("npm install left-pad")
    session.bash("npm test")
    session.bash("npm test")
    session.drain()
    outcomes = [item.data["outcome"] for item in sorted(session.items("episodic"), key=lambda item: item.timestamp)]
    assert outcomes == ["failure", "success"]
    [failed, _] = sorted(session.items("episodic"), key=lambda item: item.timestamp)
    assert "left-pad" in failed.data["error"]
    state = situation_of(session.bash("npm test"), session.workspace.root)
    assert "left-pad" in session.workspace.sources.delivery.triggered(state).text


def test_a_success_after_a_warning_is_kept(opened: Opener) -> None:
    """What an agent was warned with before a step is kept with its outcome, so that rules learn (P6)."""
    workspace = opened()
    first = Session(workspace)
    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(workspace.root / "src/pay.py"), "old_string": "a"}}
    first.send("PostToolUseFailure", error="EROFS: read-only file system", **edit)
    first.drain()
    second = Session(workspace, "s2")
    about = SessionEvent("PreToolUse", "s2", cwd=str(workspace.root), fields=edit)
    given = workspace.sources.delivery.triggered(situation_of(about, workspace.root))
    assert given.ids
    second.send("PostToolUse", tool_response={"filePath": "src/pay.py"}, **edit)
    second.drain()
    success = [item for item in second.items("episodic") if item.data["outcome"] == "success"]
    assert [list(item.data["warned"]) for item in success] == [list(given.ids)]
    assert success[0].data["files"] == ["src/pay.py"]


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": "Read", "tool_input": {"file_path": "x"}, "error": "File does not exist."},
        {"tool_name": "Bash", "tool_input": {"command": "grep foo x"}, "error": "Exit code 1"},
        {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "killed", "is_interrupt": True},
        {"tool_name": "Edit", "tool_input": {}, "error": "The user doesn't want to proceed with this tool use."},
        {"tool_name": "TodoWrite", "tool_input": {"todos": "garbage"}, "error": "bad"},
    ],
)
def test_what_teaches_nothing_is_not_an_episode(opened: Opener, fields: dict[str, Any]) -> None:
    """Looking in vain, an answer of no, and what a person stopped are not failures."""
    session = Session(opened())
    session.send("PostToolUseFailure", **fields)
    assert session.drain().stored == ()


@pytest.mark.parametrize(
    "response",
    [
        {"is_error": True, "content": "boom went the build"},
        {"exit_code": 2, "stderr": "boom went the build"},
        {"status": "error", "output": "boom went the build"},
        {"success": False, "error": "boom went the build"},
        "Error: boom went the build",
    ],
)
def test_a_failure_is_seen_in_each_form(opened: Opener, response: object) -> None:
    """Programs report a failure in several ways."""
    session = Session(opened())
    session.send("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_response=response)
    session.drain()
    [item] = session.items("episodic")
    assert item.data["outcome"] == "failure"
    assert "boom" in item.data["error"]


# -- messages and ends --------------------------------------------------------------------------------------------
def test_decisions_and_findings_are_kept(opened: Opener) -> None:
    """Stop and SubagentStop give episodic items with decision_type and semantic ones with category (C6)."""
    session = Session(opened())
    text = "All done. We decided to use Redis for sessions. The root cause was a missing await in `auth.py`. And now?"
    session.send("Stop", last_assistant_message=text)
    session.send("Stop", last_assistant_message=text + " Bye.")
    session.send("SubagentStop", agent_type="reviewer", last_assistant_message="The API requires an `X-Tenant` header.")
    session.drain()
    [decision] = session.items("episodic")
    assert decision.metadata["decision_type"] == "choice"
    assert {item.metadata["category"]: item.origin.agent for item in session.items("semantic")} == {
        "cause": "claude-code",
        "constraint": "reviewer",
    }


def test_one_drain_of_a_session_is_one_commit(opened: Opener, git: Git) -> None:
    """All that a session reported becomes one commit with its agent, session and source in the trailers."""
    workspace = opened(history__commit="batch")
    session = Session(workspace)
    session.prompt("Why does the export lose the last row?")
    session.todos(("Fix the export", "completed"))
    session.send("Stop", last_assistant_message="The root cause was an off-by-one error in `export.py`.")
    before = git(workspace.root, "rev-list", "--count", "HEAD")
    session.drain()
    assert int(git(workspace.root, "rev-list", "--count", "HEAD")) == int(before) + 1
    message = git(workspace.root, "log", "-1", "--format=%B")
    for trailer in ("Memfs-Agent: claude-code", "Memfs-Session: s1", "Memfs-Source: claude-code"):
        assert trailer in message


def test_the_end_of_a_session_consolidates_it(opened: Opener) -> None:
    """SessionEnd only spools; when that is taken, working memory is consolidated and cleared (C7)."""
    session = Session(opened(learning__patterns="write"))
    session.prompt("We decided to ship the beta on Friday.")
    session.prompt("What is the weather like in the staging cluster?")
    session.drain()
    assert len(session.items("working")) == 2
    session.send("SessionEnd", reason="other")
    assert session.drain().consolidated == ("s1",)
    assert session.items("working") == []
    assert [item.metadata["promoted_from"] for item in session.items("semantic")] == ["working"]
    assert list(session.spool.folder.glob("*.json*")) == []


def test_what_a_session_teaches_waits_in_the_inbox(opened: Opener) -> None:
    """In a repository that others see, what a person prefers and a session decided is suggested (D1)."""
    session = Session(opened())
    session.prompt("No, don't use requests, use httpx instead.")
    session.prompt("We decided to ship the beta on Friday.")
    session.todos(("Fix the export", "completed"))
    session.drain()
    session.send("SessionEnd", reason="other")
    session.drain()

    box = session.workspace.inbox
    waiting = {one.source.value: one for one in box.waiting()}
    assert session.items("preference") == session.items("semantic") == session.items("working") == []
    assert {"preference", "session"} <= waiting.keys()
    assert waiting["preference"].reason == "said in session s1"
    (kept,) = box.accept([waiting["preference"]])
    assert (kept.trust, kept.origin.session) == ("human", "s1")
    assert "httpx" in session.workspace.sources.delivery.automatic(situation_of(session.bash("ls"), Path("/"))).text
    box.refuse([waiting["session"]])
    session.prompt("We decided to ship the beta on Friday.")
    session.prompt("No, don't use requests, use httpx instead.")
    session.send("SessionEnd", reason="other")
    session.drain()
    assert [one for one in box.waiting() if one.source.value != "lesson"] == []


def test_where_nothing_is_learned_nothing_is_suggested(opened: Opener) -> None:
    """With ``learning.* = off`` a session leaves neither preference nor lesson, and its working memory expires (D1)."""
    session = Session(opened(learning__patterns="off", learning__rules="off"))
    session.prompt("No, don't use requests, use httpx instead.")
    session.prompt("We decided to ship the beta on Friday.")
    session.send("SessionEnd", reason="other")
    assert session.drain().consolidated == ()
    assert session.workspace.inbox.all() == ()
    assert session.items("preference") == session.items("semantic") == []
    assert len(session.items("working")) == 1
    assert list(session.spool.folder.glob("*.json*")) == []


def test_the_end_of_a_session_commits_where_that_is_the_policy(opened: Opener, git: Git) -> None:
    """With history.commit = session what an agent's session left becomes history when the session ends."""
    workspace = opened(history__commit="session")
    session = Session(workspace)
    session.prompt("We decided to ship the beta on Friday.")
    session.send("Stop", last_assistant_message="We decided to use Redis for sessions.")
    session.drain()
    before = git(workspace.root, "rev-list", "--count", "HEAD")
    assert workspace.store.pending().count > 0
    session.send("SessionEnd", reason="other")
    session.drain()
    assert workspace.store.pending().count == 0
    assert int(git(workspace.root, "rev-list", "--count", "HEAD")) > int(before)
    assert git(workspace.root, "status", "--porcelain") == ""


def test_a_session_that_died_is_ended_by_the_next(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed session does not end itself: after hours of silence the next session ends it, and no living one."""
    workspace = opened()
    dead, living = Session(workspace, "dead"), Session(workspace, "living")
    dead.clock = datetime.now(UTC) - timedelta(hours=13)
    dead.prompt("Where is the migration of the orders table described?")
    living.prompt("How do I run a single test of the importer?")
    done = Drain(workspace).run()
    assert done.events == 2
    assert done.consolidated == ("dead",)
    assert [item.origin.session for item in kept(workspace, "working")] == ["living"]


# -- faults -------------------------------------------------------------------------------------------------------
def _story(session: Session) -> None:
    session.prompt("We need to fix the flaky upload test, it is urgent")
    session.prompt("Always run the linter before committing.")
    session.bash("pytest -q tests/test_upload.py", error="Exit code 1\nTimeoutError in upload")
    session.todos(("Fix flaky upload test", "completed"))
    session.send("Stop", last_assistant_message="We decided to mock the storage in tests.")


def _shape(workspace: Workspace) -> list[tuple[str, str, str]]:
    kinds = ("preference", "prospective", "working", "procedural", "episodic", "semantic")
    return [(item.type, item.id, item.status) for kind in kinds for item in kept(workspace, kind)]


class _Here(Fault):
    """A fault of the thread that drains: what learns behind the scenes has its own tests."""

    def __call__(self, name: str, path: str) -> None:
        if threading.current_thread() is threading.main_thread():
            super().__call__(name, path)


def test_a_drain_that_is_killed_anywhere_is_made_good(opened: Opener, tmp_path: Path) -> None:
    """kill -9 at any step: the next drain goes on, nothing is lost and nothing is there twice (faults row 21)."""
    calm = Session(opened())
    _story(calm)
    counting = _Here()
    with injected(counting):
        calm.drain()
    expected = _shape(calm.workspace)
    steps = len(counting.seen)
    lines = calm.spool.folder
    assert not list(lines.glob("*.jsonl"))
    for at in range(1, steps - 10, max(steps // 7, 1)):  # a process makes a lock's file once, in its first drain
        workspace = opened(tmp_path / f"w{at}")
        session = Session(workspace)
        _story(session)
        with injected(_Here(at=at)), pytest.raises(Stopped):
            session.drain()
        again = opened(workspace.root)
        assert Drain(again).run("s1").left == 0
        assert len(_shape(again)) == len(expected), at
        assert Spool(again.repository.state).waiting() == 0


def test_a_full_disk_keeps_what_waits(opened: Opener) -> None:
    """Where nothing can be stored nothing is taken, however often it is tried (faults row 25)."""
    session = Session(opened())
    _story(session)
    with injected(Fault()) as counting:
        session.drain()
    writes = [number for number, seen in enumerate(counting.seen, 1) if seen.startswith("write")]
    other = Session(session.workspace, "s2")
    other.prompt("Which of the two queues is drained first?")

    def full(name: str, path: str) -> None:
        if name == "write":
            raise OSError(DISK_FULL, "No space left on device")

    assert writes
    for _ in range(10):
        with injected(full), pytest.raises(StorageFull):  # type: ignore[arg-type]
            other.drain()
    assert other.spool.waiting() == 1
    assert other.drain().events == 1


def test_two_drainers_at_once_do_nothing_twice(opened: Opener) -> None:
    """Several processes that drain at once lose nothing and do nothing twice (faults row 46)."""
    workspace = opened()
    sessions = [Session(workspace, f"s{number}") for number in range(3)]
    for session in sessions:
        for number in range(4):
            session.prompt(f"How is part {number} of {session.name} tested at present?")
    others = [opened(workspace.root) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda one: Drain(one).run(), others))
    assert sum(one.events for one in done) == 12
    assert len({item for one in done for item in one.stored}) == 12
    workspace.store.refresh()
    assert len(kept(workspace, "working")) == 12


def test_a_secret_does_not_stay(opened: Opener) -> None:
    """A secret is refused with its rule's name, and is nowhere on the disk afterwards (faults row 19)."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    session = Session(opened())
    session.prompt(f"Use {secret} to reach the registry of the team")
    session.prompt(f"Always use {secret} as the token.")
    session.bash(f"curl -H 'Authorization: {secret}' https://example.org/x", error="Exit code 6\nno such host")
    session.todos((f"Store {secret} in the vault", "in_progress"))
    session.todos((f"Store {secret} in the vault", "completed"))
    session.send("Stop", last_assistant_message=f"We decided to use the token {secret} for now on staging.")
    done = session.drain()
    assert done.left == 0
    assert any("github-token" in sentence for sentence in done.refused)
    assert not any(secret in sentence for sentence in done.refused)
    session.workspace.store.flush()
    found = [
        path for path in session.workspace.root.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert found == []
    assert len(session.items("episodic")) == 1


@pytest.mark.usefixtures("private_memory")
def test_a_hand_edit_meanwhile_is_kept(opened: Opener) -> None:
    """A person who edits what a drain wants to change is not overwritten unseen."""
    session = Session(opened())
    session.prompt("We need to write a guide for the plugin interface")
    session.drain()
    [item] = session.items("prospective")
    path = session.workspace.root / item.path
    path.write_text(path.read_text().replace("pending", "pending\nimportance: 7"))
    session.todos(("Write guide for plugin interface", "completed"))
    session.drain()
    session.workspace.store.refresh()
    [after] = session.items("prospective")
    assert (after.status, after.importance) == ("done", 7.0)
    path.write_text("content: [broken")
    session.workspace.store.refresh()
    session.todos(("Write guide for plugin interface now", "completed"))
    assert session.drain().left == 0
    assert path.read_text() == "content: [broken"


def test_garbage_in_the_spool_stops_nothing(opened: Opener) -> None:
    """Lines of no sense are dropped or passed over, and what is around them is taken."""
    session = Session(opened())
    session.prompt("What does the nightly job clean up?")
    path = session.spool.path("s1")
    with path.open("ab") as spool:
        spool.write(b"\nnothing of ours\n\x00\xff\xfe\n")
    for text in (b"[]", b"{}", b'{"name": 3}', b"nul", json.dumps({"name": "Stop", "fields": {}}).encode()):
        append_log.append(path, text)
    session.send("PostToolUse", tool_name=5, tool_input=[1], tool_response={"exit_code": "x"}, todos=3)
    session.send("PostToolUse", tool_name="TodoWrite", tool_input={"todos": [None, 3, {"content": [], "status": {}}]})
    session.send("TaskCompleted", task_id={"a": 1}, task_subject=7)
    session.send("Stop", last_assistant_message=["no text"])
    session.prompt("And when does it run on holidays?")
    done = session.drain()
    assert done.left == 0
    assert len(session.items("working")) == 2
    assert done.refused == ("2 damaged lines of events were dropped",)
    append_log.append(path, b"[]")
    with path.open("ab") as spool:
        spool.write(b"\nnothing of ours again\n")
    assert len(session.drain().refused) == 1
    assert session.drain() == DrainResult()
    assert not path.exists()


def test_a_name_cannot_forge_a_trailer(opened: Opener, git: Git) -> None:
    """Names with line breaks are one line in items and commits (faults row 13)."""
    workspace = opened(history__commit="batch")
    session = Session(workspace, "s9\nMemfs-Agent: somebody")
    fields = {"last_assistant_message": "We decided to use Redis for sessions.", "agent_type": "a\nMemfs-Source: b"}
    session.send("SubagentStop", **fields)
    assert Drain(workspace).run().events == 1
    lines = git(workspace.root, "log", "-1", "--format=%B").splitlines()
    assert [line for line in lines if line.startswith("Memfs-")] == [
        "Memfs-Agent: a Memfs-Source: b",
        "Memfs-Session: s9 Memfs-Agent: somebody",
        "Memfs-Source: claude-code",
    ]


def test_garbage_in_the_notes_starts_over(opened: Opener) -> None:
    """Notes that somebody damaged cost what they held, and nothing else."""
    session = Session(opened())
    session.prompt("Which port does the metrics endpoint use?")
    session.spool.folder.joinpath(f"s1{SUFFIX}").write_text('{"todos": 3, "upto": "x", "done": {"a": []}, "no": 1}')
    assert session.drain().events == 1
    assert len(session.items("working")) == 1


def test_an_event_that_never_succeeds_is_dropped(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends every drain that touches it is dropped after a few tries, and the rest goes on."""
    session = Session(opened())
    for number in range(3):
        session.prompt(f"Where is step {number} of the release described?")
    extract_memories = draining.extract_memories

    def dying(events: Any, *rest: Any) -> Any:
        if any("step 0" in one.event.text("prompt") for one in events):
            raise RuntimeError("killed")
        return extract_memories(events, *rest)

    monkeypatch.setattr(draining, "extract_memories", dying)
    for _ in range(draining._GIVE_UP):
        with pytest.raises(RuntimeError):
            session.drain()
    done = session.drain()
    assert done.left == 0
    assert len(session.items("working")) == 2
    assert any("was dropped" in sentence for sentence in done.refused)


def test_a_drain_under_way_is_not_waited_for_long(opened: Opener) -> None:
    """Anyone who comes while another process drains gets how much waits, and stops nobody."""
    session = Session(opened())
    session.prompt("Which of the brokers is used in production?")
    lock = FileLock(session.spool.folder / append_log.LOCK)
    with lock.hold("drain"):
        assert Drain(session.workspace).run(seconds=0.05) == DrainResult(left=1)
    assert session.drain().events == 1


def test_an_erase_waits_for_a_drain_under_way(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken from the spool and is not stored yet would come back after the proof (faults row 50)."""
    session = Session(opened())
    text = "The customer in cabin seventeen wants a quiet room by the sea"
    session.workspace.store.put(MemoryItem(text, "knowledge", id="cabin"))
    session.workspace.store.flush()
    session.prompt(f"Do you know this one? {text}\nWhere is it?")
    other = opened(session.workspace.root)
    keep, hold, refused = draining.keep_memories, FileLock.hold, []

    def erased_meanwhile(*given: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(FileLock, "hold", lambda lock, purpose, timeout=0.0: hold(lock, purpose, 0.05))
            with pytest.raises(LockTimeout) as waited:
                other.eraser.erase("cabin")
        refused.append(Path(str(waited.value.path)).name)
        return keep(*given)

    monkeypatch.setattr(draining, "keep_memories", erased_meanwhile)
    assert session.drain().events == 1
    assert refused == [append_log.LOCK]
    assert other.eraser.erase("cabin").proof.hits == ()


def test_what_waits_is_erased_and_backed_up(opened: Opener, tmp_path: Path) -> None:
    """An erase takes an item's words out of what waits, too, and a backup keeps the rest (faults row 50)."""
    session = Session(opened())
    session.prompt("The customer in cabin seventeen wants a quiet room by the sea")
    session.drain()
    [item] = session.items("working")
    again = Session(session.workspace, "s2")
    again.prompt('He said "quiet": The customer in cabin seventeen wants a quiet room by the sea\nand so on')
    again.prompt("Is there another question that waits here?")
    [made] = session.workspace.backups.make(tmp_path / "backups")
    assert made.path.exists()
    session.workspace.store.flush()
    erased = session.workspace.eraser.erase(item.id)
    assert erased.proof.hits == ()
    assert [one.event.text("prompt") for one in again.spool.look(again.spool.path("s2")).events] == [
        "Is there another question that waits here?"
    ]

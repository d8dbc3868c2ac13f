"""Events at the edges of what programs send: the fields of Claude Code's own types, and what follows from each (C6)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs.model.time import format_time
from memfs.sessions.extract import ExtractedMemories, Task, completed, extract_memories, failure, same_thing
from memfs.sessions.spool import PendingEvent, SessionEvent, SessionNotes, parse

_BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def _event(name: str, minutes: float = 0, **fields: Any) -> SessionEvent:
    moment = format_time(_BEGAN + timedelta(minutes=minutes))
    return SessionEvent(name, session="s1", moment=moment, cwd="/w", fields=fields)


def _extracted(
    *events: SessionEvent, notes: SessionNotes | None = None, warned: tuple[str, ...] = ()
) -> ExtractedMemories:
    waiting = [PendingEvent(event, f"{number:016}", number + 1) for number, event in enumerate(events)]
    return extract_memories(waiting, notes or SessionNotes(), Path("/w"), lambda _: warned)


def _todo_write(now: dict[str, str], before: dict[str, str], minutes: float = 0) -> SessionEvent:
    old, new = ([{"content": text, "status": stage} for text, stage in rows.items()] for rows in (before, now))
    response = {"oldTodos": old, "newTodos": new}
    return _event("PostToolUse", minutes, tool_name="TodoWrite", tool_input={"todos": new}, tool_response=response)


def test_a_todo_that_was_completed_before_is_not_completed_again() -> None:
    """TodoWrite's own answer says what the list was: a resumed session does none of it again (C6)."""
    notes = SessionNotes()  # the session ended, and was resumed: nothing is noted of it
    before = {"Fix the login": "completed", "Write the docs": "in_progress"}
    done = completed(_todo_write({"Fix the login": "completed", "Write the docs": "completed"}, before), notes)
    assert [task.text for task in done] == ["Write the docs"]
    assert completed(_todo_write({"Add a test": "completed"}, {}), notes)[0].text == "Add a test"


def test_a_refused_completion_does_not_count() -> None:
    """TaskUpdate answers success: false where somebody's own hook keeps a task open; it counts once it is done (C6)."""
    notes = SessionNotes()
    given = {"tool_name": "TaskUpdate", "tool_input": {"taskId": "7", "status": "completed", "subject": "Ship it"}}
    refused = _event("PostToolUse", tool_response={"success": False, "taskId": "7", "error": "tests fail"}, **given)
    assert completed(refused, notes) == []
    [task] = completed(_event("PostToolUse", tool_response={"success": True, "taskId": "7"}, **given), notes)
    assert task.text == "Ship it"


def test_the_same_todo_of_two_subagents_has_two_stages() -> None:
    """Each agent keeps a list of its own: one that completes a todo is not the other that begins it (C6)."""
    notes = SessionNotes()
    given = {"todos": [{"content": "Read the module", "status": "in_progress"}]}
    for minutes, agent in ((0, "a1"), (30, "a2")):
        completed(_event("PostToolUse", minutes, tool_name="TodoWrite", tool_input=given, agent_id=agent), notes)
    assert len(notes.todos) == 2
    done = {"todos": [{"content": "Read the module", "status": "completed"}]}
    found: list[Task] = completed(
        _event("PostToolUse", 40, tool_name="TodoWrite", tool_input=done, agent_id="a2"), notes
    )
    assert [task.minutes for task in found] == [10.0]


def test_a_todo_in_progress_keeps_when_it_began() -> None:
    """The list is reported again with each change: the time counts from the first (C6)."""
    notes = SessionNotes()
    for minutes in (0, 5, 9):
        completed(_todo_write({"Fix it": "in_progress"}, {}, minutes), notes)
    [task] = completed(_todo_write({"Fix it": "completed"}, {"Fix it": "in_progress"}, 12), notes)
    assert task.minutes == 12.0


def test_a_task_says_what_else_was_reported_and_by_whom() -> None:
    """TaskCompleted's description and teammate are in the memory (C6)."""
    task = {"task_id": "3", "task_subject": "Tag the release", "task_description": "As v2.0, signed"}
    [item] = _extracted(_event("TaskCompleted", teammate_name="shipper\nx", **task)).done.values()
    assert item.content == "Tag the release\nAs v2.0, signed"
    assert item.origin.agent == "shipper x"
    [plain] = _extracted(_event("TaskCompleted", **{**task, "task_description": "tag the  release"})).done.values()
    assert (plain.content, plain.origin.agent) == ("Tag the release", "claude-code")


def test_two_prompts_of_one_turn_are_two() -> None:
    """``prompt_id`` goes with all events until the next prompt is answered: another text is another prompt (C6)."""
    first, second = ("Why is the export of large files slow?", "And which of the importers reads it again?")
    ids = {"prompt_id": "0ae70ddd"}
    extracted = _extracted(
        *(_event("UserPromptSubmit", 0.05 * n, prompt=text, **ids) for n, text in enumerate((first, second)))
    )
    assert sorted(item.content for item in extracted.items.values()) == sorted((first, second))
    twice = _extracted(*(_event("UserPromptSubmit", 0.05 * n, prompt=first, **ids) for n in range(2)))
    assert len(twice.items) == 1


@pytest.mark.parametrize(
    ("given", "response", "failed"),
    [
        ({"url": "https://example.org"}, {"code": 200, "codeText": "OK", "result": "page"}, False),
        ({"url": "https://example.org"}, {"code": 0, "is_error": True, "error": "no such host"}, True),
        ({"command": "make"}, {"code": 2, "stderr": "boom"}, True),
        ({"command": "make"}, {"exitCode": True, "stdout": "ok"}, False),
        ({"command": "make"}, {"success": False}, True),
        ({"command": "make"}, {"exit_code": 130, "stderr": "stopped", "interrupted": True}, False),
    ],
)
def test_a_code_is_an_exit_code_where_a_command_ran(given: dict[str, Any], response: object, failed: bool) -> None:
    """The code of a page that was fetched says nothing of a failure (P4)."""
    event = _event("PostToolUse", tool_name="Anything", tool_input=given, tool_response=response)
    assert bool(failure(event)) is failed


def test_an_input_may_begin_with_a_mark() -> None:
    """A byte order mark, as some shells put it before what they pipe, is not part of the JSON (C6)."""
    assert parse(b'\xef\xbb\xbf{"hook_event_name": "Stop", "session_id": "s"}').session == "s"


# -- what is heard ------------------------------------------------------------------------------------------------
def _bash(command: str, minutes: float, error: str = "", **fields: Any) -> SessionEvent:
    given = {"tool_name": "Bash", "tool_input": {"command": command}, **fields}
    if error:
        return _event("PostToolUseFailure", minutes, error=error, **given)
    return _event("PostToolUse", minutes, tool_response={"stdout": ""}, **given)


def test_what_a_person_stopped_after_a_failure_is_not_success() -> None:
    """A step that failed and was then stopped or forbidden has not been shown to work (P4)."""
    failed = _bash("make deploy", 0, "Exit code 2\nno such region")
    stopped = _bash("make deploy", 1, "The user doesn't want to proceed with this tool use.")
    assert [one.outcome.value for one in _extracted(failed, stopped).episodes] == ["failure"]
    assert _extracted(stopped, warned=("rule-1",)).episodes == []
    assert [one.outcome.value for one in _extracted(failed, _bash("make deploy", 1)).episodes] == ["failure", "success"]


def test_a_failure_that_changes_is_reported_again() -> None:
    """The same thing that fails in another way teaches something else; in the same way it does not (P4)."""
    errors = ("Exit code 1\nno such file", "Exit code 1\nno such file", "Exit code 1\npermission denied")
    found = _extracted(*(_bash("make", number, error) for number, error in enumerate(errors))).episodes
    assert [one.error_message.splitlines()[-1] for one in found] == ["no such file", "permission denied"]


def test_a_session_gives_a_bounded_number_of_episodes() -> None:
    """An agent that fails all day fills no memory (C6)."""
    notes = SessionNotes()
    for begin in (0, 60):
        _extracted(
            *(_bash(f"make target-{begin + n}", begin + n, f"Exit code 2\nerror {n}") for n in range(60)), notes=notes
        )
    assert notes.episodes == 100


def test_the_steps_of_a_task_are_few_and_each_once() -> None:
    """A procedure lists the latest steps, each once, and those of one task are not attributed to the next (C6)."""
    commands = [f"make part-{number}" for number in range(15)]
    steps = [_bash(command, number) for number, command in enumerate([*commands, commands[-1]])]
    done = [_event("TaskCompleted", 30 + n, task_id=str(n), task_subject=f"Build all of it {n}") for n in range(2)]
    first, second = _extracted(*steps, *done).done.values()
    assert first.content.split("\n")[1:] == ["Steps:", *(f"{n}. make part-{n + 2}" for n in range(1, 13))]
    assert second.content == "Build all of it 1"


def test_two_subagents_may_say_the_same_at_once() -> None:
    """What is said twice is said by one agent: another's same words are its own (C6)."""
    message = "The root cause was a missing await in `auth.py`."
    notes = SessionNotes()
    for agent in ("reviewer", "tester", "tester"):
        _extracted(_event("SubagentStop", agent_type=agent, last_assistant_message=message), notes=notes)
    assert len(notes.seen) == 2


def test_a_session_that_goes_on_has_not_ended() -> None:
    """A resumed session is at work again: the next drain must not consolidate it (C7)."""
    notes = SessionNotes()
    _extracted(_event("SessionEnd", reason="other"), notes=notes)
    assert notes.ended
    _extracted(_event("UserPromptSubmit", 5, prompt="Where is the retry logic of the uploader?"), notes=notes)
    assert not notes.ended


def test_another_programs_prompt_corrects_nobody() -> None:
    """What the SDK sends (source sdk) is remembered with trust agent, and is not a wish of a person (P4)."""
    text = "Always use tabs for indentation. Why does the retry test fail?"
    extracted = _extracted(_event("UserPromptSubmit", prompt=text, source="sdk"))
    assert extracted.corrections == []
    assert [item.trust for item in extracted.items.values()] == ["agent"]
    assert len(_extracted(_event("UserPromptSubmit", prompt=text, source="user")).corrections) == 1


def test_a_long_prompt_is_meant_where_it_says_so() -> None:
    """Of a long message the intention is the sentences that state it, and their words give the priority (C6)."""
    plan = "We need to rotate the signing keys."
    text = f"This is urgent. {'The parser is slow and reads each file twice. ' * 12}{plan} {'It is all in Go. ' * 10}"
    items = _extracted(_event("UserPromptSubmit", prompt=text)).items.values()
    [meant] = [item for item in items if item.type == "prospective"]
    assert (meant.content, meant.metadata["priority"]) == (plan, "medium")


@pytest.mark.parametrize("prompt", ["I plan to split the worker", "We are planning to drop Python 3.10 support"])
def test_a_plan_is_meant(prompt: str) -> None:
    """``plan to`` is one of the words of the seed (C6)."""
    kinds = sorted(item.type for item in _extracted(_event("UserPromptSubmit", prompt=prompt)).items.values())
    assert kinds == ["prospective", "working"]


@pytest.mark.parametrize("command", ["=" * 60_000, "a=" * 30_000, " " * 60_000 + "x", "_" * 60_000, "a=b " * 15_000])
def test_no_command_takes_long_to_read(command: str) -> None:
    """What a tool ran is looked at in time that grows with its length, whatever it is full of (C6)."""
    tool = {"tool_name": "Bash", "tool_input": {"command": command}}
    event = _event("PostToolUseFailure", error="Exit code 1", **tool)
    began = time.process_time()
    same_thing(event, Path("/w"))
    failure(event)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("cd x &&  A=1 B=2 make all", "make all"),
        ("FOO=bar pytest -q tests", "pytest tests"),
        ("ls ; rg a | wc", "rg a"),
    ],
)
def test_a_command_is_known_by_its_program(command: str, program: str) -> None:
    """Preparations, settings and options are not part of what a command tries (C6)."""
    event = _event("PostToolUse", tool_name="Bash", tool_input={"command": command})
    assert same_thing(event, Path("/w")) == f"Bash {program}"

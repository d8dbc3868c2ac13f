"""What Claude Code 2.1 sent in three sessions, word for word, to the hooks that install puts in.

The first session wishes, plans, fails and decides; the second only goes on with it and compacts it; the third asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memfs.doors.claude_code.hook import Hook
from memfs.doors.claude_code.installer import EVENTS
from memfs.model import Query
from memfs.sessions.spool import find_place
from memfs.workspace import open_workspace

pytestmark = pytest.mark.usefixtures("learning_written")

STREAM = Path(__file__).parent / "streams/recorded.jsonl"
SETTINGS = {"index.engine": "memory", "history.commit": "batch"}


def handled_events(root: Path) -> Iterator[dict[str, Any]]:
    """The events of the stream for which a handler is installed."""
    tools = {event.name: event.tools for event in EVENTS}
    for line in STREAM.read_text(encoding="utf-8").splitlines():
        event = json.loads(line.replace("{root}", str(root)))
        wanted = tools[event["hook_event_name"]]
        if not wanted or event["tool_name"] in wanted:
            yield event


@pytest.fixture
def replayed(tmp_path: Path) -> tuple[Path, list[tuple[str, str, str]]]:
    """A workspace after all of it; and session, event and answer of each."""
    with open_workspace(tmp_path / "P", create=True, watch=False, settings=SETTINGS) as workspace:
        root = workspace.root
    answers = []
    for event in handled_events(root):
        printed: list[str] = []
        remarks: list[str] = []
        hook = Hook(event["hook_event_name"], settings=SETTINGS, say=printed.append, complain=remarks.append)
        hook.run(json.dumps(event).encode())
        assert remarks == []
        answer = "".join(printed)
        context = json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer else ""
        answers.append((event["session_id"], event["hook_event_name"], context))
    return root, answers


def test_the_third_session_knows_what_the_first_one_said(replayed: tuple[Path, list[tuple[str, str, str]]]) -> None:
    """C6: the wish and the plan at its start, the decision with its question, the failure before the same command."""
    _, answers = replayed
    first, last = answers[0][0], answers[-1][0]
    assert first != last
    contexts = {event: context for session, event, context in answers if session == last and context}
    assert "I prefer tabs over spaces in Go files." in contexts["SessionStart"]
    assert "[MEDIUM]" in contexts["SessionStart"]
    assert "update the changelog later" in contexts["SessionStart"]
    assert "keep tabs in the syntax tree because the formatter needs them" in contexts["UserPromptSubmit"]
    assert "go: command not found" in contexts["PreToolUse"]
    assert set(contexts) == {"SessionStart", "UserPromptSubmit", "PreToolUse"}


def test_each_becomes_a_memory_of_its_kind(replayed: tuple[Path, list[tuple[str, str, str]]]) -> None:
    """C6, C7: wish, plan, finished task, failure and decision; and what only worked is cleared at the end."""
    root, _ = replayed
    with open_workspace(find_place(str(root), {}).root, watch=False, settings=SETTINGS) as workspace:
        hits = workspace.recaller.search(Query(text="", limit=100)).hits
    kinds = [hit.item.type for hit in hits]
    assert kinds.count("preference") == kinds.count("prospective") == 1
    done = [hit.item for hit in hits if hit.item.type == "procedural"]
    assert {item.content.splitlines()[0] for item in done} == {"Make the parser read tabs"}
    assert all(item.metadata["success"] is True for item in done)
    assert any(hit.item.data.get("outcome") == "failure" for hit in hits)
    assert any("decision_type" in hit.item.metadata for hit in hits)

"""Recorded sessions are replayed: what was said in one helps in the next."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.patience import LONG
from memfs.doors.claude_code.hook import Hook
from memfs.model import MemoryItem, Query
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.usefixtures("learning_written")

STREAMS = Path(__file__).parent / "streams"
SETTINGS = {"index.engine": "memory", "history.commit": "batch"}


def stream(name: str, root: Path) -> Iterator[dict[str, Any]]:
    """The events of a recorded session, as its program sent them."""
    for line in (STREAMS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line.replace("{root}", str(root)))


def replay(name: str, root: Path) -> list[tuple[str, str]]:
    """Name of each event of a recorded session, and what the hook printed for it; nothing may be complained of."""
    answers = []
    for event in stream(name, root):
        printed: list[str] = []
        remarks: list[str] = []
        Hook("", into="repository", settings=SETTINGS, say=printed.append, complain=remarks.append).run(
            json.dumps(event).encode()
        )
        assert remarks == []
        answers.append((event["hook_event_name"], "".join(printed)))
    return answers


def contexts(answers: list[tuple[str, str]], event: str) -> list[str]:
    """The contexts that were reported at an event, "" where none was."""
    return [
        json.loads(reply)["hookSpecificOutput"]["additionalContext"] if reply else ""
        for name, reply in answers
        if name == event
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a memory of its own."""
    with open_workspace(tmp_path / "shop", create=True, watch=False, settings=SETTINGS) as workspace:
        return workspace.root


def _items(root: Path, kind: str) -> list[MemoryItem]:
    with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
        return _of(workspace, kind)


def _of(workspace: Workspace, kind: str) -> list[MemoryItem]:
    found = workspace.recaller.search(Query(text="", types=frozenset({kind}), limit=100)).hits
    return [hit.item for hit in found]


@pytest.mark.usefixtures("private_memory")
def test_what_was_said_in_one_session_helps_in_the_next(root: Path) -> None:
    """C6: a wish, an intention, a decision and a failure of Monday are there on Tuesday, each at its moment."""
    monday = replay("monday", root)
    assert contexts(monday, "SessionStart")[0] == ""  # nothing was remembered before
    assert [reply for name, reply in monday if name in ("PostToolUse", "Stop", "SubagentStop", "SessionEnd")] == [
        ""
    ] * 8

    tuesday = replay("tuesday", root)
    start, resumed = contexts(tuesday, "SessionStart")
    assert "Always use pnpm in this repository, never npm." in start
    assert "[HIGH]" in start
    assert "rotate the signing keys" in start
    assert resumed == ""
    hello, rounding, haiku = contexts(tuesday, "UserPromptSubmit")
    assert hello == haiku == ""
    assert "half to even, because the ledger does the same" in rounding
    [warning] = contexts(tuesday, "PreToolUse")
    assert "ledger.rounding_mode does not exist" in warning


@pytest.mark.usefixtures("private_memory")
def test_what_becomes_of_a_session(root: Path) -> None:
    """C6, C7: each event made the memories that the seed names, once, however long it went on."""
    replay("monday", root)
    replay("tuesday", root)
    with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
        tasks = _of(workspace, "procedural")
        assert sorted(task.title or task.content.split("\n")[0] for task in tasks) == [
            "Find where invoices are rounded",
            "Round half to even in billing/rounding.py",
        ]
        assert all(task.metadata["success"] is True and "task_type" in task.metadata for task in tasks)
        assert [wish.trust for wish in _of(workspace, "preference")] == ["human"]
        [intention] = _of(workspace, "prospective")
        assert intention.metadata["priority"] == "high"
        decided = [item for item in _of(workspace, "episodic") if "decision_type" in item.metadata]
        assert any("half to even" in item.content for item in decided)
        assert any("rounding.py" in item.content for item in _of(workspace, "semantic"))
        outcomes = sorted(item.data["outcome"] for item in _of(workspace, "episodic") if item.data.get("outcome"))
        assert outcomes == ["failure", "success"]
        [helped] = [item for item in _of(workspace, "episodic") if item.data.get("outcome") == "success"]
        assert helped.data["warned"]  # Tuesday's success came after a warning, and is known to


def test_a_compacted_session_gets_again_what_it_lost(root: Path) -> None:
    """C6: after a compaction the automatic memory comes once more, with what the session itself taught until then."""
    start, compacted = contexts(replay("monday", root), "SessionStart")
    assert start == ""
    assert "Always use pnpm" in compacted


@pytest.mark.usefixtures("private_memory")
def test_the_same_stream_twice_is_remembered_once(root: Path) -> None:
    """C6: hooks that are installed twice report each event twice; nothing is stored twice for that."""
    for event in stream("monday", root):
        for _ in range(2):
            printed: list[str] = []
            Hook("", into="repository", settings=SETTINGS, say=printed.append, complain=print).run(
                json.dumps(event).encode()
            )
    replay("tuesday", root)
    assert len(_items(root, "procedural")) == 2
    assert len(_items(root, "preference")) == 1
    assert len(_items(root, "prospective")) == 1


def test_one_session_teaches_the_next(root: Path) -> None:
    """C6: what went wrong and what was asked for is reported when it matters again."""
    assert [printed for _, printed in replay("wednesday", root)] == [""] * 6
    session = {"session_id": "c1", "cwd": str(root)}
    answers = []
    for event in (
        {**session, "hook_event_name": "SessionStart", "source": "startup"},
        {**session, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make protos"}},
    ):
        printed: list[str] = []
        Hook("", into="repository", settings=SETTINGS, say=printed.append, complain=print).run(
            json.dumps(event).encode()
        )
        answers.append("".join(printed))
    assert "generated files" in answers[0]
    assert "money.proto" in answers[1]


def test_a_session_of_real_processes(root: Path, forked: Path) -> None:
    """C6: the same through the command an agent's program calls, killed in between: what was reported is not lost."""
    events = list(stream("monday", root))
    for event in events[:2]:
        _process(forked, event)
    with subprocess.Popen(
        [sys.executable, "-m", "memfs", "hook", "Stop", "--into=repository"], stdin=subprocess.PIPE
    ) as stop:
        stop.kill()
    start = _process(
        forked, {"hook_event_name": "SessionStart", "session_id": "next", "source": "startup", "cwd": str(root)}
    )
    assert "never npm" in json.loads(start)["hookSpecificOutput"]["additionalContext"]


def _process(program: Path, event: dict[str, Any]) -> bytes:
    words = [str(program), "hook", event["hook_event_name"], "--into=repository"]
    done = subprocess.run(words, input=json.dumps(event).encode(), capture_output=True, check=True, timeout=LONG)
    assert done.stderr == b""
    return done.stdout


def test_each_project_has_a_memory_of_its_own(tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1, C6: without a workspace private memory works alone, and no project hears of another."""
    projects = [tmp_path / name for name in ("shop", "blog")]
    for project in projects:
        project.mkdir()
    monkeypatch.chdir(tmp_path)
    shop, blog = map(str, projects)
    decided = "We decided to round invoice totals half to even, because the ledger does the same."
    _send_event("UserPromptSubmit", "a1", shop, prompt="Always write commit messages in English.")
    _send_event("UserPromptSubmit", "a1", shop, prompt="We need to rotate the signing keys later.")
    _send_event("Stop", "a1", shop, last_assistant_message=decided)
    _send_event("SessionEnd", "a1", shop, reason="other")
    assert _send_event("SessionStart", "b1", blog, source="startup") == ""
    assert _send_event("UserPromptSubmit", "b1", blog, prompt="how are invoice totals rounded?") == ""
    again = _send_event("SessionStart", "a2", shop, source="startup")
    assert "commit messages in English" in again
    assert "signing keys" in again
    assert f"-C {own_world}/.local/share/memfs/projects/shop-" in again
    assert "half to even" in _send_event("UserPromptSubmit", "a2", shop, prompt="how are invoice totals rounded?")


def _send_event(name: str, session: str, cwd: str, **fields: Any) -> str:
    """What the hook prints; it may complain of nothing."""
    printed: list[str] = []
    remarks: list[str] = []
    event = {"hook_event_name": name, "session_id": session, "cwd": cwd, **fields}
    Hook("", into="repository", settings=SETTINGS, say=printed.append, complain=remarks.append).run(
        json.dumps(event).encode()
    )
    assert remarks == []
    return "".join(printed)

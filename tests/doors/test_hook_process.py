"""The hook as an agent's program runs it: a process of its own, which ends with 0 and in time whatever happens."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.patience import IN_TIME, LONG, UNHURRIED
from memfs.doors.claude_code.hook import LIMITS, MAKES_NONE, MAKING_LIMIT
from memfs.doors.claude_code.installer import EVENTS as HANDLERS
from memfs.model import MemoryItem
from memfs.sessions.spool import find_place
from memfs.store.parts import ALL_LEARNED
from memfs.workspace import Workspace

HOOK = (*UNHURRIED, "hook", "--into=repository")
HEAVY = {"click", "git", "jsonschema", "jsonschema_rs", "memfs.workspace", "sqlite3", "watchdog", "whoosh", "yaml"}
Run = Callable[..., subprocess.CompletedProcess[bytes]]
SPOOLED = ("PostToolUse", "SessionEnd")


@pytest.fixture
def hook(forked: Path) -> Run:
    """Run the hook with an event on standard input."""

    def run(
        *words: str, payload: Any = b"", cwd: Path | None = None, **options: Any
    ) -> subprocess.CompletedProcess[bytes]:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        command = [str(forked), "hook", "--into=repository", *words]
        return subprocess.run(command, input=data, cwd=cwd, capture_output=True, check=False, timeout=LONG, **options)

    return run


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """A workspace that knows where deploys go."""
    workspace = opened()
    workspace.store.put(MemoryItem("Deploys go to the Frankfurt region.", memory_type="knowledge", id="region"))
    return workspace


def event(workspace: Workspace, name: str, **fields: Any) -> dict[str, Any]:
    """What Claude Code sends with an event."""
    return {"hook_event_name": name, "session_id": "s1", "cwd": str(workspace.root), **fields}


def test_a_prompt_is_answered(workspace: Workspace, hook: Run) -> None:
    """C6: one JSON object on standard output, nothing else, exit code 0."""
    done = hook("UserPromptSubmit", payload=event(workspace, "UserPromptSubmit", prompt="where do deploys go?"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Frankfurt" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    ("words", "payload"),
    [
        (["SessionStart"], b""),
        (["Stop"], b"\x00\xff not json"),
        ([], b"{}"),
        (["UserPromptSubmit", "and", "more"], b"["),
        (["--no-such-option"], b"{}"),
        (["Stop", "-x"], b"{}"),
        (["NoSuchEvent"], b"{}"),
        (["PostToolUse"], b'{"tool_input": ' + b"[" * 5_000),
    ],
)
def test_no_call_fails(tmp_path: Path, words: list[str], payload: bytes, hook: Run) -> None:
    """C6: exit code 2 would erase the person's prompt: nothing that a program or a person writes brings it about."""
    done = hook(*words, payload=payload, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") <= 2
    assert b"Traceback" not in done.stderr


def test_help_is_there_for_people(hook: Run) -> None:
    """B5: the verb explains itself."""
    done = hook("--help")
    assert done.returncode == 0
    assert b"UserPromptSubmit" in done.stdout


def test_an_input_that_does_not_end_is_not_waited_for(workspace: Workspace) -> None:
    """C6: a program that keeps its end open is answered from what it sent, within the limit of the event."""
    payload = json.dumps(event(workspace, "PreToolUse", tool_name="Bash", tool_input={"command": "ls"})).encode()
    with subprocess.Popen(
        [*IN_TIME, "hook", "PreToolUse", "--into=repository"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(payload)
        process.stdin.flush()
        assert process.wait(LONG) == 0


def test_whatever_hangs_is_given_up_in_time(workspace: Workspace, hook: Run) -> None:
    """C6: somebody holds the session's spool and never lets go: the hook ends with 0, and says so to a person."""
    hook("SessionEnd", payload=event(workspace, "SessionEnd", reason="other"))
    [spool] = (workspace.repository.state / "spool").glob("*.jsonl")
    fd = os.open(spool, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        payload = json.dumps(event(workspace, "SessionEnd", reason="other")).encode()
        done = subprocess.run(
            [*IN_TIME, "hook", "SessionEnd", "--into=repository"],
            input=payload,
            capture_output=True,
            check=False,
            timeout=LONG,
        )
    finally:
        os.close(fd)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"memfs hook SessionEnd: ")
    assert (workspace.repository.state / "hooks.log").exists()


@pytest.mark.parametrize("hang", ["time.sleep(600)", "re.match('(a+)+$', 'a' * 60 + 'b')"])
def test_a_watch_ends_what_hangs_within(workspace: Workspace, hang: str) -> None:
    """C6: neither a call that never returns nor an expression that matches forever keeps the person waiting."""
    code = (
        "import re, sys, time; sys.argv = ['memfs', 'hook', 'PreToolUse', '--into=repository']\n"
        "import memfs.doors.claude_code.hook as hook\n"
        "import memfs.doors.claude_code.answer as answers\n"
        "hook._PATIENCE_SECONDS = 60\n"
        f"answers.answer = lambda *_: {hang}\n"
        "import memfs.__main__; memfs.__main__.main()"
    )
    payload = json.dumps(event(workspace, "PreToolUse", tool_name="Bash", tool_input={"command": "ls"})).encode()
    done = subprocess.run([sys.executable, "-c", code], input=payload, capture_output=True, check=False, timeout=LONG)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"took longer than" in done.stderr


def test_closed_streams_are_no_trouble(workspace: Workspace) -> None:
    """C6: without standard output or error the hook ends as quietly."""
    payload = json.dumps(event(workspace, "UserPromptSubmit", prompt="where do deploys go?"))
    line = f"{sys.executable} -m memfs hook UserPromptSubmit >&- 2>&-"
    done = subprocess.run(["sh", "-c", line], input=payload.encode(), check=False, timeout=LONG)
    assert done.returncode == 0


def test_a_reader_that_left_is_no_trouble(workspace: Workspace) -> None:
    """C6: a program that reads no answer does not make the hook fail."""
    payload = json.dumps(event(workspace, "UserPromptSubmit", prompt="where do deploys go?")).encode()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*HOOK], input=payload, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=LONG)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_without_a_workspace_the_users_own_is_used(tmp_path: Path, own_world: Path, hook: Run) -> None:
    """C1: it is made when it is first needed, and the event is kept there; where none can be made, nothing fails."""
    payload = {"session_id": "s1", "cwd": str(tmp_path), "prompt": "Rollbacks are tried out on Fridays."}
    for name in ("SessionEnd", "PreToolUse"):  # they have nothing to end or to tell, and no time to make one
        done = hook(name, payload={**payload, "hook_event_name": name}, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not list(own_world.rglob("ContextMemory"))
    asked = {**payload, "hook_event_name": "UserPromptSubmit"}
    assert hook("UserPromptSubmit", payload=asked, cwd=tmp_path).returncode == 0
    assert list(own_world.rglob("spool/s1.jsonl"))
    (tmp_path / "file").write_text("")
    done = hook("PostToolUse", payload=asked, cwd=tmp_path, env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "file")})
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") == 1


def test_a_workspace_may_be_named(workspace: Workspace, tmp_path: Path, forked: Path) -> None:
    """C6: ``-C`` wins over all that the event says; where there is no workspace, nothing of another is reported."""
    payload = {"hook_event_name": "UserPromptSubmit", "prompt": "where do deploys go?", "cwd": str(tmp_path)}
    for folder, answered in ((workspace.root, True), (tmp_path, False)):
        asked = [str(forked), "-C", str(folder), "hook", "UserPromptSubmit", "--into=repository"]
        done = subprocess.run(asked, input=json.dumps(payload).encode(), capture_output=True, check=False)
        assert done.returncode == 0
        assert (b"Frankfurt" in done.stdout) == answered


def test_what_went_wrong_is_reported_by_status_and_check(workspace: Workspace, hook: Run, forked: Path) -> None:
    """C6: a hook may not speak, so a person finds it where they look."""
    (workspace.root / "memfs.toml").write_text("[recall]\nlimt = 3\n")
    done = hook("UserPromptSubmit", payload=event(workspace, "UserPromptSubmit", prompt="where do deploys go?"))
    assert (done.returncode, done.stdout) == (0, b"")
    (workspace.root / "memfs.toml").write_text("")
    for verb in ("status", "check"):
        asked = [str(forked), "-C", str(workspace.root), verb, "--json"]
        shown = json.loads(subprocess.run(asked, capture_output=True, check=False).stdout)
        [problem] = [one for one in shown["problems"] if one["code"] == "HookFailed"]
        assert "limt" in problem["message"]


def imported(workspace: Workspace, name: str) -> set[str]:
    """The modules that a hook's process imports for an event, and ``child`` where it begins another process."""
    code = (
        "import os, sys; sys.argv = ['memfs', 'hook', sys.argv[1]]\n"
        "before = set(sys.modules)\n"
        "begun = {'subprocess.Popen', 'os.fork', 'os.posix_spawn'}\n"
        "sys.addaudithook(lambda what, _: what in begun and os.write(2, b'child\\n'))\n"
        "import memfs.doors.claude_code.hook as hook\n"
        f"hook.LIMITS.update(dict.fromkeys(hook.LIMITS, {LONG}))\n"
        "hook._end = lambda hook: (print('\\n'.join(sys.modules.keys() - before)), sys.stderr.flush(), os._exit(0))\n"
        "import memfs.__main__; memfs.__main__.main()"
    )
    payload = json.dumps(event(workspace, name, tool_name="Bash", tool_input={"command": "ls"})).encode()
    done = subprocess.run([sys.executable, "-c", code, name], input=payload, capture_output=True, check=True)
    return set(done.stderr.decode().split())


@pytest.mark.parametrize("name", SPOOLED)
def test_an_event_that_is_only_kept_imports_nothing_heavy(workspace: Workspace, name: str) -> None:
    """C6: 100 ms from start to end are only met by a process that imports no parser, no git and no search engine."""
    place = find_place(str(workspace.root))
    loaded = imported(workspace, name)
    assert "memfs.sessions.spool" in loaded
    assert not HEAVY & loaded
    assert (place.state / "spool" / "s1.jsonl").exists()


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "PreToolUse"])
def test_an_event_that_is_answered_imports_nothing_slow(workspace: Workspace, name: str, forked: Path) -> None:
    """C6: an agent waits for the answer at each of them, also where its session has just become memories."""
    workspace.recall("deploys")  # from now on it is known what its file says
    (workspace.repository.state / ALL_LEARNED).write_text(f"{time.time_ns()} 1")
    for event_name, fields in (
        ("UserPromptSubmit", {"prompt": "Always use pnpm in this repository, never npm."}),
        ("Stop", {"last_assistant_message": "We decided to round totals half to even, because the ledger does."}),
    ):
        data = json.dumps(event(workspace, event_name, **fields)).encode()
        subprocess.run([str(forked), "hook", event_name], input=data, capture_output=True, check=True, timeout=LONG)
    loaded = imported(workspace, name)
    assert "memfs.sessions.respond" in loaded
    slow = {"asyncio", "click", "concurrent.futures", "email", "git", "http", "inspect", "jsonschema_rs", "logging"}
    assert {*slow, "child", "ssl", "tomllib", "typing", "watchdog", "yaml"} & loaded == set()


def test_a_program_waits_longer_than_a_hook_takes() -> None:
    """C6: the limits of ours end before those that are installed, or an event would be cut off silently."""
    most = {name: limit if name in MAKES_NONE else max(limit, MAKING_LIMIT) for name, limit in LIMITS.items()}
    assert {one.name: one.seconds > most[one.name] for one in HANDLERS} == dict.fromkeys(LIMITS, True)


def test_the_first_event_of_a_person_has_time(tmp_path: Path, own_world: Path) -> None:
    """C1, C6: making a workspace takes longer than an event may take otherwise; the event is kept all the same."""
    code = (
        "import sys, time; sys.argv = ['memfs', 'hook', 'PostToolUse', '--into=repository']\n"
        "from types import SimpleNamespace\n"
        "import memfs.doors.claude_code.hook as hook\n"
        "import memfs.workspace as workspace\n"
        "original, now, looks = workspace.open_workspace, [0.0], []\n"
        "def look():\n"
        "    looks.append(now[0])\n"
        "    return now[0]\n"
        "hook.time = SimpleNamespace(monotonic=look, sleep=time.sleep)\n"
        "def late(*given, **more):\n"
        "    now[0] = 1.3\n"
        "    while looks[-2:] != [1.3, 1.3]: time.sleep(0.01)\n"  # until the watch has seen it
        "    return original(*given, **more)\n"
        "workspace.open_workspace = late\n"
        "import memfs.__main__; memfs.__main__.main()"
    )
    payload = json.dumps(
        {"hook_event_name": "PostToolUse", "session_id": "s1", "cwd": str(tmp_path), "tool_name": "Bash"}
    ).encode()
    done = subprocess.run([sys.executable, "-c", code], input=payload, capture_output=True, check=False, timeout=LONG)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(own_world.rglob("spool/s1.jsonl"))

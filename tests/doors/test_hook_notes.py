"""What hooks note for one another: what a session was given, and what went wrong."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from memfs.fs import append_log, io
from memfs.model.time import utc_now
from memfs.sessions import spool
from memfs.sessions.respond import FOLDER, Response

NAMES = [f"item-{number}" for number in range(200)]


def test_what_was_reported_is_known_to_the_next_process(tmp_path: Path) -> None:
    """C6: a name is fresh once for a session; other sessions, and subagents, know nothing of it."""
    assert Response(tmp_path, "s1").claim(["a", "b", "a"]) == {"a", "b"}
    assert Response(tmp_path, "s1").claim(["b", "c"]) == {"c"}
    assert Response(tmp_path, "s1").names() == {"a", "b", "c"}
    assert Response(tmp_path, "s2").names() == Response(tmp_path, "s1", "agent-1").names() == frozenset()
    Response(tmp_path, "s1").forget()
    assert Response(tmp_path, "s1").names() == frozenset()


def test_without_a_session_nothing_is_remembered(tmp_path: Path) -> None:
    """C6: a program that names no session is given everything every time."""
    assert Response(tmp_path, "").claim(["a"]) == Response(tmp_path, "").claim(["a"]) == {"a"}
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("session", ["../../x", "a/b", "\0", "\ud800", "x" * 10_000, "."])
def test_a_sessions_name_leads_nowhere(tmp_path: Path, session: str) -> None:
    """C6: whatever a session calls itself, its notes are in their folder."""
    Response(tmp_path / "state", session).claim(["a"])
    assert [path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*.txt")] == [("state", FOLDER)]


def test_two_hooks_at_once_give_a_thing_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: of two that answer the same event each name goes to one; each opens the file for itself, as processes do."""
    monkeypatch.setattr("memfs.sessions.respond._WAIT_SECONDS", 60.0)  # else waiting too long gives it twice
    barrier = threading.Barrier(2)

    def claims(_: int) -> list[str]:
        barrier.wait(60)
        return [name for name in NAMES if Response(tmp_path, "s1").claim([name])]

    with ThreadPoolExecutor(2) as pool:
        claimed = [name for found in pool.map(claims, range(2)) for name in found]
    assert sorted(claimed) == sorted(NAMES)


def test_a_disk_that_takes_nothing_costs_a_repetition(tmp_path: Path) -> None:
    """C6: each operation may fail, and what is to be given is given."""

    def broken(name: str, path: str) -> None:
        raise OSError(5, "Input/output error")

    before = io.set_hook(broken)
    try:
        response = Response(tmp_path, "s1")
        assert response.claim(["a"]) == {"a"}
        assert response.names() == frozenset()
        response.forget()
        response.sweep()
        spool.note_error(tmp_path, "Stop", "x")
        assert spool.problems(tmp_path) == []
    finally:
        io.set_hook(before)


def test_garbage_in_the_notes_is_passed_over(tmp_path: Path) -> None:
    """C6: a torn line, or what somebody else wrote there, is no trouble of its own."""
    spool.note_error(tmp_path, "Stop", "one\ntwo")
    with (tmp_path / append_log.ERRORS).open("ab") as file:
        file.write(b'\xff\n[1, 2, 3]\n["9999-99-99T00:00:00Z", "Stop", "x"]\n{"a": 1}\n["2026-')
    [problem] = spool.problems(tmp_path)
    assert "once in the last three days; last Stop at " in problem.message
    assert problem.message.endswith(": one two")
    Response(tmp_path, "s1").claim(["a"])
    [path] = (tmp_path / FOLDER).iterdir()
    path.write_bytes(b"a\n\xff\xfe\nb")
    assert "a" in Response(tmp_path, "s1").names()


def test_troubles_are_forgotten_and_bounded(tmp_path: Path) -> None:
    """C6: what was fixed long ago is not given forever, and the log does not grow."""
    spool.note_error(tmp_path, "Stop", "the disk is full")
    (problem,) = spool.problems(tmp_path)
    assert problem.code == "HookFailed"
    assert re.search(r"last Stop at \d{4}-\d\d-\d\dT\d\d:\d\dZ: the disk is full$", problem.message)
    assert spool.problems(tmp_path, utc_now() + timedelta(days=4)) == []
    for number in range(2_000):
        spool.note_error(tmp_path, "Stop", f"{number} {'x' * 100}")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 300_000
    assert json.loads((tmp_path / append_log.ERRORS).read_text().splitlines()[-1])[2].startswith("1999 ")

"""Warned: what an agent was warned with is known to anyone who records what became of it, whichever process that is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memfs.fs import io
from memfs.learning.triggers import LOG, WarningHistory
from memfs.model.episode import StateSnapshot

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
AUTH = StateSnapshot.create(["src/auth.py"], "change the login", agent="coder", session="s1")
STATE = StateSnapshot.create(["./src/auth.py"], "edited the token check", agent="coder", session="s1", tool="edit")


class Clock:
    """A clock that is stopped until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def warned(folder: Path, clock: Clock | None = None) -> WarningHistory:
    """What a process knows that begins now."""
    return WarningHistory(folder, clock or Clock())


def test_p4_another_process_knows_what_an_agent_was_warned_with(tmp_path: Path) -> None:
    """A hook warns and ends; the next one, which records the outcome, knows of it (P4)."""
    recording = warned(tmp_path)
    assert recording.of(AUTH) == ()

    warned(tmp_path).note(AUTH, ["e-1", "r-2"])

    assert recording.of(AUTH) == warned(tmp_path).of(AUTH) == ("e-1", "r-2")
    warned(tmp_path).note(AUTH, ["e-3"])
    assert recording.of(AUTH) == ("e-3",)
    warned(tmp_path).note(AUTH, [])
    assert recording.of(AUTH) == warned(tmp_path).of(AUTH) == ()


def test_p4_what_was_done_may_be_reported_in_other_words(tmp_path: Path) -> None:
    """The same agent, session and files within the hour are the same step; another session or file is another (P4)."""
    clock = Clock()
    warned(tmp_path, clock).note(AUTH, ["e-1"])

    assert warned(tmp_path, clock).of(STATE) == ("e-1",)
    for other in ({"session": "s2"}, {"agent": "tester"}, {"files": ("src/menu.py",)}, {"files": ()}):
        facts: dict[str, Any] = {"files": STATE.files, "agent": "coder", "session": "s1", **other}
        assert warned(tmp_path, clock).of(StateSnapshot(context="edited the token check", **facts)) == ()
    warned(tmp_path, clock).note(STATE, [])
    assert (warned(tmp_path, clock).of(STATE), warned(tmp_path, clock).of(AUTH)) == ((), ("e-1",))


@pytest.mark.parametrize(("later", "exact", "near"), [(0.5, 1, 1), (3, 1, 0), (25, 0, 0)])
def test_a_warning_wears_off(tmp_path: Path, later: float, exact: int, near: int) -> None:
    """What was given days ago is no reason for what is done today."""
    clock = Clock()
    warned(tmp_path, clock).note(AUTH, ["e-1"])

    clock.now += timedelta(hours=later)

    assert (len(warned(tmp_path, clock).of(AUTH)), len(warned(tmp_path, clock).of(STATE))) == (exact, near)


def test_where_nothing_matches_nothing_is_written(tmp_path: Path) -> None:
    """The usual answer costs no write."""
    for number in range(3):
        warned(tmp_path).note(StateSnapshot(context=str(number)), [])
    assert list(tmp_path.iterdir()) == []


def test_the_log_holds_no_text_and_stays_short(tmp_path: Path) -> None:
    """Of a situation a digest is kept, readable by its owner alone; old warnings go (threat model)."""
    warned(tmp_path).note(AUTH, ["e-1"])
    text = (tmp_path / LOG).read_text()
    assert not [word for word in ("auth", "login", "coder", "s1") if word in text]
    assert (tmp_path / LOG).stat().st_mode & 0o77 == 0

    history = warned(tmp_path)
    for number in range(300):
        history.note(StateSnapshot(context=str(number)), [f"{number}-{'x' * 280}" for _ in range(3)])
    for number in range(300):
        history.note(StateSnapshot(context=str(number)), [f"{place}-{'x' * 280}" for place in range(3)])

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 300_000
    assert {path.name for path in tmp_path.iterdir()} == {LOG}
    assert len(history.of(StateSnapshot(context="299"))) == 3


def test_whatever_is_in_the_log_does_no_harm(tmp_path: Path) -> None:
    """Half lines, garbage, and lines of another form are passed over; what comes after them is read."""
    rubbish: Sequence[bytes] = [
        b"\x00\xff", b"{}", b"[1]", b'["x", "a", "b", []]', b"[1, 2, 3, 4]", b'[NaN, "a", "b", ["c"]]',
        b"[" * 5_000, b'[1, "a", "b", [{}]]', json.dumps([NOON.timestamp(), "a", "b", ["c"]]).encode()[:20],
    ]  # fmt: skip
    (tmp_path / LOG).write_bytes(b"\n".join(rubbish))

    warned(tmp_path).note(AUTH, ["e-1"])

    assert warned(tmp_path).of(AUTH) == ("e-1",)


def test_a_log_that_cannot_be_kept_harms_nothing(tmp_path: Path) -> None:
    """A deleted log, a full disk, a link or a folder in its place: the agent goes on, without that warning (row 1)."""
    mine = warned(tmp_path)
    mine.note(AUTH, ["e-1"])
    (tmp_path / LOG).unlink()
    assert mine.of(AUTH) == ()

    def full(name: str, path: str | os.PathLike[str]) -> None:
        if name == "write":
            raise OSError(28, "No space left on device")

    before = io.set_hook(full)
    try:
        mine.note(AUTH, ["e-2"])
    finally:
        io.set_hook(before)
    assert mine.of(AUTH) == ()

    (tmp_path / LOG).unlink()
    (tmp_path / "elsewhere").write_bytes(b"precious")
    (tmp_path / LOG).symlink_to(tmp_path / "elsewhere")
    mine.note(AUTH, ["e-3"])
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"
    (tmp_path / LOG).unlink()
    (tmp_path / LOG).mkdir()
    mine.note(AUTH, ["e-4"])
    assert mine.of(AUTH) == ()


_WRITES = """
import sys
from pathlib import Path
from memfs.fs import append_log
for number in range(1_000):
    append_log.note(Path(sys.argv[1]), f"{sys.argv[2]}-{number}-{'x' * 40}".encode(), 128 * 1024)
"""


def test_processes_write_at_once_and_nothing_recent_is_lost(tmp_path: Path) -> None:
    """Three processes fill the log several times over: every line is whole, and the last ones are there (row 36)."""
    log = tmp_path / "short.log"
    writing = [subprocess.Popen([sys.executable, "-c", _WRITES, str(log), name]) for name in "abc"]
    assert [process.wait(60) for process in writing] == [0, 0, 0]

    found = [line for line in log.read_text().split("\n") if line]
    assert all(line.endswith("x" * 40) for line in found)
    for name in "abc":
        numbers = [int(line.split("-")[1]) for line in found if line.startswith(name)]
        assert numbers == list(range(1_000 - len(numbers), 1_000))  # none where the others wrote much later
    assert len(found) > 100


def test_what_another_process_says_late_does_not_undo_what_is_newer(tmp_path: Path) -> None:
    """Lines of several processes are in the log in whatever order they came to it (P4)."""
    late, clock = Clock(), Clock()
    late.now -= timedelta(minutes=5)
    known = warned(tmp_path, clock)
    known.note(AUTH, ["e-2"])
    warned(tmp_path, late).note(AUTH, ["e-1"])

    assert known.of(AUTH) == ("e-2",)


def test_a_log_that_was_emptied_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Anyone who empties it, or puts back an older one, keeps nobody from hearing what comes next (P4)."""
    known = warned(tmp_path)
    warned(tmp_path).note(AUTH, ["e-1"])
    assert known.of(AUTH) == ("e-1",)
    os.truncate(tmp_path / LOG, 0)
    clock = Clock()
    clock.now += timedelta(minutes=5)
    warned(tmp_path, clock).note(AUTH, ["r"])

    assert known.of(AUTH) == ("r",)

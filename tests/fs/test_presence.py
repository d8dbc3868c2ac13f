"""Notes of living processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from memfs.watch import Presence, watchers


def test_a_note_is_there_while_its_process_says_so(tmp_path: Path) -> None:
    """Others read what was said last; after closing nothing is left."""
    folder = tmp_path / "notes"
    assert watchers(folder) == []
    note = Presence(folder)
    note.say("a long one to begin with")
    note.say("")
    found = watchers(folder)
    assert [(row.pid, row.reason) for row in found] == [(os.getpid(), "")]
    note.close()
    assert watchers(folder) == []
    assert os.listdir(folder) == []


def _say_and_wait(folder: str, ready: Event) -> None:
    note = Presence(Path(folder))
    note.say("")
    ready.set()
    signal.pause()


def test_the_note_of_a_killed_process_is_taken_away(tmp_path: Path) -> None:
    """The system knows the living from the dead, not by the number of a process, which may come again."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_say_and_wait, args=(str(tmp_path / "notes"), ready))
    process.start()
    assert ready.wait(60)
    assert [row.pid for row in watchers(tmp_path / "notes")] == [process.pid]
    process.kill()
    process.join()
    assert watchers(tmp_path / "notes") == []
    assert os.listdir(tmp_path / "notes") == []


def test_a_forked_child_neither_keeps_nor_takes_the_note(tmp_path: Path) -> None:
    """The child's end leaves the parent's note; the child does not speak for the parent after its death."""
    note = Presence(tmp_path / "notes")
    note.say("parent")
    child = os.fork()
    if child == 0:
        note.say("child")
        note.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert [row.reason for row in watchers(tmp_path / "notes")] == ["parent"]
    note.close()


def test_a_note_that_is_not_renewed_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped, or ran on another machine, does not count as watching a minute later."""
    note = Presence(tmp_path / "notes")
    note.say("")
    later = time.time() + 61
    monkeypatch.setattr("memfs.watch.time.time", lambda: later)
    assert watchers(tmp_path / "notes") == []
    note.say("")
    assert [row.pid for row in watchers(tmp_path / "notes")] == [os.getpid()]


def test_where_no_note_can_be_written_nothing_fails(tmp_path: Path) -> None:
    """A note is for messages only; what is not a note is passed over."""
    (tmp_path / "file").write_text("")
    note = Presence(tmp_path / "file" / "notes")
    note.say("")
    note.close()
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "1-x.json").mkdir()
    os.mkfifo(folder / "2-x.json")
    (folder / "3-x.json").write_text("left by the dead")
    assert watchers(folder) == []

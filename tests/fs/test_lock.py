"""Locks between threads and processes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kit.patience import LONG
from memfs.errors import LockTimeout
from memfs.fs.lock import FileLock


def _hold_and_wait(path: str, ready) -> None:  # type: ignore[no-untyped-def]
    with FileLock(Path(path)).hold("sleep"):
        ready.set()
        time.sleep(600)


def _increment(path: str, counter: str, times: int) -> None:
    lock = FileLock(Path(path))
    for _ in range(times):
        with lock.hold("count"):
            value = int(Path(counter).read_text())
            Path(counter).write_text(str(value + 1))


def test_a_lock_that_cannot_be_had_names_its_holder(tmp_path: Path) -> None:
    """Waiting ends with an error that names process, duration and purpose."""
    lock = FileLock(tmp_path / "lock")
    with lock.hold("first"), pytest.raises(LockTimeout, match=rf"held by pid {os.getpid()} .*\(first\)"):
        _take(FileLock(tmp_path / "lock"))


def _take(lock: FileLock) -> None:
    with lock.hold("second", timeout=0.05):
        pass


def test_47_a_killed_holder_frees_the_lock_at_once(tmp_path: Path) -> None:
    """kill -9 of the holder releases the lock (faults row 47)."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_hold_and_wait, args=(str(tmp_path / "lock"), ready))
    process.start()
    assert ready.wait(LONG)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with FileLock(tmp_path / "lock").hold("after", timeout=LONG):
        pass


def test_47_deleting_the_lock_file_never_gives_two_holders(tmp_path: Path) -> None:
    """A lock file that was replaced while waiting is noticed."""
    path = tmp_path / "lock"
    first = FileLock(path)
    order: list[str] = []

    def wait() -> None:
        with FileLock(path).hold("second", timeout=LONG):
            order.append("second")

    with first.hold("first"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.05)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


_BUSY = """
import os, signal, sys, threading
from functools import cached_property
from memfs.fs import lock

class Slow:
    def __init__(self, begin):
        self.begin = begin

    @cached_property
    def value(self):
        return self.begin()

lock.Slow = Slow
at_it, done = threading.Event(), threading.Event()
threading.Thread(target=lambda: Slow(lambda: at_it.set() or done.wait()).value, daemon=True).start()
at_it.wait()
child = os.fork()
if not child:
    signal.alarm(int(sys.argv[1]))
    os._exit(Slow(int).value)
sys.exit(os.waitpid(child, 0)[1])
"""
"""A process that forks while a thread works out a value."""


def test_a_forked_child_waits_for_no_cached_property_that_a_thread_works_out() -> None:
    """Whatever modules the process has loaded: Python 3.11 has one lock for all objects of a class."""
    assert subprocess.run([sys.executable, "-c", _BUSY, str(int(LONG / 2))], check=False).returncode == 0


def test_processes_count_without_losing_one(tmp_path: Path) -> None:
    """Four processes that count under the lock lose nothing."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_increment, args=(str(tmp_path / "lock"), str(counter), 50)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert counter.read_text() == "200"


def test_a_forked_child_neither_keeps_nor_ends_the_lock(tmp_path: Path) -> None:
    """A child forked under the lock shares its open file: the parent's release frees it, the child's exit does not."""
    path = tmp_path / "lock"
    gone_in, go_out = os.pipe()
    left_in, left_out = os.pipe()
    with FileLock(path).hold("parent"):
        leaving = FileLock(path).hold("child")
        child = os.fork()
        if child == 0:  # it lives on with the descriptor until it is asked to end
            os.close(go_out)
            os.read(gone_in, 1)
            os._exit(0)
        del leaving
    with FileLock(path).hold("after", timeout=LONG):
        pass
    manager = FileLock(path).hold("parent")
    manager.__enter__()
    second = os.fork()
    if second == 0:
        manager.__exit__(None, None, None)
        os.write(left_out, b"x")
        os._exit(0)
    os.read(left_in, 1)
    with pytest.raises(LockTimeout):
        _take(FileLock(path))
    manager.__exit__(None, None, None)
    os.close(go_out)
    for one in (child, second):
        os.waitpid(one, 0)
    for fd in (gone_in, left_in, left_out):
        os.close(fd)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_22_a_full_disk_does_not_keep_the_lock_from_being_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """What the holder writes into the file is for messages only: the lock is had without it (faults row 22)."""

    def fail(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pwrite", fail)
    lock = FileLock(tmp_path / "lock")
    with lock.hold("first"), pytest.raises(LockTimeout, match="an unknown process"):
        _take(FileLock(tmp_path / "lock"))


def test_a_lock_that_is_taken_often_keeps_its_files_until_it_is_closed(tmp_path: Path) -> None:
    """Between two turns nobody is kept out, a deleted file is made again, and nothing stays open at the end."""
    lock, other, before = (
        FileLock(tmp_path / "lock", keep_open=True),
        FileLock(tmp_path / "lock"),
        len(os.listdir("/dev/fd")),
    )
    for _ in range(3):
        with lock.hold("first"), pytest.raises(LockTimeout), other.hold("second", timeout=0):
            pass
        with other.hold("second", timeout=LONG):
            pass
    (tmp_path / "lock").unlink()
    with lock.hold("first"), pytest.raises(LockTimeout), other.hold("second", timeout=0):
        pass
    assert len(os.listdir("/dev/fd")) > before
    lock.close()
    with lock.hold("after"):
        pass
    assert len(os.listdir("/dev/fd")) == before

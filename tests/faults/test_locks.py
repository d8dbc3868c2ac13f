"""Locks under hostile conditions: killed, stopped and forking holders, and a deleted file (faults row 47)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit.crowd import FAULTS
from memfs import MemoryItem
from memfs.errors import LockTimeout
from memfs.fs import lock as lock_module
from memfs.fs.lock import FileLock
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Figures = Callable[..., None]
Scale = Callable[[int, int], int]

HOLDER = """
import os, sys, time
from pathlib import Path
from memfs.fs.lock import FileLock
holder = os.getpid()
if "wait" in sys.argv:
    def forks(seconds, sleep=time.sleep):
        time.sleep = sleep
        child = os.fork()
        if child == 0:
            sleep(600)
            os._exit(0)
        print("child", child, flush=True)
    time.sleep = forks  # what another thread of a program may do at any moment
with FileLock(Path(sys.argv[1])).hold("a long task"):
    if "fork" in sys.argv:
        reading, writing = os.pipe()
        if os.fork() == 0:
            print("child", os.getpid(), flush=True)
            os.write(writing, b"!")
            time.sleep(600)
            os._exit(0)
        os.read(reading, 1)
    if "exec" in sys.argv:
        import subprocess
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
        print("child", child.pid, flush=True)
    if "start" in sys.argv:
        import ctypes
        if ctypes.CDLL(None).fork() == 0:  # as git is started: no hook of Python's runs before its program does
            os.close(1)
            while os.getppid() == holder:
                time.sleep(0.01)
            time.sleep(0.05)
            os._exit(0)
    print("held", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def holder(path: Path, *ways: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that holds the lock, and the id of its child if it has one."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path), *ways], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = 0
    try:
        for line in process.stdout:
            if line == "held\n":
                break
            child = int(line.split()[1])
        yield process, child
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def can_be_had(path: Path, timeout: float = 0.3) -> bool:
    """Whether the lock can be had."""
    try:
        with FileLock(path).hold("test", timeout=timeout):
            return True
    except LockTimeout:
        return False


def test_47_the_lock_of_a_killed_holder_is_taken_over_at_once(tmp_path: Path, figures: Figures) -> None:
    """A process waiting for a holder that is killed has the lock within a tenth of a second or so (faults row 47)."""
    taken: list[float] = []
    for _ in range(5):
        with holder(tmp_path / "lock") as (process, _):
            had: list[float] = []

            def wait(had: list[float] = had) -> None:
                with FileLock(tmp_path / "lock").hold("next"):
                    had.append(time.monotonic())

            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.05)
            process.kill()
            process.wait()
            killed = time.monotonic()
            waiting.join()
            taken.append(had[0] - killed)
    figures("lock of a killed holder", points=5, lost=0, milliseconds_until_taken=round(sorted(taken)[2] * 1000, 1))
    assert sorted(taken)[2] < 1  # a tenth of a second where nothing else runs


def test_47_a_stopped_holder_is_named_and_keeps_its_lock(tmp_path: Path) -> None:
    """SIGSTOP: the error of a waiter names who holds it, where, since when, and that it is stopped (faults row 47)."""
    path = tmp_path / "lock"
    with holder(path) as (process, _):
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(LockTimeout) as caught, FileLock(path).hold("test", timeout=0.3):
            pass
        message = str(caught.value)
        assert f"held by pid {process.pid} on {socket.gethostname()} for " in message
        assert "(a long task), which is stopped" in message
        process.send_signal(signal.SIGCONT)
        assert not can_be_had(path)


@pytest.mark.parametrize("way", ["fork", "exec"])
def test_47_no_child_inherits_the_lock(tmp_path: Path, way: str) -> None:
    """A child, forked or executed, keeps nobody out once its parent was killed (faults row 47)."""
    path = tmp_path / "lock"
    with holder(path, way) as (process, child):
        assert not can_be_had(path)
        process.kill()
        process.wait()
        os.kill(child, 0)  # it lives
        assert can_be_had(path, 2)


def test_47_a_child_forked_while_its_parent_waits_keeps_nobody_out(tmp_path: Path) -> None:
    """The lock that the parent gets afterwards is free once the parent was killed (faults row 47)."""
    path = tmp_path / "lock"
    with contextlib.ExitStack() as stack:
        stack.enter_context(FileLock(path).hold("another task"))
        waiter = [sys.executable, "-c", HOLDER, str(path), "wait"]
        process = subprocess.Popen(waiter, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        child = int(process.stdout.readline().split()[1])
    assert process.stdout.readline() == "held\n"
    process.kill()
    process.wait()
    process.stdout.close()
    os.kill(child, 0)  # it lives
    had = can_be_had(path, 2)
    os.kill(child, signal.SIGKILL)
    assert had


def test_47_a_lock_that_outlives_its_killed_holder_is_not_held(tmp_path: Path) -> None:
    """A program being started keeps it a moment longer; a caller that does not wait still gets it (faults row 47)."""
    path = tmp_path / "lock"
    with holder(path, "start") as (process, _):
        assert not can_be_had(path, 0)
        process.kill()
        process.wait()
        assert can_be_had(path, 0)


def test_47_a_forked_child_can_take_locks_that_a_thread_of_its_parent_held(tmp_path: Path) -> None:
    """The child waits for the other process, not for a thread that it does not have (faults row 47)."""
    lock = FileLock(tmp_path / "lock")
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.hold("a thread of the parent"):
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), lock.hold("child", timeout=60):
            os._exit(0)
        os._exit(1)
    release.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("deleted", ["lock", ".lock.second"])
def test_47_a_lock_file_deleted_while_held_never_gives_two_holders(tmp_path: Path, deleted: str) -> None:
    """Anyone who comes after the file was deleted waits for the holder all the same (faults row 47)."""
    path = tmp_path / "lock"
    with holder(path) as (process, _):
        (tmp_path / deleted).unlink()
        assert not can_be_had(path)
        process.kill()
        process.wait()
    assert can_be_had(path, 2)
    assert sorted(os.listdir(tmp_path)) == [".lock.queue", ".lock.second", "lock"]


DELETER = """
import os, sys, time
while True:
    try:
        os.unlink(sys.argv[1])
    except FileNotFoundError:
        pass
    time.sleep(0.002)
"""
COUNTER = """
import os, sys, time
from pathlib import Path
from memfs.fs import lock
path, counter, seconds = Path(sys.argv[1]), os.open(sys.argv[2], os.O_RDWR), float(sys.argv[3])
end, done = time.monotonic() + seconds, 0
mine = lock.FileLock(path)
if "one file" in sys.argv:
    mine._second = path.with_name(f"second-{os.getpid()}")
while time.monotonic() < end:
    with mine.hold("count"):
        number = int(os.pread(counter, 9, 0))
        time.sleep(0.001)
        os.pwrite(counter, str(number + 1).rjust(9).encode(), 0)
    done += 1
print(done)
"""


def counted_under_deletion(folder: Path, seconds: float, *variant: str) -> tuple[int, int]:
    """What four processes counted under a lock whose file is deleted all the time, and what the counter says."""
    counter = folder / "counter"
    counter.write_text("0".rjust(9))
    lock = folder / "lock"
    deleter = subprocess.Popen([sys.executable, "-c", DELETER, str(lock)])
    words = [sys.executable, "-c", COUNTER, str(lock), str(counter), str(seconds), *variant]
    counters = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        done = sum(int(process.communicate()[0]) for process in counters)
    finally:
        deleter.kill()
        deleter.wait()
    return done, int(counter.read_text())


def test_47_a_lock_file_deleted_all_the_time_still_lets_one_in(tmp_path: Path, scale: Scale, figures: Figures) -> None:
    """Four processes count under a lock whose file somebody deletes 500 times a second: none is lost (row 47)."""
    done, counted = counted_under_deletion(tmp_path, scale(1, 60))
    figures("lock file deleted while held", points=done, acknowledged=done, lost=done - counted)
    assert done > 0
    assert counted == done


def test_47_the_check_notices_a_lock_of_one_file(tmp_path: Path) -> None:
    """Without the second file a deleted one makes two holders, and the count above shows it."""
    done, counted = counted_under_deletion(tmp_path, 3, "one file")
    assert counted < done


WAITERS = """
import os, sys, time
from pathlib import Path
from memfs.fs import lock
path, seconds, writers = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
def work():
    mine, end, worst = lock.FileLock(path), time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        began = time.monotonic()
        with mine.hold("x"):
            worst = max(worst, time.monotonic() - began)
            time.sleep(0.01)
    os.write(1, b"%.3f\\n" % worst)
    os._exit(0)
children = [os.fork() or work() for _ in range(writers)]
for child in children:
    os.waitpid(child, 0)
"""


def test_46_among_64_that_lock_without_pause_nobody_waits_forever(
    tmp_path: Path, scale: Scale, figures: Figures
) -> None:
    """No writer meets LockTimeout while others go on (faults row 46)."""
    seconds = scale(2, 60)
    words = [sys.executable, "-c", WAITERS, str(tmp_path / "lock"), str(seconds), "64"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    waits = sorted(map(float, done.stdout.split()))
    figures("64 that lock without pause", points=64, lost=0, longest_wait=round(waits[-1], 1))
    assert len(waits) == 64
    assert waits[-1] < 25  # LockTimeout comes after 30


def test_47_a_process_stopped_at_the_head_of_the_queue_keeps_nobody_out(tmp_path: Path) -> None:
    """A waiter that was stopped delays the others by seconds; it holds nothing that they need (faults row 47)."""
    with (tmp_path / ".lock.queue").open("w") as head:
        assert lock_module.locked(head.fileno())
        with FileLock(tmp_path / "lock").hold("a turn"):
            pass


WRITER = """
import sys
from memfs import MemoryItem, open_workspace
settings = {"history.commit": "manual", "index.engine": "memory"}
with open_workspace(sys.argv[1], watch=False, settings=settings) as workspace:
    print(workspace.store.put(MemoryItem("by the other", "knowledge", id="other")).id, flush=True)
"""


def test_47_a_writer_stopped_in_the_middle_and_its_lock_file_deleted(opened: Opened) -> None:
    """While a writer is stopped inside a put nobody else writes, even if its lock file is gone; then both are there."""
    workspace = opened()
    state = workspace.repository.state
    stopped = subprocess.Popen(
        [sys.executable, "-c", _STOPS_INSIDE, str(workspace.root)], env={**os.environ, "PYTHONPATH": str(FAULTS)}
    )
    assert os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT) is not None
    (state / "lock").unlink()
    other = subprocess.Popen([sys.executable, "-c", WRITER, str(workspace.root)], stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(2)
    stopped.send_signal(signal.SIGCONT)
    assert stopped.wait() == 0
    assert other.communicate()[0] == "other\n"
    found = {name: workspace.store.get(name) for name in ("stopped", "other")}
    assert all(item is not None for item in found.values())
    assert workspace.store.pending().count == 2
    assert workspace.store.problems() == []


_STOPS_INSIDE = """
import os, signal, sys
from memfs import MemoryItem, open_workspace
from memfs.fs import io
def stop(name, path):
    if name == "fdatasync":
        io.set_hook(None)
        os.kill(os.getpid(), signal.SIGSTOP)
settings = {"history.commit": "manual", "index.engine": "memory"}
with open_workspace(sys.argv[1], watch=False, settings=settings) as workspace:
    io.set_hook(stop)
    workspace.store.put(MemoryItem("by the stopped one", "knowledge", id="stopped"))
"""


OPEN_FILES = """
import os
for name in os.listdir("/proc/self/fd"):
    if os.path.lexists(f"/proc/self/fd/{name}"):
        print(os.readlink(f"/proc/self/fd/{name}"))
"""


def test_47_locks_are_not_kept_by_processes_started_while_held(opened: Opened) -> None:
    """A git child started under the lock holds none of memfs's files open (faults row 47: O_CLOEXEC)."""
    before = set(lock_module._open)  # of workspaces that other tests left open
    workspace = opened()
    workspace.store.put(MemoryItem("x", "knowledge", id="a"))
    with workspace.parts.lock.hold("test"):
        command = [sys.executable, "-c", OPEN_FILES]
        kept = subprocess.run(command, capture_output=True, text=True, check=True, close_fds=False).stdout
    assert str(workspace.repository.state) not in kept
    workspace.close()  # until then it keeps those of its own lock, which it takes for each write
    assert lock_module._open <= before


SIGNER = """
import sys, time
from pathlib import Path
from memfs.fs.lock import FileLock
mine = FileLock(Path(sys.argv[1]))
with mine.hold("turns"), open(sys.argv[1], "r+b") as file:
    print("held", flush=True)
    for turn in range(40):
        mine._sign(file.fileno(), f"turn {turn}")
        time.sleep(0.1)
"""


def test_46_a_waiter_goes_on_while_others_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer waits longer than for one holder while the lock goes from hand to hand (faults row 46)."""
    monkeypatch.setattr(lock_module, "_STUCK", 3.0)
    words = [sys.executable, "-c", SIGNER, str(tmp_path / "lock")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as others:
        assert others.stdout is not None
        assert others.stdout.readline() == "held\n"
        began = time.monotonic()
        with FileLock(tmp_path / "lock").hold("my turn"):
            assert time.monotonic() - began > 3

"""Work that is done in the background when it is due."""

from __future__ import annotations

import threading
from unittest.mock import Mock

import pytest

from memfs.fs.executor import Worker

PATIENCE = 60.0


def test_work_is_done_once_however_often_it_was_asked_for() -> None:
    """What is due is done once, at once where somebody waits; a closed worker takes nothing."""
    done: list[int] = []
    worker = Worker("test", lambda: done.append(1), print)

    assert worker.wake(60)
    assert worker.wake(60, postpone=True)
    assert worker.busy
    assert worker.settle(PATIENCE)
    assert done == [1]
    assert worker.wake()
    assert worker.settle(PATIENCE)
    assert done == [1, 1]
    worker.close()
    assert not worker.busy
    assert not worker.wake()


def test_work_that_fails_or_is_not_finished_is_done_again() -> None:
    """What it raises is handed on; until it says that all is done, it is called again."""
    failed: list[Exception] = []
    left = ["boom", "one", "two"]

    def work() -> bool:
        if (task := left.pop(0)) == "boom":
            raise ValueError(task)
        return not left

    worker = Worker("test", work, failed.append, again=0.0)
    worker.wake()

    assert worker.settle(PATIENCE)
    assert not left
    assert [str(error) for error in failed] == ["boom"]
    worker.close()


def test_work_that_fails_is_not_done_again_unless_asked_for() -> None:
    """Without a time for another try, the next that is due is the next that somebody asks for."""
    failed: list[Exception] = []
    worker = Worker("test", lambda: 1 // 0, failed.append)
    worker.wake()
    assert worker.settle(PATIENCE)
    assert len(failed) == 1
    worker.close()


def test_work_may_settle_and_wake() -> None:
    """Work that waits for itself would wait forever: it does not; and it may have itself done once more."""
    done: list[bool] = []

    def work() -> None:
        done.append(worker.settle(PATIENCE))
        if len(done) == 1:
            worker.wake()

    worker = Worker("test", work, print)
    worker.wake()
    assert worker.settle(PATIENCE)
    assert done == [True, True]
    worker.close()


def test_closing_begins_nothing_and_waits_for_the_given_time() -> None:
    """What is being done goes on, what is due is not begun."""
    begun, go = threading.Event(), threading.Event()
    done: list[int] = []

    def work() -> None:
        begun.set()
        go.wait(PATIENCE)
        done.append(1)

    worker = Worker("test", work, print)
    worker.wake()
    assert begun.wait(PATIENCE)
    assert not worker.settle(0.01)
    worker.wake()
    worker.close(0.01)
    go.set()
    worker.close()
    assert done == [1]


def test_nobody_waits_for_a_thread_that_its_work_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Foreign code may end the thread it runs in; what is due next is done by another."""
    monkeypatch.setattr("threading.excepthook", print)
    done: list[str] = []

    def work() -> None:
        done.append("begun")
        if len(done) == 1:
            raise SystemExit

    worker = Worker("test", work, print)
    worker.wake()
    assert worker.settle(PATIENCE)
    worker.wake()
    assert worker.settle(PATIENCE)
    assert len(done) == 2
    worker.close()


def test_a_system_without_threads_fails_nobody_who_has_work_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is written, though no thread is to be had for its commit; the next one that is does the work."""
    done: list[int] = []
    failed: list[Exception] = []
    worker = Worker("memfs-test", lambda: done.append(1), failed.append)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        assert not worker.wake()
    assert ([str(one) for one in failed], worker.busy) == (["can't start new thread"], False)
    assert worker.wake(1000)
    assert worker.settle()
    assert done == [1]


def test_what_no_thread_could_do_is_done_when_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives no thread, closing still loses nothing that was to be written down."""
    done: list[int] = []
    worker = Worker("memfs-test", lambda: done.append(1), lambda _: None)
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    assert not worker.wake()
    assert worker.settle()
    assert (done, worker.busy) == ([1], False)
    assert worker.settle()
    assert done == [1]

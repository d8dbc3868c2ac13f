"""Runs work in the background: work that falls due, small thread pools, daemon threads, and deadlines.

A forked child starts threads of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from memfs.fs.lock import reset_on_fork
from memfs.startup import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


Result = TypeVar("Result")
_THREADS = 4


class Worker:
    """Does work when it is due, at one time by one thread, which ends when nothing is due. May be used from threads.

    Whatever the work raises is handed to ``failed``.
    """

    def __init__(
        self, name: str, work: Callable[[], object], failed: Callable[[Exception], object], again: float | None = None
    ) -> None:
        """Begin with nothing due and no thread.

        Args:
            name: of the thread.
            work: does what waits; says false where some of it waits still.
            failed: called with what it raised.
            again: the seconds after which it is due once more where it failed or returned false; None for not at all.
        """
        self._name, self._work, self._failed, self._again = name, work, failed, again
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due: float | None = None
        self._hurry = 0
        self._closed = False
        reset_on_fork(self)

    def after_fork(self) -> None:
        """Begin with nothing due and no thread: what is due in the parent, the parent does."""
        self._news, self._thread, self._due, self._hurry = threading.Condition(), None, None, 0

    @property
    def busy(self) -> bool:
        """Whether it is at work, or something is due."""
        return self._thread is not None

    def wake(self, seconds: float = 0.0, *, postpone: bool = False) -> bool:
        """Have the work done after some seconds, or earlier where it is due already.

        Returns:
            False once it is closed, or where the system gives no thread: that is handed to ``failed``, and the next
            call tries again.

        Args:
            postpone: what is due already waits for as long, too.
        """
        with self._news:
            if self._closed:
                return False
            sooner = self._due is None or postpone
            if sooner:
                self._due = time.monotonic() + seconds
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    self._failed(error)
                    return False
                self._thread = thread
            elif sooner:
                self._news.notify_all()
            return True

    def settle(self, seconds: float | None = None) -> bool:
        """Have what is due done at once, and wait for it; false where the time was too short.

        Called by the work itself it returns at once. Where the system gave no thread, the caller's does the work.
        """
        if threading.current_thread() is self._thread:
            return True
        while True:
            with self._news:  # what is due and has no thread is the caller's from here on
                if self._thread is not None or self._due is None:
                    break
                self._due, self._thread = None, threading.current_thread()
            try:
                self._run_once()
            finally:
                self._let_go()
        with self._news:
            self._hurry += 1
            self._news.notify_all()
            try:
                return self._news.wait_for(lambda: self._thread is None, seconds)
            finally:
                self._hurry -= 1

    def close(self, seconds: float | None = None) -> None:
        """Begin nothing more, and wait a limited time for what is being done."""
        with self._news:
            self._closed, self._due, thread = True, None, self._thread
            self._news.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _run(self) -> None:
        try:
            while True:
                with self._news:  # wait for what is due; where nothing is, the thread ends
                    while self._due is not None and not self._hurry and (rest := self._due - time.monotonic()) > 0:
                        self._news.wait(rest)
                    if self._due is None:
                        self._thread = None
                        self._news.notify_all()
                        return
                    self._due = None
                done = self._run_once()
                with self._news:
                    if not done and self._again is not None and self._due is None and not self._closed:
                        self._due = time.monotonic() + self._again
        finally:  # foreign code may end the thread, and settle() would wait forever
            self._let_go()

    def _let_go(self) -> None:
        with self._news:
            if self._thread is threading.current_thread():
                self._thread = None
                self._news.notify_all()

    def _run_once(self) -> object:
        try:
            return self._work()
        except Exception as error:  # noqa: BLE001  reported, see tests/test_architecture.py
            self._failed(error)
            return False


def in_daemon(name: str, work: Callable[[], Result]) -> Future[Result]:
    """Have work done by a daemon thread of its own, which does not keep the process from ending.

    Raises:
        RuntimeError: the system gives no further thread.
    """
    from concurrent.futures import Future  # costs start-up time

    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  SystemExit too: it is for the caller
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


class Pools:
    """A few threads a purpose, begun when first used; a forked child begins its own."""

    def __init__(self, threads: int = _THREADS) -> None:
        """``threads``: how many a purpose has; one does what it is given in that order."""
        self._threads = threads
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._guard = threading.Lock()
        reset_on_fork(self)

    def after_fork(self) -> None:
        """A child has none of the threads."""
        self._pools = {}

    def submit(self, purpose: str, work: Callable[..., Result], *values: Any, **named: Any) -> Future[Result]:
        """Have work done by a thread of that purpose."""
        with self._guard:
            if purpose not in self._pools:
                from concurrent.futures import ThreadPoolExecutor  # costs start-up time

                self._pools[purpose] = ThreadPoolExecutor(self._threads, thread_name_prefix=f"memfs-{purpose}")
            return self._pools[purpose].submit(work, *values, **named)

    def close(self, give_up: bool = True) -> None:
        """Wait for what runs; what has not begun is given up, or is waited for, too."""
        with self._guard:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.shutdown(cancel_futures=give_up)


class Deadline:
    """A moment some seconds ahead; without seconds it never comes."""

    def __init__(self, seconds: float | None, tick: Callable[[], float] = time.monotonic) -> None:
        """``tick`` returns the time in seconds."""
        self._tick, self.seconds = tick, seconds
        self._end = None if seconds is None else tick() + seconds

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        return self._end is not None and self._tick() >= self._end

    def left(self, most: float | None = None) -> float | None:
        """The seconds that are left, at most ``most``; None where nothing bounds them."""
        if self._end is None:
            return most
        rest = max(0.0, self._end - self._tick())
        return rest if most is None else min(rest, most)

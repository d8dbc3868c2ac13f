"""Runs work in the background: a queue of keyed tasks, small thread pools, and deadlines.

The queue is bounded and worked off by one thread; a forked child starts threads of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memfs.fs.lock import renewed_in_child

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


Task = TypeVar("Task")

LIMIT = 1000
QUIET_SECONDS = 0.25


class Background(Generic[Task]):
    """Tasks by key, done one after another, oldest first. May be used from several threads.

    A task begins when nothing was added for a moment, so that it takes no time from the adding thread; at once when
    somebody waits. Whatever a task raises is handed to ``failed``.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Task], object],
        failed: Callable[[Exception], None],
        *,
        limit: int = LIMIT,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        """Begin with no task and no thread.

        Args:
            name: of the thread.
            work: does one task.
            failed: called with what it raised.
            limit: so many tasks wait at most.
            quiet_seconds: how long nothing must have been added.
        """
        self._name = name
        self._work = work
        self._failed = failed
        self._limit = limit
        self._quiet = quiet_seconds
        self._news = threading.Condition()
        self._waiting: dict[str, Task] = {}
        self._added = 0.0
        self._hurry = 0
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        renewed_in_child(self)

    def begin_anew_in_child(self) -> None:
        """Begin with no task and no thread: what waits in the parent, the parent does."""
        self._news, self._thread = threading.Condition(), None
        self._waiting, self._hurry, self._busy = {}, 0, False

    def add(self, key: str, task: Task) -> bool:
        """Have a task done; one that waits under the same key is replaced. False where there is no room, or no more."""
        with self._news:
            if self._closed:
                return False
            if key not in self._waiting and len(self._waiting) >= self._limit:
                return False
            self._waiting[key] = task
            self._added = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._news.notify_all()
            return True

    def drop(self, keys: Iterable[str]) -> None:
        """Forget tasks that have become needless."""
        with self._news:
            for key in keys:
                self._waiting.pop(key, None)

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until everything is done, at most so long; false where something still waits.

        Called by a task itself it returns at once.
        """
        if self._thread is None or threading.current_thread() is self._thread:
            return True
        with self._news:
            self._hurry += 1
            self._news.notify_all()
            try:
                return self._news.wait_for(lambda: not self._waiting and not self._busy, seconds)
            finally:
                self._hurry -= 1

    def close(self, seconds: float) -> int:
        """Do what waits, for at most so long, and end; return how many tasks were left undone."""
        self.settle(seconds)
        with self._news:
            self._closed = True
            left = len(self._waiting)
            self._waiting.clear()
            self._news.notify_all()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()
        return left

    # -- the thread -------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._closed or bool(self._waiting))
                while self._waiting and (rest := self._rest()) > 0:
                    self._news.wait(rest)
                if self._closed:
                    return
                if not self._waiting:
                    continue
                task = self._waiting.pop(next(iter(self._waiting)))
                self._busy = True
            try:
                self._work(task)
            except Exception as error:  # noqa: BLE001  reported, see tests/test_architecture.py
                self._failed(error)
            finally:
                with self._news:
                    self._busy = False
                    self._news.notify_all()

    def _rest(self) -> float:
        """How long the next task has to wait."""
        if self._closed or self._hurry:
            return 0.0
        return self._added + self._quiet - time.monotonic()


_THREADS = 4
Result = TypeVar("Result")


class Pools:
    """A few threads a purpose, begun when first used; a forked child begins its own."""

    def __init__(self, threads: int = _THREADS) -> None:
        """``threads``: so many a purpose; one does what it is given in that order."""
        self._threads = threads
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._guard = threading.Lock()
        self._process = os.getpid()

    def submit(self, purpose: str, work: Callable[..., Result], *values: Any, **named: Any) -> Future[Result]:
        """Have work done by a thread of that purpose."""
        if self._process != os.getpid():
            self._process, self._guard, self._pools = os.getpid(), threading.Lock(), {}
        with self._guard:
            if purpose not in self._pools:
                from concurrent.futures import ThreadPoolExecutor  # costs start-up time

                self._pools[purpose] = ThreadPoolExecutor(self._threads, thread_name_prefix=f"memfs-{purpose}")
            return self._pools[purpose].submit(work, *values, **named)

    def close(self, give_up: bool = True) -> None:
        """Wait for what runs; what has not begun is given up, or is waited for, too."""
        if self._process != os.getpid():
            return
        with self._guard:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.shutdown(cancel_futures=give_up)


class Deadline:
    """A moment that lies so many seconds ahead; without seconds it never comes."""

    def __init__(self, seconds: float | None, tick: Callable[[], float] = time.monotonic) -> None:
        """``tick`` tells the time in seconds."""
        self._tick = tick
        self.seconds = seconds
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

"""Pools: threads for what is asked in the background.

Owns the threads, by purpose, and their end. Work of one purpose never waits for work of another.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

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

"""Window: the time between a write and its commit.

Owns one background thread per open workspace. What a commit is, it does not know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from memfs.files.forked import renewed_in_child

_RETRY_SECONDS = 2.0
_LATE_SECONDS = 0.5


class Window:
    """Calls ``flush`` so many seconds after a write, and again while it returns false.

    Whatever ``flush`` raises is handed to ``failed``: a window that stopped closing would leave every later write
    waiting in silence.
    """

    def __init__(self, flush: Callable[[], bool], seconds: float, failed: Callable[[Exception], None]) -> None:
        self._flush = flush
        self._seconds = self._wait = seconds
        self._failed = failed
        self._open = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        renewed_in_child(self)

    def begin_anew_in_child(self) -> None:
        """Close by a thread of its own: what is open in the parent, the parent closes."""
        self._open, self._thread, closed = threading.Event(), None, self._closing.is_set()
        self._closing = threading.Event()
        if closed:
            self._closing.set()

    def opened(self, late: bool = False) -> None:
        """Something waits: written just now, or ``late``, by somebody whose window never closed."""
        self._wait = min(self._seconds, _LATE_SECONDS) if late else self._seconds
        self._open.set()
        with self._guard:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="memfs-commit-window", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._open.wait()
            if self._closing.wait(self._wait):
                return
            self._open.clear()
            while not self._flushed():
                if self._closing.wait(max(self._seconds, _RETRY_SECONDS)):
                    return

    def _flushed(self) -> bool:
        try:
            return self._flush()
        except Exception as error:  # noqa: BLE001  reported, see tests/test_architecture.py
            self._failed(error)
            return False

    def close(self) -> None:
        """Stop the thread; what is open stays for the caller to flush."""
        self._closing.set()
        self._open.set()
        if self._thread is not None:
            self._thread.join()

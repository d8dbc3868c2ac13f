"""Locks between processes and threads: flock on a file that is never deleted.

Owns acquiring, waiting and naming the holder. A lock is released by the system when its process dies; the text inside
the file is for messages only (faults 4.3, row 47).
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memfs.errors import LockTimeout, MemfsError, StorageIO
from memfs.files import io

_FIRST_WAIT = 0.0005
_LONGEST_WAIT = 0.02


class FileLock:
    """One lock of a workspace or repository, shared by every process that opens the same path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.Lock()

    @contextmanager
    def hold(self, purpose: str, timeout: float = 30.0) -> Iterator[None]:
        """Hold the lock while the block runs.

        Args:
            purpose: what for, shown to whoever waits.
            timeout: seconds to wait.

        Raises:
            LockTimeout: naming the holder.
        """
        deadline = time.monotonic() + timeout
        if not self._threads.acquire(timeout=timeout):
            raise self._timeout(timeout)
        try:
            fd = self._acquire(deadline, timeout)
            owner = os.getpid()
            try:
                self._sign(fd, purpose)
                yield
            finally:
                _release(fd, owner)
        finally:
            self._threads.release()

    def _acquire(self, deadline: float, timeout: float) -> int:
        wait = _FIRST_WAIT
        while True:
            fd = io.open_file(self.path, os.O_RDWR | os.O_CREAT)
            if _locked(fd):
                if _still_named(fd, self.path):
                    return fd
                os.close(fd)
                continue
            os.close(fd)
            if time.monotonic() >= deadline:
                raise self._timeout(timeout)
            time.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)

    def _sign(self, fd: int, purpose: str) -> None:
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time(), "purpose": purpose}
        line = json.dumps(holder).encode()
        # Whatever the disk says, the lock is held: who holds it is for messages only.
        with suppress(StorageIO), io.operation("sign", self.path):
            os.pwrite(fd, line.ljust(256), 0)

    def holder(self) -> str:
        """Who signed the lock last, in words."""
        try:
            facts = json.loads(io.read_file(self.path, 4096))
            seconds = max(0, time.time() - float(facts["since"]))
            return f"pid {facts['pid']} on {facts['host']} for {seconds:.0f} s ({facts['purpose']})"
        except (OSError, MemfsError, ValueError, KeyError, TypeError):
            return "an unknown process"

    def _timeout(self, timeout: float) -> LockTimeout:
        return LockTimeout(
            f"still locked after {timeout:g} s, held by {self.holder()}",
            path=str(self.path),
            hint="wait for it to finish, or stop that process; the lock is released when it ends",
        )


def _release(fd: int, owner: int) -> None:
    """Give the lock back and close its file.

    A child that was forked meanwhile has the same open file: closing ours alone would leave it locked for as long as
    the child lives, and a child that leaves the block must not unlock what its parent still holds.
    """
    try:
        if os.getpid() == owner:
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_named(fd: int, path: Path) -> bool:
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), named)

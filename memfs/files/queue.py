"""The queue for a lock: who has waited long comes before who has just come.

Owns the tickets of waiting processes. They are advice among those who keep to it: who holds a lock, the lock alone
decides. A ticket ends with its process, and one whose owner was stopped is passed over.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from memfs.errors import MemfsError, StorageIO
from memfs.files import io
from memfs.files.flock import leads_to, locked

_FRESH_SECONDS = 2.0


class Turn:
    """One waiter's place in the queue of a folder, which is there only while somebody waits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = ""
        self._fd = -1

    @property
    def taken(self) -> bool:
        """Whether this waiter has a ticket."""
        return self._fd >= 0

    def take(self) -> None:
        """Take a ticket; where none can be had, this waiter goes on without."""
        name = f"{time.monotonic_ns():020d}-{os.getpid()}-{secrets.token_hex(3)}"
        with suppress(MemfsError, OSError):
            io.mkdir(self._folder, 0o700)
            self._fd = io.open_file(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            self._name = name
            if not (locked(self._fd) and leads_to(self._folder / name, self._fd)):
                self.leave()  # taken for a dead one's in the very moment it was made

    def ahead(self) -> int:
        """How many are to come first, 0 when it is this waiter's turn."""
        try:
            names = sorted(os.listdir(self._folder))
        except OSError:
            return 0
        if self.taken:
            with suppress(StorageIO):
                io.touch(self._fd)
            names = [name for name in names if name < self._name]
        for number, name in enumerate(names):
            if self._waits(self._folder / name):
                return len(names) - number
        if not self.taken:
            self._clear()
        return 0

    def leave(self) -> None:
        """Give the ticket back."""
        if not self.taken:
            return
        with suppress(MemfsError, OSError):
            io.unlink(self._folder / self._name, missing_ok=True)
        os.close(self._fd)
        self._fd = -1
        self._clear()

    def _clear(self) -> None:
        """The last one leaves no folder; while others wait it cannot be removed."""
        with suppress(MemfsError, OSError):
            io.rmdir(self._folder)

    @staticmethod
    def _waits(ticket: Path) -> bool:
        """Whether a ticket's owner lives and is at it."""
        try:
            fd = io.open_file(ticket, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, MemfsError):
            return False
        try:
            if not locked(fd, shared=True):
                return abs(time.time() - os.fstat(fd).st_mtime) < _FRESH_SECONDS
            with suppress(MemfsError, OSError):
                io.unlink(ticket, missing_ok=True)
            return False
        finally:
            os.close(fd)

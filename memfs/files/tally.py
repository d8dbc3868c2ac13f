"""Tally: how often something happened, counted by all processes together, in a file with one byte for each time.

Owns that file. A count that cannot be kept is one that is missing, and no error: what hangs on it happens later.
"""

from __future__ import annotations

import os
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io


class Tally:
    """One count. May be used from several threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self) -> None:
        """Note one more: a byte at the end of the file, so that processes need no lock for it."""
        try:
            fd = io.open_file(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        except (MemfsError, FileNotFoundError):
            return
        try:
            os.write(fd, b".")
        except OSError:
            return
        finally:
            os.close(fd)

    def count(self) -> int:
        """How many there were that nobody took off."""
        try:
            return io.facts(self._path).st_size
        except (FileNotFoundError, MemfsError):
            return 0

    def take_off(self, number: int) -> None:
        """Take off those that were seen to; what is noted in this very moment may be lost."""
        try:
            io.write_file(self._path, b"." * max(0, self.count() - number), durable=False)
        except (FileNotFoundError, MemfsError):
            return

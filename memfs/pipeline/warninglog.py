"""Warning log: which items agents were warned with lately, in a file that all processes of a workspace share.

Owns that file of the workspace's private state. It holds ids, times and digests of situations, and no text. It is
derived and short: whoever deletes it, or a disk that takes none of it, costs what a few warnings were worth, and no
warning. What makes two situations the same is ``memfs.sources.warned``'s business.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from memfs.errors import MemfsError
from memfs.files import io

FILE, OLDER = "warned.log", "warned.older.log"
FILES = (FILE, OLDER)
_MOST = 128 * 1024
_READ = 4 * _MOST
_MOST_IDS, _LONGEST = 100, 300


class Given(NamedTuple):
    """What one situation was warned with.

    Attributes:
        time: when, in seconds since 1970.
        exact, near: digests of the situation, and of what similar ones have in common; "" where nothing does.
        ids: of the items, none where it was asked about and nothing was known any more.
    """

    time: float
    exact: str
    near: str
    ids: tuple[str, ...]


class WarningLog:
    """The log of one workspace. No method raises because of the disk."""

    def __init__(self, folder: Path) -> None:
        """``folder``: the workspace's private state."""
        self._path, self._older = folder / FILE, folder / OLDER
        self._inode = self._read_to = 0

    def add(self, given: Given) -> None:
        """Write one down, in one piece at the end, so that processes need no lock for it."""
        line = json.dumps([given.time, given.exact, given.near, [one[:_LONGEST] for one in given.ids[:_MOST_IDS]]])
        with suppress(MemfsError, OSError):
            fd = io.open_file(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                with io.operation("write", self._path):
                    os.write(fd, f"\n{line}\n".encode("ascii"))  # the line before may have been cut by a full disk
                if os.fstat(fd).st_size > _MOST:
                    self._make_older(fd)
            finally:
                os.close(fd)

    def news(self) -> list[Given]:
        """What was written since the last call, by whatever process; of the first call all there is."""
        try:
            facts = io.facts(self._path)
        except (MemfsError, FileNotFoundError):
            return []
        found: list[Given] = []
        if facts.st_ino != self._inode or facts.st_size < self._read_to:  # begun anew since
            found += _parsed(_bytes_of(self._older, 0))
            self._inode, self._read_to = facts.st_ino, 0
        if facts.st_size > self._read_to:
            data = _bytes_of(self._path, self._read_to)
            whole = data[: data.rfind(b"\n") + 1]
            self._read_to += len(whole)
            found += _parsed(whole)
        return found

    def _make_older(self, fd: int) -> None:
        """Begin a new file; what is still being written goes into the older one, and is not lost."""
        fcntl.flock(fd, fcntl.LOCK_EX)
        facts = io.facts(self._path)
        if (facts.st_dev, facts.st_ino) == (os.fstat(fd).st_dev, os.fstat(fd).st_ino):  # else another process did
            io.rename(str(self._path), str(self._older))


def _bytes_of(path: Path, start: int) -> bytes:
    with suppress(MemfsError, OSError):
        fd = io.open_file(path, os.O_RDONLY)
        try:
            os.lseek(fd, start, os.SEEK_SET)
            return io.read_regular(fd, str(path), _READ)
        finally:
            os.close(fd)
    return b""


def _parsed(data: bytes) -> list[Given]:
    """The lines that are what ``add`` writes; a killed process or a full disk may have left others."""
    found = []
    for line in data.split(b"\n"):
        with suppress(ValueError, TypeError, RecursionError):
            time, exact, near, ids = json.loads(line)
            texts = [exact, near, *ids]
            if isinstance(time, (int, float)) and all(isinstance(text, str) for text in texts):
                found.append(Given(float(time), exact, near, tuple(ids[:_MOST_IDS])))
    return found

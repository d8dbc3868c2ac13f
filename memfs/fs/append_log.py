"""Append-only line files and counters that several processes share.

Each line is ``crc32 length text`` and is durable when ``append`` returns. It begins and ends with a line break, so that
one cut short by kill -9 or a full disk spoils no other. Lines can be taken away while others append. Imports little.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

from memfs.dataclass import NamedTuple
from memfs.errors import LockTimeout, MemfsError, NotRegularFile, QuotaExceeded, StorageIO, WritePending
from memfs.fs import io
from memfs.fs.lock import leads_to, locked, release
from memfs.startup import Any, json, regex

FOLDER = "spool"
ERRORS = "hooks.log"
"""Where events of sessions wait, below a workspace's state folder."""
LOCK = "drain.lock"
"""In ``FOLDER``, held by the process that takes lines until it has stored what they say."""
SUFFIX = ".jsonl"
MOST_BYTES = 64 * 1024 * 1024
"""The most that one file takes: a writer of more is out of order."""
_WAIT, _STEP = 2.0, 0.002
_HEAD = regex(rb"([0-9a-f]{8}) ([0-9]{1,9}) ")
_CUT_HEAD = regex(rb"[0-9a-f]{1,8}(?: [0-9]{0,9})?")


class Line(NamedTuple):
    """One line: its text, and where in the file it ends."""

    text: bytes
    end: int


def append(path: Path, text: bytes) -> None:
    """Add a line, which holds no line break; on return it survives kill -9 and a power cut.

    Raises:
        QuotaExceeded: the file is as large as it may be.
        LockTimeout: a process that was stopped holds it.
        StorageIO: as the system says; the file is as it was.
        WritePending: the line may be found all the same.
    """
    data = _line(text)
    with held(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
        assert fd is not None  # it is made where it is not there
        size = os.lseek(fd, 0, os.SEEK_END)
        if size + len(data) > MOST_BYTES:
            raise QuotaExceeded(f"{size} bytes wait already", path=str(path), hint="see 'memfs check'")
        try:
            io.write_all(fd, data, str(path))
            io.fdatasync(fd, str(path))
        except StorageIO as error:
            try:
                io.truncate(fd, size, str(path))
            except StorageIO:
                raise WritePending.of(error) from error
            raise
        if size == 0:
            io.sync_folder(path.parent)


def read(path: Path) -> tuple[list[Line], list[bytes]]:
    """The lines of a file in order, and what in it is damaged; nothing where it is not there.

    A line that was cut short was never acknowledged: it is neither.

    Raises:
        NotRegularFile, StorageIO: it cannot be read.
    """
    try:
        return _lines(io.read_file(path, 2 * MOST_BYTES))
    except FileNotFoundError:
        return [], []


def _lines(data: bytes) -> tuple[list[Line], list[bytes]]:
    lines: list[Line] = []
    damaged: list[bytes] = []
    at = 0
    for row in data.split(b"\n"):
        at = min(at + len(row) + 1, len(data))
        head = _HEAD.match(row)
        text = row[head.end() :] if head else b""
        if head and len(text) == int(head[2]) and head[1] == b"%08x" % crc32(text):
            lines.append(Line(text, at))
        elif row and not (_CUT_HEAD.fullmatch(row) or (head and len(text) < int(head[2]))):
            damaged.append(row)
    return lines, damaged


def rewrite(path: Path, change: Callable[[bytes], bytes], wait: float = _WAIT) -> None:
    """Give a file other bytes while no one appends to it; one that becomes empty is removed. A missing one is ignored.

    Raises:
        LockTimeout, StorageIO: the file is as it was.
    """
    with held(path, os.O_RDWR, wait=wait) as fd:
        if fd is None:
            return
        before = io.read_file(path)
        after = change(before)
        if not after.strip():
            io.unlink(path, missing_ok=True)
            io.sync_folder(path.parent)
        elif after != before:
            io.write_file(path, after)


def take_away(path: Path, upto: int) -> None:
    """Remove the beginning of a file up to an offset, however much is added meanwhile; an empty file is removed.

    Raises:
        LockTimeout, StorageIO: the file is as it was.
    """
    rewrite(path, lambda data: data[upto:])


def keep_only(path: Path, wanted: Callable[[bytes], bool]) -> int:
    """Remove the lines whose text is not wanted, and what is no line; return how many those were.

    Raises:
        LockTimeout, StorageIO: the file is as it was.
    """
    removed = 0

    def reduced(data: bytes) -> bytes:
        nonlocal removed
        lines, damaged = _lines(data)
        kept = [line for line in lines if wanted(line.text)]
        removed = len(lines) - len(kept) + len(damaged)
        return b"".join(_line(line.text) for line in kept) if removed else data

    rewrite(path, reduced)
    return removed


def waiting(folder: Path) -> list[Path]:
    """The files of a spool's folder, the one that has waited longest first."""
    files = [folder / name for name in io.listed(folder) if name.endswith(SUFFIX) and name[0] != "."]
    return sorted(files, key=_age)


def note(path: Path, text: bytes, largest: int, *, wait: float = _WAIT) -> int:
    """Add a line to a short log, without waiting for the disk; beyond ``largest`` bytes the older half is dropped.

    Returns:
        The number of the file that it was added to.

    Raises:
        LockTimeout: it was not added.
        StorageIO, NotRegularFile: it was not added, or the log stays larger.
    """
    with held(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, shared=True, wait=wait) as fd:
        assert fd is not None  # it is made where it is not there
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_nlink > 1:
            raise NotRegularFile("something else is where a log belongs", path=str(path), hint="remove it")
        with io.operation("write", path):
            os.write(fd, b"\n%s\n" % text)  # in one piece; the line before may have been cut by a full disk
    if found.st_size > largest:
        with suppress(LockTimeout):  # the next line tries again
            rewrite(path, lambda data: _latest(data, largest), wait)
    return found.st_ino


def _latest(data: bytes, largest: int) -> bytes:
    return data[-largest // 2 :].partition(b"\n")[2] if len(data) > largest else data


def noted(path: Path, largest: int) -> Iterator[list[Any]]:
    """The lists that were noted as JSON in a short log, the oldest first.

    What a killed process or a full disk has left among them is passed over.
    """
    with suppress(MemfsError, OSError):
        for line in io.read_file(path, 4 * largest).split(b"\n"):
            with suppress(ValueError, RecursionError):
                if isinstance(row := json.loads(line), list):
                    yield row


def _line(text: bytes) -> bytes:
    return b"\n%08x %d %s\n" % (crc32(text), len(text), text)


def _age(path: Path) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


@contextmanager
def held(path: Path, flags: int, *, shared: bool = False, wait: float = _WAIT) -> Iterator[int | None]:
    """The open file while no other process replaces or removes it, and, unless ``shared``, none adds to it; None where
    it is not there and may not be made.

    Raises:
        LockTimeout: another process holds it for longer than ``wait`` seconds.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            fd = io.open_file(path, flags)
        except FileNotFoundError:
            if flags & os.O_CREAT:
                raise
            yield None
            return
        try:
            if locked(fd, shared=shared) and leads_to(path, fd):  # who took lines away may have put another there
                yield fd
                return
        finally:
            release(fd)
        if time.monotonic() > deadline:
            raise LockTimeout("another process holds this file", path=str(path), hint="end that process")
        time.sleep(_STEP)


class SharedCounter:
    """One count, shared by threads and processes, in a file with one byte for each time.

    A count that cannot be written is missing, and no error: what depends on it happens later.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self) -> None:
        """Note one more: a byte at the end of the file, so that processes need no lock for it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with suppress(MemfsError, OSError), io.descriptor(io.open_file(self._path, flags)) as fd:
            os.write(fd, b".")

    def count(self) -> int:
        """How many there were that were not taken off."""
        with suppress(MemfsError, FileNotFoundError):
            return io.facts(self._path).st_size
        return 0

    def take_off(self, number: int) -> None:
        """Take off those that were seen to; what is noted in this very moment may be lost."""
        with suppress(MemfsError, FileNotFoundError):
            io.write_file(self._path, b"." * max(0, self.count() - number), durable=False)

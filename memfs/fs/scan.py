"""Scans the facts about every file below an open folder.

Follows no link, and no unreadable entry ends the scan.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from memfs.errors import MemfsError, NotRegularFile, PathEscape, StorageIO, StorageReadOnly
from memfs.fs import io

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_DEEPEST = 64
_NO_FOLDER = "a link or a file stands where a folder is expected"
_TOO_DEEP = f"more than {_DEEPEST} folders deep"
LAST_NS = (1 << 63) - 1  # what tables of stamps can hold: the year 2262


class ScanEntry(NamedTuple):
    """One name found by a scan.

    Attributes:
        regular: false for links, pipes and devices, and for a folder that could not be entered.
        reason: why a folder could not be entered, in words; "" otherwise. Its facts may be all zero.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    regular: bool
    reason: str = ""

    @property
    def refused(self) -> bool:
        """Whether the system would not let a folder be entered, so that it is not known what it holds."""
        return bool(self.reason) and self.reason not in (_NO_FOLDER, _TOO_DEEP)


def scan_below(fd: int, folder: str, hidden: bool) -> Iterator[ScanEntry]:
    """Scan an open folder and close it. The folders on the way down stay open, so that none can be swapped for a link
    between being seen and being entered.
    """
    open_now = [fd]
    try:
        entries, inner = _listed(fd, folder, hidden)
        yield from entries
        waiting = [inner]
        while waiting:
            if not waiting[-1]:
                waiting.pop()
                os.close(open_now.pop())
                continue
            entry = waiting[-1].pop()
            try:
                open_now.append(_entered(entry, open_now))
            except FileNotFoundError:
                continue
            except (MemfsError, OSError) as error:
                yield entry._replace(reason=reason_of(error))
                continue
            entries, inner = _listed(open_now[-1], entry.path, hidden)
            waiting.append(inner)
            yield from entries
    finally:
        for fd in open_now:
            os.close(fd)


def _entered(folder: ScanEntry, above: list[int]) -> int:
    if len(above) > _DEEPEST:
        raise StorageIO(_TOO_DEEP)
    return io.open_file(folder.path.rpartition("/")[2], _FOLDER, dir_fd=above[-1])


def _listed(fd: int, folder: str, hidden: bool) -> tuple[list[ScanEntry], list[ScanEntry]]:
    """The files in a folder, and the folders in it."""
    folders: list[ScanEntry] = []
    entries: list[ScanEntry] = []
    prefix = folder + "/" if folder else ""
    try:
        with os.scandir(fd) as names:
            for entry in names:
                name = entry.name
                if name[0] == "." and not hidden:
                    continue
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                into = folders if stat.S_ISDIR(facts.st_mode) else entries
                into.append(entry_of(prefix + name, facts))
    except OSError as error:
        entries.append(ScanEntry(folder, 0, 0, 0, 0, False, reason_of(error)))
    return entries, folders


def reason_of(error: Exception) -> str:
    """Why a folder cannot be entered."""
    if isinstance(error, (NotRegularFile, PathEscape)):
        return _NO_FOLDER
    if isinstance(error, StorageReadOnly):
        return "this user may not read the folder"
    return error.message if isinstance(error, MemfsError) else str(error)


def entry_of(path: str, facts: os.stat_result) -> ScanEntry:
    mtime, ctime = facts.st_mtime_ns, facts.st_ctime_ns
    if mtime > LAST_NS or ctime > LAST_NS:
        mtime, ctime = min(mtime, LAST_NS), min(ctime, LAST_NS)
    return ScanEntry(path, facts.st_size, mtime, ctime, facts.st_ino, stat.S_ISREG(facts.st_mode))

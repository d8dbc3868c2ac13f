"""Coverage: which folders the system really watches for this process.

Owns comparing the folders that are there with the watches the kernel holds. A library that could not set a watch,
because the user's limit was reached, may keep that to itself; the kernel does not. Only Linux tells; elsewhere nothing
is found wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

_INOTIFY = "anon_inode:inotify"


def uncovered(folder: str) -> tuple[int, int] | None:
    """How many folders at and below this one have no watch, and how many there are; None where nobody can tell."""
    watched = _watched_inodes()
    if watched is None:
        return None
    inodes = list(_folders(folder))
    return sum(inode not in watched for inode in inodes), len(inodes)


def _folders(top: str) -> Iterator[int]:
    """The inode of each folder at and below ``top``; links are not followed, what vanishes is left out."""
    waiting = [top]
    try:
        yield os.stat(top, follow_symlinks=False).st_ino
    except OSError:
        return
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        yield entry.inode()
                        waiting.append(entry.path)
        except OSError:
            continue


def _watched_inodes() -> set[int] | None:
    """The inodes of everything this process has a watch on."""
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return None
    found: set[int] = set()
    for name in names:
        try:
            if os.readlink(f"/proc/self/fd/{name}") == _INOTIFY:
                found.update(_inodes_of(name))
        except OSError:  # closed meanwhile
            continue
    return found


def _inodes_of(name: str) -> Iterator[int]:
    with open(f"/proc/self/fdinfo/{name}", encoding="ascii", errors="replace") as rows:
        for row in rows:
            if row.startswith("inotify "):
                words = dict(word.partition(":")[::2] for word in row.split()[1:])
                yield int(words["ino"], 16)

"""Flock: locking an open file, whether a path still leads to that file, and letting go of it.

Owns these three. Who waits how long, who is named and what a lock is for, its users know. Imports little.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from memfs.files import io

_PAUSE = 0.01


def locked(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file, if that can be had at once: against every other process, or beside those that share it."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def locked_within(fd: int, seconds: float) -> bool:
    """Lock an open file against every other process, if that can be had in so many seconds."""
    until = time.monotonic() + seconds
    while not locked(fd):
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return True


def release(fd: int) -> None:
    """Unlock a file and close it: a child that another thread forked meanwhile has the same open file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def leads_to(path: Path, fd: int) -> bool:
    """Whether a path leads to an open file: somebody may have put another in its place, or taken it away.

    Raises:
        StorageIO: it cannot be looked at.
    """
    try:
        found = io.facts(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), found)

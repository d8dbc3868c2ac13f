"""Presence: what a living process says of itself in a folder, for other processes to read.

Owns notes that end with their process: each is a file which its writer keeps locked, so that the system itself tells
the living from the dead, across containers too. What a note says is its writer's business.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfs.errors import MemfsError, StorageIO
from memfs.files import io
from memfs.files.flock import leads_to, locked
from memfs.files.forked import renewed_in_child

_SUFFIX = ".json"
_LIMIT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """One living process's note: whose, what it says, and how many seconds ago it last said so."""

    pid: int
    facts: Mapping[str, Any]
    silent_seconds: float


class Presence:
    """This process's own note. Where none can be written, nothing is said: a note is for messages only."""

    def __init__(self, folder: Path, home: Path | None = None) -> None:
        """``home``: a folder above, which is not made, and from which no link may lead here."""
        self._path = folder
        self._fd = -1
        self._owner = os.getpid()
        with suppress(MemfsError, OSError):
            io.make_private_folder(folder, home)
            while self._fd < 0:
                self._begin(folder / f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}")

    def _begin(self, path: Path) -> None:
        fd = io.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            taken = locked(fd) and leads_to(path, fd)
        except OSError:  # a file system without locks
            os.close(fd)
            io.unlink(path, missing_ok=True)
            raise
        if not taken:  # for a dead one's, in the very moment it was made
            os.close(fd)
            return
        self._path, self._fd = path, fd
        renewed_in_child(self)

    def say(self, facts: Mapping[str, Any]) -> None:
        """Replace what the note says."""
        line = json.dumps(facts).encode()[:_LIMIT]
        if self._fd >= 0:
            with suppress(StorageIO), io.operation("say", self._path):
                os.pwrite(self._fd, line.ljust(_LIMIT), 0)

    def close(self) -> None:
        """Take the note away."""
        if self._fd >= 0 and os.getpid() == self._owner:
            with suppress(StorageIO):
                io.unlink(self._path, missing_ok=True)
            os.close(self._fd)
            self._fd = -1

    def begin_anew_in_child(self) -> None:
        """Let go of the parent's note, so that it ends with the parent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def present(folder: Path) -> list[Present]:
    """The notes of living processes, oldest process first; those of the dead are taken away."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
    except OSError:
        return []
    return [found for name in names if (found := _read(folder / name)) is not None]


def _read(path: Path) -> Present | None:
    try:
        fd = io.open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, MemfsError):
        return None
    try:
        if locked(fd, shared=True):  # its writer died
            with suppress(StorageIO):
                io.unlink(path, missing_ok=True)
            return None
        facts = json.loads(io.read_regular(fd, str(path), _LIMIT))
        silent = max(0.0, time.time() - os.fstat(fd).st_mtime)
    except (MemfsError, ValueError):
        return None
    finally:
        os.close(fd)
    pid = path.name.partition("-")[0]
    if not isinstance(facts, dict) or not pid.isdecimal():
        return None
    return Present(pid=int(pid), facts=facts, silent_seconds=silent)

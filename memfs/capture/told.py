"""Told: what each session was told already, so that it is not told again.

Owns that short memory in the workspace's private state: names of items and digests of texts, no text. It is derived:
whoever deletes it, or a disk that takes none of it, costs a repetition and no answer.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io
from memfs.files.flock import locked_within, release

FOLDER = "told"
_LARGEST = 256 * 1024
_LONGEST_NAME = 300
_KEPT_SECONDS = 14 * 24 * 3600.0
_MOST_LOOKED_AT = 2_000
_WAIT_SECONDS = 0.2


class Told:
    """What one session was told. No method raises because of the disk; without a name nothing is remembered."""

    def __init__(self, state: Path, session: str, agent: str = "") -> None:
        """
        Args:
            state: the workspace's private state.
            agent: the subagent, where it is one: it knows nothing of what the others were told.
        """
        self._folder = state / FOLDER
        name = hashlib.sha256(f"{session}\0{agent}".encode("utf-8", "replace")).hexdigest()[:32]
        self._path = self._folder / f"{name}.txt" if session else None

    def names(self) -> frozenset[str]:
        """All that it was told."""
        if self._path is None:
            return frozenset()
        with suppress(MemfsError, OSError):
            return frozenset(io.read_file(self._path, _LARGEST).decode("utf-8", "replace").split("\n")[:-1])
        return frozenset()

    def claim(self, names: Iterable[str]) -> frozenset[str]:
        """Note what is about to be told; those that were not told before, by whatever process.

        Two hooks of one event, where somebody installed them twice, so say a thing once.
        """
        wanted = list(dict.fromkeys(name for name in names if _plain(name)))
        if self._path is None or not wanted:
            return frozenset(wanted)
        with suppress(MemfsError, OSError):
            io.make_private_folder(self._folder, self._folder.parents[2])
            with self._locked() as fd:
                known = self.names()
                fresh = [name for name in wanted if name not in known]
                os.lseek(fd, 0, os.SEEK_END)
                io.write_all(fd, "".join(f"{name}\n" for name in fresh).encode(), str(self._path))
                return frozenset(fresh)
        return frozenset(wanted)

    def forget(self) -> None:
        """The session lost what it was told: it begins anew."""
        if self._path is not None:
            with suppress(MemfsError, OSError):
                io.unlink(self._path, missing_ok=True)

    def sweep(self) -> None:
        """Take away what sessions were told that nobody has heard of for two weeks."""
        with suppress(MemfsError, OSError):
            names = os.listdir(self._folder)[:_MOST_LOOKED_AT]
            for name in names:
                path = self._folder / name
                if time.time() - io.facts(path).st_mtime > _KEPT_SECONDS:
                    io.unlink(path, missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, which nobody else claims in meanwhile; whoever waits too long goes on without."""
        fd = io.open_file(str(self._path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            locked_within(fd, _WAIT_SECONDS)
            yield fd
        finally:
            release(fd)


def mark_of(text: str) -> str:
    """A name for a text as a whole."""
    return f"text:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:24]}"


def _plain(name: str) -> bool:
    return bool(name) and len(name) <= _LONGEST_NAME and "\n" not in name

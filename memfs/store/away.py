"""Away: what is remembered of the secondary locations, in other places than there.

Owns a note of how many writes each of them holds. With it, a process that cannot look there, as that disk is not
mounted or nobody names it any more, still knows that something is missing. What waits there, and why, it does not know.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io
from memfs.model import Problem

NOTE = "secondary.json"


class Away:
    """The note of one workspace, in the first of some folders that takes it; this process remembers it besides."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._notes = [folder / NOTE for folder in folders]
        self._own: dict[str, int] = {}

    def known(self) -> dict[str, int]:
        """How many writes wait in each folder that was ever used."""
        found = dict(self._own)
        for path in self._notes:
            for folder, waiting in _read(path).items():
                if folder not in self._own:
                    found[folder] = max(waiting, found.get(folder, 0))
        return found

    def note(self, folder: Path, waiting: int) -> None:
        """Remember how many writes wait there. Its lock is held."""
        stored = {name: number for path in self._notes for name, number in _read(path).items()}
        self._own.pop(str(folder), None)
        if stored.get(str(folder)) == waiting and not os.path.exists(self._notes[-1]):
            return
        data = json.dumps({**self.known(), str(folder): waiting}).encode()
        for number, path in enumerate(self._notes):
            with contextlib.suppress(MemfsError, OSError):
                io.write_file(path, data)
                for other in self._notes[number + 1 :]:
                    io.unlink(other, missing_ok=True)
                return
        self._own[str(folder)] = waiting

    def missed(self, reachable: str) -> dict[str, int]:
        """Of the folders but the one that is in reach, those in which writes wait."""
        return {folder: waiting for folder, waiting in self.known().items() if waiting and folder != reachable}


def problem_of(folder: str, waiting: int, configured: bool) -> Problem:
    """The row for writes that nobody can look at."""
    place = str(Path(folder).parent)
    return Problem(
        path=folder,
        code="SecondaryAway",
        message=f"{waiting} write(s) wait in {place}, which cannot be looked into: they are missing from answers",
        hint="mount that disk again; memfs goes on where it stopped"
        if configured
        else f"set storage.secondary to {place}, or trust the workspace again where its own file names it",
    )


def _read(path: Path) -> dict[str, int]:
    try:
        found = json.loads(io.read_file(path, 1 << 20))
    except (MemfsError, OSError, ValueError):
        return {}
    rows = found.items() if isinstance(found, dict) else ()
    return {folder: waiting for folder, waiting in rows if isinstance(waiting, int)}

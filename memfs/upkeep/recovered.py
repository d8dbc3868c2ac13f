"""Recovered: bytes memfs had written that a person's change displaced before they were committed.

Owns listing them and bringing one back on request. Nothing is ever brought back by itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memfs.errors import ItemNotFound
from memfs.files import io
from memfs.history.repository import Repository
from memfs.store import Store
from memfs.store.parts import stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """One displaced content: its name for ``restore``, where it belonged, when it was set aside, its size."""

    name: str
    path: str
    time: datetime
    bytes: int


class Recovered:
    """The displaced contents of one workspace."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store = store
        self._folder: Path = repository.state / "recovered"

    def list(self) -> list[Recoverable]:
        """What can be brought back, newest first."""
        if not self._folder.is_dir():
            return []
        found = [self._describe(entry) for entry in os.scandir(self._folder) if not entry.name.startswith(".")]
        return sorted(found, key=lambda row: (row.time, row.name), reverse=True)

    def restore(self, name: str) -> str:
        """Put a content back at its path, as a new change; return the path.

        Args:
            name: its name, or the id of the item it holds.

        Raises:
            ItemNotFound: there is no such content.
            Conflict: the file changes at the same moment.
        """
        matching = [row for row in self.list() if name in (row.name, stem(row.path), row.path)]
        if not matching:
            raise ItemNotFound(f"nothing set aside is called {name!r}", hint="memfs recover lists what there is")
        chosen = matching[0]
        plan = self._store.plan_restore(chosen.path, io.read_file(self._folder / chosen.name))
        if plan is not None:
            self._store.carry_out([plan], f"Bring back {stem(chosen.path)}", source="recover")
        io.unlink(self._folder / chosen.name, missing_ok=True)
        return chosen.path

    @staticmethod
    def _describe(entry: os.DirEntry[str]) -> Recoverable:
        facts = entry.stat(follow_symlinks=False)
        path = entry.name.partition("-")[2].replace("%2F", "/")
        moment = datetime.fromtimestamp(facts.st_mtime, UTC)
        return Recoverable(name=entry.name, path=path, time=moment, bytes=facts.st_size)

"""Recovered: bytes memfs had written that a person's change displaced before they were committed.

Owns listing them and bringing one back on request. Nothing is ever brought back by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memfs.errors import ItemNotFound
from memfs.files import io
from memfs.history.repository import Repository
from memfs.model.ids import stem_of
from memfs.model.time import from_timestamp_ns
from memfs.store import Store
from memfs.store.setaside import FOLDER, SUFFIX, read_aside


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
        self._folder: Path = repository.state / FOLDER

    def list(self) -> list[Recoverable]:
        """What can be brought back, newest first."""
        found = [self._describe(entry) for entry in self._entries()]
        known = {row.name for row in found}
        for name, written, change in self._store.displaced():
            if name not in known:
                moment = datetime.fromtimestamp(written, UTC)
                found.append(Recoverable(name=name, path=change.path, time=moment, bytes=len(change.data or b"")))
        return sorted(found, key=lambda row: (row.time, row.name), reverse=True)

    def restore(self, name: str) -> str:
        """Put a content back at its path, as a new change; return the path.

        Args:
            name: its name, or the id of the item it holds.

        Raises:
            ItemNotFound: there is no such content.
            Conflict: the file changes at the same moment.
        """
        matching = [row for row in self.list() if name in (row.name, stem_of(row.path), row.path)]
        if not matching:
            raise ItemNotFound(f"nothing set aside is called {name!r}", hint="memfs recover lists what there is")
        chosen = matching[0]
        plan = self._store.plan_restore(chosen.path, self._content(chosen))
        if plan is not None:
            self._store.carry_out([plan], f"Bring back {stem_of(chosen.path)}", source="recover")
        io.unlink(self._folder / (chosen.name + SUFFIX), missing_ok=True)
        return chosen.path

    def _content(self, chosen: Recoverable) -> bytes | None:
        for name, _, change in self._store.displaced():
            if name == chosen.name:
                return change.data
        return read_aside(self._folder / (chosen.name + SUFFIX))[1]

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        if self._folder.is_dir():
            with os.scandir(self._folder) as entries:
                yield from (entry for entry in entries if entry.name.endswith(SUFFIX))

    @staticmethod
    def _describe(entry: os.DirEntry[str]) -> Recoverable:
        path, data = read_aside(Path(entry.path))
        moment = from_timestamp_ns(entry.stat(follow_symlinks=False).st_mtime_ns)
        return Recoverable(name=entry.name.removesuffix(SUFFIX), path=path, time=moment, bytes=len(data))

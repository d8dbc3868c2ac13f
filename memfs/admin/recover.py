"""List contents that memfs had written and a person's change displaced before their commit, and bring them back.

Nothing is ever brought back without being asked for.
"""

from __future__ import annotations

import builtins
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import CorruptRecord, ItemNotFound, StorageIO
from memfs.fs import io
from memfs.git.repository import Repository
from memfs.model.ids import stem_of
from memfs.model.time import from_timestamp_ns
from memfs.store import Store
from memfs.store.recovery import DAMAGED, FOLDER, SUFFIX, all_aside, keep_replaced, read_aside

RECOVERED = "recovered"
"""What stands for a revision where bytes were set aside that no commit holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """One displaced content.

    Attributes:
        name: what ``restore`` knows it by, beside the id of its item.
        path: where it belonged.
        time: when it was set aside.
        bytes: its size.
    """

    name: str
    path: str
    time: datetime
    bytes: int


class RecoveryCopies:
    """The displaced contents of one workspace."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store = store
        self._repository = repository
        self._folder: Path = repository.state / FOLDER

    def list(self) -> list[Recoverable]:
        """What can be brought back, newest first."""
        found = []
        for place, path, data in all_aside(self._repository.state):
            moment = from_timestamp_ns(place.stat().st_mtime_ns)
            name = place.name.removesuffix(SUFFIX)
            found.append(Recoverable(name=name, path=path, time=moment, bytes=len(data)))
        known = {row.name for row in found}
        for name, written, change in self._store.displaced():
            if name not in known:
                moment = datetime.fromtimestamp(written, UTC)
                found.append(Recoverable(name=name, path=change.path, time=moment, bytes=len(change.data or b"")))
        return sorted(found, key=lambda row: (row.time, row.name), reverse=True)

    def keep(self, path: str, data: bytes) -> None:
        """Set aside what a file holds that is about to be removed, where HEAD does not hold it.

        Raises:
            StorageIO: it cannot be set aside.
        """
        if self._repository.head_blob(path) != self._repository.blob_id(data):
            keep_replaced(self._repository.state, path, data)

    def damaged(self) -> builtins.list[CorruptRecord]:
        """What is wrong with set-aside contents that can no longer be read."""
        self._store.require_open()
        found = []
        for name in io.listed(self._folder):
            try:
                if name.endswith(SUFFIX):
                    read_aside(self._folder / name)
            except CorruptRecord as error:
                found.append(error)
        return found

    def restore(self, name: str) -> str:
        """Put a content back at its path, as a new change; return the path.

        Args:
            name: its name, or the id of the item it holds.

        Raises:
            ItemNotFound: there is no such content.
            CorruptRecord: it is the copy of what a repair replaced; that is not put over a whole file.
            Conflict: the file changes at the same moment.
        """
        matching = [row for row in self.list() if name in (row.name, stem_of(row.path), row.path)]
        if not matching:
            raise ItemNotFound(
                f"nothing set aside is called {name!r}", hint="memfs restore --displaced lists what there is"
            )
        chosen = next((row for row in matching if not row.name.startswith(DAMAGED)), None)
        if chosen is None:
            copy = self._folder / (matching[0].name + SUFFIX)
            raise CorruptRecord(
                "these bytes were put aside because they are damaged: they are there to be looked at, not brought back",
                path=str(copy),
                hint=f"its first line says where it belongs; 'memfs log {matching[0].path}' names whole versions",
            )
        plans = self._store.plan_restore({chosen.path: self._content(chosen)})
        # A person's save may have been set aside: no secret of it was vetted yet.
        plans = [plan._replace(vetted=False) for plan in plans]
        self._store.carry_out(plans, f"Bring back {stem_of(chosen.path)}", source="recover")
        with suppress(StorageIO):  # it is back; what could not be removed stays listed
            io.unlink(self._folder / (chosen.name + SUFFIX), missing_ok=True)
        return chosen.path

    def _content(self, chosen: Recoverable) -> bytes | None:
        for name, _, change in self._store.displaced():
            if name == chosen.name:
                return change.data
        return read_aside(self._folder / (chosen.name + SUFFIX))[1]

"""Places: where payloads of checkpoints lie: in the workspace, or in the secondary location until they can come home.

Owns both folders and the way home. Manifests are documents like any other, and travel with the store's writes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memfs.errors import MemfsError, StorageIO, StorageUnavailable
from memfs.files import io
from memfs.files.lock import FileLock
from memfs.model.statepaths import CHECKPOINTS, PAYLOAD, payload_path
from memfs.states.checkpoint_manifest import Manifest, invalid, is_id
from memfs.store.parts import Parts

BUILDING = ".building"
_LOCK = "checkpoint.lock"
_CHUNK = 1 << 20


class Places:
    """The places of one workspace.

    Attributes:
        home: the folder in the workspace.
        lock: held by whoever makes, moves or removes one.
    """

    def __init__(self, parts: Parts) -> None:
        self.home = parts.tree.root / CHECKPOINTS
        self.lock = FileLock(parts.repository.state / _LOCK)
        self._parts = parts

    @property
    def away(self) -> Path | None:
        """The folder in the secondary location, None where there is no such location."""
        secondary = self._parts.secondary
        return secondary.folder / "checkpoints" if secondary is not None else None

    def payload(self, checkpoint: str) -> Path:
        """Where a payload lies, or would lie in the workspace where it lies nowhere."""
        here = self._parts.tree.root / payload_path(checkpoint)
        there = self.away / checkpoint / PAYLOAD if self.away is not None else here
        return there if not os.path.lexists(here) and os.path.lexists(there) else here

    def size(self, checkpoint: str) -> int | None:
        """What a payload weighs, None where it is not here or no file."""
        path = self.payload(checkpoint)
        if path.is_relative_to(self.home):
            entry = self._parts.tree.entry(payload_path(checkpoint))
            return entry.size if entry is not None else None
        return path.lstat().st_size if path.is_file() and not path.is_symlink() else None

    @contextmanager
    def holding_away(self, timeout: float) -> Iterator[Path]:
        """The folder in the secondary location, which there is, made and locked while the block runs.

        Raises:
            LockTimeout, StorageIO: it cannot be had.
        """
        secondary, folder = self._parts.secondary, self.away
        assert secondary is not None
        assert folder is not None
        secondary.prepare()
        io.make_private_folder(folder)
        with FileLock(secondary.folder / _LOCK).hold("checkpoint", timeout):
            yield folder

    @contextmanager
    def elsewhere(self, refused: StorageIO, timeout: float) -> Iterator[Path]:
        """The folder in the secondary location, locked while the block runs, as the workspace refused.

        Raises:
            StorageUnavailable: neither of them took the checkpoint.
        """
        secondary = self._parts.secondary
        if secondary is None:
            raise refused
        try:
            with self.holding_away(timeout) as folder:
                yield folder
        except StorageIO as error:
            raise StorageUnavailable(
                f"neither place took the checkpoint: {self._parts.tree.root}: {refused.message}; "
                f"{secondary.place}: {error.message}",
                hint="make room in one of them, or make it writable, and create the checkpoint again",
            ) from error

    def waiting(self) -> list[str]:
        """The ids of those of which something lies in the secondary location."""
        try:
            names = os.listdir(self.away) if self.away is not None else []
        except OSError:  # not there, or its disk is not
            return []
        return [name for name in names if is_id(name)]

    def bring(self, manifest: Manifest) -> None:
        """Move a payload from the secondary location into the workspace, proved on the way. Both locks are held.

        Raises:
            CheckpointInvalid: its bytes are not those of the manifest; it stays where it is.
            StorageIO: the workspace does not take it; it stays where it is.
        """
        assert self.away is not None
        source, building = self.away / manifest.id / PAYLOAD, self.home / BUILDING
        if self.payload(manifest.id) == source:
            self._carry(source, building, manifest)
        io.unlink(source, missing_ok=True)  # a killed process may have left it though it is home
        with suppress(MemfsError):
            io.rmdir(source.parent)

    def _carry(self, source: Path, building: Path, manifest: Manifest) -> None:
        self._parts.tree.make_folders(CHECKPOINTS)
        io.mkdir(building)
        try:
            if _copied(source, building / PAYLOAD) != manifest.payload_sha256:
                raise invalid(manifest.id, "its payload in the secondary location is damaged")
            self.settle(building, self.home / manifest.id)
        finally:
            with suppress(MemfsError, OSError):
                (building / PAYLOAD).unlink(missing_ok=True)
                building.rmdir()

    def settle(self, building: Path, place: Path) -> None:
        """Give a payload its name, durably."""
        io.mkdir(place)
        io.rename(str(building / PAYLOAD), str(place / PAYLOAD))
        io.sync_folder(place)
        io.sync_folder(place.parent)


def _copied(source: Path, target: Path) -> str:
    """Copy a file, durable on return; the digest of what was copied."""
    digest = hashlib.sha256()
    reading = io.open_file(source, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        writing = io.open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with io.operation("read", source):
                while data := os.read(reading, _CHUNK):
                    digest.update(data)
                    io.write_all(writing, data, str(target))
            io.fsync(writing, str(target))
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return digest.hexdigest()

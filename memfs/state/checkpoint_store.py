"""Find checkpoints by their manifests, and verify them.

A checkpoint that is damaged or incomplete is listed with its reason, and never used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memfs.errors import CheckpointInvalid, MemfsError, StorageIO, StorageUnavailable
from memfs.fs import io
from memfs.fs.lock import FileLock
from memfs.fs.tree import View
from memfs.model import Problem
from memfs.model.state_paths import CHECKPOINTS, MANIFEST, PAYLOAD, manifest_path, payload_path
from memfs.state.checkpoint_payload import (
    CheckpointManifest,
    ProvedCheckpoint,
    decode,
    invalid,
    is_id,
    minute_of,
    order,
    prove,
    reason_of,
)
from memfs.store.parts import READ_LIMIT, Parts

BUILDING = ".building"
_LOCK = "checkpoint.lock"
_CHUNK = 1 << 20


class PayloadFolders:
    """The folders of one workspace's payloads.

    Attributes:
        home: the folder in the workspace.
        lock: held while one is made, moved or removed.
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

    def bring(self, manifest: CheckpointManifest) -> None:
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

    def _carry(self, source: Path, building: Path, manifest: CheckpointManifest) -> None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint as its manifest describes it.

    Attributes:
        id: ``ckpt_YYYYMMDD_HHMM``, with ``_2`` and so on for further ones of the same minute.
        timestamp: the moment it shows.
        reason: why it was made: ``asked``, ``update``, ``interval``, ``tasks``, or what the caller said.
        iteration: the newest iteration in it, None where there was none.
        files, bytes: how many documents, and what they weigh unpacked.
        payload_bytes: what the payload weighs.
        sha256: of the payload.
        present: whether a payload of that size lies beside the manifest; a clone has manifests only.
        problem: why it cannot be used, as far as the manifest and the payload's size tell; "" otherwise.
    """

    id: str
    timestamp: datetime
    reason: str = ""
    iteration: int | None = None
    files: int = 0
    bytes: int = 0
    payload_bytes: int = 0
    sha256: str = ""
    present: bool = True
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointVerdict:
    """Whether a checkpoint can be relied on, and if not, why."""

    id: str
    good: bool
    reason: str = ""
    files: int = 0
    bytes: int = 0


class Shelf:
    """The checkpoints that are there."""

    def __init__(self, seen: View, places: PayloadFolders) -> None:
        """
        Args:
            seen: the files that there are, or were: of the present or of another time.
            places: where payloads lie now.
        """
        self._seen = seen
        self._places = places

    def ids(self) -> Sequence[str]:
        """Their ids, newest first."""
        found = set()
        for entry in self._seen.scan(CHECKPOINTS):
            checkpoint, _, name = entry.path.removeprefix(f"{CHECKPOINTS}/").partition("/")
            if name == MANIFEST and is_id(checkpoint):
                found.add(checkpoint)
        return sorted(found, key=order, reverse=True)

    def all(self) -> list[Checkpoint]:
        """All of them, newest first; one whose manifest is damaged names the problem."""
        return [self.look(one) for one in self.ids()]

    def look(self, checkpoint: str) -> Checkpoint:
        """One of them; one whose manifest is damaged names the problem."""
        try:
            return self.described(self.manifest(checkpoint))
        except CheckpointInvalid as error:
            return Checkpoint(id=checkpoint, timestamp=minute_of(checkpoint), present=False, problem=reason_of(error))

    def described(self, manifest: CheckpointManifest) -> Checkpoint:
        """The checkpoint of a manifest."""
        size = self._places.size(manifest.id)
        present = size == manifest.payload_bytes
        problem = "" if present else "its payload is not here" if size is None else "its payload has another size"
        return Checkpoint(
            id=manifest.id, timestamp=manifest.timestamp, reason=manifest.reason, iteration=manifest.iteration,
            files=manifest.files, bytes=manifest.bytes, payload_bytes=manifest.payload_bytes,
            sha256=manifest.payload_sha256, present=present, problem=problem,
        )  # fmt: skip

    def verdict(self, checkpoint: str) -> CheckpointVerdict:
        """Read a whole checkpoint and say whether it can be relied on."""
        try:
            manifest = self.proved(checkpoint).manifest
        except CheckpointInvalid as error:
            return CheckpointVerdict(id=checkpoint, good=False, reason=reason_of(error))
        return CheckpointVerdict(id=checkpoint, good=True, files=manifest.files, bytes=manifest.bytes)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with those that are here, each read whole; a payload that lies elsewhere is no damage."""
        for checkpoint in self.ids():
            try:
                self.manifest(checkpoint)
                if self._places.size(checkpoint) is not None:
                    self.proved(checkpoint)
            except CheckpointInvalid as error:
                yield Problem.of(error, manifest_path(checkpoint))

    def proved(self, checkpoint: str) -> ProvedCheckpoint:
        """A checkpoint that verifies whole.

        Raises:
            CheckpointInvalid: it does not, or is not there.
        """
        return prove(self._places.payload(checkpoint), self.manifest(checkpoint))

    def manifest(self, checkpoint: str) -> CheckpointManifest:
        """Its manifest.

        Raises:
            CheckpointInvalid: it is damaged, or there is none of that id.
        """
        if not is_id(checkpoint):
            raise CheckpointInvalid(
                f"{checkpoint!a} is no checkpoint's id",
                hint="ids look like ckpt_20260301_1000: 'memfs state checkpoint list'",
            )
        try:
            return decode(self._seen.read(manifest_path(checkpoint), READ_LIMIT).data, checkpoint)
        except FileNotFoundError:
            names = self.ids()
            hint = f"the newest is {names[0]}" if names else "'memfs state checkpoint create' makes one"
            raise CheckpointInvalid(f"there is no checkpoint {checkpoint!r}", hint=hint) from None
        except CheckpointInvalid:
            raise
        except MemfsError as error:
            raise invalid(checkpoint, f"its manifest cannot be read: {error.message}") from error

    def exists(self, checkpoint: str) -> bool:
        """Whether there is one of that id, sound or not."""
        return is_id(checkpoint) and self._seen.entry(manifest_path(checkpoint)) is not None

"""Find checkpoints by their manifests, and verify them.

A checkpoint that is damaged or incomplete is listed with its reason, and never used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from memfs.errors import CheckpointInvalid, CorruptRecord, MemfsError, StorageIO, StorageUnavailable
from memfs.fs import io
from memfs.fs.archive import chunks_of, verified
from memfs.fs.lock import FileLock
from memfs.fs.tree import View
from memfs.model import Problem
from memfs.model.state_paths import CHECKPOINTS, MANIFEST, PAYLOAD, manifest_path, payload_path
from memfs.state.checkpoint_payload import (
    Checkpoint,
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

_LOCK = "checkpoint.lock"


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
        """What a payload weighs, None where it is not here."""
        try:
            return self.payload(checkpoint).lstat().st_size
        except OSError:
            return None

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
        return list(filter(is_id, io.listed(self.away))) if self.away is not None else []

    def bring(self, checkpoint: Checkpoint) -> None:
        """Move a payload from the secondary location into the workspace, proved on the way. Both locks are held.

        Raises:
            CheckpointInvalid: its bytes are not those of the manifest; it stays where it is.
            StorageIO: the workspace does not take it; it stays where it is.
        """
        assert self.away is not None
        source = self.away / checkpoint.id / PAYLOAD
        if self.payload(checkpoint.id) == source:
            self._carry(source, checkpoint)
        io.unlink(source, missing_ok=True)  # a killed process may have left it though it is home
        with suppress(MemfsError):
            io.rmdir(source.parent)

    def _carry(self, source: Path, checkpoint: Checkpoint) -> None:
        size = checkpoint.payload_bytes
        fd = io.open_file(source, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            content = verified(chunks_of(fd, size, str(source)), (size, checkpoint.sha256), PAYLOAD)
            self._parts.tree.write_stream(payload_path(checkpoint.id), content)
        except CorruptRecord:
            raise invalid(checkpoint.id, "its payload in the secondary location is damaged") from None
        finally:
            os.close(fd)


def write_payload(target: Path, content: Iterable[bytes]) -> None:
    """Write a new file, durable on return. What is read of it afterwards comes from the disk, not from memory."""
    fd = io.open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        for data in content:
            io.write_all(fd, data, str(target))
        io.fsync(fd, str(target))
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # a system that cannot is no worse off
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    io.sync_folder(target.parent)
    io.sync_folder(target.parent.parent)


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
            found = self.manifest(checkpoint)
        except CheckpointInvalid as error:
            return Checkpoint(id=checkpoint, timestamp=minute_of(checkpoint), present=False, problem=reason_of(error))
        size = self._places.size(checkpoint)
        present = size == found.payload_bytes
        problem = "" if present else "its payload is not here" if size is None else "its payload has another size"
        return replace(found, present=present, problem=problem)

    def verdict(self, checkpoint: str) -> CheckpointVerdict:
        """Read a whole checkpoint and say whether it can be relied on."""
        try:
            found = self.proved(checkpoint).checkpoint
        except CheckpointInvalid as error:
            return CheckpointVerdict(id=checkpoint, good=False, reason=reason_of(error))
        return CheckpointVerdict(id=checkpoint, good=True, files=found.files, bytes=found.bytes)

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

    def manifest(self, checkpoint: str) -> Checkpoint:
        """What its manifest says.

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

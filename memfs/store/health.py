"""Tracks whether the workspace's own disk takes writes, and keeps room in reserve for when it is full.

A disk that failed counts as failed until a probe passes again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from memfs.errors import StorageFull, StorageIO, WritePending
from memfs.fs import io
from memfs.fs.atomic_replace import OWN_TEMPORARY
from memfs.startup import TYPE_CHECKING
from memfs.store.parts import CONTENT

if TYPE_CHECKING:
    from memfs.store.plan import FilePlan

BALLAST = "ballast"
BALLAST_BYTES = 1 << 20
_PLENTY = 16 * BALLAST_BYTES
_PROBE_BYTES = 4096
_MARGIN = 64 * 1024
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
_REFUSED = frozenset({errno.EACCES, errno.EPERM})


class Health:
    """The state of one workspace's disk, as far as this process knows.

    Attributes:
        reason: what failed last, in words; "" while the disk is not known to be degraded.
    """

    def __init__(self, root: Path, state: Path) -> None:
        self.reason = ""
        self._root, self._state = root, state
        self._ballast_known = False

    # -- degraded or not ------------------------------------------------------------------------------------------
    def failed(self, error: StorageIO) -> None:
        """Take note of a failed write. What only one file refuses says nothing of the disk."""
        if number_of(error) in _DISK:
            self.reason = str(error)

    def probe(self) -> bool:
        """Whether new files can be made and made durable again; until then the disk counts as degraded."""
        try:
            for folder in self._folders():
                try_out(folder)
        except (StorageIO, FileNotFoundError) as error:
            self.reason = str(error)
            return False
        self.reason = ""
        return True

    def require(self) -> None:
        """Let a write pass unless the disk is degraded and a probe fails.

        Raises:
            StorageIO: as the probe did.
        """
        if self.reason:
            for folder in self._folders():
                with contextlib.suppress(FileNotFoundError):
                    try_out(folder)
            self.reason = ""

    def _folders(self) -> list[Path]:
        """One for each disk concerned. Nothing is tried out in the person's tree where the state shares its disk."""
        content = self._root / CONTENT
        return [self._state, *([content] if _device(content) not in (None, _device(self._state)) else [])]

    # -- room -----------------------------------------------------------------------------------------------------
    def free(self) -> int | None:
        """How many bytes may still be written, on the fullest of the disks concerned; None where nobody tells."""
        rooms = [room for folder in self._folders() if (room := free_bytes(folder)) is not None]
        return min(rooms, default=None)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes would fit and leave some for the journal; where not, the disk counts as degraded."""
        free = self.free()
        if free is None or free >= size + _MARGIN:
            return True
        self.reason = f"too little room for what waits elsewhere: needs {size:,} bytes, free {free:,} bytes"
        return False

    def reserve_space(self) -> None:
        """Have a file at hand that can be given up, once there is room for it."""
        if self._ballast_known or (self.free() or 0) < _PLENTY:
            return
        self._ballast_known = True
        path = self._state / BALLAST
        with contextlib.suppress(StorageIO):
            if not os.path.lexists(path):
                # Random: a file system that compresses would keep no room for zeros.
                io.write_file(path, os.urandom(BALLAST_BYTES), durable=False)

    def release_space(self) -> bool:
        """Give the ballast up, so that what makes room can be written; false if there is none."""
        self._ballast_known = False
        try:
            io.unlink(self._state / BALLAST)
        except (FileNotFoundError, StorageIO):
            return False
        return True

    def explained(self, error: StorageIO, plans: Sequence[FilePlan]) -> StorageIO:
        """The error; that of a full disk with how much was wanted and how much there is."""
        if isinstance(error, StorageFull) and "needs" not in error.message:
            free = "no inodes" if _no_inodes(self._folders()) else f"{self.free() or 0:,} bytes"
            error.message += f"; needs {needed(plans):,} bytes, free {free}"
        return error


def needed(plans: Sequence[FilePlan]) -> int:
    """How many bytes a write takes until it is committed: in the journal, and as files."""
    return sum(2 * len(plan.after or b"") + 512 for plan in plans)


def spills(error: StorageIO) -> bool:
    """Whether another disk could take what this error refused."""
    return number_of(error) in _DISK | _REFUSED


def stops_everything(error: StorageIO) -> bool:
    """Whether the error concerns the disk and not one file."""
    return number_of(error) not in _REFUSED


def number_of(error: StorageIO) -> int | None:
    """The system's number of a failed call, None where the error is not the system's."""
    if isinstance(error, WritePending) and isinstance(error.__cause__, StorageIO):
        return number_of(error.__cause__)
    return error.__cause__.errno if isinstance(error.__cause__, OSError) else None


def free_bytes(folder: Path) -> int | None:
    """How much this user may still write on a folder's disk, None where the system does not tell."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize


def _no_inodes(folders: Sequence[Path]) -> bool:
    for folder in folders:
        with contextlib.suppress(OSError):
            facts = os.statvfs(folder)
            if facts.f_files and not facts.f_favail:
                return True
    return False


def _device(folder: Path) -> int | None:
    try:
        return os.stat(folder).st_dev
    except OSError:
        return None


def try_out(folder: Path) -> None:
    """Make a file in a folder durable, and take it away again.

    Raises:
        StorageIO: as the system did.
    """
    path = folder / f"{OWN_TEMPORARY}probe.{os.getpid()}.tmp"
    try:
        with io.descriptor(io.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)) as fd:
            io.write_all(fd, bytes(_PROBE_BYTES), str(path))
            io.fsync(fd, str(path))
    except StorageIO as error:  # the file is memfs's own business, and nobody asked for it to be written
        error.path, error.hint = str(folder), "make room on that disk, or check it; what was acknowledged is kept"
        raise
    finally:
        with contextlib.suppress(StorageIO):
            io.unlink(path, missing_ok=True)
    io.sync_folder(folder)

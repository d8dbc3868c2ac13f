"""Finishes what killed writers left half done, sets displaced bytes aside, and tracks whether the workspace's own disk
takes writes.

A disk that failed counts as failed until a probe passes again; room is kept in reserve for when it is full. Bytes that
a person may have saved are kept, durable and outside the working tree, before the rest is removed. A temporary file
with a fresh name can only be memfs's own unfinished write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.errors import (
    CorruptRecord,
    HistoryError,
    ItemTooLarge,
    NotRegularFile,
    PathEscape,
    StorageFull,
    StorageIO,
    WritePending,
)
from memfs.fs import io
from memfs.fs.atomic_replace import OWN_TEMPORARY, FileChanged, sha256
from memfs.fs.journal import FileChange, Operation
from memfs.fs.tree import Tree, View
from memfs.fs.workspace_location import is_own
from memfs.git.repository import Repository
from memfs.model import Problem, Stamp
from memfs.model.state_paths import MERGES
from memfs.startup import TYPE_CHECKING, json
from memfs.store.parts import CONTENT, READ_LIMIT, RECOVERED_FOLDER, Parts

if TYPE_CHECKING:
    from memfs.store.plan import FilePlan

SUFFIX = ".kept"
DAMAGED = "damaged-"
"""How the names of contents begin that a repair set aside."""
REPLACED = "replaced-"
"""How those begin that no person displaced: a later write of memfs took their place before a commit held them."""
_KEPT_SECONDS = 30 * 86_400
DAMAGED_SUFFIX = ".damaged"
"""Of raw copies of what was damaged: a journal, an object of git."""


def set_aside(state: Path, change: FileChange, name: str) -> Problem:
    """Keep bytes that are not to be written over a person's change where ``memfs restore --displaced`` finds them."""
    if change.data is not None:
        keep_aside(state, change.path, change.data, name)
    message = "this file was changed by hand after memfs wrote it; your edit is kept"
    hint = "'memfs restore --displaced' lists what memfs had written and brings it back"
    return Problem.warning(change.path, "KeptPersonsChange", message, hint)


def keep_aside(state: Path, path: str, data: bytes, name: str) -> None:
    """Make bytes that are about to lose their place durable outside the working tree."""
    folder = state / RECOVERED_FOLDER
    io.make_private_folder(folder)
    header = json.dumps({"path": path, "sha256": _digest(path, data)}).encode("ascii")
    io.write_file(folder / f"{name}{SUFFIX}", header + b"\n" + data)


def keep_replaced(state: Path, path: str, data: bytes) -> None:
    """Keep bytes that memfs itself replaced or removed before any commit held them, for 30 days."""
    keep_aside(state, path, data, f"{REPLACED}{_digest(path, data)[:16]}")
    oldest = time.time() - _KEPT_SECONDS
    with os.scandir(state / RECOVERED_FOLDER) as entries:
        for entry in entries:
            if entry.name.startswith(REPLACED) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                io.unlink(entry.path, missing_ok=True)


def read_aside(path: Path) -> tuple[str, bytes]:
    """Where displaced bytes belong, and the bytes.

    Raises:
        CorruptRecord: the file is not one that ``set_aside`` wrote, or no longer what it wrote.
    """
    line, _, data = io.read_file(path).partition(b"\n")
    try:
        header = json.loads(line)
        place, digest = header["path"], header.get("sha256")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        place, digest = None, None
    if not is_own(place):
        raise CorruptRecord("this was not set aside by memfs", path=str(path), hint="remove it")
    if digest not in (_digest(place, data), None):  # the first ones had no digest
        raise CorruptRecord("the content that was set aside is damaged", path=str(path), hint="remove it")
    return place, data


def all_aside(state: Path) -> Iterator[tuple[Path, str, bytes]]:
    """Every content that was set aside and is whole: its file, where it belongs, and the bytes.

    Raises:
        StorageIO: one cannot be read now.
    """
    for name in io.listed(state / RECOVERED_FOLDER):
        if name.endswith(SUFFIX):
            with contextlib.suppress(FileNotFoundError, CorruptRecord, NotRegularFile):
                yield state / RECOVERED_FOLDER / name, *read_aside(state / RECOVERED_FOLDER / name)


def _digest(path: str, data: bytes) -> str:
    return sha256(path.encode("utf-8", "surrogateescape") + b"\0" + data)


def sweep(parts: Parts, folder: str, operation: Operation) -> list[Problem]:
    """Remove what was left in a folder when an operation was killed; what is neither side of it is set aside first.

    Raises:
        StorageIO: what could not be kept is still there.
    """
    problems: list[Problem] = []

    def look(data: bytes) -> None:
        digest, earlier = sha256(data), parts.journal.operations()
        # before or after a change, or as many bytes of the latter as could be written
        if not data or any((change.data or b"").startswith(data) for change in operation.changes):
            return
        # in this write or an earlier one, or in git: a power cut brings back what that write had removed
        if any(digest in (change.old, change.new) for one in (operation, *earlier) for change in one.changes):
            return
        with contextlib.suppress(HistoryError):
            if parts.repository.blob(parts.repository.blob_id(data)) == data:
                return
        # Which file they were saved in: changes are carried out in order, and the last that was done has them.
        inside = [change for change in operation.changes if change.path.rpartition("/")[0] == folder]
        done = [change for change in inside if content_now(parts.tree, change.path) == change.new]
        path = (done or inside[:1])[-1].path
        keep_aside(parts.repository.state, path, data, f"{operation.id}-saved-{sha256(data)[:12]}")
        message = "this file was saved in the very moment of a write that was killed; what was saved is set aside"
        hint = "'memfs restore --displaced' lists it and brings it back"
        problems.append(Problem.warning(path, "KeptPersonsChange", message, hint))

    parts.tree.sweep(folder, look)
    return problems


def content_now(view: View, path: str) -> str:
    """The sha256 of what a file holds now, "" where there is none."""
    try:
        return sha256(view.read(path, READ_LIMIT).data)
    except FileNotFoundError:
        return ""


def put_in_place(tree: Tree, path: str, data: bytes | None, *, over: str) -> Stamp | None:
    """Write a file, or remove it where there is no data; see ``Tree.write`` and ``Tree.remove``."""
    if data is None:
        tree.remove(path, over=over)
        return None
    return tree.write(path, data, over=over)


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
        """How many bytes may still be written, on the fullest of the disks concerned; None where it is unknown."""
        rooms = [room for folder in self._folders() if (room := free_bytes(folder)) is not None]
        return min(rooms, default=None)

    def has_room(self, size: int) -> bool:
        """Whether that many bytes would fit and leave some for the journal; where not, the disk counts as degraded."""
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
            free = f"{self.free() or 0:,} bytes"
            for folder in self._folders():
                with contextlib.suppress(OSError):
                    facts = os.statvfs(folder)
                    free = "no inodes" if facts.f_files and not facts.f_favail else free
            wanted = sum(2 * len(plan.after or b"") + 512 for plan in plans)  # in the journal, and as files
            error.message += f"; needs {wanted:,} bytes, free {free}"
        return error


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
    """How much this user may still write on a folder's disk, None where it is unknown."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize


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
    except StorageIO as error:  # the file is memfs's own business, and no one asked for it to be written
        error.path, error.hint = str(folder), "make room on that disk, or check it; what was acknowledged is kept"
        raise
    finally:
        with contextlib.suppress(StorageIO):
            io.unlink(path, missing_ok=True)
    io.sync_folder(folder)


def redo_all(parts: Parts, health: Health) -> list[Problem]:
    """Finish what is unfinished: the holder of the lock knows that its writers are dead."""
    problems = [problem for operation in parts.journal.unfinished() for problem in _redo(parts, operation)]
    if any(problem.code == StorageFull.__name__ for problem in problems) and health.release_space():
        return redo_all(parts, health)
    return problems


def _redo(parts: Parts, operation: Operation) -> list[Problem]:
    problems: list[Problem] = []
    later, swept = parts.journal.written_after(operation.id), set[str]()
    if parts.secondary is not None and operation.id not in parts.secondary.journal.waiting:
        later |= parts.secondary.held().keys()
    for number, change in enumerate(operation.changes):
        try:
            folder = change.path.rpartition("/")[0]
            if folder not in swept:
                problems += sweep(parts, folder, operation)
                swept.add(folder)
            done = change.path in later or _redo_change(parts, change)
        except (PathEscape, NotRegularFile, ItemTooLarge, FileChanged):
            done = False
        except StorageIO as error:
            return [*problems, Problem.of(error, change.path)]
        try:
            if not done:
                problems.append(set_aside(parts.repository.state, change, f"{operation.id}-{number}"))
        except StorageIO as error:
            return [*problems, Problem.of(error)]
    parts.journal.mark_applied(operation.id)
    return problems


def _redo_change(parts: Parts, change: FileChange) -> bool:
    """Whether the file is, or could be made, what the change says."""
    found = content_now(parts.tree, change.path)
    if found == change.new:
        return True
    if found == change.old or (change.old == "" and found == sha256(b"")):
        put_in_place(parts.tree, change.path, change.data, over=found)
        return True
    return False


# -- after merges of git's --------------------------------------------------------------------------------------------
SEEN = "merges.seen"
"""The file of the state folder that holds the newest commit whose merges were looked at."""
_MISSED = ".missed"
_MOST_MISSED = 10_000


class MissedItem(NamedTuple):
    """An item that may be missing in the outcome of a merge.

    Attributes:
        path: where the side that has it had it, below the workspace.
        begun, own: the blobs of what both sides began from, "" for none, and of that side's version.
        merged: the commits that are in history once the merge is made.
    """

    path: str
    begun: str
    own: str
    merged: tuple[str, ...]


def is_merge_due(repository: Repository) -> bool:
    """Whether something may wait for a merge to be over, or git may have merged since the last look."""
    if os.path.lexists(repository.state / MERGES):
        return True
    times = []
    for place in (repository.git_dir / "ORIG_HEAD", repository.state / SEEN):
        try:
            times.append(os.stat(place).st_mtime_ns)
        except OSError:
            times.append(0)
    return times[0] > 0 and times[0] >= times[1]


class MissedItems:
    """Reminders of items that a merge may lose, in one workspace's state folder. Several processes may use them."""

    def __init__(self, state: Path) -> None:
        self._folder = state / MERGES

    def remind(self, missed: MissedItem) -> None:
        """Make a reminder durable; one that is there already stays.

        Raises:
            StorageIO: it could not be kept.
        """
        data = json.dumps(missed._asdict()).encode()
        place = self._folder / f"{sha256(data)[:32]}{_MISSED}"
        io.make_private_folder(self._folder)
        if not os.path.lexists(place):
            io.write_file(place, data)

    def all(self) -> dict[str, MissedItem]:
        """The reminders, by name. What is damaged is left out."""
        found: dict[str, MissedItem] = {}
        for name in [name for name in io.listed(self._folder) if name.endswith(_MISSED)][:_MOST_MISSED]:
            with contextlib.suppress(TypeError, KeyError):
                values = io.read_record(self._folder / name)
                found[name] = MissedItem(**{**values, "merged": tuple(values["merged"])})
        return found

    def drop(self, name: str) -> None:
        """Forget one."""
        with contextlib.suppress(StorageIO):
            io.unlink(self._folder / name, missing_ok=True)

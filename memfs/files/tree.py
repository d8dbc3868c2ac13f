"""The working tree: bytes by path, reached only through folder descriptors.

Owns reading, writing and scanning below one root without ever following a link (faults rows 12 and 14). Knows paths and
bytes; nothing of items, git or the journal.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memfs.errors import MemfsError, NotRegularFile, PathEscape, StorageIO, StorageReadOnly
from memfs.files import io
from memfs.model.stamp import Stamp, object_id

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_READ = os.O_RDONLY | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
OWN_TEMPORARY = ".memfs-"
_DEEPEST = 64
_MOST_HELD = 64
_NEVER = {"", ".", ".."}


def sha256(data: bytes) -> str:
    """Hex digest that names a file's content."""
    return hashlib.sha256(data).hexdigest()


def blob_id(data: bytes) -> str:
    """The id git gives to this content."""
    return object_id("blob", data)


class Entry(NamedTuple):
    """One name found by a scan.

    Attributes:
        regular: false for links, pipes and devices, and for a folder that could not be entered.
        reason: why a folder could not be entered, in words; "" otherwise. Its facts may be all zero.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    regular: bool
    reason: str = ""

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether the stamp still vouches for the content, by facts alone."""
        facts = (self.size, self.mtime_ns, self.ctime_ns, self.inode)
        return facts == (stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode) and not stamp.racy


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes with the stamp taken from the same open file."""

    data: bytes
    stamp: Stamp


class Tree:
    """Files below one root folder. Paths are relative, "/" separated."""

    def __init__(self, root: Path) -> None:
        """Open the root, which itself may be reached through links.

        Raises:
            NotRegularFile: the root is not a folder.
        """
        self.root = root.resolve()
        self._root_fd = io.open_file(self.root, _FOLDER)
        self._held = threading.local()

    def close(self) -> None:
        """Release the root."""
        if self._root_fd >= 0:
            os.close(self._root_fd)
            self._root_fd = -1

    # -- reading ------------------------------------------------------------------------------------------------
    def read(self, path: str, limit: int) -> Content:
        """A file's bytes and stamp.

        Raises:
            FileNotFoundError: it is not there.
            PathEscape, NotRegularFile, ItemTooLarge, StorageIO.
        """
        with self._folder_of(path) as (folder, name), _named(path):
            fd = io.open_file(name, _READ, dir_fd=folder)
            try:
                data = io.read_regular(fd, path, limit)
                facts = os.fstat(fd)
            finally:
                os.close(fd)
        return Content(data, _stamp(facts, data))

    def entry(self, path: str) -> Entry | None:
        """The facts about a name, None where there is none.

        There is none either behind a link or a file that stands where a folder is expected, nor under a path that leads
        out of the workspace: this tree has no such file, whatever the disk has.

        Raises:
            StorageIO: a folder on the way cannot be entered.
        """
        try:
            with self._folder_of(path) as (folder, name):
                return _entry(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except (FileNotFoundError, PathEscape):
            return None
        except OSError as error:
            raise io.storage_error(error, "stat", path) from error

    def scan(self, folder: str, hidden: bool = False) -> Iterator[Entry]:
        """Every file below a folder in no particular order, without following links.

        Names that begin with a dot are left out unless ``hidden``. A folder that vanishes meanwhile is skipped. One
        that cannot be entered (a link or file in its place, no permission, more than 64 folders deep, a failing disk)
        is itself given as an entry that is not regular, and the scan goes on: it never raises for what it finds.
        """
        try:
            fd = self._open_folder(folder)
        except FileNotFoundError:
            return
        except (MemfsError, OSError) as error:
            yield Entry(folder, 0, 0, 0, 0, False, _reason(error))
            return
        yield from _scan(fd, folder, hidden)

    # -- writing ------------------------------------------------------------------------------------------------
    def write(self, path: str, data: bytes, *, durable: bool = True) -> Stamp:
        """Replace a file's content: temporary name beside it, fsync, rename, fsync of the folder and of new parents.

        With ``durable`` false the caller makes it durable afterwards (``io.sync_everything``).
        """
        try:
            return self._write(path, data, durable)
        except FileNotFoundError:
            self._release_folders()
            self.make_folders(path.rpartition("/")[0], durable=durable)
            return self._write(path, data, durable)

    def _write(self, path: str, data: bytes, durable: bool) -> Stamp:
        with self._folder_of(path) as (folder, name), _named(path):
            temporary = f"{OWN_TEMPORARY}{secrets.token_hex(6)}.tmp"
            fd = io.open_file(temporary, _CREATE, 0o666, dir_fd=folder)
            try:
                self._fill(fd, data, path, durable)
                io.rename(temporary, name, dir_fd=folder)
            except BaseException:
                io.unlink(temporary, dir_fd=folder, missing_ok=True)
                raise
            if durable:
                io.fsync(folder, path)
            return _stamp(os.stat(name, dir_fd=folder, follow_symlinks=False), data)

    @staticmethod
    def _fill(fd: int, data: bytes, path: str, durable: bool) -> None:
        try:
            io.write_all(fd, data, path)
            if durable:
                io.fsync(fd, path)
        finally:
            os.close(fd)

    def remove(self, path: str, *, durable: bool = True) -> None:
        """Remove a file; it may be gone already."""
        try:
            with self._folder_of(path) as (folder, name):
                io.unlink(name, dir_fd=folder, missing_ok=True)
                if durable:
                    io.fsync(folder, path)
        except FileNotFoundError:
            return

    def make_folders(self, folder: str, *, durable: bool = True) -> None:
        """Make a folder and its parents; each new name is made durable."""
        missing = []
        current = folder
        _check(folder)
        while current and self.entry(current) is None:
            missing.append(current)
            current = current.rpartition("/")[0]
        for path in reversed(missing):
            with self._folder_of(path) as (parent, name):
                if io.mkdir(name, dir_fd=parent) and durable:
                    io.fsync(parent, path)

    def sweep(self, folder: str) -> int:
        """Remove temporary files that a killed writer of ours left directly in a folder; return how many."""
        try:
            fd = self._open_folder(folder)
        except (FileNotFoundError, PathEscape):
            return 0
        try:
            stale = [name for name in os.listdir(fd) if name.startswith(OWN_TEMPORARY) and name.endswith(".tmp")]
            for name in stale:
                io.unlink(name, dir_fd=fd, missing_ok=True)
            return len(stale)
        finally:
            os.close(fd)

    # -- walking ------------------------------------------------------------------------------------------------
    def _folder_of(self, path: str) -> _Folder:
        _check(path)
        parent, _, name = path.rpartition("/")
        return _Folder(self._open_folder(parent), name)

    @contextmanager
    def holding_folders(self) -> Iterator[None]:
        """While the block runs, this thread walks to each folder once: for a batch, under the store's lock.

        At most 64 folders are held open: a batch may touch more than a process may open.
        """
        self._held.folders = {}
        try:
            yield
        finally:
            self._release_folders()
            self._held.folders = None

    def _release_folders(self) -> None:
        folders = getattr(self._held, "folders", None) or {}
        while folders:
            os.close(folders.popitem()[1])

    def _open_folder(self, path: str) -> int:
        held: dict[str, int] | None = getattr(self._held, "folders", None)
        if held is None:
            return self._walk(path)
        if path not in held:
            fd = self._walk(path)
            if len(held) >= _MOST_HELD:
                os.close(held.pop(next(iter(held))))
            held[path] = fd
        return os.dup(held[path])

    def _walk(self, path: str) -> int:
        if path:
            _check(path)
        fd = os.dup(self._root_fd)
        try:
            for part in path.split("/") if path else ():
                deeper = self._step(fd, part, path)
                os.close(fd)
                fd = deeper
        except BaseException:
            os.close(fd)
            raise
        return fd

    @staticmethod
    def _step(fd: int, part: str, path: str) -> int:
        try:
            return io.open_file(part, _FOLDER, dir_fd=fd)
        except StorageIO as error:
            error.path = path
            raise
        except NotRegularFile:
            raise PathEscape(
                f"{part!r} is a link or a file where a folder is expected", path=path, hint="replace it by a folder"
            ) from None


class _Folder:
    """An open folder and a name in it, for a ``with`` statement; quicker than a generator on the path of every put."""

    __slots__ = ("fd", "name")

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name

    def __enter__(self) -> tuple[int, str]:
        return self.fd, self.name

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Let an error name the whole path, not only the part at hand."""
    try:
        yield
    except (StorageIO, NotRegularFile) as error:
        error.path = path
        raise


def _check(path: str) -> None:
    """Refuse a path that names nothing below a folder, before the disk is asked."""
    if not _NEVER.isdisjoint(path.split("/")) or "\0" in path:
        raise PathEscape("not a path inside the workspace", path=path, hint="use a relative path without '..'")
    if not path.isascii():
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise PathEscape("no file can have such a name", path=ascii(path)[1:-1], hint="use a valid path") from None


def _scan(fd: int, folder: str, hidden: bool) -> Iterator[Entry]:
    """Scan an open folder and close it. The folders on the way down stay open, so that none can be swapped for a link
    between being seen and being entered.
    """
    open_now = [fd]
    try:
        entries, inner = _listed(fd, folder, hidden)
        yield from entries
        waiting = [inner]
        while waiting:
            if not waiting[-1]:
                waiting.pop()
                os.close(open_now.pop())
                continue
            entry = waiting[-1].pop()
            try:
                open_now.append(_entered(entry, open_now))
            except FileNotFoundError:
                continue
            except (MemfsError, OSError) as error:
                yield entry._replace(reason=_reason(error))
                continue
            entries, inner = _listed(open_now[-1], entry.path, hidden)
            waiting.append(inner)
            yield from entries
    finally:
        for fd in open_now:
            os.close(fd)


def _entered(folder: Entry, above: list[int]) -> int:
    if len(above) > _DEEPEST:
        raise StorageIO(f"more than {_DEEPEST} folders deep")
    return io.open_file(folder.path.rpartition("/")[2], _FOLDER, dir_fd=above[-1])


def _listed(fd: int, folder: str, hidden: bool) -> tuple[list[Entry], list[Entry]]:
    """The files in a folder, and the folders in it."""
    folders: list[Entry] = []
    entries: list[Entry] = []
    prefix = folder + "/" if folder else ""
    try:
        with os.scandir(fd) as names:
            for entry in names:
                name = entry.name
                if name[0] == "." and not hidden:
                    continue
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                found = _entry(prefix + name, facts)
                if not found.regular and stat.S_ISDIR(facts.st_mode):
                    folders.append(found)
                else:
                    entries.append(found)
    except OSError as error:
        entries.append(Entry(folder, 0, 0, 0, 0, False, _reason(error)))
    return entries, folders


def _reason(error: Exception) -> str:
    """Why a folder cannot be entered."""
    if isinstance(error, (NotRegularFile, PathEscape)):
        return "a link or a file stands where a folder is expected"
    if isinstance(error, StorageReadOnly):
        return "this user may not read the folder"
    return error.message if isinstance(error, MemfsError) else str(error)


def _entry(path: str, facts: os.stat_result) -> Entry:
    regular = stat.S_ISREG(facts.st_mode)
    return Entry(path, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, regular)


def _stamp(facts: os.stat_result, data: bytes) -> Stamp:
    return Stamp(facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, blob_id(data), time.time_ns())

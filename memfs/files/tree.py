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

from memfs.errors import NotRegularFile, PathEscape, StorageIO
from memfs.files import io
from memfs.model.stamp import Stamp

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_READ = os.O_RDONLY | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
OWN_TEMPORARY = ".memfs-"


def sha256(data: bytes) -> str:
    """Hex digest that names a file's content."""
    return hashlib.sha256(data).hexdigest()


def blob_id(data: bytes) -> str:
    """The id git gives to this content (SHA-1 repositories)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Entry(NamedTuple):
    """One name found by a scan; ``regular`` is false for links, pipes, devices."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    regular: bool

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
        """The facts about a name, None where there is none."""
        try:
            with self._folder_of(path) as (folder, name):
                return _entry(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def scan(self, folder: str, hidden: bool = False) -> Iterator[Entry]:
        """Every file below a folder in no particular order, without following links.

        Names that begin with a dot are left out unless ``hidden``. A folder that vanishes meanwhile is skipped.
        """
        try:
            fd = self._open_folder(folder)
        except (FileNotFoundError, NotRegularFile):
            return
        try:
            yield from _scan(fd, folder, hidden)
        finally:
            os.close(fd)

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
        except (FileNotFoundError, NotRegularFile):
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
        parent, _, name = path.rpartition("/")
        if not name or name in (".", ".."):
            raise PathEscape("not a path inside the workspace", path=path, hint="use a relative path")
        return _Folder(self._open_folder(parent), name)

    @contextmanager
    def holding_folders(self) -> Iterator[None]:
        """While the block runs, this thread walks to each folder once: for a batch, under the store's lock."""
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
            held[path] = self._walk(path)
        return os.dup(held[path])

    def _walk(self, path: str) -> int:
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
        if part in ("", ".", "..") or "\0" in part:
            raise PathEscape("not a path inside the workspace", path=path, hint="use a relative path without '..'")
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


def _scan(fd: int, folder: str, hidden: bool) -> Iterator[Entry]:
    inner, entries = _listed(fd, folder, hidden)
    yield from entries
    for name in inner:
        try:
            deeper = io.open_file(name, _FOLDER, dir_fd=fd)
        except (FileNotFoundError, NotRegularFile):
            continue
        try:
            yield from _scan(deeper, f"{folder}/{name}", hidden)
        finally:
            os.close(deeper)


def _listed(fd: int, folder: str, hidden: bool) -> tuple[list[str], list[Entry]]:
    folders: list[str] = []
    entries: list[Entry] = []
    with os.scandir(fd) as names:
        for entry in names:
            name = entry.name
            if name.startswith(".") and not hidden:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                continue
            try:
                entries.append(_entry(f"{folder}/{name}", entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue
    return folders, entries


def _entry(path: str, facts: os.stat_result) -> Entry:
    regular = stat.S_ISREG(facts.st_mode)
    return Entry(path, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, regular)


def _stamp(facts: os.stat_result, data: bytes) -> Stamp:
    return Stamp(facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, blob_id(data), time.time_ns())

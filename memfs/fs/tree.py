"""The working tree: bytes by path, reached only through folder descriptors.

Reads, writes and scans below one root without ever following a link.
"""

from __future__ import annotations

import marshal
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from memfs import errors
from memfs.dataclass import NamedTuple
from memfs.fs import io
from memfs.fs.atomic_replace import content_of, discard, is_fresh, is_temporary, put, take_away, write_fresh
from memfs.fs.io import file_system
from memfs.fs.workspace_location import check_path
from memfs.model.item import RACY_NS, Stamp, object_id
from memfs.startup import Protocol, TypeVar, blake2b

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_DEEPEST = 64
_NO_FOLDER = "a link or a file is where a folder is expected"
_TOO_DEEP = f"more than {_DEEPEST} folders deep"
LAST_NS = (1 << 63) - 1  # what tables of stamps can hold: the year 2262


class ScanEntry(NamedTuple):
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

    @property
    def refused(self) -> bool:
        """Whether the system would not let a folder be entered, so that it is not known what it holds."""
        return bool(self.reason) and self.reason not in (_NO_FOLDER, _TOO_DEEP)


_facts_of = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
Row = tuple[str, tuple[int, int, int, int, int]]
"""A name in a folder, with mode, size, times and inode."""


class FolderScan(NamedTuple):
    """What a scan found in one folder, without what is in the folders below.

    Attributes:
        rows: the names in it that are no folders, in the system's order.
        others: what was found and has no row: a folder that could not be entered, a file that is held elsewhere.
    """

    folder: str
    rows: list[Row]
    others: Sequence[ScanEntry] = ()

    def entries(self) -> Iterator[ScanEntry]:
        """Everything found, as entries."""
        prefix = f"{self.folder}/" if self.folder else ""
        yield from (_entry(prefix + name, facts) for name, facts in self.rows)
        yield from self.others

    def digest(self) -> str:
        """A digest of all names and facts; the same for a folder in which nothing changed.

        It serves to compare many files at once. Some systems give the names in another order each time, and the
        digest differs then: it proves that nothing changed, never that something did.
        """
        # The format's version 2 writes equal rows as equal bytes; later ones depend on which objects are shared.
        return blake2b(marshal.dumps(self.rows, 2), digest_size=16).hexdigest()


def listings_below(fd: int, folder: str, hidden: bool, depth: int = 0) -> Iterator[FolderScan]:
    """Scan an open folder, and each below it, and close it. The folders on the way down stay open, so that none can be
    swapped for a link between being seen and being entered.
    """
    look, rows, folders, prefix = os.stat, list[Row](), list[Row](), f"{folder}/" if folder else ""
    try:
        try:
            names = os.listdir(fd)
            for name in names if hidden else [name for name in names if name[0] != "."]:
                try:
                    rows.append((name, _facts_of(look(name, dir_fd=fd, follow_symlinks=False))))
                except FileNotFoundError:  # it has vanished
                    continue
            if any(map(S_ISDIR, {facts[0] for _, facts in rows})):
                folders = [row for row in rows if S_ISDIR(row[1][0])]
                rows = [row for row in rows if not S_ISDIR(row[1][0])]
        except OSError as error:
            yield FolderScan(folder, [], [ScanEntry(folder, 0, 0, 0, 0, False, reason_of(error))])
            return
        yield FolderScan(folder, rows)
        for name, facts in folders:
            try:
                if depth >= _DEEPEST:
                    raise errors.StorageIO(_TOO_DEEP)
                inner = io.open_file(name, _FOLDER, dir_fd=fd)
            except FileNotFoundError:
                continue
            except (errors.MemfsError, OSError) as error:
                refused = _entry(prefix + name, facts)._replace(reason=reason_of(error))
                yield FolderScan(refused.path, [], [refused])
            else:
                yield from listings_below(inner, prefix + name, hidden, depth + 1)
    finally:
        os.close(fd)


def reason_of(error: Exception) -> str:
    """Why a folder cannot be entered."""
    if isinstance(error, (errors.NotRegularFile, errors.PathEscape)):
        return _NO_FOLDER
    if isinstance(error, errors.StorageReadOnly):
        return "this user may not read the folder"
    return error.message if isinstance(error, errors.MemfsError) else str(error)


def _entry(path: str, facts: tuple[int, int, int, int, int]) -> ScanEntry:
    mode, size, mtime, ctime, inode = facts
    if mtime > LAST_NS or ctime > LAST_NS:
        mtime, ctime = min(mtime, LAST_NS), min(ctime, LAST_NS)
    return ScanEntry(path, size, mtime, ctime, inode, S_ISREG(mode))


_READ = os.O_RDONLY | os.O_NONBLOCK
_MOST_HELD = 64
_MOST_REMOVED = 100
Made = TypeVar("Made")


_check_folder = lru_cache(maxsize=4096)(check_path)


def blob_id(data: bytes) -> str:
    """The id git gives to this content."""
    return object_id("blob", data)


class Content(NamedTuple):
    """A file's bytes with the stamp taken from the same open file."""

    data: bytes
    stamp: Stamp


class View(Protocol):
    """What readers need of a tree; see ``Tree`` for each."""

    root: Path

    def read(self, path: str, limit: int) -> Content:
        """A file's bytes and stamp."""

    def entry(self, path: str) -> ScanEntry | None:
        """The facts about a name, None where there is none."""

    def proven(self, stamps: Mapping[str, Stamp]) -> set[str]:
        """Those of the files whose facts prove what they hold."""

    def holding_folders(self) -> AbstractContextManager[None]:
        """While the block runs, this thread walks to each folder once."""

    def listings(self, folder: str, hidden: bool = False) -> Iterator[FolderScan]:
        """What is in a folder and in each below it."""

    def scan(self, folder: str, hidden: bool = False) -> Iterator[ScanEntry]:
        """Every file below a folder."""


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
        fd, self._root_fd = self._root_fd, -1
        if fd >= 0:
            os.close(fd)

    def require_open(self) -> None:
        """Let only calls before ``close`` pass.

        Raises:
            WorkspaceClosed: the number of what was open may be another file's by now.
        """
        if self._root_fd < 0:
            raise errors.WorkspaceClosed(path=str(self.root))

    # -- reading ------------------------------------------------------------------------------------------------
    def read(self, path: str, limit: int) -> Content:
        """A file's bytes and stamp.

        Raises:
            FileNotFoundError: it is not there.
            PathEscape, NotRegularFile, ItemTooLarge, StorageIO.
        """
        with self._folder_of(path) as (folder, name), io.descriptor(io.open_file(name, _READ, dir_fd=folder)) as fd:
            now = time.time_ns()  # before it is read: an edit that comes meanwhile makes the stamp racy
            data = io.read_regular(fd, path, limit)
            return Content(data, _stamp(os.fstat(fd), data, now))

    def open_read(self, path: str) -> int:
        """A descriptor for reading what a name stands for, without waiting for it; the caller closes it.

        Raises:
            FileNotFoundError: it is not there.
            PathEscape, NotRegularFile, StorageIO.
        """
        with self._folder_of(path) as (folder, name):
            return io.open_file(name, _READ, dir_fd=folder)

    def entry(self, path: str) -> ScanEntry | None:
        """The facts about a name, None where there is none.

        There is none either behind a link or a file where a folder is expected, nor under a path that leads
        out of the workspace: this tree has no such file, whatever the disk has.

        Raises:
            StorageIO: a folder on the way cannot be entered.
        """
        self.require_open()
        try:
            check_path(path)
            os.stat(path, dir_fd=self._root_fd, follow_symlinks=False)
        except (FileNotFoundError, errors.PathEscape):
            return None  # whatever is on the way need not be looked at
        except OSError:
            pass
        try:
            with self._folder_of(path) as (folder, name):
                return _entry(path, _facts_of(os.stat(name, dir_fd=folder, follow_symlinks=False)))
        except (FileNotFoundError, errors.PathEscape):
            return None
        except OSError as error:
            raise io.storage_error(error, "stat", path) from error

    @cached_property
    def _detects_edits(self) -> bool:
        return detects_edits(self.root)

    def proven(self, stamps: Mapping[str, Stamp]) -> set[str]:
        """Those of the files whose facts prove that they hold what they held when they were stamped; of the others, and
        behind a link, only reading can show it.

        Nothing is opened: swapping folders meanwhile gains nothing, as no byte comes from the disk.
        """
        proven: set[str] = set()
        devices: dict[str, int] = {}
        for path, stamp in stamps.items() if self._detects_edits else ():
            size, mtime, ctime, inode, _, checked = stamp
            if checked - (mtime if mtime > ctime else ctime) < RACY_NS:  # ``Stamp.racy``
                continue
            try:
                folder = path.rpartition("/")[0]
                if folder and folder not in devices:
                    _check_folder(folder)
                facts = os.stat(path, dir_fd=self._root_fd, follow_symlinks=False)
                if (
                    facts.st_mtime_ns == mtime
                    and facts.st_ctime_ns == ctime
                    and facts.st_ino == inode
                    and facts.st_size == size
                    and S_ISREG(facts.st_mode)
                    and facts.st_dev == (devices.get(folder) or self._device(folder, devices))
                ):
                    proven.add(path)
            except (OSError, ValueError, errors.PathEscape):
                continue
        return proven

    def _device(self, folder: str, known: dict[str, int]) -> int:
        """The device of a folder, which is the root's: what is mounted on the way may be of another kind.

        Raises:
            NotADirectoryError: a link or a file is on the way, or another device.
        """
        if not folder:
            return known.get("") or known.setdefault("", os.fstat(self._root_fd).st_dev)
        if folder not in known:
            facts = os.stat(folder, dir_fd=self._root_fd, follow_symlinks=False)
            if not S_ISDIR(facts.st_mode) or facts.st_dev != self._device(folder.rpartition("/")[0], known):
                raise NotADirectoryError(folder)
            known[folder] = facts.st_dev
        return known[folder]

    def scan(self, folder: str, hidden: bool = False) -> Iterator[ScanEntry]:
        """Every file below a folder in no particular order, without following links.

        Names that begin with a dot are left out unless ``hidden``. A folder that vanishes meanwhile is skipped. One
        that cannot be entered (a link or file in its place, no permission, more than 64 folders deep, a failing disk)
        is itself given as an entry that is not regular, and the scan goes on: it never raises for what it finds.
        """
        for listing in self.listings(folder, hidden):
            yield from listing.entries()

    def listings(self, folder: str, hidden: bool = False) -> Iterator[FolderScan]:
        """As ``scan``, folder by folder; quicker, as no entries are made."""
        self.require_open()
        with suppress(errors.MemfsError):  # while it is gone, what was there is what is known
            self._follow_root()
        try:
            fd = self._open_folder(folder)
        except FileNotFoundError:
            return
        except (errors.MemfsError, OSError) as error:
            yield FolderScan(folder, [], [ScanEntry(folder, 0, 0, 0, 0, False, reason_of(error))])
            return
        yield from listings_below(fd, folder, hidden)

    # -- writing ------------------------------------------------------------------------------------------------
    def write(self, path: str, data: bytes, *, durable: bool = True, over: str | None = None) -> Stamp:
        """Replace a file's content: temporary name beside it, fsync, rename, fsync of the folder and of new parents.

        Args:
            durable: false if the caller makes it durable afterwards (``io.sync_everything``).
            over: sha256 of the content to be replaced, "" for none; None replaces whatever is there.

        Raises:
            FileChanged: something else is there now; it is left alone.
        """
        return self._in_folder(path, durable, lambda: self._write(path, data, durable, over))

    def _in_folder(self, path: str, durable: bool, act: Callable[[], Made]) -> Made:
        """Do something in a file's folder, made where it is missing: a person's git may remove it again meanwhile."""
        for _ in range(_MOST_REMOVED):
            try:
                return act()
            except FileNotFoundError:
                self._release_folders()
            try:
                self.make_folders(path.rpartition("/")[0], durable=durable)
            except FileNotFoundError:
                continue
            except errors.StorageIO as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        raise errors.StorageIO(
            "its folder is removed again and again", path=path, hint="see who removes it, and try again"
        )

    def _write(self, path: str, data: bytes, durable: bool, over: str | None) -> Stamp:
        with self._folder_of(path) as (folder, name):
            now = time.time_ns()
            fresh, fd = write_fresh(folder, path, (data,))
            with io.descriptor(fd):
                try:
                    if durable:
                        io.fsync(fd, path)
                    put(fresh, name, folder, path, over, data)
                    facts = os.fstat(fd)
                except BaseException:
                    discard(fresh, folder)
                    raise
            if durable:
                io.fsync(folder, path)
        return _stamp(facts, data, now)

    def stage(self, path: str, data: bytes) -> str:
        """Write what a file is to hold beside it, under a name that is returned; folders are made as needed.

        Nothing is durable: ``io.sync_everything``, then ``place`` each; those that are not placed, ``unstage``.
        """

        def stage() -> str:
            with self._folder_of(path) as (folder, _):
                fresh, fd = write_fresh(folder, path, (data,))
                os.close(fd)
            return fresh

        return self._in_folder(path, False, stage)

    def place(self, path: str, fresh: str, data: bytes, over: str | None) -> Stamp:
        """Let a file be what was staged for it; the caller makes that durable afterwards. ``over`` is as in ``write``.

        Raises:
            FileChanged: something else is there now; it is left alone.
            FileNotFoundError: what was staged is gone.
        """
        with self._folder_of(path) as (folder, name), io.descriptor(io.open_file(fresh, _READ, dir_fd=folder)) as fd:
            now = time.time_ns()
            put(fresh, name, folder, path, over, data)
            return _stamp(os.fstat(fd), data, now)

    def unstage(self, path: str, fresh: str) -> None:
        """Remove what was staged for a file."""
        with self._folder_of(path) as (folder, _):
            discard(fresh, folder)

    def write_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Replace a file's content by what is too large to be held, durable on return; folders are made as needed.

        What ``chunks`` raises leaves the file as it was.
        """
        self.make_folders(path.rpartition("/")[0])
        with self._folder_of(path) as (folder, name):
            fresh, fd = write_fresh(folder, path, chunks)
            with io.descriptor(fd):
                try:
                    io.fsync(fd, path)
                    io.rename(fresh, name, dir_fd=folder)
                except BaseException:
                    io.unlink(fresh, dir_fd=folder, missing_ok=True)
                    raise
            io.fsync(folder, path)

    def remove(self, path: str, *, durable: bool = True, over: str | None = None) -> None:
        """Remove a file; it may be gone already.

        Raises:
            FileChanged: it holds something else than ``over`` (see ``write``).
        """
        try:
            with self._folder_of(path) as (folder, name):
                take_away(name, folder, path, over)
                if durable:
                    io.fsync(folder, path)
        except FileNotFoundError:
            return

    def make_folders(self, folder: str, *, durable: bool = True) -> None:
        """Make a folder and its parents; each new name is made durable."""
        missing = []
        current = folder
        check_path(folder)
        while current and self.entry(current) is None:
            missing.append(current)
            current = current.rpartition("/")[0]
        for path in reversed(missing):
            with self._folder_of(path) as (parent, name):
                if io.mkdir(name, dir_fd=parent) and durable:
                    io.fsync(parent, path)

    def sweep(self, folder: str, look: Callable[[bytes], None] | None = None) -> int:
        """Remove temporary files that a killed writer of ours left directly in a folder; return how many.

        Args:
            look: shown the content of each that may be someone else's before it is removed; what it raises leaves that
                one in place.
        """
        try:
            fd = self._open_folder(folder)
        except (FileNotFoundError, errors.PathEscape):
            return 0
        try:
            stale = [name for name in os.listdir(fd) if is_temporary(name)]
            for name in stale:
                if look is not None and not is_fresh(name) and (data := content_of(name, fd, folder)) is not None:
                    look(data)
                io.unlink(name, dir_fd=fd, missing_ok=True)
            return len(stale)
        finally:
            os.close(fd)

    # -- walking ------------------------------------------------------------------------------------------------
    def _folder_of(self, path: str) -> _Folder:
        return _Folder(self, path)

    @contextmanager
    def holding_folders(self) -> Iterator[None]:
        """While the block runs, this thread walks to each folder once. Blocks may be nested.

        At most 64 folders are held open, as a batch may touch more than a process may open: take files in order of
        their paths. A folder that is replaced meanwhile is seen after the block.

        Raises:
            StorageIO: the root is gone.
        """
        self.require_open()
        if getattr(self._held, "folders", None) is not None:
            yield
            return
        self._follow_root()
        self._held.folders = {}
        try:
            yield
        finally:
            self._release_folders()
            self._held.folders = None

    def _follow_root(self) -> None:
        """Go on with what the root's path names now: it may have been moved away, and another put in its place.

        Journal, locks and history are found by path; files written into the old folder would be none of theirs.
        """
        try:
            if os.path.samestat(os.stat(self.root), os.fstat(self._root_fd)):
                return
            fd = io.open_file(self.root, _FOLDER)
        except OSError as error:
            raise io.storage_error(error, "open", str(self.root)) from error
        try:
            os.dup2(fd, self._root_fd, inheritable=False)  # in one step: other threads use it
        finally:
            os.close(fd)

    def _release_folders(self) -> None:
        folders = getattr(self._held, "folders", None) or {}
        while folders:
            os.close(folders.popitem()[1])

    def _open_folder(self, path: str) -> int:
        held: dict[str, int] | None = getattr(self._held, "folders", None)
        if held is None:
            return self._walk(path)
        if path not in held:
            try:
                fd = self._walk(path)
            except errors.StorageIO:  # perhaps for want of descriptors, of which those held here are the first to go
                self._release_folders()
                fd = self._walk(path)
            if len(held) >= _MOST_HELD:
                os.close(held.pop(next(iter(held))))
            held[path] = fd
        return io.duplicate(held[path], path)

    def _walk(self, path: str) -> int:
        self.require_open()
        if path:
            check_path(path)
        fd = io.duplicate(self._root_fd, path)
        part = ""
        try:
            for part in path.split("/") if path else ():
                above, fd = fd, io.open_file(part, _FOLDER, dir_fd=fd)
                os.close(above)
        except BaseException as error:
            os.close(fd)
            if isinstance(error, errors.NotRegularFile):
                raise errors.PathEscape(
                    f"{part!r} is a link or a file where a folder is expected", path=path, hint="replace it by a folder"
                ) from None
            if isinstance(error, errors.StorageIO):
                error.path = path
            raise
        return fd


class _Folder:
    """A file's folder, open while the block runs, and its name in there; an error within names the whole path.

    It is quicker than a generator on the path of every put.
    """

    __slots__ = ("_fd", "_path", "_tree")

    def __init__(self, tree: Tree, path: str) -> None:
        self._tree, self._path = tree, path

    def __enter__(self) -> tuple[int, str]:
        check_path(self._path)
        parent, _, name = self._path.rpartition("/")
        self._fd = self._tree._open_folder(parent)
        return self._fd, name

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        os.close(self._fd)
        if isinstance(error, (errors.StorageIO, errors.NotRegularFile)):
            error.path = self._path


def _stamp(facts: os.stat_result, data: bytes, checked_ns: int) -> Stamp:
    times = (min(facts.st_mtime_ns, LAST_NS), min(facts.st_ctime_ns, LAST_NS))
    return Stamp(facts.st_size, *times, facts.st_ino, blob_id(data), checked_ns)


_HONEST = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)
"""File systems whose times of change come from the kernel that we ask, and cannot be set by programs."""


def rotten(stamp: Stamp, content: Content, root: Path) -> bool:
    """Whether content differs from what was stamped although every fact about the file is the same.

    Args:
        stamp: what was known of the file.
        content: what it holds now, with its facts.
        root: a folder on the same file system.
    """
    now = content.stamp
    if stamp.blob == now.blob or stamp.racy or stamp[:4] != now[:4]:
        return False
    return detects_edits(root)


def detects_edits(root: Path) -> bool:
    """Whether on this file system every edit leaves a trace in the facts about the file."""
    kind = file_system(str(root))
    if not kind and sys.platform == "darwin":
        return not str(root).startswith("/Volumes/")
    return kind in _HONEST


def refuse_rot(path: str, stamp: Stamp | None, content: Content, root: Path) -> None:
    """Raise ``CorruptItem`` where the disk changed bytes that no one wrote; see ``rotten``. Nothing known, no rot."""
    if stamp is None or not rotten(stamp, content, root):
        return
    raise errors.CorruptItem(
        f"the disk changed bytes that no one wrote: expected {stamp.blob}, found {content.stamp.blob}",
        path=path,
        hint="'memfs check --fix' brings back what was written; if the change is yours, 'touch' the file to keep it",
    )

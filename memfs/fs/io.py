"""Every system call by which memfs changes a disk or reads it durably.

An ``OSError`` becomes a ``StorageIO`` error that names the path, and a hook lets a test fail or stop the N-th
operation.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from memfs.errors import ItemTooLarge, MemfsError, NotRegularFile, StorageFull, StorageIO, StorageReadOnly
from memfs.startup import Any, json


def sync(folder: str) -> None:
    """Make durable all that was written so far to the file system of a folder.

    Raises:
        OSError: the system's reason. Where it has no such call, ``os.sync`` is made, which gives none.
    """
    call = _system_call("syncfs")
    if call is None:
        os.sync()
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if call(fd) != 0:
            raise _system_error(folder)
    finally:
        os.close(fd)


Hook = Callable[[str, str], None]
"""Called before each operation with its name and path; it may raise ``OSError`` (a fault) or stop the process."""

_hook: Hook | None = None

# Without O_NONBLOCK a pipe in a file's place would keep its opener waiting forever; to files it means nothing.
_ALWAYS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_TEMPORARY = ".tmp"
_SPARE = 16
_LINK_ERRORS = (errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR)


def set_hook(hook: Hook | None) -> Hook | None:
    """Install the fault hook, or remove it with None; return the one before."""
    global _hook
    before, _hook = _hook, hook
    return before


class operation:  # noqa: N801  read as what is done within
    """Run one system call: announce it to the hook, translate its ``OSError``.

    A generator would take three times as long, and a write has forty of them.
    """

    __slots__ = ("_name", "_passing", "_path")

    def __init__(self, name: str, path: str | os.PathLike[str], passing: tuple[type[OSError], ...] = ()) -> None:
        """``passing``: what is raised as it is.

        Raises:
            StorageFull, StorageReadOnly, StorageIO: by the block, naming the path and the system's reason.
        """
        self._name, self._path, self._passing = name, path, passing

    def __enter__(self) -> None:
        if _hook is not None:
            try:
                _hook(self._name, os.fspath(self._path))
            except OSError as error:
                self.__exit__(None, error, None)
                raise

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, self._passing):
            raise storage_error(error, self._name, os.fspath(self._path)) from error


def storage_error(error: OSError, name: str, path: str) -> StorageIO:
    """The memfs error for a failed system call."""
    reason = f"{name} failed: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(reason, path=path, hint="free some space and try again; nothing was written")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StorageReadOnly(reason, path=path, hint="make it writable for this user")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StorageIO(reason, path=path, hint="let this process open more files (ulimit -n); nothing was written")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return StorageIO(reason, path=path, hint="see whether its folder is there; nothing was written")
    return StorageIO(reason, path=path, hint="check the disk; nothing was acknowledged")


# -- descriptors --------------------------------------------------------------------------------------------------
def open_file(path: str | os.PathLike[str], flags: int, mode: int = 0o600, dir_fd: int | None = None) -> int:
    """Open without following a link at the last step and without inheriting; return the descriptor.

    Raises:
        FileNotFoundError, FileExistsError: as the system says, for callers that ask whether a file is there.
        NotRegularFile: a link is there.
        StorageIO: anything else.
    """
    if _hook is not None:  # every put and scan opens many, and spares itself the block
        with operation("open", path):
            pass
    try:
        return os.open(path, flags | _ALWAYS, mode, dir_fd=dir_fd)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        if error.errno in _LINK_ERRORS:
            raise NotRegularFile("not a regular file", path=os.fspath(path), hint="move it away") from error
        raise storage_error(error, "open", os.fspath(path)) from error


def make_file(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
    """As ``open_file``, and the file is made where it is not there.

    Raises:
        StorageIO: also where its folder is gone.
    """
    try:
        return open_file(path, flags | os.O_CREAT, mode)
    except FileNotFoundError as error:
        raise storage_error(error, "open", os.fspath(path)) from error


def duplicate(fd: int, path: str) -> int:
    """Another descriptor of an open folder.

    Raises:
        StorageIO: there are no more.
    """
    try:
        return os.dup(fd)
    except OSError as error:
        raise storage_error(error, "dup", path) from error


def require_descriptors(path: str) -> None:
    """Refuse what could end half-way for want of descriptors: a write, and the commit of it, takes fewer than 16.

    Raises:
        StorageIO: this process may not open that many.
    """
    with suppress(OSError):  # since Linux 6.2 its size is how many are open; 0 before
        if 0 < os.stat("/proc/self/fd").st_size <= os.sysconf("SC_OPEN_MAX") - 2 * _SPARE:
            return
    held: list[int] = []
    try:
        held.append(os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        while len(held) < _SPARE:
            held.append(os.dup(held[0]))
    except OSError as error:
        raise storage_error(error, "open", path) from error
    finally:
        for fd in held:
            os.close(fd)


_ROOM = 512


def read_regular(fd: int, path: str, limit: int) -> bytes:
    """The whole content behind a descriptor, if it is a regular file of at most ``limit`` bytes.

    Raises:
        NotRegularFile, ItemTooLarge: decided before a byte is read.
    """
    facts = os.fstat(fd)
    if stat.S_ISDIR(facts.st_mode):
        raise NotRegularFile("a folder, not a file", path=path, hint="name a file in it, or move the folder away")
    if not stat.S_ISREG(facts.st_mode):
        raise NotRegularFile("not a regular file", path=path, hint="move it away")
    if facts.st_size > limit:
        raise ItemTooLarge(f"{facts.st_size} bytes, limit {limit}", path=path, hint="split it into several items")
    chunks = []
    room, left = limit + 1, facts.st_size
    with operation("read", path):  # in one piece: what is made larger than it turns out costs its pages
        while room > 0 and (chunk := os.read(fd, min(room, max(left, 0) + _ROOM))):
            chunks.append(chunk)
            room -= len(chunk)
            left -= len(chunk)
    if room <= 0:
        raise ItemTooLarge(f"more than {limit} bytes", path=path, hint="split it into several items")
    return b"".join(chunks)


def write_all(fd: int, data: bytes, path: str) -> None:
    """Write every byte, continuing after short writes.

    Raises:
        StorageIO: the system refused, or took fewer bytes than it said.
    """
    end = os.lseek(fd, 0, os.SEEK_CUR) + len(data)
    view = memoryview(data)
    while view:
        with operation("write", path):
            written = os.write(fd, view)
        view = view[written:]
    if os.lseek(fd, 0, os.SEEK_CUR) != end:
        raise _lost_bytes(path)


def write_at(fd: int, data: bytes, position: int, path: str, reading: int) -> int:
    """Write every byte from a position on, continuing after short writes, and look whether the file holds them then.

    Args:
        reading: a descriptor of the same file to read with.

    Returns:
        The position after the last byte.

    Raises:
        StorageIO: the system refused, or the file holds something else.
    """
    view, at = memoryview(data), position
    while view:
        with operation("write", path):
            written = os.pwrite(fd, view, at)
        at += written
        view = view[written:]
    with operation("read", path):
        found = os.pread(reading, len(data), position)
    if found != data:
        raise _lost_bytes(path)
    return at


def _lost_bytes(path: str) -> StorageIO:
    return StorageIO("not all bytes arrived", path=path, hint="check the disk; nothing was acknowledged")


def fsync(fd: int, path: str) -> None:
    """Make a file's bytes and metadata durable. A failed one is never retried on the same descriptor."""
    with operation("fsync", path):
        os.fsync(fd)


def fdatasync(fd: int, path: str) -> None:
    """Make a file's bytes durable."""
    with operation("fdatasync", path):
        getattr(os, "fdatasync", os.fsync)(fd)


def sync_everything(path: str) -> None:
    """Make durable all that was written so far to a folder's file system: one call, and not an fsync for each file."""
    with operation("sync", path):
        sync(path)


def truncate(fd: int, size: int, path: str) -> None:
    """Cut a file to ``size`` bytes."""
    with operation("truncate", path):
        os.ftruncate(fd, size)


# -- names --------------------------------------------------------------------------------------------------------
def rename(source: str, target: str, dir_fd: int | None = None) -> None:
    """Rename within one folder or file system, replacing the target.

    Raises:
        FileNotFoundError: the source is not there.
    """
    with operation("rename", target, (FileNotFoundError,)):
        os.rename(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def exchange(source: str, target: str, dir_fd: int) -> bool:
    """Let two names in a folder swap their files in one step; false where this system or file system cannot.

    Raises:
        FileNotFoundError: one of them is not there.
    """
    call = _system_call("renameat2")
    with operation("exchange", target, (FileNotFoundError,)):
        if call is None:
            return False
        if call(dir_fd, os.fsencode(source), dir_fd, os.fsencode(target), _EXCHANGE) != 0:
            error = _system_error(target)
            if error.errno in _CANNOT:
                return False
            raise error
    return True


def link(source: str, target: str, dir_fd: int | None = None) -> None:
    """Give a file a second name.

    Raises:
        FileExistsError: the name is taken.
    """
    with operation("link", target, (FileNotFoundError, FileExistsError)):
        os.link(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)


def unlink(path: str | os.PathLike[str], dir_fd: int | None = None, missing_ok: bool = False) -> None:
    """Remove a name.

    Raises:
        FileNotFoundError: it is not there and ``missing_ok`` is false.
    """
    try:
        with operation("unlink", path, (FileNotFoundError,)):
            os.unlink(path, dir_fd=dir_fd)
    except FileNotFoundError:
        if not missing_ok:
            raise


def mkdir(path: str | os.PathLike[str], mode: int = 0o777, dir_fd: int | None = None) -> bool:
    """Make a folder; false if it was there."""
    with operation("mkdir", path):
        try:
            os.mkdir(path, mode, dir_fd=dir_fd)
        except FileExistsError:
            return False
    return True


def rmdir(path: str | os.PathLike[str], dir_fd: int | None = None) -> None:
    """Remove an empty folder."""
    with operation("rmdir", path):
        os.rmdir(path, dir_fd=dir_fd)


def remove_all(path: Path) -> int:
    """Remove a file, or a folder with all in it, following no link; return how many files that were.

    What is already gone does not count.
    """
    if path.is_dir() and not path.is_symlink():
        removed = sum(remove_all(inner) for inner in sorted(path.iterdir()))
        with suppress(FileNotFoundError):
            rmdir(path)
        return removed
    try:
        unlink(path)
    except FileNotFoundError:
        return 0
    return 1


def remove_empty(top: Path) -> None:
    """Remove a folder and those in it, as far as nothing is there."""
    for place, _, _ in os.walk(top, topdown=False):
        with suppress(StorageIO, OSError):
            rmdir(place)


def touch(path: str | os.PathLike[str] | int, moment: int | None = None) -> None:
    """Give a file, named or open, the present time, or a moment in nanoseconds."""
    with operation("touch", str(path) if isinstance(path, int) else path):
        os.utime(path) if moment is None else os.utime(path, ns=(moment, moment))


class descriptor:  # noqa: N801  read as what is held within
    """Close a descriptor when the block ends; a generator would take three times as long."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def chmod(path: str | os.PathLike[str] | int, mode: int) -> None:
    """Change who may do what with a file or folder, given by name or descriptor."""
    with operation("chmod", str(path) if isinstance(path, int) else path):
        os.chmod(path, mode)


# -- whole files in folders of our own ----------------------------------------------------------------------------
def sync_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder's names durable."""
    with descriptor(open_file(path, os.O_RDONLY | os.O_DIRECTORY)) as fd:
        fsync(fd, os.fspath(path))


def facts(path: str | os.PathLike[str]) -> os.stat_result:
    """What is under a name, a link as itself.

    Raises:
        FileNotFoundError: nothing.
        StorageIO: that is unknown.
    """
    try:
        if _hook is not None:
            _hook("stat", os.fspath(path))
        return os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, "stat", os.fspath(path)) from error


def make_private_folder(path: Path, root: Path | None = None) -> None:
    """Make a folder, and its parents, that only this user can enter; parents are made durable.

    Args:
        root: a folder above it that is not made: a person who moved it away would find an empty one in its place.

    Raises:
        StorageIO: ``root`` is gone.
        StorageReadOnly: it is no folder, or another user's, or a link leads there.
    """
    if root is not None:
        if not os.path.isdir(root):
            raise StorageIO("this folder is gone", path=str(root), hint="bring it back, or open what is there now")
        refuse_links(path, root)
    make_folders(path)
    with operation("stat", path):
        found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        what = "this folder belongs to another user" if stat.S_ISDIR(found.st_mode) else "this is not a folder"
        raise StorageReadOnly(what, path=str(path), hint="remove it")
    if found.st_mode & 0o022:
        chmod(path, 0o700)


def refuse_links(path: Path, root: Path) -> None:
    """Refuse a folder that is reached from another, above it, over a link: it could lead anywhere.

    Raises:
        StorageReadOnly: naming the link.
    """
    folder, end = str(path), str(root)
    while folder != end:
        if os.path.islink(folder):
            raise StorageReadOnly("there is a link where memfs keeps its state", path=folder, hint="remove it")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def make_private_file(path: str | os.PathLike[str]) -> None:
    """Make a file, empty, that only this user can read; one that is there is kept, and closed to others.

    Raises:
        NotRegularFile, StorageIO: as ``open_file``.
    """
    with descriptor(open_file(path, os.O_RDONLY | os.O_CREAT)) as fd:
        if os.fstat(fd).st_mode & 0o077:
            chmod(fd, 0o600)


def make_folders(path: Path) -> None:
    """Make a folder and its parents, those that are missing private to this user, and durable."""
    missing: list[Path] = []
    for folder in (path, *path.parents):
        try:
            with operation("stat", folder, (FileNotFoundError, NotADirectoryError)):
                os.stat(folder)
            break
        except (FileNotFoundError, NotADirectoryError):
            missing.append(folder)
    for folder in reversed(missing):
        if mkdir(folder, 0o700):
            sync_folder(folder.parent)


def read_file(path: str | Path, limit: int = 1 << 31) -> bytes:
    """A whole file.

    Raises:
        FileNotFoundError: it is not there.
        NotRegularFile, ItemTooLarge, StorageIO: it cannot be read as a file.
    """
    with descriptor(open_file(path, os.O_RDONLY)) as fd:
        return read_regular(fd, str(path), limit)


def write_file(path: Path, data: bytes, mode: int = 0o600, durable: bool = True) -> None:
    """Replace a whole file: temporary name beside it, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}")
    try:
        fd = open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    except FileNotFoundError as error:
        raise storage_error(error, "open", str(path)) from error
    try:
        try:
            write_all(fd, data, str(path))
            if durable:
                fsync(fd, str(path))
        finally:
            os.close(fd)
        rename(str(temporary), str(path))
    except FileNotFoundError as error:  # its folder went meanwhile
        raise storage_error(error, "rename", str(path)) from error
    except BaseException:
        with suppress(StorageIO):
            unlink(temporary, missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def write_new(path: Path, chunks: Iterable[bytes], mode: int = 0o600) -> None:
    """Write a new file, its content durable on return; the caller makes its name so. An error may leave part of it.

    Raises:
        FileExistsError: there is one.
        StorageIO: as the system says.
    """
    with descriptor(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)) as fd:
        for data in chunks:
            write_all(fd, data, str(path))
        fsync(fd, str(path))


def sweep(folder: Path, beginning: str = ".", *, folders: bool = False) -> int:
    """Remove what ``write_file`` left unfinished in a folder where its process has ended, and ``folders`` of such names
    where asked for; return how many.

    The caller holds the lock under which such files are written: process ids say nothing across containers. What cannot
    be removed stays for the next time.
    """
    swept = 0
    for name in listed(folder):
        writer = name.removesuffix(_TEMPORARY).rpartition(".")[2]
        if (
            name.startswith(beginning)
            and name.endswith(_TEMPORARY)
            and writer.isdecimal()
            and not is_running(int(writer))
        ):
            with suppress(StorageIO, OSError):
                (remove_all if folders else unlink)(folder / name)
                swept += 1
    return swept


def listed(folder: Path) -> list[str]:
    """The names in a folder, in order; none where it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def weigh(folder: Path) -> int:
    """The sizes of all files below a folder; what vanishes meanwhile does not count.

    Raises:
        StorageIO: the disk does not report it.
    """
    total = 0
    for place, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, "weigh", os.path.join(place, name)) from error
    return total


def read_note(path: Path, limit: int = 64) -> str:
    """The text of a small file of memfs's own; "" where it is not there, or cannot be read."""
    try:
        return read_file(path, limit).decode("ascii", "replace")
    except (MemfsError, OSError):
        return ""


def read_record(path: Path, limit: int = 1 << 20) -> Any:
    """What a small JSON file of memfs's own holds; None where it is not there, or cannot be read as one."""
    try:
        return json.loads(read_file(path, limit))
    except (MemfsError, OSError, ValueError, RecursionError):
        return None


def is_running(process: int) -> bool:
    """Whether a process with this number is there, of any user."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's, or no number that a process can have
        return True
    return True


_CANNOT = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM})
_EXCHANGE = 2


@cache
def _system_call(name: str) -> Any:
    """A call of the system that Python lacks; None where the system lacks it, too."""
    import ctypes  # few commands need one

    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def _system_error(path: str) -> OSError:
    """Why the last of these calls failed."""
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)


def give_memory_back() -> None:
    """Give memory that is free back to the system, for a process that stays, where the C library can."""
    call = _system_call("malloc_trim")
    if call is not None:
        call(0)


def watch_descriptor() -> int:
    """A descriptor that reports changes in the folders that are added to it.

    Raises:
        OSError: the system's reason; ``ENOSYS`` where it has no such call.
    """
    call = _system_call("inotify_init1")
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    fd = int(call(os.O_CLOEXEC | os.O_NONBLOCK))
    if fd < 0:
        raise _system_error("inotify")
    return fd


def add_watch(fd: int, folder: str, mask: int) -> int:
    """Add a folder to a descriptor; returns the number by which it names it.

    Raises:
        OSError: the system's reason, such as a limit.
    """
    call = _system_call("inotify_add_watch")
    number = int(call(fd, os.fsencode(folder), mask)) if call is not None else -1
    if number < 0:
        raise _system_error(folder)
    return number


NETWORK_TYPES = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gfs2", "ocfs2", "beegfs"}
    | {"fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.ceph"}
)
"""File systems that other machines change: locks cannot be relied on there."""

UNWATCHED_TYPES = NETWORK_TYPES | {"vboxsf", "virtiofs", "prl_fs", "fuse.vmhgfs-fuse", "fuse.grpcfuse", "fuse.osxfs"}
"""Those, and folders that a virtual machine shares with its host: no event reports what the other side changes."""

_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def file_system(path: str) -> str:
    """The type of the file system a path is on, "" where it is unknown."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            rows = [line.split() for line in mounts]
    except OSError:
        return ""
    places = [(_plain(row[1]).rstrip("/") + "/", row[2]) for row in rows if len(row) > 2]
    # Of two mounts at one place the later covers the earlier.
    holding = [(len(place), number) for number, (place, _) in enumerate(places) if (path + "/").startswith(place)]
    return places[max(holding)[1]][1] if holding else ""


def _plain(place: str) -> str:
    for escape, character in _ESCAPES:
        place = place.replace(escape, character)
    return place

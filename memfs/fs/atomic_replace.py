"""Puts a file under a name, removes a name, or rewrites a file that others write too, without overwriting what somebody
saved meanwhile.

Works on names in one open folder and looks at the displaced file last of all. A file under a *fresh* temporary name is
memfs's own unfinished write; anything else waits under a *holding* name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from memfs import startup
from memfs.errors import Conflict, NotRegularFile, StorageIO
from memfs.fs import io
from memfs.startup import TypeVar

OWN_TEMPORARY = ".memfs-"
_HOLDING, _FRESH = ".tmp", ".new.tmp"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_ANY_SIZE = 1 << 40


def sha256(data: bytes) -> str:
    """Hex digest that names a file's content."""
    return startup.sha256(data).hexdigest()


class FileChanged(Exception):
    """A file is not what it was expected to be; plan again. Its argument is the path.

    ``displaced`` is what someone saved at the very moment of a write and at once saved over again, None as a rule: the
    newest has the file, and the one before is only here.
    """

    @property
    def displaced(self) -> bytes | None:
        """See above."""
        return self.args[1] if len(self.args) > 1 else None


def holding_name(temporary: str = "") -> str:
    """A name that a later sweep knows as ours, under which someone else's content may wait.

    Args:
        temporary: the name the file has so far: a fresh one becomes a holding one, another is one already; "" for none.
    """
    if temporary and not is_fresh(temporary):
        return temporary
    return f"{temporary.removesuffix(_FRESH) or OWN_TEMPORARY + os.urandom(6).hex()}{_HOLDING}"


def is_temporary(name: str) -> bool:
    """Whether memfs gave this name to a file for as long as a write lasts."""
    return name.startswith(OWN_TEMPORARY) and name.endswith(_HOLDING)


def is_fresh(name: str) -> bool:
    """Whether what is there can only be what memfs was writing."""
    return name.startswith(OWN_TEMPORARY) and name.endswith(_FRESH)


def write_fresh(folder: int, path: str, chunks: Iterable[bytes]) -> tuple[str, int]:
    """Write a new file, to be ``put`` or discarded, not durable; its fresh name and an open descriptor.

    An exception, also one from ``chunks``, leaves none.
    """
    fresh = f"{OWN_TEMPORARY}{os.urandom(6).hex()}{_FRESH}"
    fd = io.open_file(fresh, _CREATE, 0o666, dir_fd=folder)
    try:
        for chunk in chunks:
            io.write_all(fd, chunk, path)
    except BaseException:
        os.close(fd)
        discard(fresh, folder)
        raise
    return fresh, fd


def put(temporary: str, name: str, folder: int, path: str, over: str | None, data: bytes) -> None:
    """Give a file its name, at the last moment at which someone else's content can be noticed.

    Args:
        temporary: a fresh name, or a holding one of a file that is durable. What is raised may leave the file under it
            or, of a fresh one, under the holding name: see ``discard``.
    """
    if over == "":
        try:
            io.link(temporary, name, dir_fd=folder)
        except FileExistsError:
            raise FileChanged(path) from None
        except StorageIO:  # no hard links here
            pass
        else:
            io.unlink(temporary, dir_fd=folder)
            return
    if over is None:
        io.rename(temporary, name, dir_fd=folder)
        return
    holding = holding_name(temporary)
    if holding != temporary:
        io.rename(temporary, holding, dir_fd=folder)
    if not _exchanged(holding, name, folder, path, over, sha256(data)):
        if _content_of(name, folder, path) != over:
            raise FileChanged(path)
        io.rename(holding, name, dir_fd=folder)


def discard(fresh: str, folder: int) -> None:
    """Remove what a ``put`` that raised, or did not come about, left under the file's temporary names."""
    for name in (fresh, holding_name(fresh)):
        io.unlink(name, dir_fd=folder, missing_ok=True)


def _exchanged(temporary: str, name: str, folder: int, path: str, over: str, ours: str) -> bool:
    """Swap the two files and look at what came out: not even a save in the last microsecond is overwritten.

    Returns:
        False where this cannot be done; then nothing has changed.

    Raises:
        FileChanged: what came out is not what was to be replaced; it has its name back, or a still newer one has it.
    """
    try:
        if not io.exchange(temporary, name, folder):
            return False
    except FileNotFoundError:
        return False
    try:
        displaced = _content_of(temporary, folder, path)
    except BaseException:
        io.exchange(temporary, name, folder)
        raise
    if displaced == over:
        io.unlink(temporary, dir_fd=folder)
        return True
    io.exchange(temporary, name, folder)
    if _content_of(temporary, folder, path) in (ours, displaced):
        raise FileChanged(path)
    io.exchange(temporary, name, folder)  # a still newer one keeps the name, and what was displaced has none
    raise FileChanged(path, _read(temporary, folder, path))


def take_away(name: str, folder: int, path: str, over: str | None) -> None:
    """Remove a name, after checking the very file that lost it."""
    if not over:
        io.unlink(name, dir_fd=folder, missing_ok=True)
        return
    temporary = holding_name()
    io.rename(name, temporary, dir_fd=folder)
    try:
        unchanged = _content_of(temporary, folder, path) == over
        if unchanged:
            io.unlink(temporary, dir_fd=folder)
    except BaseException:
        with suppress(StorageIO):
            io.rename(temporary, name, dir_fd=folder)
        raise
    if not unchanged:
        with suppress(FileExistsError):  # a still newer one has the name
            io.link(temporary, name, dir_fd=folder)
        io.unlink(temporary, dir_fd=folder)
        raise FileChanged(path)


def content_of(name: str, folder: int, path: str) -> bytes | None:
    """What a name holds now, None where it is no file that can be read to its end."""
    try:
        return _read(name, folder, path)
    except (FileNotFoundError, NotRegularFile):
        return None


def _read(name: str, folder: int, path: str) -> bytes:
    with io.descriptor(io.open_file(name, os.O_RDONLY, dir_fd=folder)) as fd:
        return io.read_regular(fd, path, _ANY_SIZE)


def _content_of(name: str, folder: int, path: str) -> str:
    """The sha256 of what a name holds now, "" where there is none."""
    try:
        return sha256(_read(name, folder, path))
    except FileNotFoundError:
        return ""


LARGEST = 8 << 20
_TRIES = 8
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
Result = TypeVar("Result")


def read(place: Path) -> bytes | None:
    """A file's bytes, None where there is none.

    Raises:
        NotRegularFile, ItemTooLarge, StorageIO: also where its folder is not there.
    """
    try:
        return io.read_file(place, LARGEST)
    except FileNotFoundError:
        if not place.parent.is_dir():
            raise StorageIO("its folder is not there", path=str(place), hint="make the folder first") from None
        return None


def rewrite(place: Callable[[], Path], change: Callable[[bytes | None, Path], tuple[bytes | None, Result]]) -> Result:
    """Read, change and write a file; again where another process wrote it meanwhile.

    Args:
        place: where the file really is; asked again each time.
        change: takes the present bytes (None for no file) and the place; gives the new bytes, and what is returned.

    Raises:
        Conflict: another process keeps saving the file.
        what ``place``, ``change``, ``read`` and ``replace`` raise; then nothing was changed.
    """
    for _ in range(_TRIES):
        real = place()
        before = read(real)
        after, result = change(before, real)
        if after == before:
            return result
        try:
            replace(real, before, after)
        except FileChanged as changed:
            if (theirs := changed.displaced) is not None:  # saved, and saved over, at the very moment of the write
                io.write_file(real.with_name(f"{real.name}.{sha256(theirs)[:8]}.orig"), theirs, mode=0o644)
            continue
        return result
    raise Conflict("another process keeps saving the file", path=str(real), hint="try again")


def replace(place: Path, before: bytes | None, after: bytes | None) -> None:
    """Give a file other bytes, durably and with the same rights; None removes it.

    Raises:
        FileChanged: it is not what was read.
        StorageIO: nothing was changed.
    """
    over = sha256(before) if before is not None else ""
    with _folder(place.parent) as folder:
        if after is None:
            take_away(place.name, folder, str(place), over)
        else:
            io.sweep(place.parent, f".{place.name}.")
            temporary = f".{place.name}.{os.urandom(4).hex()}.{os.getpid()}.tmp"
            fd = io.open_file(temporary, _CREATE, 0o666, dir_fd=folder)
            try:
                with io.descriptor(fd):
                    io.write_all(fd, after, str(place))
                    if before is not None:
                        with suppress(FileNotFoundError):
                            io.chmod(fd, stat.S_IMODE(io.facts(place).st_mode))
                    io.fsync(fd, str(place))
                put(temporary, place.name, folder, str(place), over, after)
            finally:
                with suppress(StorageIO):
                    io.unlink(temporary, dir_fd=folder, missing_ok=True)
        io.fsync(folder, str(place.parent))


def _folder(path: Path) -> io.descriptor:
    try:
        return io.descriptor(io.open_file(path, _FOLDER))
    except FileNotFoundError:
        raise StorageIO("its folder is not there", path=str(path), hint="make the folder first") from None
    except NotRegularFile:
        raise NotRegularFile("no folder", path=str(path), hint="name a file in a folder") from None

"""Rewrites files that people and other programs write too.

A file is replaced in one step, keeps its mode, and is replaced only while it is what was read, so that a save made at
the same moment is not lost.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from memfs.errors import Conflict, MemfsError, NotRegularFile, StorageIO
from memfs.fs import atomic_replace, io

LARGEST = 8 << 20
_TRIES = 8
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
Told = TypeVar("Told")


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


def rewrite(place: Callable[[], Path], change: Callable[[bytes | None, Path], tuple[bytes | None, Told]]) -> Told:
    """Read, change and write a file; again where somebody else wrote it meanwhile.

    Args:
        place: where the file really lies; asked again each time.
        change: given the bytes that are there, the bytes that shall be, None for no file; and what is returned.

    Raises:
        Conflict: somebody keeps saving the file.
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
        except atomic_replace.FileChanged as changed:
            _keep(real, changed.displaced)
            continue
        return result
    raise Conflict("somebody keeps saving the file", path=str(real), hint="try again")


def replace(place: Path, before: bytes | None, after: bytes | None) -> None:
    """Give a file other bytes, durably and with the same rights; None removes it.

    Raises:
        FileChanged: it is not what was read.
        StorageIO: nothing was changed.
    """
    over = atomic_replace.sha256(before) if before is not None else ""
    with _folder(place.parent) as folder:
        if after is None:
            atomic_replace.take_away(place.name, folder, str(place), over)
        else:
            io.sweep(place.parent, f".{place.name}.")
            temporary = _prepared(place, folder, after, before is not None)
            try:
                atomic_replace.put(temporary, place.name, folder, str(place), over, after)
            finally:
                with suppress(StorageIO):
                    io.unlink(temporary, dir_fd=folder, missing_ok=True)
        io.fsync(folder, str(place.parent))


def _prepared(place: Path, folder: int, data: bytes, existing: bool) -> str:
    """A file beside the other with these bytes and the other's rights, durable; its name."""
    temporary = f".{place.name}.{secrets.token_hex(4)}.{os.getpid()}.tmp"
    fd = io.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
    try:
        io.write_all(fd, data, str(place))
        if existing:
            with suppress(FileNotFoundError):
                io.chmod(fd, stat.S_IMODE(io.facts(place).st_mode))
        io.fsync(fd, str(place))
    except BaseException:
        with suppress(MemfsError):
            io.unlink(temporary, dir_fd=folder, missing_ok=True)
        raise
    finally:
        os.close(fd)
    return temporary


def _keep(place: Path, displaced: bytes | None) -> None:
    """Keep what somebody saved, and at once saved over, in the very moment of a write."""
    if displaced is not None:
        io.write_file(
            place.with_name(f"{place.name}.{atomic_replace.sha256(displaced)[:8]}.orig"), displaced, mode=0o644
        )


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    try:
        fd = io.open_file(path, _FOLDER)
    except FileNotFoundError:
        raise StorageIO("its folder is not there", path=str(path), hint="make the folder first") from None
    except NotRegularFile:
        raise NotRegularFile("no folder", path=str(path), hint="name a file in a folder") from None
    try:
        yield fd
    finally:
        os.close(fd)

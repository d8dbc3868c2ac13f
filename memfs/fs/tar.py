"""Write a tar of files as they are at one moment though others write meanwhile, and read one that may be hostile.

Only regular files are written or taken, and every byte between them has to be what is written here: the same files
give the same bytes, and a bit that is another one is damage.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from memfs.errors import CorruptRecord, MemfsError
from memfs.fs import io
from memfs.fs.scan import ScanEntry
from memfs.fs.tree import Tree

BLOCK = 512
END = b"\0" * (2 * BLOCK)
_CHUNK = 1 << 18
_LONGEST_EXTENDED = 1 << 16
_RACY_NS = 2_000_000_000
_TRIES = 5
_UNKNOWN = (-1, -1, -1, -1)
_SORTS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.DIRTYPE: "a folder",
}
_NAMES = ("utf-8", "surrogateescape")
_NAME, _SIZE, _SORT = slice(100), slice(124, 135), slice(156, 157)
_RECORD = re.compile(rb"(\d{1,7}) ([^=\n]{1,64})=")

Read = Callable[[int], bytes]
"""Gives up to so many bytes, and none at the end."""


def header(name: str, size: int) -> bytes:
    """What precedes a member's bytes; the same for the same name and size, always."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT, *_NAMES)


def padding(size: int) -> bytes:
    """What follows a member of so many bytes."""
    return b"\0" * (-size % BLOCK)


def chunks_of(fd: int, size: int, path: str) -> Iterator[bytes]:
    """Up to so many bytes of an open file from where it stands, in pieces."""
    left = size
    while left:
        with io.operation("read", path):
            data = os.read(fd, min(left, _CHUNK))
        if not data:
            return
        left -= len(data)
        yield data


def digest_of(chunks: Iterable[bytes]) -> bytes:
    """The sha256 of bytes that come in pieces."""
    hashed = hashlib.sha256()
    for data in chunks:
        hashed.update(data)
    return hashed.digest()


# -- reading ------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class TarMember:
    """One file of a tar; ``chunks`` gives its bytes, once."""

    name: str
    size: int
    _read: Read
    _left: int

    def chunks(self) -> Iterator[bytes]:
        """The bytes that were not read yet.

        Raises:
            CorruptRecord: the tar ends before.
        """
        while self._left:
            data = _exactly(self._read, min(self._left, _CHUNK))
            self._left -= len(data)
            yield data

    def data(self, limit: int) -> bytes:
        """All of its bytes.

        Raises:
            CorruptRecord: there are more than ``limit``.
        """
        if self._left > limit:
            raise CorruptRecord(f"{self.name!a} has {self._left:,} bytes, allowed are {limit:,}")
        return b"".join(self.chunks())


def members(read: Read) -> Iterator[TarMember]:
    """The files of a tar in order; what is not read of one is passed over.

    Raises:
        CorruptRecord: it holds anything else than regular files with names that stay below a folder, or is cut short.
    """
    while any(block := _exactly(read, BLOCK)):
        name, size = _named(block, read)
        member = TarMember(check_name(name), size, read, size)
        yield member
        for _ in member.chunks():
            pass
        if any(_exactly(read, -size % BLOCK)):
            raise CorruptRecord("what should be empty is not")
    if any(_exactly(read, BLOCK)) or read(1):
        raise CorruptRecord("something follows its end")


def check_name(name: str) -> str:
    """Return a name unchanged if it stays below the folder it is put in.

    Raises:
        CorruptRecord: it does not.
    """
    parts = name.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name or "\\" in parts[0]:
        raise CorruptRecord(f"the name {name!a} leads out of the folder")
    return name


def _named(block: bytes, read: Read) -> tuple[str, int]:
    """The name and size in a header, if it is just the one that ``header`` makes; ``read`` gives what belongs to it."""
    whole, extended = block, b""
    try:
        if block[_SORT] == tarfile.XHDTYPE:
            length = int(block[_SIZE], 8)
            if not 0 < length <= _LONGEST_EXTENDED:
                raise CorruptRecord("an extended header is too long")
            extended = _exactly(read, length + -length % BLOCK)
            block = _exactly(read, BLOCK)
            whole += extended + block
        if block[_SORT] != tarfile.REGTYPE:
            raise CorruptRecord(f"it holds {_SORTS.get(block[_SORT], 'something that is no file')}")
        said = _records(extended)
        name = said.get(b"path", block[_NAME].rstrip(b"\0")).decode(*_NAMES)
        size = int(said[b"size"]) if b"size" in said else int(block[_SIZE], 8)
        right = header(name, size) == whole
    except ValueError:
        right = False
    if not right:
        raise CorruptRecord("a header is damaged")
    return name, size


def _records(extended: bytes) -> dict[bytes, bytes]:
    records = {}
    position = 0
    while found := _RECORD.match(extended, position):
        position += max(int(found[1]), found.end() - found.start())
        records[found[2]] = extended[found.end() : position - 1]
    return records


def _exactly(read: Read, size: int) -> bytes:
    chunks = []
    while size > 0:
        chunk = read(size)
        if not chunk:
            raise CorruptRecord("it is cut short")
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


# -- writing ------------------------------------------------------------------------------------------------------
class TarWriter:
    """Writes a tar through a function that takes its bytes in order.

    Attributes:
        size: how many bytes were written.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self.size = 0

    def add(self, name: str, chunks: Iterable[bytes], size: int) -> tuple[str, bool]:
        """Write a file of so many bytes; what is missing of them becomes zeros.

        Returns:
            The sha256 of what was written, and whether there were so many: with more, the tar is of no use.
        """
        self._put(header(name, size))
        hashed, left = hashlib.sha256(), size
        for data in chunks:
            hashed.update(data)
            left -= len(data)
            self._put(data)
        filler = bytes(max(left, 0))
        hashed.update(filler)
        self._put(filler + padding(size))
        return hashed.hexdigest(), left == 0

    def end(self) -> None:
        """Write the end."""
        self._put(END)

    def _put(self, data: bytes) -> None:
        self.size += len(data)
        self._write(data)


class TreePacker:
    """Packs files of a tree; those that change are packed again, and only the last of each counts.

    Attributes:
        tar: where they go.
        files: size and sha256 of those that count, by path.
        left_out: why a file could not be taken along, by path.
    """

    def __init__(self, tree: Tree, write: Callable[[bytes], object]) -> None:
        self.tar = TarWriter(write)
        self.files: dict[str, tuple[int, str]] = {}
        self.left_out: dict[str, str] = {}
        self._tree = tree
        self._facts: dict[str, tuple[int, int, int, int]] = {}
        self._places: dict[str, int] = {}
        self._count = 0

    @property
    def outdated(self) -> list[int]:
        """The places in the tar, from 0, of what does not count."""
        return sorted(set(range(self._count)) - set(self._places.values()))

    def add(self, path: str) -> bool:
        """Pack a file as it is now; one that cannot be read is named as left out.

        Returns:
            False where it changed while it was read.
        """
        try:
            fd = self._tree.open_read(path)
        except FileNotFoundError:
            return True
        except MemfsError as error:
            self.left_out[path] = error.message
            return True
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                self.left_out[path] = "not a regular file"
                return True
            whole = self._pack(path, self._chunks(fd, before.st_size, path), before.st_size)
            facts = _facts(before)
            whole = whole and facts == _facts(os.fstat(fd))
            # One that was touched a moment ago, or while it was read, is looked at again.
            if whole and abs(time.time_ns() - before.st_ctime_ns) > _RACY_NS:
                self._facts[path] = facts
            return whole
        finally:
            os.close(fd)

    def catch_up(self, entries: Iterable[ScanEntry]) -> None:
        """Pack again what changed since it was packed, forget what is gone: from here on all is of one moment.

        Args:
            entries: the files that are to be packed, as they are now.
        """
        present = set()
        for entry in entries:
            present.add(entry.path)
            if self._facts.get(entry.path) == entry[1:5] or self._holds(entry.path):
                continue
            if not any(self.add(entry.path) for _ in range(_TRIES)):
                self.left_out[entry.path] = "it kept changing"
                self._forget(entry.path)
        for path in self.files.keys() - present:
            self._forget(path)

    def _chunks(self, fd: int, size: int, path: str) -> Iterable[bytes]:
        return chunks_of(fd, size, path)

    def _pack(self, path: str, chunks: Iterable[bytes], size: int) -> bool:
        digest, whole = self.tar.add(path, chunks, size)
        self.files[path] = (size, digest)
        self._facts[path] = _UNKNOWN
        self._places[path] = self._count
        self._count += 1
        return whole

    def _holds(self, path: str) -> bool:
        """Whether a file still is as it was packed: its facts alone cannot tell when it was touched a moment ago."""
        packed = self.files.get(path)
        if packed is None:
            return False
        try:
            fd = self._tree.open_read(path)
        except (FileNotFoundError, MemfsError):
            return False
        try:
            size, hashed = os.fstat(fd).st_size, hashlib.sha256()
            for data in chunks_of(fd, size, path) if size == packed[0] else ():
                hashed.update(data)
            return (os.fstat(fd).st_size, hashed.hexdigest()) == packed
        finally:
            os.close(fd)

    def _forget(self, path: str) -> None:
        self.files.pop(path, None)
        self._places.pop(path, None)


def _facts(found: os.stat_result) -> tuple[int, int, int, int]:
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)

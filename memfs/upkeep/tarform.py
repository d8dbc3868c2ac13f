"""Tar, as backups use it: regular files only, read strictly from a stream.

Owns writing members that any ``tar`` understands, and reading them back so that a hostile archive is an error: links,
devices, names that lead elsewhere, sizes that the archive does not have. What the members mean, it does not know.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memfs.errors import BackupInvalid

BLOCK = 512
END = b"\0" * (2 * BLOCK)
_CHUNK = 1 << 18
_LONGEST_EXTENDED = 1 << 16
_REGULAR, _EXTENDED = b"0", b"x"
_SORTS = {b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"5": "a folder"}
_RECORD = re.compile(rb"(\d{1,7}) ([^=\n]{1,64})=")

Read = Callable[[int], bytes]
"""Gives up to so many bytes, and none at the end."""


def header(name: str, size: int) -> bytes:
    """What stands before a member's bytes; the same for the same name and size, always."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def padding(size: int) -> bytes:
    """What stands after a member of so many bytes."""
    return b"\0" * (-size % BLOCK)


@dataclass(slots=True)
class Member:
    """One file of an archive; ``chunks`` gives its bytes, once."""

    name: str
    size: int
    _read: Read
    _left: int

    def chunks(self) -> Iterator[bytes]:
        """The bytes that were not read yet.

        Raises:
            BackupInvalid: the archive ends before.
        """
        while self._left:
            data = _exactly(self._read, min(self._left, _CHUNK))
            self._left -= len(data)
            yield data

    def data(self, limit: int) -> bytes:
        """All of its bytes.

        Raises:
            BackupInvalid: there are more than ``limit``.
        """
        if self._left > limit:
            raise _invalid(f"{self.name!a} has {self._left:,} bytes, allowed are {limit:,}")
        return b"".join(self.chunks())


def members(read: Read) -> Iterator[Member]:
    """The files of an archive in order; what is not read of one is passed over.

    Raises:
        BackupInvalid: it holds anything else than regular files with names that stay below a folder, or is cut short.
    """
    extended: dict[bytes, bytes] = {}
    while any(block := _exactly(read, BLOCK)):
        sort, size = block[156:157], _size(block)
        _check_sum(block)
        if sort == _EXTENDED and not extended:
            extended = _extended(_padded(read, size))
            continue
        if sort != _REGULAR:
            raise _invalid(f"it holds {_SORTS.get(sort, 'something that is no file')}")
        size = int(extended.get(b"size", b"%d" % size))
        member = Member(_name(block, extended), size, read, size)
        extended = {}
        yield member
        for _ in member.chunks():
            pass
        _filler(read, size)
    if extended or any(_exactly(read, BLOCK)) or read(1):
        raise _invalid("something follows its end")


def check_name(name: str) -> str:
    """Return a name unchanged if it stays below the folder it is put in.

    Raises:
        BackupInvalid: it does not.
    """
    parts = name.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name or "\\" in parts[0]:
        raise _invalid(f"the name {name!a} leads out of the folder")
    return name


def _name(block: bytes, extended: dict[bytes, bytes]) -> str:
    prefix, name = block[345:500].rstrip(b"\0"), block[:100].rstrip(b"\0")
    raw = extended.get(b"path", prefix + b"/" + name if prefix else name)
    return check_name(raw.decode("utf-8", "surrogateescape"))


def _extended(data: bytes) -> dict[bytes, bytes]:
    records = {}
    position = 0
    while position < len(data):
        found = _RECORD.match(data, position)
        end = position + int(found[1]) if found else 0
        if found is None or end <= found.end() or end > len(data):
            raise _invalid("an extended header is damaged")
        records[found[2]] = data[found.end() : end - 1]
        position = end
    if not re.fullmatch(rb"\d{1,15}", records.get(b"size", b"0")):
        raise _invalid("a member has no size")
    return records


def _padded(read: Read, size: int) -> bytes:
    if size > _LONGEST_EXTENDED:
        raise _invalid("an extended header is too long")
    data = _exactly(read, size)
    _filler(read, size)
    return data


def _filler(read: Read, size: int) -> None:
    if any(_exactly(read, -size % BLOCK)):
        raise _invalid("what should be empty is not")


def _size(block: bytes) -> int:
    try:
        return int(block[124:135], 8)
    except ValueError:
        raise _invalid("a member has no size") from None


def _check_sum(block: bytes) -> None:
    try:
        stated = int(block[148:156].rstrip(b"\0 "), 8)
    except ValueError:
        stated = -1
    if stated != sum(block[:148]) + sum(block[156:]) + 8 * ord(" "):
        raise _invalid("a header is damaged")


def _exactly(read: Read, size: int) -> bytes:
    chunks = []
    while size > 0:
        chunk = read(size)
        if not chunk:
            raise _invalid("it is cut short")
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _invalid(reason: str) -> BackupInvalid:
    return BackupInvalid(f"this is no sound backup: {reason}", hint="use another backup")

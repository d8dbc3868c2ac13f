"""Write a tar of files as they are at one moment though others write meanwhile, and read one that may be hostile.

Everything passes as a stream of bytes in pieces, so that memory does not grow with it. Compressed bytes, manifests and
tars are never trusted: output is bounded, and what is damaged or cut off raises. Only regular files are written or
taken, and every byte between them has to be what is written here: the same files give the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from io import FileIO
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import CorruptRecord, ItemTooLarge, MemfsError
from memfs.fs import io
from memfs.fs.tree import ScanEntry, Tree, View
from memfs.model import Stamp
from memfs.model.time import parse_time

BLOCK = 512
END = b"\0" * (2 * BLOCK)
READ_WHOLE = 16 << 20
"""Up to this size in bytes files are read in one piece."""
_CHUNK = 1 << 18
LEVEL = 10
_PIECE = 1 << 12
"""How many compressed bytes are taken at once: they may hold 32,000 times as many."""
_WINDOW = 1 << 27
_MOST_THREADS = 8
_HINT = "restore the file from a clone or a backup"
_LONGEST_EXTENDED = 1 << 16
_TRIES = 5
_REGULAR, _EXTENDED = b"0", b"x"
_SORTS = {b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"5": "a folder"}
_NAMES = ("utf-8", "surrogateescape")
_NAME, _SIZE, _SORT = slice(100), slice(124, 135), slice(156, 157)
_RECORD = re.compile(rb"(\d{1,7}) ([^=\n]{1,64})=")

if TYPE_CHECKING:
    import zstandard

Sha256 = Annotated[str, re.compile("[0-9a-f]{64}")]
Digest = tuple[int, Sha256]
"""Size and sha256."""
Value = TypeVar("Value")


# -- streams ------------------------------------------------------------------------------------------------------
class DigestStream:
    """Passes pieces on, and knows the size and the sha256 of what has passed."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._size = 0
        self._sha256 = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for data in self._chunks:
            self._size += len(data)
            self._sha256.update(data)
            yield data

    @property
    def digest(self) -> Digest:
        """The digest of what has passed so far."""
        return self._size, self._sha256.hexdigest()


class Stream:
    """Gives what comes in pieces by the number of bytes that are wanted."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._piece = memoryview(b"")

    def take(self, size: int) -> Iterator[bytes]:
        """The next bytes, in pieces.

        Raises:
            CorruptRecord: there are fewer.
        """
        while size:
            if self.at_end():
                raise CorruptRecord("it is cut short")
            given, self._piece = self._piece[:size], self._piece[size:]
            size -= len(given)
            yield bytes(given)

    def read(self, size: int) -> bytes:
        """The next bytes at once; see ``take``."""
        return b"".join(self.take(size))

    def at_end(self) -> bool:
        """Whether nothing follows."""
        if not self._piece:
            self._piece = memoryview(next(filter(None, self._chunks), b""))
        return not self._piece


def chunks_of(fd: int, size: int, path: str) -> Iterator[bytes]:
    """Up to ``size`` bytes of an open file from its current position, in pieces."""
    left = size
    while left:
        with io.operation("read", path):
            data = os.read(fd, min(left, _CHUNK))
        if not data:
            return
        left -= len(data)
        yield data


def file_chunks(tree: Tree, path: str) -> Iterator[bytes]:
    """The bytes of a tree's file, in pieces; it is opened at once.

    Raises:
        FileNotFoundError, MemfsError: see ``Tree.open_read``.
    """
    return _closing(os.fdopen(tree.open_read(path), "rb", buffering=0), path)


def _closing(file: FileIO, path: str) -> Iterator[bytes]:
    with file:
        yield from chunks_of(file.fileno(), os.fstat(file.fileno()).st_size, path)


def digest_of(chunks: Iterable[bytes]) -> Digest:
    """The size and sha256 of bytes that come in pieces."""
    hashed = DigestStream(chunks)
    for _ in hashed:
        pass
    return hashed.digest


def verified(chunks: Iterable[bytes], digest: Digest, name: str) -> Iterator[bytes]:
    """Pass pieces on; no error at their end says that all of them are right.

    Raises:
        CorruptRecord: they are not.
    """
    hashed = DigestStream(chunks)
    yield from hashed
    if hashed.digest != digest:
        found, expected = (f"{size:,} bytes, sha256 {sha256[:12]}" for size, sha256 in (hashed.digest, digest))
        raise CorruptRecord(f"{name!a} is damaged: {found}, should be {expected}")


def batches(
    values: Iterable[Value], size_of: Callable[[Value], int], most_bytes: int, most: int
) -> Iterator[list[Value]]:
    """Values in batches of at most ``most``, and of ``most_bytes`` bytes."""
    batch: list[Value] = []
    size = 0
    for value in values:
        weight = size_of(value)
        if batch and (size + weight > most_bytes or len(batch) >= most):
            yield batch
            batch, size = [], 0
        batch.append(value)
        size += weight
    if batch:
        yield batch


# -- zstandard ----------------------------------------------------------------------------------------------------
class CompressedDamaged(CorruptRecord):
    """Compressed bytes are damaged, cut off, or hold more than they may."""


def compressed(chunks: Iterable[bytes], level: int = LEVEL, threads: int = 0) -> Iterator[bytes]:
    """One frame with a checksum of its content, in pieces.

    Args:
        chunks: the content.
        level: 1 (quick) to 19 (small).
        threads: how many compress beside the caller's; 0 for none. The bytes do not depend on how many, if any.
    """
    frame = _compressor(level, threads).compressobj()
    for data in chunks:
        if done := frame.compress(data):
            yield done
    yield frame.flush()


def decompressed(chunks: Iterable[bytes], limit: int | None = None, path: str | None = None) -> Iterator[bytes]:
    """What all the frames there are hold, in pieces; a stream that ends within one is cut off.

    Args:
        chunks: the compressed bytes.
        limit: how many decompressed bytes there may be; None for any number, as nothing is kept.
        path: names the file in errors.

    Raises:
        CompressedDamaged: the bytes are damaged, cut off or hold more than the limit.
    """
    import zstandard

    frame: Any = None
    given = frames = 0
    for chunk in chunks:
        left = memoryview(chunk)
        while left:
            if frame is None:
                frame, frames = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(), frames + 1
            piece = left[:_PIECE]
            try:
                data = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise _damaged(f"are damaged: {error}", path) from None
            given += len(data)
            if limit is not None and given > limit:
                raise _damaged(f"hold more than {limit} bytes", path)
            left = left[len(piece) - len(frame.unused_data) :]
            frame = None if frame.eof else frame
            if data:
                yield data
    if frame is not None or not frames:
        raise _damaged("are cut off", path)


def compress(data: bytes, level: int = LEVEL) -> bytes:
    """One frame with its size and a checksum; the same bytes give the same frame."""
    return _compressor(level, 0).compress(data)


def decompress(data: bytes, limit: int, path: str | None = None) -> bytes:
    """All that the frames hold.

    Args:
        limit: how many bytes that may be; no more are ever held.
        path: names the file in errors.

    Raises:
        CompressedDamaged: the bytes are damaged, cut off or hold more than the limit.
    """
    return b"".join(decompressed((data,), limit, path))


def _damaged(what: str, path: str | None) -> CompressedDamaged:
    return CompressedDamaged(f"the compressed bytes {what}", path=path, hint=_HINT)


def _compressor(level: int, threads: int) -> zstandard.ZstdCompressor:
    import zstandard  # takes 5 ms, and most commands compress nothing

    return zstandard.ZstdCompressor(level=level, threads=min(threads, _MOST_THREADS), write_checksum=True)


# -- reading ------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class TarMember:
    """One file of a tar; ``chunks`` gives its bytes, once."""

    name: str
    size: int
    _stream: Stream
    _left: int

    def chunks(self) -> Iterator[bytes]:
        """The bytes that were not read yet.

        Raises:
            CorruptRecord: the tar ends before.
        """
        while self._left:
            data = self._stream.read(min(self._left, _CHUNK))
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


def members(chunks: Iterable[bytes]) -> Iterator[TarMember]:
    """The files of a tar in order; what is not read of one is passed over.

    Raises:
        CorruptRecord: it holds anything else than regular files with names that stay below a folder, or is cut short.
    """
    stream = Stream(chunks)
    while any(block := stream.read(BLOCK)):
        name, size = _named(block, stream)
        member = TarMember(check_name(name), size, stream, size)
        yield member
        for _ in member.chunks():
            pass
        if any(stream.read(-size % BLOCK)):
            raise CorruptRecord("what should be empty is not")
    if any(stream.read(BLOCK)) or not stream.at_end():
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


def _named(block: bytes, stream: Stream) -> tuple[str, int]:
    """The name and size in a header, if it is just the one that ``header`` makes; ``stream`` gives what follows."""
    whole, extended = block, b""
    try:
        if block[_SORT] == _EXTENDED:
            length = int(block[_SIZE], 8)
            if not 0 < length <= _LONGEST_EXTENDED:
                raise CorruptRecord("an extended header is too long")
            extended, block = stream.read(length + -length % BLOCK), stream.read(BLOCK)
            whole += extended + block
        if block[_SORT] != _REGULAR:
            raise CorruptRecord(f"it holds {_SORTS.get(block[_SORT], 'something that is not a file')}")
        records = _records(extended)
        name = records.get(b"path", block[_NAME].rstrip(b"\0")).decode(*_NAMES)
        size = int(records[b"size"]) if b"size" in records else int(block[_SIZE], 8)
        if header(name, size) == whole:
            return name, size
    except ValueError:
        pass
    raise CorruptRecord("a header is damaged")


def _records(extended: bytes) -> dict[bytes, bytes]:
    """What an extended header says; ``tarfile`` takes seconds to read a hostile one, or fails in ways of its own."""
    records = {}
    position = 0
    while found := _RECORD.match(extended, position):
        position += max(int(found[1]), found.end() - found.start())
        records[found[2]] = extended[found.end() : position - 1]
    return records


# -- writing ------------------------------------------------------------------------------------------------------
def header(name: str, size: int) -> bytes:
    """What precedes a member's bytes; the same for the same name and size, always."""
    import tarfile  # costs start-up time, and most commands pack nothing

    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT, *_NAMES)


def tar_file(name: str, chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """A member of a tar, of ``size`` bytes: what is missing of them becomes zeros, what is beyond is cut off."""
    yield header(name, size)
    left = size
    for data in chunks:
        yield data[:left]
        left -= len(data[:left])
    yield bytes(left + -size % BLOCK)


class _PackedFile(NamedTuple):
    """A file that was packed; ``facts`` prove that it is still the same, None where they cannot."""

    digest: Digest
    place: int
    facts: tuple[int, ...] | None


class TreePacker:
    """Packs files of a tree; those that change are packed again, and only the last of each counts.

    Each method gives bytes of the tar, which follow those before; they have to be taken.

    Attributes:
        left_out: why a file could not be taken along, by path.
        size: how many bytes of the tar there are.
    """

    def __init__(self, tree: Tree, seen: View | None = None) -> None:
        """``seen`` shows the files that count, which are the tree's own if it is left out."""
        self.left_out: dict[str, str] = {}
        self.size = 0
        self._tree, self._seen = tree, seen or tree
        self._packed: dict[str, _PackedFile] = {}
        self._count = 0

    @property
    def files(self) -> Mapping[str, Digest]:
        """Those that count."""
        return {path: packed.digest for path, packed in self._packed.items()}

    @property
    def outdated(self) -> list[int]:
        """The places in the tar, from 0, of what does not count."""
        return sorted(set(range(self._count)) - {packed.place for packed in self._packed.values()})

    def add(self, path: str) -> Iterator[bytes]:
        """Pack a file as it is now; one that cannot be read is named as left out, one that is gone is forgotten."""
        self._packed.pop(path, None)
        try:
            chunks, stamp = self._read(path)
        except FileNotFoundError:
            return
        except MemfsError as error:
            self.left_out[path] = error.message
            return
        if isinstance(chunks, list):
            self.note(path, chunks[0])
        hashed = DigestStream(chunks)
        yield from self.put(path, hashed, stamp.size)
        self._packed[path] = _PackedFile(hashed.digest, self._count, None if stamp.racy else stamp[:4])
        self._count += 1

    def note(self, path: str, data: bytes) -> None:
        """Called with each packed file, except for large ones."""

    def catch_up(self, entries: Iterable[ScanEntry]) -> Iterator[bytes]:
        """Pack again what changed since it was packed, forget what is gone: from here on all is of one moment.

        Args:
            entries: the files that are to be packed, as they are now.
        """
        present = set()
        for entry in entries:
            present.add(entry.path)
            known = self._packed.get(entry.path)
            if known is None or (known.facts != entry[1:5] and not self._holds(entry.path)):
                for _ in range(_TRIES):
                    yield from self.add(entry.path)
                    if entry.path not in self._packed or self._holds(entry.path):
                        break
                else:
                    self.left_out[entry.path] = "it kept changing"
                    del self._packed[entry.path]
        for path in self._packed.keys() - present:
            del self._packed[path]

    def put(self, name: str, chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
        """A member of the tar that is no file of the tree."""
        for data in tar_file(name, chunks, size):
            self.size += len(data)
            yield data

    def end(self) -> Iterator[bytes]:
        """The end of the tar."""
        self.size += len(END)
        yield END

    def _holds(self, path: str) -> bool:
        """Whether a file still is as it was packed: its facts alone cannot show it when it was just touched."""
        try:
            return digest_of(self._read(path)[0]) == self._packed[path].digest
        except (FileNotFoundError, MemfsError):
            return False

    def _read(self, path: str) -> tuple[list[bytes] | Iterator[bytes], Stamp]:
        """A file's bytes, and the facts about it from before they are read."""
        try:
            content = self._seen.read(path, READ_WHOLE)
            return [content.data], content.stamp
        except ItemTooLarge:
            now, entry = time.time_ns(), self._tree.entry(path)
            if entry is None:
                raise FileNotFoundError(path) from None
            return file_chunks(self._tree, path), Stamp(*entry[1:5], "", now)


# -- manifests ----------------------------------------------------------------------------------------------------
_LARGEST = 1 << 50


def decoded(kind: Any, value: Any) -> Any:
    """What JSON says, as a dataclass or another type of the fields of one; nothing is taken that does not fit.

    A dataclass is a mapping by field, or a list in the order of the fields. A whole number is a size, never negative.

    Raises:
        ValueError: naming what does not fit.
    """
    if kind is int and type(value) is int and 0 <= value < _LARGEST:
        return value
    if kind in (str, bool, Any) and (kind is Any or type(value) is kind):
        return value
    if kind is datetime and isinstance(value, str):
        try:
            return parse_time(value)
        except OverflowError as error:
            raise ValueError(str(error)) from None
    origin, inner = _parts(kind)
    if origin is Annotated and isinstance(value, str) and inner[1].fullmatch(value):
        return value
    if origin is kind and isinstance(value, list | dict):
        return _dataclass(kind, inner, value)
    if origin is UnionType:
        return None if value is None else decoded(inner[0], value)
    if origin is tuple and isinstance(value, list):
        kinds = inner[:1] * len(value) if inner[-1] is ... else inner
        return tuple([decoded(of, one) for of, one in zip(kinds, value, strict=True)])
    if origin is Mapping and isinstance(value, dict):
        keys = map(int, value) if inner[0] is int else value
        return {decoded(inner[0], key): decoded(inner[1], one) for key, one in zip(keys, value.values(), strict=True)}
    raise ValueError(f"{value!r:.80} is not what belongs there")


def _dataclass(kind: Any, hints: Mapping[str, Any], value: list[Any] | dict[str, Any]) -> Any:
    named = dict(zip(hints, value, strict=True)) if isinstance(value, list) else value
    if unknown := named.keys() - hints.keys():
        raise ValueError(f"{min(unknown)!a:.80} is unknown")
    try:
        return kind(**{name: decoded(hints[name], one) for name, one in named.items()})
    except TypeError as error:
        raise ValueError(str(error).rpartition("() ")[2]) from None


@cache
def _parts(kind: Any) -> tuple[Any, Any]:
    """What a type is made of; of a dataclass itself, and the types of its fields."""
    from dataclasses import is_dataclass  # who lists backups reads none

    if is_dataclass(kind):
        return kind, get_type_hints(kind, include_extras=True)
    origin = get_origin(kind)
    return origin, (kind.__origin__, *kind.__metadata__) if origin is Annotated else get_args(kind)

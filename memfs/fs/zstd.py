"""Compresses and decompresses Zstandard streams; the only module that imports ``zstandard``.

Compressed bytes are never trusted: output is bounded, and a stream that is damaged or cut off raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from memfs.errors import CorruptRecord

if TYPE_CHECKING:
    import zstandard


LEVEL = 10
_PIECE = 1 << 17
_WINDOW = 1 << 27
_MOST_THREADS = 8
_HINT = "restore the file from a clone or a backup"


class CompressedDamaged(CorruptRecord):
    """Compressed bytes are damaged, cut off, or hold more than they may."""


class ZstdWriter(Protocol):
    """Takes bytes and hands them on compressed; ``close`` ends the frame."""

    def write(self, data: bytes) -> int:
        """Compress more; return how many bytes were taken."""

    def close(self) -> None:
        """End the frame and hand on what is left."""


def open_writer(
    sink: Callable[[bytes], object], level: int = LEVEL, threads: int = 0, size: int | None = None
) -> ZstdWriter:
    """A writer of one frame, with a checksum of its content.

    Args:
        sink: takes the compressed bytes, piece by piece.
        level: 1 (quick) to 19 (small).
        threads: how many compress beside the caller's; 0 for none. The bytes do not depend on how many, if any.
        size: of the content, where it is known: it is written into the frame.
    """
    return _Writer(sink, _compressor(level, threads), size)


class _Writer:
    def __init__(self, sink: Callable[[bytes], object], compressor: zstandard.ZstdCompressor, size: int | None) -> None:
        self._sink = sink
        self._chunks = compressor.compressobj(size=-1 if size is None else size)

    def write(self, data: bytes) -> int:
        if done := self._chunks.compress(data):
            self._sink(done)
        return len(data)

    def close(self) -> None:
        if done := self._chunks.flush():
            self._sink(done)


def reader(read: Callable[[int], bytes], limit: int | None = None, path: str | None = None) -> Callable[[int], bytes]:
    """A function that reads decompressed bytes, across all frames there are.

    Args:
        read: gives at most so many compressed bytes, b"" at the end.
        limit: how many decompressed bytes there may be; None for any number, as nothing is kept.
        path: names the file in errors.

    Returns:
        A function of how many bytes are wanted: it gives that many, fewer only at the end.

    Raises:
        CompressedDamaged: by the returned function: the bytes are damaged, cut off or hold more than the limit.
    """
    return _Reader(read, limit, path).read


class _Reader:
    """Reads frame after frame; a stream that ends within one is cut off, which the library would pass over."""

    def __init__(self, read: Callable[[int], bytes], limit: int | None, path: str | None) -> None:
        self._source = read
        self._limit = limit
        self._path = path
        self._given = 0
        self._ready = bytearray()
        self._rest = b""
        self._frame: Any = None
        self._frames = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        while len(self._ready) < size and not self._ended:
            self._more()
        given = bytes(self._ready[:size])
        del self._ready[:size]
        return given

    def _more(self) -> None:
        data, self._rest = self._rest or self._source(_PIECE), b""
        if not data:
            self._ended = True
            if self._frame is not None or not self._frames:
                raise CompressedDamaged("the compressed bytes are cut off", path=self._path, hint=_HINT)
            return
        if self._frame is None:
            self._frame = _decompressor().decompressobj(write_size=_PIECE)
            self._frames += 1
        import zstandard

        try:
            self._take(self._frame.decompress(data))
        except zstandard.ZstdError as error:
            raise CompressedDamaged(f"the compressed bytes are damaged: {error}", path=self._path, hint=_HINT) from None
        if self._frame.eof:
            self._rest, self._frame = self._frame.unused_data, None

    def _take(self, data: bytes) -> None:
        self._given += len(data)
        if self._limit is not None and self._given > self._limit:
            raise _too_much(self._limit, self._path)
        self._ready += data


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
    view = memoryview(data)

    def read(size: int) -> bytes:
        nonlocal view
        piece, view = bytes(view[:size]), view[size:]
        return piece

    return reader(read, limit, path)(limit + 1)


def _too_much(limit: int, path: str | None) -> CompressedDamaged:
    return CompressedDamaged(f"the compressed bytes hold more than {limit} bytes", path=path, hint=_HINT)


def _compressor(level: int, threads: int) -> zstandard.ZstdCompressor:
    import zstandard  # takes 5 ms, and most commands compress nothing

    return zstandard.ZstdCompressor(level=level, threads=min(threads, _MOST_THREADS), write_checksum=True)


def _decompressor() -> zstandard.ZstdDecompressor:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_WINDOW)

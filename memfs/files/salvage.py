"""Salvage: what can still be read of a damaged journal, and a new journal made of it.

Owns finding whole records whatever became of the bytes around them. The damaged file is copied aside by the caller
before it is replaced, under the store's lock.
"""

from __future__ import annotations

import json
import secrets
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import FormatUnsupported, JournalDamaged
from memfs.files import io, journalheader
from memfs.files.journalheader import MARK_BYTES, Header

_FRAME = struct.Struct(">8sII")
_FIRST = 512
_LARGE = 1 << 40


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What is left of a damaged journal: a header, whole records as they stand in the file, and how many bytes went."""

    header: Header
    frames: tuple[bytes, ...]
    lost: int

    @property
    def operations(self) -> int:
        """How many of the records are operations."""
        return sum(_kind(frame) == "operation" for frame in self.frames)


def salvage(path: Path) -> Salvaged | None:
    """What can be saved of a journal; None where nothing is damaged, or there is none.

    Raises:
        FormatUnsupported: it is of a newer memfs.
    """
    try:
        data = io.read_file(path)
    except FileNotFoundError:
        return None
    header, start = _header(data, path)
    mark = header.mark if header else _mark(data)
    frames = list(_frames(data, mark, start)) if mark else []
    end = start
    lost = 0
    for position, frame in frames:
        lost += position - end
        end = position + len(frame)
    if header and not lost:
        return None
    torn = len(data) - end if not header and not frames else 0
    found = header or Header(int(time.time()), mark or b"", _LARGE)
    return Salvaged(found, tuple(frame for _, frame in frames), max(0, lost) + torn)


def replace(path: Path, saved: Salvaged) -> None:
    """Put a whole journal with the saved records in the damaged one's place."""
    old = saved.header
    mark = old.mark or secrets.token_bytes(MARK_BYTES)
    header = Header(old.generation + 1, mark, old.total, saved.operations, old.tip)
    io.write_file(path, journalheader.line_of(header) + b"".join(saved.frames))


def _header(data: bytes, path: Path) -> tuple[Header | None, int]:
    """The header and where the records begin; no header, and the file's beginning, where it is damaged."""
    line = data[:_FIRST].split(b"\n")[0]
    try:
        return journalheader.parse(line, str(path)), len(line) + 1
    except JournalDamaged:
        return None, 0
    except FormatUnsupported:
        # A newer format's records look otherwise: where ours follow, it is the number that is damaged.
        if _mark(data):
            return None, 0
        raise


def _mark(data: bytes) -> bytes:
    """The mark of the first record that is whole, b"" where there is none near the beginning."""
    for position in range(min(_FIRST, len(data))):
        frame = _frame(data, position)
        if frame:
            return frame[:MARK_BYTES]
    return b""


def _frames(data: bytes, mark: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    while (position := data.find(mark, position)) >= 0:
        frame = _frame(data, position)
        if frame:
            yield position, frame
        position += len(frame) or 1


def _frame(data: bytes, position: int) -> bytes:
    """The whole record that begins here, b"" where none does."""
    if len(data) - position <= _FRAME.size:
        return b""
    _, length, crc = _FRAME.unpack_from(data, position)
    end = position + _FRAME.size + length
    payload = data[position + _FRAME.size : end]
    whole = 0 < length == len(payload) and zlib.crc32(payload) == crc and _kind_of(payload)
    return data[position:end] if whole else b""


def _kind(frame: bytes) -> str:
    return _kind_of(frame[_FRAME.size :])


def _kind_of(payload: bytes) -> str:
    try:
        return str(json.loads(payload.partition(b"\n")[0])["kind"])
    except (ValueError, KeyError, TypeError):
        return ""

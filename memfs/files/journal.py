"""The journal: every write before it happens, until git holds it.

Owns the record format, appending, reading what other processes appended, and dropping what is committed. It records
what was meant; what became of it (redo, commit, keep a person's change) is the store's decision.

Format, version 1: a header line ``memfs-journal 1 <generation> <mark>``, then frames of mark, length, crc32 and
payload; a payload is one JSON line and the bytes it announces. The mark is random for each file, so that no remembered
text can pass for a frame. A torn last frame is a write that was never acknowledged.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import struct
import threading
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfs.errors import FormatUnsupported, JournalDamaged, StorageIO
from memfs.files import io

_FRAME = struct.Struct(">8sII")
_MARK_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file of an operation: sha256 before and after ("" where absent), and the bytes after (None removes it)."""

    path: str
    old: str
    new: str
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One acknowledged write, of one file or of a batch.

    Attributes:
        id: unique name.
        branch: full ref that was checked out, "" when HEAD was detached.
        time: seconds since 1970.
        message: the commit's sentence.
        batch: whether it must be a commit of its own.
        writers: who wrote, each a mapping with ``agent``, ``session``, ``source`` and ``person``.
    """

    id: str
    branch: str
    time: float
    message: str
    batch: bool
    writers: tuple[dict[str, Any], ...]
    changes: tuple[FileChange, ...]


class Journal:
    """One workspace's journal. Reading needs no lock; appending and dropping need the store's lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = 0
        self.waiting: dict[str, Operation] = {}
        self._latest: dict[str, str] = {}
        self.applied: set[str] = set()
        self.damage: list[JournalDamaged] = []
        self._news: set[str] = set()
        self._gap = False
        self._inode = 0
        self._offset = 0
        self._mark = b""
        self._unmarked: list[str] = []
        self._fd = -1
        self._lock = threading.RLock()

    def close(self) -> None:
        """Release the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # -- reading ------------------------------------------------------------------------------------------------
    def position(self) -> tuple[int, int]:
        """Generation and length as read so far: changes whenever somebody wrote."""
        return self.generation, self._offset

    def latest(self, path: str) -> str | None:
        """The sha256 that the last waiting operation gave a path ("" for a removal), None where none waits."""
        return self._latest.get(path)

    def catch_up(self) -> list[Operation]:
        """Read what was appended since; return the operations that are new to this reader."""
        with self._lock:
            return self._catch_up()

    def news(self) -> set[str] | None:
        """Paths that other processes wrote since the last call; None when some may have been missed."""
        with self._lock:
            self._catch_up()
            news, gap = self._news, self._gap
            self._news, self._gap = set(), False
            return None if gap else news

    def _catch_up(self) -> list[Operation]:
        try:
            facts = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            self._forget()
            return []
        if facts.st_ino == self._inode and facts.st_size == self._offset:
            return []
        known = set(self.waiting)
        if facts.st_ino != self._inode or facts.st_size < self._offset:
            self._open()
        self._parse(self._tail())
        return [operation for name, operation in self.waiting.items() if name not in known]

    def _forget(self) -> None:
        self.close()
        self.generation, self._inode, self._offset = 0, 0, 0
        self.waiting, self.applied, self._latest = {}, set(), {}

    def _open(self) -> None:
        before = self.generation
        self._forget()
        self._fd = io.open_file(self.path, os.O_RDWR)
        self._inode = os.fstat(self._fd).st_ino
        head = os.pread(self._fd, 64, 0).split(b"\n")[0]
        words = head.decode("ascii", "replace").split()
        if len(words) != 4 or words[0] != "memfs-journal" or not words[2].isdigit() or len(words[3]) != 2 * _MARK_BYTES:
            raise JournalDamaged(
                "the journal has no header", path=str(self.path), hint="move it away and run memfs check"
            )
        if words[1] != "1":
            raise FormatUnsupported(
                f"the journal is of format {words[1]}, known is 1", path=str(self.path), hint="use a newer memfs"
            )
        self.generation = int(words[2])
        self._gap = self._gap or before != self.generation
        self._mark = bytes.fromhex(words[3])
        self._offset = len(head) + 1

    def _tail(self) -> bytes:
        chunks = []
        position = self._offset
        with io.operation("read", self.path):
            while chunk := os.pread(self._fd, 1 << 20, position):
                chunks.append(chunk)
                position += len(chunk)
        return b"".join(chunks)

    def _parse(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            payload, end = self._frame(data, position)
            if payload is None:
                following = self._next_frame(data, position + 1)
                if following < 0:
                    break
                self._report_damage(self._offset + position, following - position)
                position = following
                continue
            self._take(payload)
            position = end
        self._offset += position

    def _take(self, payload: bytes) -> None:
        line, _, bodies = payload.partition(b"\n")
        record = json.loads(line)
        if record["kind"] == "operation":
            operation = _operation(record, bodies)
            self._add(operation)
            self._news.update(change.path for change in operation.changes)
        elif record["kind"] == "applied":
            self.applied.add(record["id"])
        elif record["kind"] == "void":
            self._discard(record["id"])

    def _add(self, operation: Operation) -> None:
        self.waiting[operation.id] = operation
        self._latest.update((change.path, change.new) for change in operation.changes)

    def _discard(self, operation_id: str) -> None:
        self.applied.discard(operation_id)
        if self.waiting.pop(operation_id, None) is not None:
            self._latest = {}
            for operation in self.waiting.values():
                self._latest.update((change.path, change.new) for change in operation.changes)

    def _report_damage(self, offset: int, length: int) -> None:
        self.damage.append(
            JournalDamaged(
                f"{length} bytes at offset {offset} are unreadable; the records around them are kept",
                path=str(self.path),
                hint="a write that waited for its commit may be missing: compare your files with git log",
            )
        )

    def _frame(self, data: bytes, position: int) -> tuple[bytes | None, int]:
        if len(data) - position < _FRAME.size:
            return None, position
        mark, length, crc = _FRAME.unpack_from(data, position)
        start = position + _FRAME.size
        payload = data[start : start + length]
        if mark != self._mark or len(payload) != length or zlib.crc32(payload) != crc:
            return None, position
        return payload, start + length

    def _next_frame(self, data: bytes, position: int) -> int:
        while (position := data.find(self._mark, position)) >= 0:
            if self._frame(data, position)[0] is not None:
                return position
            position += 1
        return -1

    # -- writing (under the store's lock) -----------------------------------------------------------------------
    def append(self, operations: Sequence[Operation]) -> None:
        """Write operations and make them durable: on return they survive kill -9 and power loss.

        Raises:
            StorageIO: nothing counts as written, and what did reach the file is cut off again.
        """
        with self._lock:
            self._ready()
            start = self._offset
            marks = [_record("applied", name) for name in self._unmarked]
            try:
                self._write([*marks, *(_payload(operation) for operation in operations)])
                io.fdatasync(self._fd, str(self.path))
            except StorageIO:
                self._take_back(start)
                raise
            self._unmarked.clear()
            for operation in operations:
                self._add(operation)

    def _take_back(self, start: int) -> None:
        with contextlib.suppress(StorageIO):
            io.truncate(self._fd, start, str(self.path))
        self._inode = 0

    def mark_applied(self, operation_id: str) -> None:
        """Note that an operation's files are in place; durable with the next append at the latest.

        A mark that cannot be written now is written with the next append.
        """
        with self._lock:
            self.applied.add(operation_id)
            try:
                self._write([_record("applied", operation_id)])
            except StorageIO:
                self._unmarked.append(operation_id)

    def void(self, operation_id: str) -> None:
        """Take back an operation that could not be carried out and was not acknowledged."""
        with self._lock:
            self._ready()
            self._write([_record("void", operation_id)])
            io.fdatasync(self._fd, str(self.path))
            self._discard(operation_id)

    def drop(self, operation_ids: Iterable[str]) -> None:
        """Forget operations whose commit is durable: a new generation with the rest replaces the file."""
        with self._lock:
            self._catch_up()
            gone = set(operation_ids)
            rest = [operation for name, operation in self.waiting.items() if name not in gone]
            applied = [_record("applied", operation.id) for operation in rest if operation.id in self.applied]
            self._replace([*(_payload(operation) for operation in rest), *applied])

    def _replace(self, payloads: Sequence[bytes]) -> None:
        mark = secrets.token_bytes(_MARK_BYTES)
        header = f"memfs-journal 1 {self.generation + 1} {mark.hex()}\n".encode()
        io.write_file(self.path, header + b"".join(_framed(mark, payload) for payload in payloads))
        self._inode = 0
        gap = self._gap
        self._catch_up()
        self._gap = gap

    def _ready(self) -> None:
        self._catch_up()
        if self._inode == 0:
            self._replace([])
        if os.fstat(self._fd).st_size > self._offset:
            io.truncate(self._fd, self._offset, str(self.path))

    def _write(self, payloads: Sequence[bytes]) -> None:
        view = memoryview(b"".join(_framed(self._mark, payload) for payload in payloads))
        position = self._offset
        while view:
            with io.operation("write", self.path):
                written = os.pwrite(self._fd, view, position)
            position += written
            view = view[written:]
        self._offset = position


def _payload(operation: Operation) -> bytes:
    record = {
        "kind": "operation",
        "id": operation.id,
        "branch": operation.branch,
        "time": operation.time,
        "message": operation.message,
        "batch": operation.batch,
        "writers": list(operation.writers),
        "changes": [
            [change.path, change.old, change.new, -1 if change.data is None else len(change.data)]
            for change in operation.changes
        ],
    }
    return _line(record) + b"".join(change.data or b"" for change in operation.changes)


def _record(kind: str, operation_id: str) -> bytes:
    return _line({"kind": kind, "id": operation_id})


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _framed(mark: bytes, payload: bytes) -> bytes:
    return _FRAME.pack(mark, len(payload), zlib.crc32(payload)) + payload


def _operation(record: dict[str, Any], bodies: bytes) -> Operation:
    changes = []
    position = 0
    for path, old, new, size in record["changes"]:
        data = None if size < 0 else bodies[position : position + size]
        position += max(size, 0)
        changes.append(FileChange(path=path, old=old, new=new, data=data))
    return Operation(
        id=record["id"],
        branch=record["branch"],
        time=record["time"],
        message=record["message"],
        batch=record["batch"],
        writers=tuple(record["writers"]),
        changes=tuple(changes),
    )

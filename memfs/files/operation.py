"""Operation: one acknowledged write, and how it looks as a journal record.

Owns the values and their record form: one JSON line and the bytes it announces. Where records are kept is the journal's
business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


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


def encode(operation: Operation) -> bytes:
    """An operation as a record."""
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


def encode_mark(kind: str, operation_id: str) -> bytes:
    """A record that says something of an operation: ``applied`` or ``void``."""
    return _line({"kind": kind, "id": operation_id})


def _line(record: dict[str, Any]) -> bytes:
    # ASCII: names that are not Unicode travel as escapes and come back as they were.
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def decode(record: dict[str, Any], bodies: bytes) -> Operation:
    """The operation in a record."""
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

"""Operation: one acknowledged write, encoded as a journal record and decoded again.

A record is one JSON line and the bytes it announces.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from memfs.fs.workspace_location import is_own

MARKS = frozenset({"applied", "void", "taken"})
_NAME = re.compile(r"[0-9A-Za-z-]{1,100}")
_DIGEST = re.compile(r"[0-9a-f]{0,64}")
_COMMIT = re.compile(r"(?:[0-9a-f]{40})?")
_LATEST = 253_402_300_799  # the end of the year 9999


class NotARecord(Exception):
    """A frame of the journal holds something that memfs never wrote."""


class FileChange(NamedTuple):
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
        merges: the commit whose line of history this write joins with the branch, "" for none.
    """

    id: str
    branch: str
    time: float
    message: str
    batch: bool
    writers: tuple[dict[str, Any], ...]
    changes: tuple[FileChange, ...]
    merges: str = ""


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
        **({"merges": operation.merges} if operation.merges else {}),
    }
    return _line(record) + b"".join(change.data or b"" for change in operation.changes)


def encode_mark(kind: str, operation_id: str) -> bytes:
    """A record that says something of an operation: ``applied``, ``void`` or ``taken``."""
    return _line({"kind": kind, "id": operation_id})


def _line(record: dict[str, Any]) -> bytes:
    # ASCII: names that are not Unicode travel as escapes and come back as they were.
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def decode(payload: bytes) -> tuple[dict[str, Any], Operation | None]:
    """What a record says, and the operation in it; None where it only says something of one.

    A journal lies in the git folder, which may have been unpacked with all its contents: a record is data, and only one
    that memfs could have written counts.

    Raises:
        NotARecord: memfs never wrote this.
    """
    line, _, bodies = payload.partition(b"\n")
    try:
        record = json.loads(line)
        if record["kind"] == "operation":
            return record, _sound(_operation(record, bodies))
        if record["kind"] in MARKS and _NAME.fullmatch(record["id"]):
            return record, None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise NotARecord(str(error)) from error
    raise NotARecord("unknown")


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
        merges=record.get("merges", ""),
    )


def _sound(operation: Operation) -> Operation:
    """The operation, if it leads nowhere: a name that is a name, files that are memfs's own, a time that is one."""
    texts = [operation.message, operation.branch]
    texts += [writer.get(name, "") for writer in operation.writers for name in ("agent", "session", "source")]
    moment = operation.time
    if not (
        _NAME.fullmatch(operation.id)
        and all(isinstance(text, str) and "\0" not in text for text in texts)
        and not any(mark in operation.branch for mark in " \n")
        and isinstance(operation.merges, str)
        and _COMMIT.fullmatch(operation.merges)
        and isinstance(moment, (int, float))
        and 0 <= moment <= _LATEST
        and all(_is_sound(change) for change in operation.changes)
    ):
        raise NotARecord("not what memfs writes")
    return operation


def _is_sound(change: FileChange) -> bool:
    digests = all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in (change.old, change.new))
    return digests and is_own(change.path)

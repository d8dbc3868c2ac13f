"""Set aside: bytes memfs had written that a person's change displaced before they were committed.

Owns the form in which they are kept outside the working tree: one JSON line that says where they belong, and the bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from memfs.errors import CorruptRecord, MemfsError
from memfs.files import io
from memfs.files.operation import FileChange
from memfs.files.ownpath import is_own
from memfs.files.placing import sha256
from memfs.model import Problem
from memfs.model.problem import WARNING

FOLDER = "recovered"
SUFFIX = ".kept"
DAMAGED = "damaged-"
"""How the names of contents begin that a repair set aside."""
REPLACED = "replaced-"
"""How those begin that no person displaced: a later write of memfs took their place before a commit held them."""
_KEPT_SECONDS = 30 * 86_400
DAMAGED_SUFFIX = ".damaged"
"""Of raw copies of what was damaged: a journal, an object of git."""


def set_aside(state: Path, change: FileChange, name: str) -> Problem:
    """Keep bytes that are not to be written over a person's change where ``memfs recover`` finds them."""
    if change.data is not None:
        keep_aside(state, change.path, change.data, name)
    return Problem(
        path=change.path,
        code="KeptPersonsChange",
        message="this file was changed by hand after memfs wrote it; the hand's version stands",
        hint="memfs recover lists what memfs had written and brings it back",
        severity=WARNING,
    )


def keep_aside(state: Path, path: str, data: bytes, name: str) -> None:
    """Make bytes that are about to lose their place durable outside the working tree."""
    folder = state / FOLDER
    io.make_private_folder(folder)
    header = json.dumps({"path": path, "sha256": _digest(path, data)}).encode("ascii")
    io.write_file(folder / f"{name}{SUFFIX}", header + b"\n" + data)


def keep_replaced(state: Path, path: str, data: bytes) -> None:
    """Keep bytes that memfs itself replaced or removed before any commit held them, for 30 days."""
    keep_aside(state, path, data, f"{REPLACED}{_digest(path, data)[:16]}")
    oldest = time.time() - _KEPT_SECONDS
    with os.scandir(state / FOLDER) as entries:
        for entry in entries:
            if entry.name.startswith(REPLACED) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                io.unlink(entry.path, missing_ok=True)


def read_aside(path: Path) -> tuple[str, bytes]:
    """Where displaced bytes belong, and the bytes.

    Raises:
        CorruptRecord: the file is not one that ``set_aside`` wrote, or no longer what it wrote.
    """
    line, _, data = io.read_file(path).partition(b"\n")
    try:
        header = json.loads(line)
        place, digest = header["path"], header.get("sha256")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        place, digest = None, None
    if not is_own(place):
        raise CorruptRecord("this is no content that was set aside", path=str(path), hint="remove it")
    if digest not in (_digest(place, data), None):  # the first ones had no digest
        raise CorruptRecord("the content that was set aside is damaged", path=str(path), hint="remove it")
    return place, data


def read_all_aside(state: Path) -> Iterator[bytes]:
    """Every content that was set aside and can still be read."""
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(state / FOLDER)):
            if name.endswith(SUFFIX):
                with contextlib.suppress(FileNotFoundError, MemfsError):
                    yield read_aside(state / FOLDER / name)[1]


def _digest(path: str, data: bytes) -> str:
    return sha256(path.encode("utf-8", "surrogateescape") + b"\0" + data)

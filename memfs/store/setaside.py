"""Set aside: bytes memfs had written that a person's change displaced before they were committed.

Owns the form in which they are kept outside the working tree: one JSON line that says where they belong, and the bytes.
"""

from __future__ import annotations

import json
from pathlib import Path

from memfs.errors import CorruptRecord
from memfs.files import io
from memfs.files.operation import FileChange
from memfs.model import Problem
from memfs.model.problem import WARNING

FOLDER = "recovered"
SUFFIX = ".kept"


def set_aside(state: Path, change: FileChange, name: str) -> Problem:
    """Keep bytes that are not to be written over a person's change where ``memfs recover`` finds them."""
    if change.data is not None:
        folder = state / FOLDER
        io.make_private_folder(folder)
        header = json.dumps({"path": change.path}).encode("ascii")
        io.write_file(folder / f"{name}{SUFFIX}", header + b"\n" + change.data)
    return Problem(
        path=change.path,
        code="KeptPersonsChange",
        message="this file was changed by hand after memfs wrote it; the hand's version stands",
        hint="memfs recover lists what memfs had written and brings it back",
        severity=WARNING,
    )


def read_aside(path: Path) -> tuple[str, bytes]:
    """Where displaced bytes belong, and the bytes.

    Raises:
        CorruptRecord: the file is not one that ``set_aside`` wrote.
    """
    line, _, data = io.read_file(path).partition(b"\n")
    try:
        return str(json.loads(line)["path"]), data
    except (ValueError, KeyError, TypeError):
        raise CorruptRecord("this is no content that was set aside", path=str(path), hint="remove it") from None

"""Copies: a workspace copied for a test, as quickly as it goes.

Owns what of it is worth copying. A copy is made for most tests and for every point that a fault tier tries, and what it
writes is the dearest thing about it.
"""

from __future__ import annotations

import os
from pathlib import Path

_BALLAST = "ballast"


def copy_workspace(source: Path, target: Path) -> None:
    """Copy a folder that nobody writes to: bytes, modes and links; times are new. A ballast is as long, but a hole."""
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            copy = target / entry.name
            if entry.is_symlink():
                copy.symlink_to(os.readlink(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                copy_workspace(Path(entry.path), copy)
            else:
                _copy_file(entry, copy)


def _copy_file(entry: os.DirEntry[str], copy: Path) -> None:
    facts = entry.stat(follow_symlinks=False)
    writing = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, facts.st_mode & 0o777)
    with open(writing, "wb") as file:
        if entry.name == _BALLAST:
            file.truncate(facts.st_size)
        else:
            file.write(Path(entry.path).read_bytes())

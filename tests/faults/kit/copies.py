"""Copies: a workspace copied for a test, as quickly as it goes.

Leaves out what is not worth copying: a copy is made for most tests and for every point that a fault tier tries, and
writing it is the most expensive part.
"""

from __future__ import annotations

import os
from pathlib import Path

_BALLAST = "ballast"


def copy_workspace(source: Path, target: Path) -> None:
    """Copy a folder that nobody writes to: bytes, modes and links; times are new. A ballast is as long, but a hole."""
    _copy_folder(os.fspath(source), os.fspath(target))


def _copy_folder(source: str, target: str) -> None:
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            copy = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), copy)
            elif entry.is_dir(follow_symlinks=False):
                _copy_folder(entry.path, copy)
            else:
                _copy_file(entry, copy)


def _copy_file(entry: os.DirEntry[str], copy: str) -> None:
    facts = entry.stat(follow_symlinks=False)
    size = facts.st_size
    writing = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, facts.st_mode & 0o777)
    try:
        if entry.name == _BALLAST:
            os.truncate(writing, size)
        elif size:
            reading = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                while data := os.read(reading, size):
                    assert os.write(writing, data) == len(data)
            finally:
                os.close(reading)
    finally:
        os.close(writing)

"""Place: where the caches of a workspace and of its repository lie.

Owns the names of their folders: in the user's cache, so that nothing of them ever comes with a cloned workspace; and
what is remembered of them, so that an erase finds each. What lies in them belongs to those who ask for one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memfs.errors import MemfsError, StorageIO
from memfs.files import io
from memfs.home import base_folder

PAST = "past"
WHOSE = "whose.json"
"""In each cache: the folder it was made for, with its inode."""
RECORD = "caches"
"""Beside the state folders of a repository: a line of JSON for each cache that was made for it."""
_LARGEST = 1 << 24


def index_folder(root: Path, reader: str = "", record: Path | None = None) -> Path:
    """Where a workspace's index lies: in the user's cache, named by path, inode and user, never in the workspace.

    Args:
        reader: whose index it is, where it is not the workspace's own: another may see other files.
        record: the folder in which the repository remembers it; None where nothing may be written there.
    """
    folder = folder_named(root, reader)
    if record is not None:
        with suppress(MemfsError, OSError):  # a disk that takes no writes keeps nobody from reading
            _remember(record / RECORD, folder, root)
    try:
        io.make_private_folder(folder)
        if not os.path.lexists(folder / WHOSE):
            whose = json.dumps({"root": str(root), "inode": root.stat().st_ino})
            io.write_file(folder / WHOSE, whose.encode(), durable=False)
    except StorageIO:  # a full disk keeps nobody from reading: there is no index then
        if not folder.is_dir() and os.path.lexists(folder):
            raise
    return folder


def folder_named(root: Path, reader: str = "") -> Path:
    """The same, without making it."""
    facts = root.stat()
    named = f"{root}\0{facts.st_ino}\0{os.getuid()}" + (f"\0{reader}" if reader else "")
    key = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:20]
    return cache_home() / key


def cache_home() -> Path:
    """The folder that holds the caches of this user's workspaces, each in one of its own."""
    return base_folder("XDG_CACHE_HOME", ".cache", "Library/Caches") / "memfs"


def past_folder(common_dir: Path) -> Path:
    """Where all that was read of a repository's past lies, for every workspace in it; see ``index_folder``.

    Raises:
        StorageIO: it cannot be made, or this user has no home folder.
    """
    return index_folder(common_dir, PAST, common_dir / "memfs")


def recorded(record: Path) -> Iterator[tuple[Path, Path]]:
    """Each cache that was ever made for a repository, with the folder it was made for; what is no such row is left out.

    Args:
        record: as ``index_folder`` was given it.
    """
    with suppress(MemfsError, OSError):
        for line in io.read_file(record / RECORD, _LARGEST).splitlines():
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                row = json.loads(line)
                yield Path(row["cache"]), Path(row["root"])


def _remember(path: Path, folder: Path, root: Path) -> None:
    """Add a row, durably, before anything is put there. Rows are only ever added: nobody's gets lost by another's."""
    if (folder, root) in recorded(path.parent):
        return
    row = json.dumps({"cache": str(folder), "root": str(root)})
    fd = io.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        io.write_all(fd, f"\n{row}\n".encode(), str(path))
        io.fsync(fd, str(path))
    finally:
        os.close(fd)

"""Place: where the index of a workspace lies.

Owns the folder's name: in the user's cache, so that nothing of it ever comes with a cloned workspace. What lies in it
belongs to the engines and to ``memfs.index.generations``.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from memfs.errors import StorageIO
from memfs.files import io
from memfs.home import home

PAST = "past"


def index_folder(root: Path, reader: str = "") -> Path:
    """Where a workspace's index lies: in the user's cache, named by path, inode and user, never in the workspace.

    Args:
        reader: whose index it is, where it is not the workspace's own: another may see other files.
    """
    folder = folder_named(root, reader)
    try:
        io.make_private_folder(folder)
    except StorageIO:  # a full disk keeps nobody from reading: there is no index then
        if os.path.lexists(folder):
            raise
    return folder


def folder_named(root: Path, reader: str = "") -> Path:
    """The same, without making it."""
    facts = root.stat()
    named = f"{root}\0{facts.st_ino}\0{os.getuid()}" + (f"\0{reader}" if reader else "")
    key = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:20]
    cache = os.environ.get("XDG_CACHE_HOME")
    fallback = home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return (Path(cache) if cache else fallback) / "memfs" / key


def past_folder(common_dir: Path) -> Path:
    """Where all that was read of a repository's past lies, for every workspace in it; see ``index_folder``.

    Raises:
        StorageIO: it cannot be made, or this user has no home folder.
    """
    return index_folder(common_dir, PAST)


def forget_past(common_dir: Path) -> int:
    """Remove all of it; return how many files that were."""
    folder = folder_named(common_dir, PAST)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return 0
    for name in names:
        io.unlink(folder / name, missing_ok=True)
    return len(names)

"""Locates the cache folders of a repository's workspaces, and empties or removes them.

They are found by the repository's own record and by what each cache says of itself, so that those of a workspace that
was moved, removed or mounted are found, too. A cache can always be rebuilt.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.errors import LockTimeout, MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.workspace_location import base_folder
from memfs.search.engine import engine
from memfs.search.generations import LOCK, Generations
from memfs.startup import regex, sha256

SHARED = "past"
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
    return cache_home() / sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:20]


def cache_home() -> Path:
    """The folder that holds the caches of this user's workspaces, each in one of its own."""
    return base_folder("XDG_CACHE_HOME", ".cache", "Library/Caches") / "memfs"


def shared_folder(common_dir: Path) -> Path | None:
    """Where all that is known of contents lies, for every workspace of a repository; see ``index_folder``.

    None where it cannot be made, or this user has no home folder.
    """
    with suppress(MemfsError, OSError):
        return index_folder(common_dir, SHARED, common_dir / "memfs")
    return None


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
    with io.descriptor(io.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)) as fd:
        io.write_all(fd, f"\n{row}\n".encode(), str(path))
        io.fsync(fd, str(path))


_NAME = regex("[0-9a-f]{20}")
_SMALL = 1 << 16
_WAIT = 60.0


class Cache(NamedTuple):
    """One folder of the user's cache.

    Attributes:
        root: the folder that it was made for; None where nobody can tell.
        recorded: whether the repository remembers it as its own.
        orphaned: whether that folder is no longer there, or another one is: nobody will use the cache again.
    """

    folder: Path
    root: Path | None
    recorded: bool
    orphaned: bool


def caches(record: Path) -> list[Cache]:
    """All caches of this user in the places where a repository ever had one, and in today's.

    Args:
        record: the folder in which the repository remembers them (``memfs.search.cache_folders.index_folder``).
    """
    rows = dict(recorded(record))
    homes = {folder.parent for folder in rows}
    with suppress(StorageIO):  # without a home there is none today
        homes.add(cache_home())
    return [_cache(folder, rows) for home in sorted(homes) for folder in _folders(home)]


def empty(cache: Cache) -> int:
    """Remove what lies in a cache, and the folder, too, where nobody will use it again; return how many files.

    Raises:
        LockTimeout: another process is folding the index there.
    """
    with Generations(cache.folder, engine("memory")).lock(_WAIT) as held:
        if not held:
            raise LockTimeout(
                "another process is folding the index", path=str(cache.folder), hint="try again in a moment"
            )
        kept = () if cache.orphaned else (LOCK, WHOSE)
        count = _clear(cache.folder, kept)
    if cache.orphaned:
        with suppress(StorageIO):  # somebody started over there
            io.rmdir(cache.folder)
    return count


def drop(record: Path, of: Callable[[Path], bool]) -> int:
    """Remove every cache that was made for some folders, which nobody will use again; return how many.

    What they share with the repository's other workspaces is emptied: it may hold what only they had.

    Args:
        record: see ``caches``.
        of: whether a folder is one of them.
    """
    count = 0
    for cache in caches(record):
        gone = cache.root is not None and of(cache.root)
        if gone or cache.root == record.parent:
            empty(cache._replace(orphaned=gone))
            count += gone
    return count


def _folders(home: Path) -> Iterator[Path]:
    """The folders in which caches of this user can be: a record may have come with the repository."""
    if home.name != "memfs" or not home.is_absolute():
        return
    with suppress(OSError), os.scandir(home) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            facts = entry.stat(follow_symlinks=False)
            if _NAME.fullmatch(entry.name) and stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
                yield Path(entry.path)


def _cache(folder: Path, rows: dict[Path, Path]) -> Cache:
    try:
        whose = io.read_record(folder / WHOSE, _SMALL)
        root, inode = Path(whose["root"]), whose["inode"]
    except (KeyError, TypeError):
        return Cache(folder, rows.get(folder), folder in rows, orphaned=folder not in rows)
    try:
        there = os.stat(root).st_ino == inode
    except (OSError, ValueError):
        there = False
    return Cache(folder, root, folder in rows, orphaned=not there)


def _clear(folder: Path, kept: tuple[str, ...]) -> int:
    """Remove everything in a folder but some names at its top, following no link; return how many files but locks."""
    names = [name for name in os.listdir(folder) if name not in kept and name != LOCK]
    count = sum(io.remove_all(folder / name) for name in names)
    if LOCK not in kept:
        io.unlink(folder / LOCK, missing_ok=True)
    return count

"""Caches: which folders of the user's cache belong to a repository, and emptying them.

Owns the search for them: by the repository's own record, and by what each cache says of itself, so that those of a
workspace that was moved, removed or mounted are found, too. Whatever lies in a cache can be made again.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import LockTimeout, MemfsError, StorageIO
from memfs.files import io
from memfs.index.engines import engine
from memfs.index.generations import LOCK, Generations
from memfs.index.place import WHOSE, cache_home, recorded

_NAME = re.compile("[0-9a-f]{20}")
_SMALL = 1 << 16
_WAIT = 60.0


@dataclass(frozen=True, slots=True)
class Cache:
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
        record: the folder in which the repository remembers them (``memfs.index.place.index_folder``).
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
        with suppress(StorageIO):  # somebody began anew there
            io.rmdir(cache.folder)
    return count


def drop(record: Path, of: Callable[[Path], bool]) -> int:
    """Remove every cache that was made for some folders, which nobody will use again; return how many.

    Args:
        record: see ``caches``.
        of: whether a folder is one of them.
    """
    found = [cache for cache in caches(record) if cache.root is not None and of(cache.root)]
    for cache in found:
        empty(Cache(cache.folder, cache.root, cache.recorded, orphaned=True))
    return len(found)


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
        whose = json.loads(io.read_file(folder / WHOSE, _SMALL))
        root, inode = Path(whose["root"]), whose["inode"]
    except (MemfsError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return Cache(folder, rows.get(folder), folder in rows, orphaned=folder not in rows)
    try:
        there = os.stat(root).st_ino == inode
    except (OSError, ValueError):
        there = False
    return Cache(folder, root, folder in rows, orphaned=not there)


def _clear(folder: Path, kept: tuple[str, ...]) -> int:
    """Remove everything in a folder but some names at its top, following no link."""
    count = 0
    for place, folders, names in os.walk(folder, topdown=False, followlinks=False):
        for name in names:
            if place != str(folder) or name not in kept:
                io.unlink(os.path.join(place, name), missing_ok=True)
                count += name != LOCK
        for name in folders:
            inner = os.path.join(place, name)
            with suppress(FileNotFoundError):
                io.unlink(inner) if os.path.islink(inner) else io.rmdir(inner)
    return count

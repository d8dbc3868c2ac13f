"""The catalog: what bytes and kind alone decide about a file, in one SQLite file for all worktrees of a repository.

Processes and threads share the file. A fact that is damaged, or made by other rules, is not found: whoever asks makes
it again from the bytes.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from memfs.catalog.database import CacheDatabase
from memfs.errors import IndexUnavailable

FILE = "catalog.sqlite"
_MOST_BYTES = 256 << 20
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS facts (blob TEXT NOT NULL, kind TEXT NOT NULL, maker INTEGER NOT NULL, "
    "json TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (blob, kind, maker)) WITHOUT ROWID"
)
_ASK = "SELECT json, checksum FROM facts WHERE blob = ? AND kind = ? AND maker = ?"
_KEEP = "INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)"

Key = tuple[str, str]
"""A content's id, and what else decides: the name of its kind, and whatever more the maker needs."""


def maker(extractor: str, rules: str) -> int:
    """The number of an extractor that works by these rules; under others it is another one."""
    return crc32(f"{extractor}\0{rules}".encode())


class Catalog:
    """The facts of one repository. May be used from several threads; processes share the file.

    It is bounded, and started over where it is damaged or too large. Where the disk does not take it, facts are kept in
    memory.

    Attributes:
        texts: whether the texts of memories may be among them.
    """

    def __init__(self, folder: Path | None, texts: bool = True, most_bytes: int = _MOST_BYTES) -> None:
        """
        Args:
            folder: the repository's own in the user's cache; None keeps facts in memory.
            texts: without them, a file that may hold some is started over at once.
            most_bytes: beyond this it is started over.
        """
        path = folder / FILE if folder is not None else None
        self._base = CacheDatabase(path, _SCHEMA, "" if texts else "without texts", what="the catalog")
        self._most, self.texts = most_bytes, texts
        if not texts and path is not None and os.path.lexists(path):
            self.found(0, [("", "")])
            self.close()

    def found(self, made_by: int, wanted: Iterable[Key]) -> dict[Key, Any]:
        """The facts that this maker has of these contents, as far as they are kept."""
        keys = list(wanted)

        def act(base: sqlite3.Connection) -> dict[Key, Any]:
            found = {}
            for key in keys:
                row = base.execute(_ASK, (*key, made_by)).fetchone()
                if row is not None and row[1] == _checksum(*key, made_by, row[0]):
                    found[key] = json.loads(row[0])
            return found

        try:
            return self._base.ask(act)
        except IndexUnavailable:
            return {}

    def keep(self, made_by: int, made: Mapping[Key, str]) -> None:
        """Keep facts, each as JSON; where that cannot be done they are made again the next time."""
        rows = [(*key, made_by, fact, _checksum(*key, made_by, fact)) for key, fact in sorted(made.items())]

        def act(base: sqlite3.Connection) -> None:
            if _bytes(base) > self._most:
                base.execute("DELETE FROM facts")
            base.executemany(_KEEP, rows)

        if rows:
            with suppress(IndexUnavailable):
                self._base.change(act)

    def close(self) -> None:
        """Release the file. May be repeated."""
        self._base.close()


def _checksum(*parts: object) -> int:
    return crc32("\0".join(map(str, parts)).encode())


def _bytes(base: sqlite3.Connection) -> int:
    """How many bytes of the file are in use."""
    pages, free, size = (
        base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)

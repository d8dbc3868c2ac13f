"""Row base: one row for each file in a file of the user's cache, so that no process reads all the files again.

Owns that file. It is derived: each row is good only for the very bytes it was made of, and a file that is damaged, or
made under other rules, is begun anew. What rows hold is the business of those who make them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from memfs.index.statebase import StateBase

_VERSION = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS rows (path TEXT PRIMARY KEY, blob TEXT NOT NULL, facts TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
)

Row = TypeVar("Row")


class RowBase:
    """The kept rows of one workspace. Shared by threads and processes.

    Raises (every method):
        IndexUnavailable: the file gives no answer, and neither does a new one.
    """

    def __init__(self, folder: Path, made_by: str, *, file: str, what: str) -> None:
        """
        Args:
            folder: the workspace's own in the user's cache.
            made_by: names the rules by which rows are made; those made by others are dropped.
            file: its name.
            what: what errors call it.
        """
        self._base = StateBase(folder, _SCHEMA, file=file, version=_VERSION, what=what)
        self._made_by = made_by

    def load(self, make: Callable[[list[Any]], list[Row]]) -> list[Row]:
        """All rows that are kept.

        Args:
            make: makes them of what ``keep`` was given; what it finds damaged (``ValueError``) begins the file anew.
        """

        def rows(base: sqlite3.Connection) -> list[Row]:
            if _maker(base) != self._made_by:
                return []
            texts = [facts for (facts,) in base.execute("SELECT facts FROM rows")]
            return make(json.loads(f"[{','.join(texts)}]"))

        return self._base.ask(rows)

    def keep(self, rows: Iterable[tuple[str, str, list[Any]]], gone: Iterable[str] = ()) -> None:
        """Keep rows in place of what their files had, and drop those of other files.

        Args:
            rows: of each its path, what the file held, and what is kept, as JSON can tell it.
        """
        written = [(_key(path), blob, _facts(values)) for path, blob, values in rows]
        dropped = [(_key(path),) for path in gone]
        if not written and not dropped:
            return

        def act(base: sqlite3.Connection) -> None:
            if _maker(base) != self._made_by:
                base.execute("DELETE FROM rows")
                base.execute("INSERT OR REPLACE INTO meta VALUES ('made_by', ?)", (self._made_by,))
            base.executemany("DELETE FROM rows WHERE path = ?", dropped)
            base.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", written)

        self._base.change(act)

    def clear(self) -> None:
        """Forget everything."""
        self._base.clear()

    def close(self) -> None:
        """Release the file."""
        self._base.close()


def _maker(base: sqlite3.Connection) -> str:
    found = base.execute("SELECT value FROM meta WHERE key = 'made_by'").fetchone()
    return str(found[0]) if found else ""


def _key(path: str) -> str:
    """A path as any file may be named, also in bytes that are no text, in a form that SQLite takes."""
    return json.dumps(path)


def _facts(values: list[Any]) -> str:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"))

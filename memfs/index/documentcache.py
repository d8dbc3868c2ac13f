"""DocumentCache: the documents of files met before, by the id git gives to their content.

Owns that file of the user's cache, and how much of it is kept. It is derived: damaged, or made by other rules, it is
begun anew, and a row whose sum is wrong is not found. What a document holds is ``memfs.index.documents``' business.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

from memfs.errors import IndexUnavailable
from memfs.index import documents
from memfs.index.documents import Document, Unfit
from memfs.index.statebase import StateBase

FILE = "documents.sqlite"
_VERSION = 2
_MOST_BYTES = 128 << 20
_AT_ONCE = 500
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS documents (number INTEGER PRIMARY KEY, mark TEXT NOT NULL, path TEXT NOT NULL, "
    "line TEXT NOT NULL, checksum INTEGER NOT NULL, UNIQUE (mark, path));"
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
)
_ASK = "SELECT d.mark, d.path, d.line, d.checksum FROM json_each(?) j CROSS JOIN documents d ON d.mark = j.value"
_NOTE = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
_MAKER, _BYTES = "made_by", "bytes"
_SIZE = "SELECT coalesce(sum(length(line)), 0) FROM documents"
# Of the oldest as many as hold half of all bytes.
_TRIM = (
    "DELETE FROM documents WHERE number IN (SELECT number FROM (SELECT number, sum(length(line)) OVER "
    "(ORDER BY number) AS upto FROM documents) WHERE upto <= ?)"
)


class DocumentCache:
    """The kept documents of one repository. Shared by threads and processes; where it gives no answer, none is kept."""

    def __init__(self, folder: Path | None, made_by: str, most_bytes: int = _MOST_BYTES) -> None:
        """
        Args:
            folder: the repository's own in the user's cache; None keeps nothing.
            made_by: names the rules by which documents are made; those made by others are not found.
            most_bytes: beyond this the oldest half is dropped.
        """
        self._base = (
            StateBase(folder, _SCHEMA, file=FILE, version=_VERSION, what="the cache of the past") if folder else None
        )
        self._made_by = f"{documents.FORM} {made_by}"
        self._most = most_bytes

    def found(self, wanted: Mapping[str, str]) -> dict[str, Document | Unfit]:
        """The documents that are kept of files (path to mark), by path."""
        found: dict[str, Document | Unfit] = {}
        base = self._base
        if base is None:
            return found
        marks = iter(dict.fromkeys(wanted.values()))
        with suppress(IndexUnavailable):
            while some := list(islice(marks, _AT_ONCE)):
                found.update(base.ask(partial(self._some, some, wanted)))
        return found

    def _some(
        self, marks: Collection[str], wanted: Mapping[str, str], base: sqlite3.Connection
    ) -> dict[str, Document | Unfit]:
        if _noted(base, _MAKER) != self._made_by:
            return {}
        rows = [
            (path, line)
            for mark, written, line, checksum in base.execute(_ASK, (json.dumps(list(marks)),))
            if checksum == _checksum(mark, written, line) and wanted.get(path := json.loads(written)) == mark
        ]
        lines: list[Any] = json.loads(f"[{','.join(line for _, line in rows)}]")
        return {path: documents.unpacked(path, values) for (path, _), values in zip(rows, lines, strict=True)}

    def keep(self, made: Iterable[tuple[str, str, Document | Unfit]]) -> None:
        """Keep documents, each with its file's path and mark."""
        plain = [(mark, json.dumps(path), documents.packed(one)) for path, mark, one in made]
        rows = [(*row, _checksum(*row)) for row in plain]

        def act(base: sqlite3.Connection) -> None:
            if _noted(base, _MAKER) != self._made_by:
                base.execute("DELETE FROM documents")
                base.executemany(_NOTE, ((_MAKER, self._made_by), (_BYTES, "0")))
            held = int(_noted(base, _BYTES) or _weighed(base))
            base.executemany("INSERT OR REPLACE INTO documents (mark, path, line, checksum) VALUES (?, ?, ?, ?)", rows)
            self._bound(base, held + sum(len(line) for _, _, line, _ in rows))

        if rows and self._base is not None:
            with suppress(IndexUnavailable):
                self._base.change(act)

    def _bound(self, base: sqlite3.Connection, held: int) -> None:
        """Drop what is too much. ``held`` is never too little; only where it is too much, everything is weighed."""
        if held > self._most:
            held = _weighed(base)
        if held > self._most:
            base.execute(_TRIM, (held - self._most // 2,))
            held = _weighed(base)
        base.execute(_NOTE, (_BYTES, str(held)))

    def close(self) -> None:
        """Release the file."""
        if self._base is not None:
            self._base.close()


def _checksum(*texts: str) -> int:
    return crc32("\0".join(texts).encode())


def _noted(base: sqlite3.Connection, key: str) -> str:
    found = base.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(found[0]) if found else ""


def _weighed(base: sqlite3.Connection) -> int:
    """How many bytes all documents have: every one is read for it."""
    return int(base.execute(_SIZE).fetchone()[0])

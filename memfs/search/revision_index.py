"""Indexes the items of one revision, and caches what a search needs of files that revisions share.

Scores are those of an index made of nothing but that revision's items. The cache is bounded and shared by processes;
where it gives no answer, the documents are made again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

from memfs.errors import IndexUnavailable
from memfs.model import Candidate, Problem, Query
from memfs.search import documents
from memfs.search.cache_database import CacheDatabase
from memfs.search.documents import IndexDocument
from memfs.search.engine import Asked
from memfs.search.memory import MemoryIndex
from memfs.search.merged_search import asked_of


class TreeIndex(MemoryIndex):
    """The items of one revision; nothing in it changes. May be used from several threads."""

    def __init__(self, held: Iterable[tuple[IndexDocument, str]]) -> None:
        """``held``: documents of which no two have one id, each with its content id."""
        super().__init__()
        self._files: list[tuple[str, str, str, int]] = []
        for document, blob in held:
            self.take(document.row, document.terms, document.length)
            self._files.append((document.row.path, document.row.id, blob, document.size))

    def __len__(self) -> int:
        return len(self._files)

    def files(self) -> Iterator[tuple[str, str, str, int]]:
        """Path, id, content id and bytes of every item's file."""
        return iter(self._files)

    @cached_property
    def blobs(self) -> dict[str, str]:
        """Id to content id."""
        return {key: blob for _, key, blob, _ in self._files}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Id, in one case, to path."""
        return {key.casefold(): path for path, key, _, _ in self._files}

    # -- asking (memfs.store.reader.SearchTarget) -----------------------------------------------------------------
    @contextmanager
    def held(self) -> Iterator[None]:
        """One state: there is no other."""
        yield

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties by id; see ``memfs.search.engine.Index``."""
        return super().search(query, hidden, asked or asked_of(query, [self]))


FILE = "documents.sqlite"
_MOST_BYTES = 128 << 20
_AT_ONCE = 500
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS documents (number INTEGER PRIMARY KEY, mark TEXT NOT NULL, path TEXT NOT NULL, "
    "line TEXT NOT NULL, checksum INTEGER NOT NULL, UNIQUE (mark, path))"
)
_ASK = "SELECT d.mark, d.path, d.line, d.checksum FROM json_each(?) j CROSS JOIN documents d ON d.mark = j.value"


class DocumentCache:
    """The cached documents of one repository, by the id git gives to their content. Shared by threads and processes.

    It is started over where it is damaged, made by other rules, or too large. A row with a wrong checksum is not found.
    """

    def __init__(self, folder: Path | None, made_by: str, most_bytes: int = _MOST_BYTES) -> None:
        """
        Args:
            folder: the repository's own in the user's cache; None keeps them in memory.
            made_by: names the rules by which documents are made; those made by others are not found.
            most_bytes: beyond this it is started over.
        """
        path = folder / FILE if folder is not None else None
        self._base = CacheDatabase(path, _SCHEMA, f"{documents.FORM} {made_by}", what="the cache of the past")
        self._most = most_bytes

    def found(self, wanted: Mapping[str, str]) -> dict[str, IndexDocument | Problem]:
        """The documents that are kept of files (path to mark), by path."""
        found: dict[str, IndexDocument | Problem] = {}
        marks = iter(dict.fromkeys(wanted.values()))
        with suppress(IndexUnavailable):
            while some := list(islice(marks, _AT_ONCE)):
                found.update(self._base.ask(partial(self._some, some, wanted)))
        return found

    def _some(
        self, marks: Collection[str], wanted: Mapping[str, str], base: sqlite3.Connection
    ) -> dict[str, IndexDocument | Problem]:
        rows = [
            (path, line)
            for mark, written, line, checksum in base.execute(_ASK, (json.dumps(list(marks)),))
            if checksum == _checksum(mark, written, line) and wanted.get(path := json.loads(written)) == mark
        ]
        lines: list[Any] = json.loads(f"[{','.join(line for _, line in rows)}]")
        return {path: documents.unpacked(path, values) for (path, _), values in zip(rows, lines, strict=True)}

    def keep(self, made: Iterable[tuple[str, str, IndexDocument | Problem]]) -> None:
        """Keep documents, each with its file's path and mark."""
        plain = [(mark, json.dumps(path), documents.packed(one)) for path, mark, one in made]
        rows = [(*row, _checksum(*row)) for row in plain]

        def act(base: sqlite3.Connection) -> None:
            if _bytes(base) > self._most:
                base.execute("DELETE FROM documents")
            base.executemany("INSERT OR REPLACE INTO documents (mark, path, line, checksum) VALUES (?, ?, ?, ?)", rows)

        if rows:
            with suppress(IndexUnavailable):
                self._base.change(act)

    def close(self) -> None:
        """Release the file."""
        self._base.close()


def _checksum(*texts: str) -> int:
    return crc32("\0".join(texts).encode())


def _bytes(base: sqlite3.Connection) -> int:
    """How many bytes of the file are in use."""
    pages, free, size = (
        base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)

"""SqliteIndex: the engine on the SQLite that comes with Python, with nothing to install.

One database file has the postings. They are in segments, each of what was added between two flushes: for each term
which documents of the segment hold it, and its weight there. Small segments are joined when a new one is made.
"""

from __future__ import annotations

import errno
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain
from operator import sub
from pathlib import Path

from memfs.errors import MemfsError
from memfs.fs import io
from memfs.fs.lock import no_fork
from memfs.search import analyzer
from memfs.search.columns import DocumentColumns
from memfs.search.engine import MOST_PENDING, ColumnIndex
from memfs.search.terms import Postings
from memfs.startup import Any

_FILE = "index.sqlite"
_JOINED = 4
"""A segment is joined with a new one that it exceeds by less than this factor."""
_CODES = "BHI"
_ESCAPED = str.maketrans({sign: f"%{ord(sign):02x}" for sign in "%?#"})
"""What a path has in an address of SQLite's in place of the signs that end it there."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS segments (first INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS postings (term TEXT NOT NULL, first INTEGER NOT NULL, steps BLOB NOT NULL,
  weights BLOB NOT NULL, PRIMARY KEY (term, first)) WITHOUT ROWID;
"""


class SqliteIndex(ColumnIndex):
    """An index with its postings in one SQLite file. See ``memfs.search.engine.Index`` for the promises."""

    name = "sqlite"

    def __init__(self, folder: Path, columns: DocumentColumns | None = None) -> None:
        super().__init__(folder, columns)
        self._path = folder / _FILE
        self._open: sqlite3.Connection | None = None
        self._writable = False
        self._pending: dict[str, tuple[array[int], array[int]]] = {}
        self._first = self._after = 0

    # -- writing ----------------------------------------------------------------------------------------------------
    def put(self, number: int, weights: Mapping[str, float]) -> None:
        # never for a document without terms, which may be the last: a commit writes what is pending, or nothing
        if weights and self._pending and number - self._first >= MOST_PENDING:
            self._write_segment()
        if not self._pending:
            self._first = number
        self._after = number + 1
        for term, weight in weights.items():
            held = self._pending.get(term)
            if held is None:
                held = self._pending[term] = array("I"), array("I")
            held[0].append(number)
            held[1].append(int(weight / analyzer.EXTRA_WEIGHT))  # each is a multiple of the least

    def _write_segment(self) -> int:
        """Make a segment of what is pending, joined with those before it that are not much larger; return the number of
        its first document.
        """
        base, number, pending = self._writing(), self._first, self._pending
        self._pending = {}
        for (first,) in base.execute("SELECT first FROM segments ORDER BY first DESC").fetchall():
            if number - first >= _JOINED * (self._after - number):
                break
            number = first
        for term, numbers, weights in _read(base, "WHERE first >= ? ORDER BY term DESC, first DESC", number):
            late = pending.get(term, ((), ()))
            pending[term] = numbers + array("I", late[0]), weights + array("I", late[1])
        base.execute("DELETE FROM segments WHERE first >= ?", (number,))
        base.execute("DELETE FROM postings WHERE first >= ?", (number,))
        base.execute("INSERT INTO segments VALUES (?)", (number,))
        base.executemany(
            "INSERT INTO postings VALUES (?, ?, ?, ?)",
            (
                (term, number, _narrow(array("I", map(sub, numbers, chain((number,), numbers)))), _narrow(weights))
                for term, (numbers, weights) in sorted(pending.items())
            ),
        )
        return number

    def commit(self) -> None:
        if self._pending:
            first, base = self._write_segment(), self._writing()
            base.commit()
            if first == 0:  # all was rewritten, in an order that leaves pages half empty
                base.execute("VACUUM")

    # -- reading ----------------------------------------------------------------------------------------------------
    def read(self, term: str) -> Iterator[Postings]:
        for _, numbers, weights in _read(self._connection(), "WHERE term = ? ORDER BY first", term):
            yield numbers, [weight * analyzer.EXTRA_WEIGHT for weight in weights]

    def terms(self, beginning: str) -> Iterable[str]:
        self.flush()
        if not len(self.known):
            return []
        with self:
            sql = "SELECT DISTINCT term FROM postings WHERE term >= ? AND term < ?"
            return [term for (term,) in self._connection().execute(sql, (beginning, beginning + "\U0010ffff"))]

    # -- the connection ---------------------------------------------------------------------------------------------
    def release(self) -> None:
        if self._open is not None:
            with no_fork:
                self._open.close()
        self._open, self._writable, self._pending = None, False, {}

    def _connection(self) -> sqlite3.Connection:
        """The open connection; one made for reading trusts that the file does not change."""
        if self._open is None:
            self._open = self._connected("mode=ro&immutable=1")
        return self._open

    def _writing(self) -> sqlite3.Connection:
        if self._open is None or not self._writable:
            if self._open is not None:
                self._open.close()
            if not self.begun:  # else an empty one would take the place of one that is lost
                io.make_private_file(self._path)
            self._open, self._writable = self._connected("mode=rw"), True
            # Durability is the generation's business: it syncs the finished file.
            self._open.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
        return self._open

    def _connected(self, options: str) -> sqlite3.Connection:
        made = sqlite3.connect(
            f"file:{str(self._path).translate(_ESCAPED)}?{options}", uri=True, check_same_thread=False
        )
        made.execute("PRAGMA temp_store = MEMORY")
        return made

    def __enter__(self) -> ColumnIndex:
        no_fork.__enter__()
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        no_fork.__exit__()
        super().__exit__(*raised)

    def translated(self, error: Exception) -> MemfsError | None:
        if not isinstance(error, sqlite3.Error):
            return super().translated(error)
        if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":  # the module's own errors have none
            return io.storage_error(OSError(errno.ENOSPC, str(error)), "write", str(self._path))
        return self.unavailable(str(error))


def _narrow(numbers: array[int]) -> bytes:
    """Numbers in as few bytes each as the largest takes; the first byte says how many those are."""
    most = max(numbers, default=0)
    code = _CODES[(most > 0xFF) + (most > 0xFFFF)]
    return code.encode() + array(code, numbers).tobytes()


def _wide(data: bytes) -> array[int]:
    """The numbers again."""
    numbers = array(chr(data[0]))
    numbers.frombytes(data[1:])
    return numbers


def _read(base: sqlite3.Connection, which: str, value: str | int) -> Iterator[tuple[str, array[int], array[int]]]:
    """Terms with the documents that hold them, and the weights in halves."""
    sql = f"SELECT term, first, steps, weights FROM postings {which}"  # noqa: S608
    for term, first, steps, weights in base.execute(sql, (value,)):
        numbers = array("I", accumulate(_wide(steps), initial=first))[1:]
        yield term, numbers, array("I", _wide(weights))

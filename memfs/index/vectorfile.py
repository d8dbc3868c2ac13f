"""VectorFile: vectors on disk, in one SQLite file that may be deleted at any time.

Owns the file's form: which id has which vector and mark, and vectors by the digest of the text they were made of, so
that a text that comes back is not embedded again. Several processes may use one file. Knows nothing of search.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import threading
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import IndexUnavailable
from memfs.files import io

_FORM = "1"
_BUSY_SECONDS = 5.0
_PAGE_BYTES = 16_384  # so that little of a page is left over beside rows of some kilobytes
_SPARE = 1_000
_UNUSED_SECONDS = 30 * 86_400
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vector (number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS item (id TEXT PRIMARY KEY, mark TEXT NOT NULL, vector INTEGER, changed INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS item_changed ON item (changed);
"""
_ROWS = """SELECT i.changed, i.id, v.numbers FROM item i LEFT JOIN vector v ON v.number = i.vector
  WHERE i.changed > ? ORDER BY i.changed"""
_STEP = "(SELECT coalesce(max(changed), 0) + 1 FROM item)"
_PUT = f"""INSERT INTO item (id, mark, vector, changed)
  SELECT ?, ?, number, {_STEP} FROM vector WHERE digest = ?
  ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, vector = excluded.vector, changed = excluded.changed"""  # noqa: S608
_SWEEP = "DELETE FROM vector WHERE number NOT IN (SELECT vector FROM item WHERE vector IS NOT NULL)"


@dataclass(frozen=True, slots=True)
class Kept:
    """One vector to keep.

    Attributes:
        id: whose it is.
        vector: its numbers.
        mark: what the caller knows the id's state by.
        digest: names the text it was made of; without one the vector is named by its own numbers.
    """

    id: str
    vector: Sequence[float]
    mark: str = ""
    digest: bytes = b""


class VectorFile:
    """The file of one model's vectors. All methods may be called from several threads."""

    def __init__(self, path: Path | None, model: str) -> None:
        """
        Args:
            path: made with the first vector; None keeps everything in memory.
            model: a file that was made for another one is begun anew.
        """
        self._path = path
        self._model = model
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._process = os.getpid()

    # -- reading ----------------------------------------------------------------------------------------------------
    def since(self, clock: int) -> tuple[int, list[tuple[str, bytes | None]]]:
        """What changed after a moment (0: all there is): the moment now, and ids with their numbers, None if gone.

        Numbers are in single precision (``unpacked``).
        """
        with self._using() as base:
            if base is None:
                return clock, []
            rows = base.execute(_ROWS, (clock,)).fetchall()
        found = [(key, numbers) for _, key, numbers in rows if clock or numbers is not None]
        return (rows[-1][0] if rows else clock), found

    def marks(self) -> dict[str, str]:
        """The mark of each id that has a vector."""
        with self._using() as base:
            if base is None:
                return {}
            return dict(base.execute("SELECT id, mark FROM item WHERE vector IS NOT NULL"))

    def version(self) -> int:
        """Another number whenever another connection has written."""
        with self._using() as base:
            return int(base.execute("PRAGMA data_version").fetchone()[0]) if base is not None else 0

    def vector(self, key: str) -> array[float] | None:
        """The vector of an id, None where it has none."""
        with self._using() as base:
            if base is None:
                return None
            sql = "SELECT v.numbers FROM item i JOIN vector v ON v.number = i.vector WHERE i.id = ?"
            row = base.execute(sql, (key,)).fetchone()
        return unpacked(row[0]) if row else None

    def size(self) -> int:
        """How many bytes the file has; 0 while there is none."""
        try:
            return self._path.stat().st_size if self._path is not None else 0
        except OSError:
            return 0

    # -- writing ----------------------------------------------------------------------------------------------------
    def write(self, rows: Iterable[Kept]) -> None:
        """Keep these vectors, all or none.

        Raises:
            StorageIO: the file cannot be written.
        """
        packed = [(row, array("f", row.vector).tobytes()) for row in rows]
        named = [(row, row.digest or hashlib.sha256(numbers).digest(), numbers) for row, numbers in packed]
        with self._writing() as base:
            base.executemany(
                "INSERT INTO vector (digest, numbers) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET numbers = ?",
                [(digest, numbers, numbers) for _, digest, numbers in named],
            )
            for row, digest, _ in named:
                base.execute(_PUT, (row.id, row.mark, digest))

    def adopt(self, rows: Sequence[tuple[str, str, bytes]]) -> list[tuple[str, array[float]]]:
        """Give ids (id, mark, digest) the vectors that are kept for their digests; return those that had one.

        Raises:
            StorageIO: the file cannot be written.
        """
        found = []
        with self._writing() as base:
            for key, mark, digest in rows:
                row = base.execute("SELECT numbers FROM vector WHERE digest = ?", (digest,)).fetchone()
                if row:
                    base.execute(_PUT, (key, mark, digest))
                    found.append((key, unpacked(row[0])))
        return found

    def delete(self, keys: Iterable[str]) -> None:
        """Forget these ids, and in the end the vectors that nobody has any more.

        Raises:
            StorageIO: the file cannot be written.
        """
        gone = [(key,) for key in keys]
        if not gone:
            return
        with self._writing() as base:
            sql = f"UPDATE item SET vector = NULL, mark = '', changed = {_STEP} WHERE id = ? AND vector IS NOT NULL"  # noqa: S608
            base.executemany(sql, gone)
            sql = "SELECT (SELECT count(*) FROM vector) - (SELECT count(vector) FROM item)"
            if base.execute(sql).fetchone()[0] > _SPARE:
                base.execute(_SWEEP)

    def close(self) -> None:
        """Release the file; the next call opens it again."""
        with self._lock:
            if self._open is not None and self._path is not None:
                self._open.close()
                self._open = None

    # -- the connection ---------------------------------------------------------------------------------------------
    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection | None]:
        """The connection for reading; None while there is no file."""
        with self._lock:
            self._leave_to_parent()
            if self._open is None and self._path is not None and not self._path.exists():
                yield None
                return
            with self._reported():
                yield self._connection()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._reported():
            self._leave_to_parent()
            base = self._connection()
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
                with io.operation("vectors:commit", str(self._path)):
                    base.execute("COMMIT")
            except BaseException:
                if base.in_transaction:
                    base.execute("ROLLBACK")
                raise

    def _leave_to_parent(self) -> None:
        """A child must not touch the connection of its parent."""
        if self._process != os.getpid() and self._path is not None:
            self._process, self._open = os.getpid(), None

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            opened = self._connected()
            known = dict(opened.execute("SELECT name, value FROM about"))
            if known and (known.get("form"), known.get("model")) != (_FORM, self._model):
                opened.close()
                self._remove()
                opened = self._connected()
            about = [("form", _FORM), ("model", self._model)]
            opened.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", about)
            self._open = opened
        return self._open

    def _connected(self) -> sqlite3.Connection:
        if self._path is not None:
            io.make_private_folder(self._path.parent)
            sweep(self._path.parent, self._path)
            io.make_private_file(self._path)
        opened = sqlite3.connect(
            self._path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            opened.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            opened.execute("PRAGMA synchronous = NORMAL")
            opened.executescript(_SCHEMA)
        except BaseException:
            opened.close()
            raise
        return opened

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Tells a disk that refuses (StorageIO) from a damaged file (IndexUnavailable), which is removed."""
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            name = getattr(error, "sqlite_errorname", "")
            if name in ("SQLITE_FULL", "SQLITE_BUSY", "SQLITE_READONLY", "SQLITE_CANTOPEN") or "IOERR" in name:
                number = {"SQLITE_FULL": errno.ENOSPC, "SQLITE_READONLY": errno.EROFS}.get(name, errno.EIO)
                raise io.storage_error(OSError(number, str(error)), "write", str(self._path)) from error
            self._remove()
            raise IndexUnavailable(
                f"the kept vectors cannot be read: {error}", path=str(self._path), hint="they are made anew"
            ) from error

    def _remove(self) -> None:
        self.close()
        if self._path is not None:
            remove(self._path)


def remove(path: Path) -> None:
    """Remove a file of vectors with what SQLite keeps beside it."""
    for name in (path, path.with_name(path.name + "-journal")):
        io.unlink(name, missing_ok=True)


def sweep(folder: Path, keep: Path) -> None:
    """Remove the vectors of other models that have not been written to for a month."""
    for path in folder.glob("*.sqlite"):
        with suppress(OSError):
            if path != keep and time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
                remove(path)


def unpacked(numbers: bytes) -> array[float]:
    """The vector that these bytes are; what is left over of a damaged one does not count."""
    vector = array("f")
    vector.frombytes(numbers[: len(numbers) // vector.itemsize * vector.itemsize])
    return vector

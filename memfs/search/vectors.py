"""VectorStore: stores vectors by id, and finds those nearest to another one.

They are kept in one SQLite file for each model, which is a cache, and in memory. NumPy makes the search fast; without
it the same is computed number by number, which does for some thousand vectors.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import threading
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from heapq import nsmallest
from math import isfinite
from operator import mul
from pathlib import Path
from typing import Any, Protocol, TypeVar

from memfs.errors import ExtraMissing, IndexUnavailable, ItemNotFound, QueryInvalid
from memfs.fs import io
from memfs.fs.lock import renewed_in_child
from memfs.search.embedder import Vector, unit

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
class VectorRow:
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
    """The SQLite file of one model's vectors. All methods may be called from several threads.

    It may be deleted at any time. Vectors are kept by the digest of their text, too, so that a text that comes back is
    not embedded again.
    """

    def __init__(self, path: Path | None, model: str) -> None:
        """
        Args:
            path: made with the first vector; None keeps everything in memory.
            model: a file that was made for another one is started over.
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
    def write(self, rows: Iterable[VectorRow]) -> None:
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


Answer = TypeVar("Answer")

_ROOM = 256
_BYTES = 4


@dataclass(frozen=True, slots=True)
class Near:
    """A vector that was found: its id, and its cosine to what was asked."""

    id: str
    similarity: float


def numeric() -> Any:
    """NumPy.

    Raises:
        ExtraMissing: it is not installed.
    """
    found = _numpy()
    if found is None:
        raise ExtraMissing(
            "this embedder needs NumPy", field="numpy", hint="install it with: pip install 'gitmemfs[embeddings]'"
        )
    return found


@cache
def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


class VectorStore:
    """Vectors of one model. All methods may be called from several threads; what other processes store is found, too.

    Where the file turns out to be damaged it is removed and started over: it is a cache.
    """

    def __init__(self, path: Path | None = None, model: str = "") -> None:
        """
        Args:
            path: the file that keeps them, made with the first vector; None keeps them in memory.
            model: whose vectors they are; a file of another model's is started over.
        """
        self._file = VectorFile(path, model)
        self._lock = threading.RLock()
        renewed_in_child(self)
        self._rows: Rows | None = None  # NumPy is brought in with the first look at them
        self._clock = 0
        self._version = -1

    # -- one at a time ----------------------------------------------------------------------------------------------
    def store(self, id: str, vector: Vector) -> None:  # noqa: A002
        """Keep a vector under an id, in place of any before it.

        Raises:
            QueryInvalid: it is not as long as the others, or holds what is no number.
            StorageIO: the file cannot be written.
        """
        self.store_all([VectorRow(id, vector)])

    def update(self, id: str, vector: Vector) -> None:  # noqa: A002
        """Replace the vector of an id that has one.

        Raises:
            ItemNotFound: it has none.
            QueryInvalid, StorageIO: as ``store``.
        """
        with self._lock:
            if id not in self._current():
                raise ItemNotFound(f"no vector is kept for {id!r}", field="id", hint="store it first")
            self.store(id, vector)

    def delete(self, id: str) -> bool:  # noqa: A002
        """Forget the vector of an id; whether there was one."""
        with self._lock:
            there = id in self._current()
            self.forget([id])
            return there

    def get(self, id: str) -> list[float] | None:  # noqa: A002
        """The vector of an id as it was stored, in single precision; None where there is none."""
        found = self._tried(lambda: self._file.vector(id))
        return list(found) if found is not None else None

    def get_all(self) -> dict[str, list[float]]:
        """Every vector by id, as it was stored."""
        _, rows = self._tried(lambda: self._file.since(0)) or (0, [])
        return {key: list(unpacked(numbers)) for key, numbers in rows if numbers is not None}

    def count(self) -> int:
        """How many there are."""
        with self._lock:
            return len(self._current())

    # -- many at a time ---------------------------------------------------------------------------------------------
    def store_all(self, rows: Iterable[VectorRow]) -> None:
        """Keep several, all or none.

        Raises:
            QueryInvalid, StorageIO: as ``store``.
        """
        given = list(rows)
        with self._lock:
            current = self._current()
            for row in given:
                _check(row.vector, current.length or len(given[0].vector))
            self._tried(lambda: self._file.write(given), again=True)
            for row in given:
                current.put(row.id, row.vector)

    def adopt(self, rows: Iterable[tuple[str, str, bytes]]) -> set[str]:
        """Give ids (id, mark, digest) the vectors that are kept for their texts; return the ids that got one.

        Raises:
            StorageIO: the file cannot be written.
        """
        given = list(rows)
        with self._lock:
            current = self._current()
            found = self._tried(lambda: self._file.adopt(given)) or []
            for key, vector in found:
                current.put(key, vector)
            return {key for key, _ in found}

    def forget(self, ids: Iterable[str]) -> None:
        """Forget the vectors of these ids; unknown ones are ignored.

        Raises:
            StorageIO: the file cannot be written.
        """
        with self._lock:
            current = self._current()
            gone = [key for key in ids if key in current]
            self._tried(lambda: self._file.delete(gone))
            for key in gone:
                current.drop(key)

    def marks(self) -> dict[str, str]:
        """What each id was marked with when its vector was stored."""
        return self._tried(self._file.marks) or {}

    def size(self) -> int:
        """What the file weighs, in bytes."""
        return self._file.size()

    def close(self) -> None:
        """Release the file and the copy in memory; the next call opens it again."""
        with self._lock:
            self._file.close()
            self._forget_copy()

    def _forget_copy(self) -> None:
        self._rows, self._clock, self._version = None, 0, -1

    # -- searching --------------------------------------------------------------------------------------------------
    def search(self, vector: Vector, limit: int, threshold: float = 0.7) -> list[Near]:
        """The nearest ``limit`` vectors with a cosine of at least ``threshold``, nearest first, ties by id.

        Raises:
            QueryInvalid: the vector is not as long as those that are kept.
        """
        with self._lock:
            current = self._current()
            if not len(current):
                return []
            _check(vector, current.length)
            return current.nearest(unit(vector), limit, threshold)

    def similarities(self, vector: Vector, ids: Collection[str]) -> dict[str, float]:
        """The cosine of each of these ids that has a vector.

        Raises:
            QueryInvalid: as ``search``.
        """
        with self._lock:
            current = self._current()
            known = [key for key in ids if key in current]
            if not known:
                return {}
            _check(vector, current.length)
            return current.cosines(unit(vector), known)

    def _current(self) -> Rows:
        """The copy in memory, in step with the file."""
        version = self._tried(self._file.version) or 0
        if version != self._version:
            self._clock, changed = self._tried(lambda: self._file.since(self._clock)) or (self._clock, [])
            self._held().take(changed)
            self._version = self._tried(self._file.version) or 0 if self._version < 0 else version
        return self._held()

    def _held(self) -> Rows:
        """The copy in memory, as far as it is in step."""
        if self._rows is None:
            self._rows = _rows()
        return self._rows

    def _tried(self, act: Callable[[], Answer], *, again: bool = False) -> Answer | None:
        """What an act on the file gives; None where the file is damaged, and started over."""
        try:
            return act()
        except IndexUnavailable:
            with self._lock:
                self._forget_copy()
            return act() if again else None


class Rows(Protocol):
    """Unit vectors in memory; ``length`` is how many numbers each has, 0 while there is none."""

    length: int

    def __len__(self) -> int: ...

    def __contains__(self, key: object) -> bool: ...

    def take(self, changed: Sequence[tuple[str, bytes | None]]) -> None:
        """Put many as the file has them, and drop those without numbers; what does not fit the others is left out."""

    def put(self, key: str, vector: Vector) -> None:
        """Keep one, brought to length 1."""

    def drop(self, key: str) -> None:
        """Forget one."""

    def nearest(self, asked: Vector, limit: int, threshold: float) -> list[Near]:
        """The nearest, best first, ties by id."""
        ...

    def cosines(self, asked: Vector, keys: Sequence[str]) -> dict[str, float]:
        """The cosine of each of these."""
        ...


class PlainRows:
    """Lists of numbers. See ``Rows``."""

    def __init__(self) -> None:
        self._vectors: dict[str, Vector] = {}
        self.length = 0

    def __len__(self) -> int:
        return len(self._vectors)

    def __contains__(self, key: object) -> bool:
        return key in self._vectors

    def take(self, changed: Sequence[tuple[str, bytes | None]]) -> None:
        for key, numbers in changed:
            vector = unpacked(numbers or b"")
            if numbers is None:
                self.drop(key)
            elif not self.length or len(vector) == self.length:
                self.put(key, vector if all(map(isfinite, vector)) else [0.0] * len(vector))

    def put(self, key: str, vector: Vector) -> None:
        self.length = len(vector)
        self._vectors[key] = unit(vector)

    def drop(self, key: str) -> None:
        self._vectors.pop(key, None)
        if not self._vectors:
            self.length = 0

    def nearest(self, asked: Vector, limit: int, threshold: float) -> list[Near]:
        cosines = self.cosines(asked, list(self._vectors))
        found = ((-cosine, key) for key, cosine in cosines.items() if cosine >= threshold)
        return [Near(key, -less) for less, key in nsmallest(limit, found)]

    def cosines(self, asked: Vector, keys: Sequence[str]) -> dict[str, float]:
        return {key: sum(map(mul, self._vectors[key], asked)) for key in keys}


class MatrixRows:
    """Rows of one NumPy matrix. See ``Rows``."""

    def __init__(self, np: Any) -> None:
        self._np = np
        self._places: dict[str, int] = {}
        self._names: list[str] = []
        self._matrix: Any = None
        self.length = 0

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def take(self, changed: Sequence[tuple[str, bytes | None]]) -> None:
        np = self._np
        size = self.length * _BYTES or next((len(numbers) for _, numbers in changed if numbers), 0)
        fresh = [(key, numbers) for key, numbers in changed if numbers and len(numbers) == size]
        for key, numbers in changed:
            if numbers is None:
                self.drop(key)
        if not fresh or size % _BYTES:
            return
        places = [self._place(key) for key, _ in fresh]
        self._make_room(size // _BYTES)
        rows = np.frombuffer(b"".join(numbers for _, numbers in fresh), dtype=np.float32).reshape(len(fresh), -1)
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self._matrix[places] = rows / np.where(lengths > 0, lengths, 1)

    def put(self, key: str, vector: Vector) -> None:
        place = self._place(key)
        self._make_room(len(vector))
        self._matrix[place] = unit(vector)

    def _place(self, key: str) -> int:
        """The row of a key, the next one where it has none."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._names)
            self._names.append(key)
        return place

    def _make_room(self, length: int) -> None:
        wanted = len(self._names)
        if self._matrix is None:
            self.length = length
            self._matrix = self._np.zeros((max(_ROOM, wanted), length), dtype=self._np.float32)
        elif wanted > len(self._matrix):
            more = max(len(self._matrix), wanted - len(self._matrix))
            self._matrix = self._np.concatenate((self._matrix, self._np.zeros((more, length), dtype=self._np.float32)))

    def drop(self, key: str) -> None:
        place = self._places.pop(key, None)
        if place is None:
            return
        last = self._names.pop()
        if last != key:  # the last row takes the free place
            self._names[place] = last
            self._places[last] = place
            self._matrix[place] = self._matrix[len(self._names)]
        if not self._names:
            self.length, self._matrix = 0, None

    def nearest(self, asked: Vector, limit: int, threshold: float) -> list[Near]:
        np = self._np
        cosines = self._matrix[: len(self._names)] @ np.asarray(asked, dtype=np.float32)
        (places,) = np.nonzero(cosines >= threshold)
        if len(places) > limit:
            # ties at the edge stay in, so that ids decide between them
            edge = np.partition(cosines[places], len(places) - limit)[len(places) - limit]
            places = places[cosines[places] >= edge]
        found = sorted((-float(cosines[place]), self._names[place]) for place in places.tolist())
        return [Near(key, -less) for less, key in found[:limit]]

    def cosines(self, asked: Vector, keys: Sequence[str]) -> dict[str, float]:
        rows = self._matrix[[self._places[key] for key in keys]]
        found = rows @ self._np.asarray(asked, dtype=self._np.float32)
        return dict(zip(keys, found.tolist(), strict=True))


def _rows() -> Rows:
    np = _numpy()
    return PlainRows() if np is None else MatrixRows(np)


def _check(vector: Vector, length: int) -> None:
    """Refuse a vector that does not fit the others."""
    if not len(vector) or len(vector) != length or not all(map(isfinite, vector)):
        raise QueryInvalid(
            f"a vector of {len(vector)} numbers does not fit those of {length}",
            field="vector",
            hint="ask with finite numbers, of the same model",
        )

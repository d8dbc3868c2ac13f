"""VectorStore: stores vectors by id, and finds those nearest to another one.

They are kept in one SQLite file for each model, which is a cache, and in memory. NumPy makes the search fast; without
it the same is computed number by number, which does for some thousand vectors.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from array import array
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from heapq import nsmallest
from math import isfinite
from operator import mul
from pathlib import Path
from typing import Any

from memfs.catalog.database import Database, remove_base
from memfs.errors import ExtraMissing, ItemNotFound, QueryInvalid
from memfs.fs.lock import renewed_in_child
from memfs.search.embedder import Vector, unit

_PAGE_BYTES = 16_384  # so that little of a page is left over beside rows of some kilobytes
_SPARE = 1_000
_UNUSED_SECONDS = 30 * 86_400
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vector (number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS item (id TEXT PRIMARY KEY, mark TEXT NOT NULL, vector INTEGER, changed INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS item_changed ON item (changed)
"""
_ROWS = """SELECT i.changed, i.id, v.numbers FROM item i LEFT JOIN vector v ON v.number = i.vector
  WHERE i.changed > ? ORDER BY i.changed"""
# later than all that a file before this one held, so that nobody who knew that one misses anything
_STEP = "(SELECT max(coalesce(max(changed), 0) + 1, ?) FROM item)"
_PUT = f"""INSERT INTO item (id, mark, vector, changed)
  SELECT ?, ?, number, {_STEP} FROM vector WHERE digest = ?
  ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, vector = excluded.vector, changed = excluded.changed"""  # noqa: S608
_DROP = f"UPDATE item SET vector = NULL, mark = '', changed = {_STEP} WHERE id = ? AND vector IS NOT NULL"  # noqa: S608
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


def _now() -> int:
    return time.time_ns() // 1000


def sweep(folder: Path, keep: Path) -> None:
    """Remove the vectors of other models that have not been written to for a month."""
    for path in folder.glob("*.sqlite"):
        with suppress(OSError):
            if path != keep and time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
                remove_base(path)


def unpacked(numbers: bytes) -> array[float]:
    """The vector that these bytes are; what is left over of a damaged one does not count."""
    vector = array("f")
    vector.frombytes(numbers[: len(numbers) // vector.itemsize * vector.itemsize])
    return vector


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
    """Vectors of one model, in a file and in memory. May be used from several threads; what other processes store is
    found, too.

    The file is a cache: it may be deleted at any time, and one that is damaged is started over. Vectors are kept by the
    digest of their text, too, so that a text that comes back is not embedded again.

    Raises (every method):
        StorageIO: the file cannot be read or written.
    """

    def __init__(self, path: Path | None = None, model: str = "") -> None:
        """
        Args:
            path: the file that keeps them, made with the first vector; None keeps them in memory.
            model: whose vectors they are; a file of another model's is started over.
        """
        self._path = path
        self._base = Database(path, _SCHEMA, model, what="the file of vectors", spare=False, page_bytes=_PAGE_BYTES)
        self._lock = threading.RLock()
        renewed_in_child(self)
        self._rows: PlainRows | MatrixRows | None = None  # NumPy is brought in with the first look at them
        self._clock = 0

    # -- one at a time ----------------------------------------------------------------------------------------------
    def store(self, id: str, vector: Vector) -> None:  # noqa: A002
        """Keep a vector under an id, in place of any before it.

        Raises:
            QueryInvalid: it is not as long as the others, or holds what is no number.
        """
        self.store_all([VectorRow(id, vector)])

    def update(self, id: str, vector: Vector) -> None:  # noqa: A002
        """Replace the vector of an id that has one.

        Raises:
            ItemNotFound: it has none.
            QueryInvalid: as ``store``.
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
        sql = "SELECT v.numbers FROM item i JOIN vector v ON v.number = i.vector WHERE i.id = ?"
        row = self._base.ask(lambda base: base.execute(sql, (id,)).fetchone())
        return list(unpacked(row[0])) if row else None

    def get_all(self) -> dict[str, list[float]]:
        """Every vector by id, as it was stored."""
        _, rows = self._since(0)
        return {key: list(unpacked(numbers)) for key, numbers in rows if numbers is not None}

    def count(self) -> int:
        """How many there are."""
        with self._lock:
            return len(self._current())

    # -- many at a time ---------------------------------------------------------------------------------------------
    def store_all(self, rows: Iterable[VectorRow]) -> None:
        """Keep several, all or none.

        Raises:
            QueryInvalid: as ``store``.
        """
        given = list(rows)
        with self._lock:
            current = self._current()
            for row in given:
                _check(row.vector, current.length or len(given[0].vector))
            self._write(given)

    def _write(self, rows: Iterable[VectorRow]) -> None:
        packed = [(row, array("f", row.vector).tobytes()) for row in rows]
        named = [(row, row.digest or hashlib.sha256(numbers).digest(), numbers) for row, numbers in packed]

        def act(base: sqlite3.Connection) -> None:
            base.executemany(
                "INSERT INTO vector (digest, numbers) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET numbers = ?",
                [(digest, numbers, numbers) for _, digest, numbers in named],
            )
            base.executemany(_PUT, [(row.id, row.mark, _now(), digest) for row, digest, _ in named])

        if self._path is not None:
            sweep(self._path.parent, self._path)
        self._base.change(act)

    def adopt(self, rows: Iterable[tuple[str, str, bytes]]) -> set[str]:
        """Give ids (id, mark, digest) the vectors that are kept for their texts; return the ids that got one."""
        given = list(rows)
        return self._base.change(
            lambda base: {
                key for key, mark, digest in given if base.execute(_PUT, (key, mark, _now(), digest)).rowcount
            }
        )

    def forget(self, ids: Iterable[str]) -> None:
        """Forget the vectors of these ids; unknown ones are ignored. In the end those that nobody has any more go."""
        with self._lock:
            current = self._current()
            gone = [(_now(), key) for key in ids if key in current]

            def act(base: sqlite3.Connection) -> None:
                base.executemany(_DROP, gone)
                sql = "SELECT (SELECT count(*) FROM vector) - (SELECT count(vector) FROM item)"
                if base.execute(sql).fetchone()[0] > _SPARE:
                    base.execute(_SWEEP)

            if gone:
                self._base.change(act)

    def marks(self) -> dict[str, str]:
        """What each id was marked with when its vector was stored."""
        sql = "SELECT id, mark FROM item WHERE vector IS NOT NULL"
        return self._base.ask(lambda base: dict(base.execute(sql)))

    def size(self) -> int:
        """How many bytes the file has; 0 while there is none."""
        try:
            return self._path.stat().st_size if self._path is not None else 0
        except OSError:
            return 0

    def close(self) -> None:
        """Release the file and the copy in memory; the next call opens it again."""
        with self._lock:
            self._base.close()
            self._rows, self._clock = None, 0

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

    def _since(self, clock: int) -> tuple[int, list[tuple[str, bytes | None]]]:
        """What changed after a moment (0: all there is): the moment now, and ids with their numbers, None if gone.

        Numbers are in single precision (``unpacked``).
        """
        rows = self._base.ask(lambda base: base.execute(_ROWS, (clock,)).fetchall())
        found = [(key, numbers) for _, key, numbers in rows if clock or numbers is not None]
        return (rows[-1][0] if rows else clock), found

    def _current(self) -> PlainRows | MatrixRows:
        """The copy in memory, in step with the file."""
        self._clock, changed = self._since(self._clock)
        if self._rows is None:
            np = _numpy()
            self._rows = PlainRows() if np is None else MatrixRows(np)
        self._rows.take(changed)
        return self._rows


class PlainRows:
    """Unit vectors in memory as lists of numbers; ``length`` is how many each has, 0 while there is none."""

    def __init__(self) -> None:
        self._vectors: dict[str, Vector] = {}
        self.length = 0

    def __len__(self) -> int:
        return len(self._vectors)

    def __contains__(self, key: object) -> bool:
        return key in self._vectors

    def take(self, changed: Sequence[tuple[str, bytes | None]]) -> None:
        """Put many as the file has them, and drop those without numbers; what does not fit the others is left out."""
        for key, numbers in changed:
            vector = unpacked(numbers or b"")
            if numbers is None:
                self._vectors.pop(key, None)
            elif not self._vectors or len(vector) == self.length:
                self.length = len(vector)
                self._vectors[key] = unit(vector if all(map(isfinite, vector)) else [0.0] * len(vector))
        if not self._vectors:
            self.length = 0

    def nearest(self, asked: Vector, limit: int, threshold: float) -> list[Near]:
        """The nearest, best first, ties by id."""
        cosines = self.cosines(asked, list(self._vectors))
        found = ((-cosine, key) for key, cosine in cosines.items() if cosine >= threshold)
        return [Near(key, -less) for less, key in nsmallest(limit, found)]

    def cosines(self, asked: Vector, keys: Sequence[str]) -> dict[str, float]:
        """The cosine of each of these."""
        return {key: sum(map(mul, self._vectors[key], asked)) for key in keys}


class MatrixRows:
    """As ``PlainRows``, as rows of one NumPy matrix."""

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
                self._drop(key)
        if not fresh or size % _BYTES:
            return
        places = [self._place(key) for key, _ in fresh]
        self._make_room(size // _BYTES)
        rows = np.frombuffer(b"".join(numbers for _, numbers in fresh), dtype=np.float32).reshape(len(fresh), -1)
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self._matrix[places] = rows / np.where(lengths > 0, lengths, 1)

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

    def _drop(self, key: str) -> None:
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


def _check(vector: Vector, length: int) -> None:
    """Refuse a vector that does not fit the others."""
    if not len(vector) or len(vector) != length or not all(map(isfinite, vector)):
        raise QueryInvalid(
            f"a vector of {len(vector)} numbers does not fit those of {length}",
            field="vector",
            hint="ask with finite numbers, of the same model",
        )

"""VectorTable: keeps vectors by content. VectorStore: finds in memory those nearest to another one.

NumPy makes the search fast; without it the same is computed number by number, which does for some thousand vectors.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nsmallest
from math import isfinite, sqrt
from operator import add, mul, sub
from pathlib import Path
from typing import Any

from memfs.catalog.database import workspace_tables
from memfs.dataclass import dataclass
from memfs.errors import ExtraMissing, ItemNotFound, QueryInvalid
from memfs.fs.lock import reset_on_fork
from memfs.search.embedder import Vector, unit

_ROOM = 256
_BYTES = 4
_LARGEST, _LACKING = 127, -1.0
_CLOSER, _RARE = 5, 10
_PART, _LEAST = 256, 1e-9
"""The fewest vectors whose mean is taken for that of all."""
_BY_BEST = 0.3
"""What nearness to the best counts beside that to what is asked."""
_SIGN = b"1" * 128 + b"0" * 128
"""By the byte of a number below zero "0", else "1"."""


_SPARE = 1_000
_PUT = "INSERT OR REPLACE INTO vectors (blob, text, model, numbers) VALUES (?, ?, ?, ?)"


class VectorTable:
    """Packed vectors by the contents that one model made them of, in the workspace's tables.

    Each has the digest of its text, so that a text that comes back is not embedded again.
    """

    def __init__(self, folder: Path | None, model: str) -> None:
        """``folder``: the workspace's own in the user's cache; None keeps them in memory."""
        self._base, self._model = workspace_tables(folder), model

    def found(self, wanted: Iterable[str], *, of: str = "blob") -> dict[str, bytes]:
        """The vectors that are kept of these contents; with ``of="text"``, of the texts with these digests."""
        sql = f"""SELECT v.{of}, v.numbers FROM json_each(?) w CROSS JOIN vectors v ON v.{of} = w.value
          WHERE v.model = ?"""  # noqa: S608
        values = json.dumps(list(wanted)), self._model
        return self._base.ask(lambda base: dict(base.execute(sql, values)))

    def keep(self, made: Iterable[tuple[str, str, bytes]]) -> None:
        """Keep the vectors of contents, with the digests of their texts: all or none.

        Raises:
            StorageIO: the disk takes no file of them.
        """
        rows = [(blob, text, self._model, numbers) for blob, text, numbers in made]
        self._base.change(lambda base: base.executemany(_PUT, rows))
        if (refusal := self._base.refusal) is not None:  # made again, they may cost minutes, or money
            self._base.try_again()
            raise refusal

    def together(self, base: str) -> bytes:
        """What ``keep_together`` was given for this state of the items, empty where it was given none."""
        sql = "SELECT numbers FROM vectors_together WHERE model = ? AND base = ?"
        found = self._base.ask(lambda base_: base_.execute(sql, (self._model, base)).fetchone())
        return bytes(found[0]) if found else b""

    def keep_together(self, base: str, numbers: bytes) -> None:
        """Keep the vectors of all items of a state in one piece, in place of those of the state before."""
        row = self._model, base, numbers
        self._base.change(lambda base_: base_.execute("INSERT OR REPLACE INTO vectors_together VALUES (?, ?, ?)", row))
        if self._base.refusal is not None:  # they are made again from their rows, which the file still has
            self._base.try_again()

    def sweep(self, blobs: Collection[str]) -> None:
        """Where there are far more than these contents need, delete all others, and those of other models."""

        def act(base: sqlite3.Connection) -> None:
            if base.execute("SELECT count(*) FROM vectors").fetchone()[0] > 2 * len(blobs) + _SPARE:
                sql = "DELETE FROM vectors WHERE model != ? OR blob NOT IN (SELECT value FROM json_each(?))"
                base.execute(sql, (self._model, json.dumps(list(blobs))))
                base.execute("DELETE FROM vectors_together WHERE model != ?", (self._model,))

        self._base.change(act)

    def close(self) -> None:
        """Release the file; the next call opens it again."""
        self._base.close()


@dataclass(frozen=True, slots=True)
class Near:
    """A vector that was found: its id, and its cosine to what was asked."""

    id: str
    similarity: float


def unpacked(numbers: bytes) -> array[float]:
    """The vector that these bytes are; what is left over of a damaged one does not count."""
    vector = array("f")
    vector.frombytes(numbers[: len(numbers) // vector.itemsize * vector.itemsize])
    return vector


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
    """Vectors of one length in memory. May be used from several threads."""

    def __init__(self, *, brief: bool = False) -> None:
        """``brief``: for a process that asks little and ends: directions alone, roughly, without NumPy."""
        self._lock = threading.RLock()
        reset_on_fork(self)
        # NumPy is brought in with the first look at them
        self._rows: FlatRows | MatrixRows | None = FlatRows(brief=True) if brief else None

    # -- one at a time ----------------------------------------------------------------------------------------------
    def store(self, id: str, vector: Vector) -> None:  # noqa: A002
        """Keep a vector under an id, in place of any before it.

        Raises:
            QueryInvalid: it is not as long as the others, or holds what is no number.
        """
        with self._lock:
            self.take({id: self.packed(vector)})

    def update(self, id: str, vector: Vector) -> None:  # noqa: A002
        """Replace the vector of an id that has one.

        Raises:
            ItemNotFound: it has none.
            QueryInvalid: as ``store``.
        """
        with self._lock:
            if id not in self._all:
                raise ItemNotFound(f"no vector is kept for {id!r}", field="id", hint="store it first")
            self.store(id, vector)

    def delete(self, id: str) -> bool:  # noqa: A002
        """Forget the vector of an id; whether there was one."""
        with self._lock:
            there = id in self._all
            self.take({id: None})
            return there

    def get(self, id: str) -> list[float] | None:  # noqa: A002
        """The vector of an id as it was stored, to single precision; None where there is none."""
        with self._lock:
            return self._all.numbers(id) if id in self._all else None

    # -- all together -----------------------------------------------------------------------------------------------
    def get_all(self) -> dict[str, list[float]]:
        """Every vector by id, as it was stored."""
        with self._lock:
            return {key: self._all.numbers(key) for key in self._all}

    def count(self) -> int:
        """How many there are."""
        with self._lock:
            return len(self._all)

    def size(self) -> int:
        """How many bytes their numbers have."""
        with self._lock:
            return len(self._rows) * self._rows.length * _BYTES if self._rows is not None else 0

    def pack(self, ids: Sequence[str]) -> bytes:
        """The vectors of these items in one piece, for ``unpack`` of a store that is as ``brief``."""
        with self._lock:
            return self._all.pack(ids) if isinstance(self._all, FlatRows) and self._all.brief else b""

    def unpack(self, ids: Sequence[str], packed: bytes) -> list[str]:
        """Keep what ``pack`` made of as many items, in place of all; the ids of those that had a vector."""
        with self._lock:
            return self._all.unpack(ids, packed) if isinstance(self._all, FlatRows) and self._all.brief else []

    def packed(self, vector: Vector) -> bytes:
        """A vector as bytes, in single precision.

        Raises:
            QueryInvalid: as ``store``.
        """
        with self._lock:
            _check(vector, self._all.length or len(vector))
        return array("f", vector).tobytes()

    def take(self, changed: Mapping[str, bytes | None]) -> None:
        """Keep packed vectors, and forget the ids without one; what does not fit the others is left out."""
        with self._lock:
            if changed:
                self._all.take(changed)

    def search(
        self, vector: Vector, limit: int, threshold: float = 0.7, but: Collection[str] = frozenset()
    ) -> list[Near]:
        """The nearest ``limit`` vectors with a cosine of at least ``threshold``, nearest first, ties by id.

        Args:
            but: ids that are left out.

        Raises:
            QueryInvalid: the vector is not as long as those that are kept.
        """
        with self._lock:
            if not len(self._all):
                return []
            _check(vector, self._all.length)
            return self._all.nearest(unit(vector), limit, threshold, but)

    def similarities(self, vector: Vector, ids: Collection[str]) -> dict[str, float]:
        """The cosine of each of these ids that has a vector.

        Raises:
            QueryInvalid: as ``search``.
        """
        with self._lock:
            known = [key for key in ids if key in self._all]
            if not known:
                return {}
            _check(vector, self._all.length)
            return self._all.cosines(unit(vector), known)

    def contrasts(self, vector: Vector, worth: Mapping[str, float]) -> dict[str, float]:
        """How near each of these ids that has a vector is to another vector and, at less, to those of the best of them.

        All vectors are taken less their mean, by which what most texts have in common does not count; the mean is that
        of a part of them where there are many.

        Args:
            worth: what each is worth besides; those above their mean are the best.

        Raises:
            QueryInvalid: as ``search``.
        """
        with self._lock:
            known = [key for key in worth if key in self._all]
            if not known:
                return {}
            _check(vector, self._all.length)
            every = [*self._all]
            part = every[:: max(1, len(every) // _PART)]
            middle = self._all.combined(dict.fromkeys(part, 1 / len(part)))
            square = _product(middle, middle)
            sides = {
                key: sqrt(max(1 - 2 * near + square, _LEAST)) for key, near in self._all.cosines(middle, known).items()
            }
            usual = sum(worth[key] for key in known) / len(known)
            best = {key: (worth[key] - usual) / sides[key] for key in known if worth[key] > usual}
            total = sum(best.values())
            theirs = unit([one - total * other for one, other in zip(self._all.combined(best), middle, strict=True)])
            asked = unit(list(map(sub, unit(vector), middle)))
            direction = [one + _BY_BEST * other for one, other in zip(asked, theirs, strict=True)]
            base = _product(middle, direction)
            return {key: (near - base) / sides[key] for key, near in self._all.cosines(direction, known).items()}

    @property
    def _all(self) -> FlatRows | MatrixRows:
        if self._rows is None:
            np = _numpy()
            self._rows = FlatRows() if np is None else MatrixRows(np)
        return self._rows


class _NamedRows:
    """Names of rows, in their order; ``length`` is how many numbers each row has, 0 while there is none."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._names: list[str] = []
        self.length = 0

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def _place(self, key: str) -> int:
        """The row of a key, the next one where it has none."""
        place = self._places.setdefault(key, len(self._names))
        if place == len(self._names):
            self._names.append(key)
        return place

    def _drop(self, key: str) -> int | None:
        """Forget a name; the last row is to take the place that is returned, None where there is no such name."""
        place = self._places.pop(key, None)
        if place is not None and (last := self._names.pop()) != key:
            self._names[place], self._places[last] = last, place
        if not self._names:
            self.length = 0
        return place


class FlatRows(_NamedRows):
    """Vectors in memory, one after the other.

    Brief ones have a byte for each number: the direction of a vector, to about a thousandth of its cosine. Of many,
    those whose numbers have other signs than what is asked are not looked at any closer.
    """

    def __init__(self, *, brief: bool = False) -> None:
        super().__init__()
        self.brief = brief
        self._rows: array[Any] = array("b" if brief else "f")
        self._sizes: array[float] = array("f" if brief else "d")
        self._signs: list[int] | None = None

    def take(self, changed: Mapping[str, bytes | None]) -> None:
        """Put many, and drop those without numbers; what does not fit the others is left out."""
        self._signs = None
        for key, numbers in changed.items():
            vector = unpacked(numbers or b"")
            if numbers is None:
                self._drop(key)
            elif len(vector) == self.length or (vector and not self._names):
                self.length = len(vector)
                self._put(key, vector if all(map(isfinite, vector)) else [0.0] * len(vector))

    def _put(self, key: str, vector: Vector) -> None:
        largest = max(map(abs, vector)) or 1.0
        code = self._rows.typecode
        row = array(code, [round(number / largest * _LARGEST) for number in vector] if self.brief else vector)
        place = self._place(key)
        if place == len(self._sizes):
            self._sizes.append(0.0)
        self._rows[place * self.length : (place + 1) * self.length] = row
        self._sizes[place] = sqrt(sum(map(mul, row, row)))

    def _drop(self, key: str) -> int | None:
        length, place = self.length, super()._drop(key)
        if place is not None:
            row, size = self._rows[-length:], self._sizes.pop()
            del self._rows[-length:]
            if place < len(self._names):
                self._sizes[place] = size
                self._rows[place * length : (place + 1) * length] = row
        return place

    def numbers(self, key: str) -> list[float]:
        """A vector; of a brief one the direction: its length is not kept."""
        place = self._places[key]
        size = (self._sizes[place] or 1.0) if self.brief else 1.0
        return [number / size for number in self._row(place)]

    def _row(self, place: int) -> array[Any]:
        return self._rows[place * self.length : (place + 1) * self.length]

    def nearest(self, query: Vector, limit: int, threshold: float, but: Collection[str]) -> list[Near]:
        """The nearest but these, best first, ties by id."""
        places = [place for place, key in enumerate(self._names) if key not in but]
        likely = self._likely(query, places, _CLOSER * limit) if self.brief else places
        cosines = self.cosines(query, [self._names[place] for place in likely])
        found = ((-cosine, key) for key, cosine in cosines.items() if cosine >= threshold)
        return [Near(key, -less) for less, key in nsmallest(limit, found)]

    def _likely(self, query: Vector, places: Sequence[int], many: int) -> Sequence[int]:
        """Of these the ones whose numbers have most of the signs of what is asked; all where zeros hide the signs."""
        if len(places) <= many:
            return places
        if self._signs is None:
            data, length = self._rows.tobytes(), self.length
            digits = "" if data.count(0) * _RARE > len(data) else data.translate(_SIGN).decode()
            self._signs = [int(digits[start : start + length], 2) for start in range(0, len(digits), length)]
        if not self._signs:
            return places
        wanted = int("".join("01"[number >= 0] for number in query), 2)
        signs = self._signs
        return sorted(places, key=lambda place: (wanted ^ signs[place]).bit_count())[:many]

    def cosines(self, query: Vector, keys: Sequence[str]) -> dict[str, float]:
        """The cosine of each of these."""
        places = [self._places[key] for key in keys]
        sums = (sum(map(mul, self._row(place), query)) for place in places)
        return {key: found / (self._sizes[place] or 1.0) for key, place, found in zip(keys, places, sums, strict=True)}

    def combined(self, shares: Mapping[str, float]) -> Vector:
        """The sum of the directions of some vectors, each times its share."""
        total: Vector = [0.0] * self.length
        for key, share in shares.items():
            place = self._places[key]
            total = list(map(add, total, map((share / (self._sizes[place] or 1.0)).__mul__, self._row(place))))
        return total

    # -- in one piece -----------------------------------------------------------------------------------------------
    def pack(self, ids: Sequence[str]) -> bytes:
        """How many brief ones these are, the lengths of their rows, below zero for what has none, and the rows."""
        places = [self._places.get(key) for key in ids]
        sizes = array("f", [_LACKING if place is None else self._sizes[place] for place in places])
        blank = bytes(self.length)
        rows = [blank if place is None else self._row(place).tobytes() for place in places]
        return b"".join((len(ids).to_bytes(_BYTES, "little"), sizes.tobytes(), *rows))

    def unpack(self, ids: Sequence[str], packed: bytes) -> list[str]:
        """Take what ``pack`` made of as many ids, in place of all; the ids of those that had a row."""
        sizes = array("f")
        head = _BYTES + len(ids) * sizes.itemsize
        length, rest = divmod(len(packed) - head, len(ids)) if ids else (0, 0)
        places = dict(zip(ids, range(len(ids)), strict=True))
        counted = int.from_bytes(packed[:_BYTES], "little")
        if length <= 0 or rest or not len(places) == len(ids) == counted:
            return []
        sizes.frombytes(packed[_BYTES:head])
        self._names, self._sizes, self._rows = list(ids), sizes, array("b", packed[head:])
        self.length, self._places, self._signs = length, places, None
        lacking = [key for key, size in zip(ids, sizes, strict=True) if not size >= 0]
        for key in lacking:
            self._drop(key)
        return self._names


class MatrixRows(_NamedRows):
    """As ``FlatRows``, as rows of one NumPy matrix."""

    def __init__(self, np: Any) -> None:
        super().__init__()
        self._np = np
        self._matrix: Any = None
        self._sizes: dict[str, float] = {}

    def take(self, changed: Mapping[str, bytes | None]) -> None:
        np = self._np
        size = self.length * _BYTES or next((len(numbers) for numbers in changed.values() if numbers), 0)
        fresh = [(key, numbers) for key, numbers in changed.items() if numbers and len(numbers) == size]
        for key, numbers in changed.items():
            if numbers is None:
                self._drop(key)
        if not fresh or size % _BYTES:
            return
        places = [self._place(key) for key, _ in fresh]
        self._make_room(size // _BYTES)
        rows = np.frombuffer(b"".join(numbers for _, numbers in fresh), dtype=np.float32).reshape(len(fresh), -1)
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0).astype(np.float64)  # squares are large
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self._matrix[places] = rows / np.where(lengths > 0, lengths, 1)
        self._sizes.update(zip((key for key, _ in fresh), lengths[:, 0].tolist(), strict=True))

    def numbers(self, key: str) -> list[float]:
        row = self._matrix[self._places[key]].astype(self._np.float64)
        found: list[float] = (row * self._sizes[key]).tolist()
        return found

    def _make_room(self, length: int) -> None:
        rows = len(self._names)
        if self._matrix is None:
            self.length = length
            self._matrix = self._np.zeros((max(_ROOM, rows), length), dtype=self._np.float32)
        elif rows > len(self._matrix):
            more = max(len(self._matrix), rows - len(self._matrix))
            self._matrix = self._np.concatenate((self._matrix, self._np.zeros((more, length), dtype=self._np.float32)))

    def _drop(self, key: str) -> int | None:
        place = super()._drop(key)
        if place is not None:
            del self._sizes[key]
            self._matrix[place] = self._matrix[len(self._names)]
            self._matrix = self._matrix if self._names else None
        return place

    def nearest(self, query: Vector, limit: int, threshold: float, but: Collection[str]) -> list[Near]:
        np, many = self._np, limit + len(but)
        cosines = self._matrix[: len(self._names)] @ np.asarray(query, dtype=np.float32)
        (places,) = np.nonzero(cosines >= threshold)
        if len(places) > many:
            # ties at the edge stay in, so that ids decide between them
            edge = np.partition(cosines[places], len(places) - many)[len(places) - many]
            places = places[cosines[places] >= edge]
        found = sorted((-float(cosines[place]), self._names[place]) for place in places.tolist())
        return [Near(key, -less) for less, key in found if key not in but][:limit]

    def cosines(self, query: Vector, keys: Sequence[str]) -> dict[str, float]:
        rows = self._matrix[[self._places[key] for key in keys]]
        found = rows @ self._np.asarray(query, dtype=self._np.float32)
        return dict(zip(keys, found.tolist(), strict=True))

    def combined(self, shares: Mapping[str, float]) -> Vector:
        rows = self._matrix[[self._places[key] for key in shares]]
        found: Vector = (self._np.fromiter(shares.values(), dtype=self._np.float32) @ rows).tolist()
        return found


def _product(one: Vector, other: Vector) -> float:
    found: float = sum(map(mul, one, other))
    return found


def _check(vector: Vector, length: int) -> None:
    """Refuse a vector that does not fit the others."""
    if not len(vector) or len(vector) != length or not all(map(isfinite, vector)):
        raise QueryInvalid(
            f"a vector of {len(vector)} numbers does not fit those of {length}",
            field="vector",
            hint="ask with finite numbers, of the same model",
        )

"""SqliteIndex: the engine on the SQLite that comes with Python, with nothing to install.

One database file. ``rows`` and ``tags`` filter. Passages are numbered through, an item's one after the other, and an
item is known by the number of its first. They lie in segments, each of what was added between two flushes:
``segments`` has the lengths of its passages, ``postings`` for each term which of them hold it, and its weight there.
Small segments are joined when a new one is made. Scores are computed by our formula, to the last digit as other engines
do.

A removed item's postings and tags stay until the index is rebuilt, under a number that has no row and is not used
again.
"""

from __future__ import annotations

import errno
import json
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from itertools import accumulate, chain
from operator import sub
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memfs.errors import IndexUnavailable
from memfs.fs import io
from memfs.fs.lock import no_fork
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.ids import stem_of
from memfs.search import analyzer, terms
from memfs.search.columns import pack_json, unpack_numbers
from memfs.search.documents import Filter, IndexRow, Place, moment, row_of
from memfs.search.engine import Asked, IndexStats, TermStatistics
from memfs.search.terms import PassageScores, PostingCache, Postings

_FILE = "index.sqlite"
# What a damaged file makes of a query, or of the reading of its rows.
_DAMAGE = (sqlite3.Error, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, UnboundLocalError)
_BATCH = 500
_JOINED = 4
"""A segment that is less than so many times as large as a new one is joined with it."""
_MOST_PENDING = 100_000
_MOST_KNOWN = 4096
_CODES = "BHI"
_EACH = "SELECT value FROM json_each(?)"
_NOT_HIDDEN = f"r.id NOT IN ({_EACH})"
# Ids end with what tells them apart: an index of that is a third of one of ids.
_IS = "substr(r.id, -6) = substr(p.value, -6) AND r.id = p.value"
_AT_PLACE = "r.session = json_extract(p.value, '$[0]') AND r.sequence = json_extract(p.value, '$[1]')"
_FIELDS = tuple(
    "id path type time importance context agent session sequence speaker role asks pinned".split()  # noqa: SIM905
)
_ROW = ", ".join(f"r.{name}" for name in ("docid", *_FIELDS))
_INSERTED = ("docid", "phase", *_FIELDS)
_INSERT = f"INSERT INTO rows ({', '.join(_INSERTED)}) VALUES ({', '.join('?' * len(_INSERTED))})"  # noqa: S608
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (docid INTEGER PRIMARY KEY, type TEXT NOT NULL,
  time INTEGER NOT NULL, id TEXT NOT NULL, path TEXT NOT NULL, importance REAL NOT NULL,
  context TEXT NOT NULL, agent TEXT NOT NULL,
  session TEXT NOT NULL, phase TEXT NOT NULL, sequence INTEGER, speaker TEXT NOT NULL, role TEXT NOT NULL,
  asks INTEGER NOT NULL, pinned INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS rows_id ON rows (substr(id, -6));
CREATE INDEX IF NOT EXISTS rows_time ON rows (time);
CREATE INDEX IF NOT EXISTS rows_type ON rows (type, time);
CREATE INDEX IF NOT EXISTS rows_place ON rows (session, sequence) WHERE sequence IS NOT NULL;
CREATE TABLE IF NOT EXISTS gone (docid INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS tags (tag TEXT NOT NULL, docid INTEGER NOT NULL, PRIMARY KEY (tag, docid)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (first INTEGER PRIMARY KEY, lengths BLOB NOT NULL, places BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS postings (term TEXT NOT NULL, first INTEGER NOT NULL, steps BLOB NOT NULL,
  weights BLOB NOT NULL, PRIMARY KEY (term, first)) WITHOUT ROWID;
"""


class PassageTable:
    """The lengths of passages, and the place of each in its item, by number.

    ``several``: whether any item has more than one.
    """

    def __init__(self, lengths: array[int], places: bytes) -> None:
        self.lengths, self.places = lengths, places
        self.several = bool(places.strip(b"\0"))
        self.average = sum(lengths) / len(lengths) if lengths else 0.0

    def firsts(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Of these passages those of an item that has several, each with the number of the item."""
        places = self.places + b"\0"
        return ((number, number - places[number]) for number in numbers if places[number] or places[number + 1])


class SqliteIndex:
    """An index in one SQLite file in a folder. See ``memfs.search.engine.Index`` for the promises."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / _FILE
        self._open: sqlite3.Connection | None = None
        self._writable = False
        self._dirty = False
        self._held = PostingCache()
        self._known: dict[int, Candidate] = {}
        self._table: PassageTable | None = None
        self._talks: bool | None = None
        self._pending: dict[str, tuple[array[int], array[int]]] = {}
        self._lengths, self._places = array("I"), bytearray()

    # -- writing ----------------------------------------------------------------------------------------------------
    def add(self, items: Iterable[MemoryItem]) -> None:
        chunk: list[MemoryItem] = []
        for item in items:
            chunk.append(item)
            if len(chunk) == _BATCH:
                self._add(chunk)
                chunk = []
        self._add(chunk)

    def _add(self, items: Sequence[MemoryItem]) -> None:
        latest = {item.id: item for item in items}
        if not latest:
            return
        self.remove(latest)
        with self._writing() as base:
            number = len(self._passages().lengths) + len(self._lengths)
            rows, tags = [], []
            for item in latest.values():
                row = row_of(item)
                rows.append((number, *_facts(row)))
                tags += [(_storable(tag), number) for tag in row.tags]
                for place, (weights, length) in enumerate(analyzer.weighted_terms(item)):
                    self._lengths.append(length)
                    self._places.append(place)
                    for term, weight in weights.items():
                        held = self._pending.get(term)
                        if held is None:
                            held = self._pending[term] = array("I"), array("I")
                        held[0].append(number)
                        held[1].append(int(weight / analyzer.EXTRA_WEIGHT))  # each is a multiple of the least
                    number += 1
            base.executemany(_INSERT, rows)
            base.executemany("INSERT INTO tags VALUES (?, ?)", tags)
            if len(self._lengths) > _MOST_PENDING:
                self._write_segment(base)

    def _write_segment(self, base: sqlite3.Connection) -> int:
        """Make a segment of what is pending, joined with those before it that are not much larger; return the number of
        its first passage.
        """
        known = self._passages()
        number, lengths, places = len(known.lengths), self._lengths, bytes(self._places)
        pending = self._pending
        self._pending, self._lengths, self._places = {}, array("I"), bytearray()
        for (first,) in base.execute("SELECT first FROM segments ORDER BY first DESC").fetchall():
            if number - first >= _JOINED * len(lengths):
                break
            lengths, places, number = known.lengths[first:number] + lengths, known.places[first:number] + places, first
        for term, numbers, weights in _read(base, "WHERE first >= ? ORDER BY term DESC, first DESC", number):
            late = pending.get(term, ((), ()))
            pending[term] = numbers + array("I", late[0]), weights + array("I", late[1])
        base.execute("DELETE FROM segments WHERE first >= ?", (number,))
        base.execute("DELETE FROM postings WHERE first >= ?", (number,))
        base.execute("INSERT INTO segments VALUES (?, ?, ?)", (number, _narrow(lengths), places))
        base.executemany(
            "INSERT INTO postings VALUES (?, ?, ?, ?)",
            (
                (term, number, _narrow(array("I", map(sub, numbers, chain((number,), numbers)))), _narrow(weights))
                for term, (numbers, weights) in sorted(pending.items())
            ),
        )
        self._forget()
        return number

    def remove(self, ids: Iterable[str]) -> None:
        gone = list(dict.fromkeys(ids))
        if not gone or self._empty:
            return
        with self._writing() as base:
            sql = f"SELECT r.docid FROM json_each(?) p CROSS JOIN rows r ON {_IS}"  # noqa: S608
            rows = base.execute(sql, (json.dumps(gone),)).fetchall()
            base.executemany("DELETE FROM rows WHERE docid = ?", rows)
            base.executemany("INSERT INTO gone VALUES (?)", rows)

    def flush(self) -> None:
        if self._dirty and self._open is not None:
            with io.operation("index:commit", self._path), self._reported():
                first = self._write_segment(self._open) if self._lengths else None
                self._open.commit()
                if first == 0:  # all was written anew, in an order that leaves pages half empty
                    self._open.execute("VACUUM")
            self._dirty = False

    def clear(self) -> None:
        self.close()
        io.unlink(self._path, missing_ok=True)

    def close(self) -> None:
        if self._open is not None:
            with no_fork:
                self._open.close()
        self._open, self._dirty, self._writable = None, False, False
        self._pending, self._lengths, self._places = {}, array("I"), bytearray()
        self._forget()

    def release(self) -> None:
        self.close()

    def _forget(self) -> None:
        self._held.clear()
        self._known.clear()
        self._table = self._talks = None

    # -- asking -----------------------------------------------------------------------------------------------------
    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        self.flush()
        if self._empty:
            return []
        conditions, values = _conditions(Filter.of(query))
        with self._reported():
            if not query.text:
                where = [*conditions, _NOT_HIDDEN]
                return self._newest(where, [*values, json.dumps(sorted(hidden))], query.limit)
            worth = terms.weights(query.text)
            worth, statistics = asked or (worth, self.statistics(worth))
            passing = self._passing(conditions, values) if conditions else None
            scores = self._scores(worth, statistics, passing)
            return self._best(scores, self._without(hidden, gone=passing is None), query.limit)

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        self.flush()
        if self._empty:
            return 0
        conditions, values = _conditions(Filter.of(query))
        where = " AND ".join((*conditions, _NOT_HIDDEN))
        with self._reported():
            sql = f"SELECT count(*) FROM rows r WHERE {where}"  # noqa: S608
            ((number,),) = self._connection().execute(sql, (*values, json.dumps(sorted(hidden))))
            return int(number)

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        asked = [[session, sequence] for session, sequence in dict.fromkeys(places)]
        return self._matching(_AT_PLACE, asked, query, hidden)

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        return self._matching(_IS, list(dict.fromkeys(ids)), query, hidden)

    def _matching(self, match: str, asked: list[Any], query: Query, hidden: Collection[str]) -> list[Candidate]:
        self.flush()
        if self._empty or not asked:
            return []
        conditions, values = _conditions(Filter.of(query))
        where = " AND ".join((*conditions, _NOT_HIDDEN))
        sql = f"SELECT {_ROW} FROM json_each(?) p CROSS JOIN rows r ON {match} WHERE {where}"  # noqa: S608
        with self._reported():
            rows = self._connection().execute(sql, (json.dumps(asked), *values, json.dumps(sorted(hidden))))
            return [*map(_candidate, rows)]

    def talks(self) -> bool:
        self.flush()
        if self._empty:
            return False
        if self._talks is None:
            with self._reported():
                sql = "SELECT EXISTS (SELECT 1 FROM rows WHERE sequence IS NOT NULL)"
                self._talks = bool(self._connection().execute(sql).fetchone()[0])
        return self._talks

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        self.flush()
        if self._empty:
            return TermStatistics(passages=0, average_length=0.0, frequencies=dict.fromkeys(terms, 0))
        with self._reported():
            known = self._passages()
            frequencies = {term: len(self._postings(term)[0]) for term in terms}
        return TermStatistics(passages=len(known.lengths), average_length=known.average, frequencies=frequencies)

    def terms(self, beginning: str) -> Iterable[str]:
        self.flush()
        if self._empty:
            return []
        with self._reported():
            sql = "SELECT DISTINCT term FROM postings WHERE term >= ? AND term < ?"
            return [term for (term,) in self._connection().execute(sql, (beginning, beginning + "\U0010ffff"))]

    def ids(self) -> Collection[str]:
        self.flush()
        if self._empty:
            return set()
        with self._reported():
            return {key for (key,) in self._connection().execute("SELECT id FROM rows")}

    def stats(self) -> IndexStats:
        self.flush()
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            size = 0
        return IndexStats(engine=self.name, items=len(self.ids()), bytes=size)

    # -- scoring ----------------------------------------------------------------------------------------------------
    def _passages(self) -> PassageTable:
        if self._table is None:
            lengths, places = array("I"), b""
            if not self._empty:
                for some, theirs in self._connection().execute("SELECT lengths, places FROM segments ORDER BY first"):
                    lengths += array("I", _wide(some))
                    places += theirs
            if len(lengths) != len(places):
                raise ValueError("its passages do not fit together")
            self._table = PassageTable(lengths, places)
        return self._table

    def _postings(self, term: str) -> Postings:
        """The passages that hold a term, and its weight in each."""
        if (held := self._held.get(term)) is not None:
            return held
        numbers, weights = array("I"), array("d")
        for _, some, theirs in _read(self._connection(), "WHERE term = ? ORDER BY first", term):
            numbers.extend(some)
            weights.extend([weight * analyzer.EXTRA_WEIGHT for weight in theirs])
        return self._held.hold(term, numbers, weights)

    def _passing(self, conditions: Sequence[str], values: Sequence[Any]) -> set[int]:
        """The items that pass filters."""
        sql = f"SELECT json_group_array(docid) FROM rows r WHERE {' AND '.join(conditions)}"  # noqa: S608
        return set(json.loads(self._connection().execute(sql, values).fetchone()[0]))

    def _without(self, hidden: Collection[str], *, gone: bool) -> set[int]:
        """The items that are hidden, and if wanted those that are gone."""
        sql = f"SELECT r.docid FROM json_each(?) p CROSS JOIN rows r ON {_IS}"  # noqa: S608
        found = self._connection().execute(sql, (json.dumps([*hidden]),)).fetchall() if hidden else []
        found += self._connection().execute("SELECT docid FROM gone").fetchall() if gone else []
        return {docid for (docid,) in found}

    def _scores(
        self, worth: Mapping[str, float], statistics: TermStatistics, passing: Collection[int] | None
    ) -> PassageScores[int]:
        """The score of every passage that holds one of the terms, of the items that pass."""
        first, second = terms.length_terms(statistics.average_length)
        known = self._passages()
        lengths, places = known.lengths, known.places
        firsts: dict[int, int] = {}
        scores = PassageScores(firsts)
        for term, factor in terms.factors(worth, statistics).items():
            numbers, weights = self._postings(term)
            rows: Iterable[tuple[int, float]] = zip(numbers, weights, strict=True)
            if passing is not None:
                rows = [row for row in rows if row[0] - places[row[0]] in passing]
            shares = {number: factor * weight / (weight + first + second * lengths[number]) for number, weight in rows}
            if known.several:
                firsts.update(known.firsts(shares))
            scores.add(shares, shares.values())
        return scores

    def _best(self, found: PassageScores[int], without: Iterable[int], limit: int) -> list[Candidate]:
        scored = found.items()
        for docid in without:
            scored.pop(docid, None)
        chosen = list(scored)
        if len(chosen) > limit:
            least = nlargest(limit, scored.values())[-1]
            chosen = [docid for docid in chosen if scored[docid] >= least]
        known = self._known
        if lacking := [docid for docid in chosen if docid not in known]:
            if len(known) > _MOST_KNOWN:
                known.clear()
            sql = f"SELECT {_ROW} FROM rows r WHERE r.docid IN ({_EACH})"  # noqa: S608
            rows = self._connection().execute(sql, (json.dumps(lacking),))
            known.update((row[0], _candidate(row)) for row in rows)
        best = [_scored(known[docid], scored[docid], found.best(docid) - docid) for docid in chosen if docid in known]
        best.sort(key=lambda candidate: (-candidate.similarity, candidate.id))
        return best[:limit]

    def _newest(self, conditions: Sequence[str], values: Sequence[Any], limit: int) -> list[Candidate]:
        where = " AND ".join(conditions)
        rows = self._connection().execute(
            f"SELECT {_ROW} FROM rows r WHERE {where} ORDER BY r.time DESC, r.id LIMIT ?",  # noqa: S608
            (*values, limit),
        )
        return [*map(_candidate, rows)]

    @property
    def _empty(self) -> bool:
        return self._open is None and not self._path.exists()

    # -- the connection ---------------------------------------------------------------------------------------------
    def _connection(self) -> sqlite3.Connection:
        """The open connection; one made for reading trusts that nobody changes the file."""
        if self._open is None:
            self._open = self._connected("mode=ro&immutable=1")
        return self._open

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reported():
            if self._open is None or not self._writable:
                # What was there when it was opened for reading must still be: else an empty one would take its place.
                mode = "rw" if self._open is not None else "rwc"
                self.close()
                if mode == "rwc":
                    io.make_private_file(self._path)
                self._open = self._connected(f"mode={mode}")
                # Durability is the generation's business: it syncs the finished file.
                self._open.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
                self._writable = True
            self._dirty = True
            yield self._open

    def _connected(self, options: str) -> sqlite3.Connection:
        made = sqlite3.connect(f"file:{quote(str(self._path))}?{options}", uri=True, check_same_thread=False)
        made.execute("PRAGMA temp_store = MEMORY")
        made.execute("PRAGMA mmap_size = 268435456")
        return made

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            with no_fork:
                yield
        except FileNotFoundError as error:
            raise self._unusable(error) from error
        except _DAMAGE as error:
            if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
                full = OSError(errno.ENOSPC, str(error))
                raise io.storage_error(full, "write", str(self._path)) from error
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> IndexUnavailable:
        return IndexUnavailable(
            f"the SQLite index cannot be used: {error}", path=str(self._path), hint="it is rebuilt from the files"
        )


def _conditions(wanted: Filter) -> tuple[list[str], list[Any]]:
    """SQL conditions on a row ``r``, and their values."""
    conditions: list[str] = []
    values: list[Any] = []
    for column in ("type", "agent", "session", "phase"):
        names: Collection[str] = getattr(wanted, f"{column}s")
        if len(names) == 1:
            conditions.append(f"r.{column} = ?")
            values += map(_storable, names)
        elif names:
            conditions.append(f"r.{column} IN ({_EACH})")
            values.append(json.dumps(sorted(names)))
    for sign, time in ((">=", wanted.since), ("<=", wanted.until)):
        if time is not None:
            conditions.append(f"r.time {sign} ?")
            values.append(time)
    for tag in sorted(wanted.tags):
        conditions.append("EXISTS (SELECT 1 FROM tags g WHERE g.tag = ? AND g.docid = r.docid)")
        values.append(_storable(tag))
    if wanted.path:
        prefix = wanted.path.encode("utf-8", "surrogatepass")
        itself, key = wanted.path[:-1], stem_of(wanted.path[:-1])
        conditions.append("(substr(CAST(r.path AS BLOB), 1, ?) = ? OR r.path = ? OR (r.path = ? AND r.id = ?))")
        values += [len(prefix), prefix, *map(_storable, (itself, _shortened(itself, key), key))]
    return conditions, values


def _facts(row: IndexRow) -> Iterator[Any]:
    for name in ("phase", *_FIELDS):
        value = getattr(row, name)
        if name == "context":
            value = pack_json(value).decode() if value else ""
        elif name == "path":
            value = _shortened(value, row.id)
        yield _storable(value) if isinstance(value, str) else value


def _shortened(path: str, key: str) -> str:
    """A path without the file's name where that is the id, so that no id is kept twice."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.removeprefix(key)}" if stem_of(path) == key else path


def _whole(path: str, key: str) -> str:
    """The path again; no name of an item begins with a dot."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{key}{name}" if name.startswith(".") else path


def _storable(text: str) -> str | bytes:
    """A text as it is, or as bytes where it holds what is no character, as an undecodable file name does."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _narrow(numbers: array[int]) -> bytes:
    """Numbers in as few bytes each as the largest takes; the first byte says how many those are."""
    most = max(numbers, default=0)
    code = _CODES[(most > 0xFF) + (most > 0xFFFF)]
    return code.encode() + array(code, numbers).tobytes()


def _wide(data: bytes) -> array[int]:
    """The numbers again."""
    return unpack_numbers(chr(data[0]), memoryview(data)[1:])


def _read(base: sqlite3.Connection, which: str, value: str | int) -> Iterator[tuple[str, array[int], array[int]]]:
    """Terms with the passages that hold them, and the weights in halves."""
    sql = f"SELECT term, first, steps, weights FROM postings {which}"  # noqa: S608
    for term, first, steps, weights in base.execute(sql, (value,)):
        numbers = array("I", accumulate(_wide(steps), initial=first))[1:]
        yield term, numbers, array("I", _wide(weights))


def _scored(one: Candidate, similarity: float, passage: int) -> Candidate:
    key, path, _, *about, _ = one
    return tuple.__new__(Candidate, (key, path, similarity, *about, passage))


def _candidate(row: Sequence[Any]) -> Candidate:
    if bytes in map(type, row):
        row = [value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value for value in row]
    _, key, path, kind, time, importance, context, *talk, asks, pinned = row
    about = kind, moment(time), importance, json.loads(context) if context else {}, *talk, bool(asks), bool(pinned)
    return Candidate._make((key, _whole(path, key), 0.0, *about, 0.0, 0))

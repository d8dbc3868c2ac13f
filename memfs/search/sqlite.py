"""SqliteIndex: the engine on SQLite's FTS5, with nothing to install.

One database file: ``terms`` (FTS5, without a copy of the text) finds and scores, ``rows`` and ``tags`` filter. Our
analyzer cuts the text; FTS5 sees the terms of a passage joined by spaces, under the number of its item with its own in
the lowest bits. FTS5's formula differs from ours in how much very common terms and lengths say: where few enough
passages match, scores are computed by ours, beyond that FTS5's are taken, and corrected for the length.

A removed item's terms and tags stay until the index is rebuilt, under a number that has no row and is not used again.
"""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from math import log
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memfs.errors import IndexUnavailable
from memfs.fs import io
from memfs.fs.lock import no_fork
from memfs.model import Candidate, MemoryItem, Query
from memfs.model.ids import stem_of
from memfs.search import analyzer, terms
from memfs.search.columns import pack_json, pack_numbers, unpack_numbers
from memfs.search.documents import Filter, IndexRow, Place, moment, row_of
from memfs.search.engine import Asked, IndexStats, TermStatistics
from memfs.search.terms import PassageScores

WEIGHTS = f"{analyzer.TITLE_WEIGHT}, {analyzer.BODY_WEIGHT}, {analyzer.EXTRA_WEIGHT}"
_LEAST = 1e-6  # FTS5's idf of a term that more than half of all documents hold
_GRAIN = analyzer.EXTRA_WEIGHT
_FTS5_B = 0.75  # it cannot be changed
_BITS = (analyzer.MOST_PASSAGES - 1).bit_length()
_MASK = (1 << _BITS) - 1


_FILE = "index.sqlite"
# What a damaged file makes of a query, or of the reading of its rows.
_DAMAGE = (sqlite3.Error, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, UnboundLocalError)
_BATCH = 500
_EXACT = 2500
_REMEMBERED = 10_000
_SPARE = 40
_USUAL_LENGTH = 60  # terms of a passage of a long content
_BM25 = f"-bm25(t.terms, {WEIGHTS})"
_SCORED = f"SELECT t.rowid, {_BM25}, r.lengths"
_LENGTH = f"iif(typeof(r.lengths) = 'integer', r.lengths, {_USUAL_LENGTH})"
_AS_OURS = f"SELECT t.rowid, {_BM25} * (1 + ? + ? * {_LENGTH}) / (1 + ? + ? * {_LENGTH}) AS score"
# CROSS makes SQLite ask FTS5 first and look the rows up, never the other way round; what is dead has no row.
_MATCHING = f"FROM terms t CROSS JOIN rows r ON r.docid = (t.rowid >> {_BITS})"
_EACH = "SELECT value FROM json_each(?)"
_AT_PLACE = "r.session = json_extract(p.value, '$[0]') AND r.sequence = json_extract(p.value, '$[1]')"
_FIELDS = tuple(
    "id path type time importance context agent session sequence speaker role asks pinned".split()  # noqa: SIM905
)
_ROW = ", ".join(f"r.{name}" for name in ("docid", *_FIELDS))
_INSERTED = ("docid", "lengths", "phase", *_FIELDS)
_INSERT = f"INSERT INTO rows ({', '.join(_INSERTED)}) VALUES ({', '.join('?' * len(_INSERTED))})"  # noqa: S608
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (docid INTEGER PRIMARY KEY, lengths NOT NULL, type TEXT NOT NULL,
  time INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL, importance REAL NOT NULL,
  context TEXT NOT NULL, agent TEXT NOT NULL,
  session TEXT NOT NULL, phase TEXT NOT NULL, sequence INTEGER, speaker TEXT NOT NULL, role TEXT NOT NULL,
  asks INTEGER NOT NULL, pinned INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS rows_time ON rows (time);
CREATE INDEX IF NOT EXISTS rows_place ON rows (session, sequence) WHERE sequence IS NOT NULL;
CREATE TABLE IF NOT EXISTS tags (tag TEXT NOT NULL, docid INTEGER NOT NULL, PRIMARY KEY (tag, docid)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals (documents INTEGER NOT NULL, passages INTEGER NOT NULL, length INTEGER NOT NULL);
INSERT INTO totals SELECT 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM totals);
CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5 (title, body, extra, content='', tokenize='ascii');
"""


Scored = dict[int, tuple[float, int]]
"""The score of each item and the number of its best passage, by the item's number."""


class SqliteIndex:
    """An FTS5 index in a folder. See ``memfs.search.engine.Index`` for the promises."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / _FILE
        self._open: sqlite3.Connection | None = None
        self._writable = False
        self._dirty = False
        self._frequencies: dict[str, int] = {}
        self._talks: bool | None = None

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
            ((documents, passages, length),) = base.execute("SELECT documents, passages, length FROM totals")
            rows, tags, texts = [], [], []
            for docid, item in enumerate(latest.values(), documents + 1):
                found = analyzer.passage_terms(item)
                lengths = [passage.length for passage in found]
                passages += len(found)
                length += sum(lengths)
                row = row_of(item)
                rows.append((docid, lengths[0] if len(found) == 1 else pack_numbers("I", lengths), *_facts(row)))
                tags += [(_storable(tag), docid) for tag in row.tags]
                for number, passage in enumerate(found, docid << _BITS):
                    texts.append((number, " ".join(passage.title), " ".join(passage.body), " ".join(passage.extra)))
            base.executemany(_INSERT, rows)
            base.executemany("INSERT INTO tags VALUES (?, ?)", tags)
            base.executemany("INSERT INTO terms (rowid, title, body, extra) VALUES (?, ?, ?, ?)", texts)
            base.execute(
                "UPDATE totals SET documents = ?, passages = ?, length = ?", (documents + len(latest), passages, length)
            )

    def remove(self, ids: Iterable[str]) -> None:
        gone = [(key,) for key in dict.fromkeys(ids)]
        if not gone or self._empty:
            return
        with self._writing() as base:
            base.executemany("DELETE FROM rows WHERE id = ?", gone)

    def flush(self) -> None:
        if self._dirty and self._open is not None:
            with io.operation("index:commit", self._path), self._reported():
                self._open.commit()
            self._dirty = False

    def clear(self) -> None:
        self.close()
        io.unlink(self._path, missing_ok=True)

    def close(self) -> None:
        if self._open is not None:
            with no_fork:
                self._open.close()
        self._open, self._dirty, self._writable = None, False, False
        self._forget_counts()

    def release(self) -> None:
        self.close()

    def _forget_counts(self) -> None:
        self._frequencies, self._talks = {}, None

    # -- asking -----------------------------------------------------------------------------------------------------
    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        self.flush()
        if self._empty:
            return []
        conditions, values = _conditions(Filter.of(query))
        covered = json.dumps(sorted(hidden))
        with self._reported():
            if not query.text:
                return self._newest([*conditions, f"r.id NOT IN ({_EACH})"], [*values, covered], query.limit)
            worth, shared = asked or (terms.weights(query.text), None)
            own = self.statistics(worth)
            worth = {term: share for term, share in worth.items() if own.frequencies[term]}
            where = ["t.terms MATCH ?", *conditions]
            if hidden:
                where.append(f"r.id NOT IN ({_EACH})")
                values.append(covered)
            rest = f"{_MATCHING} WHERE {' AND '.join(where)}"
            if sum(own.frequencies.values()) <= _EXACT:
                found = self._exact(worth, own, shared or own, f"{_SCORED} {rest}", values)
            else:
                found = self._quick(worth, own, f"{_AS_OURS} {rest}", values, query.limit)
            return self._best(found, query.limit)

    def count(self, query: Query, hidden: Collection[str] = ()) -> int:
        self.flush()
        if self._empty:
            return 0
        conditions, values = _conditions(Filter.of(query))
        where = " AND ".join((*conditions, f"r.id NOT IN ({_EACH})"))
        with self._reported():
            sql = f"SELECT count(*) FROM rows r WHERE {where}"  # noqa: S608
            ((number,),) = self._connection().execute(sql, (*values, json.dumps(sorted(hidden))))
            return int(number)

    def beside(self, places: Collection[Place], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        asked = [[session, sequence] for session, sequence in dict.fromkeys(places)]
        return self._matching(_AT_PLACE, asked, query, hidden)

    def among(self, ids: Collection[str], query: Query, hidden: Collection[str] = ()) -> list[Candidate]:
        return self._matching("r.id = p.value", list(dict.fromkeys(ids)), query, hidden)

    def _matching(self, match: str, asked: list[Any], query: Query, hidden: Collection[str]) -> list[Candidate]:
        self.flush()
        if self._empty or not asked:
            return []
        conditions, values = _conditions(Filter.of(query))
        where = " AND ".join((*conditions, f"r.id NOT IN ({_EACH})"))
        sql = f"SELECT {_ROW} FROM json_each(?) p CROSS JOIN rows r ON {match} WHERE {where}"  # noqa: S608
        with self._reported():
            rows = self._connection().execute(sql, (json.dumps(asked), *values, json.dumps(sorted(hidden))))
            return [_candidate(row, 0.0) for row in rows]

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
            base = self._connection()
            ((passages, length),) = base.execute("SELECT passages, length FROM totals")
            frequencies = {term: self._frequency(base, term) for term in terms}
        average = length / passages if passages else 0.0
        return TermStatistics(passages=passages, average_length=average, frequencies=frequencies)

    def _frequency(self, base: sqlite3.Connection, term: str) -> int:
        """In how many passages a term occurs; a search asks twice."""
        known = self._frequencies.get(term)
        if known is None:
            if len(self._frequencies) >= _REMEMBERED:
                self._frequencies = {}
            found = base.execute("SELECT doc FROM temp.vocabulary WHERE term = ?", (term,)).fetchone()
            known = self._frequencies[term] = found[0] if found else 0
        return known

    def terms(self, beginning: str) -> Iterable[str]:
        self.flush()
        if self._empty:
            return []
        with self._reported():
            sql = "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ?"
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
    def _exact(
        self,
        worth: Mapping[str, float],
        own: TermStatistics,
        wanted: TermStatistics,
        select: str,
        values: Sequence[Any],
    ) -> Scored:
        """Ask for one term at a time, and reckon by our formula: to the last digit what other engines do.

        A term's weight in a passage follows from FTS5's score and the passage's length; exactly, since every weight
        is a multiple of the least one.
        """
        first, second = terms.length_terms(wanted.average_length)
        own_first, own_second = terms.length_terms(own.average_length, _FTS5_B)
        firsts: dict[int, int] = {}
        scores = PassageScores(firsts)
        for term, factor in terms.factors(worth, wanted).items():
            held = own.frequencies[term]
            idf = log((own.passages - held + 0.5) / (held + 0.5))
            most = (idf if idf > 0 else _LEAST) * (terms.K1 + 1.0)
            shares: dict[int, float] = {}
            for rowid, score, length in self._connection().execute(select, (_phrase(term), *values)):
                if isinstance(length, bytes):
                    firsts[rowid] = rowid & ~_MASK
                    length = unpack_numbers("I", memoryview(length))[rowid & _MASK]
                share = score / most
                weight = round(share / (1.0 - share) * (own_first + own_second * length) / _GRAIN) * _GRAIN
                shares[rowid] = factor * weight / (weight + first + second * length)
            scores.add(shares, shares.values())
        return {first >> _BITS: (score, scores.best(first) & _MASK) for first, score in scores.items().items()}

    def _quick(
        self, worth: Iterable[str], own: TermStatistics, select: str, values: Sequence[Any], limit: int
    ) -> Scored:
        """Let FTS5 score all terms at once; so many are fetched that ties can be broken by id.

        Its scores are turned into ours by the passage's length, exactly so where each term stands in it once.
        """
        asked = limit + _SPARE
        words = " OR ".join(map(_phrase, worth))
        constants = (
            *terms.length_terms(own.average_length, _FTS5_B),
            *terms.length_terms(own.average_length),
        )
        while True:
            found = (
                self._connection()
                .execute(select + " ORDER BY score DESC LIMIT ?", (*constants, words, *values, asked))
                .fetchall()
            )
            best: dict[int, tuple[float, int]] = {}
            for rowid, score in found:
                best.setdefault(rowid >> _BITS, (score, rowid & _MASK))
            enough = len(best) >= limit and found[-1][1] < list(best.values())[limit - 1][0]
            if len(found) < asked or enough:
                return best
            asked *= 4

    def _best(self, scored: Scored, limit: int) -> list[Candidate]:
        chosen = list(scored)
        if len(chosen) > limit:
            least, _ = nlargest(limit, scored.values())[-1]
            chosen = [docid for docid in chosen if scored[docid][0] >= least]
        rows = self._connection().execute(
            f"SELECT {_ROW} FROM rows r WHERE r.docid IN ({_EACH})",  # noqa: S608
            (json.dumps(chosen),),
        )
        found = [_candidate(row, *scored[row[0]]) for row in rows]
        found.sort(key=lambda candidate: (-candidate.similarity, candidate.id))
        return found[:limit]

    def _newest(self, conditions: Sequence[str], values: Sequence[Any], limit: int) -> list[Candidate]:
        where = " AND ".join(conditions)
        rows = self._connection().execute(
            f"SELECT {_ROW} FROM rows r WHERE {where} ORDER BY r.time DESC, r.id LIMIT ?",  # noqa: S608
            (*values, limit),
        )
        return [_candidate(row, 0.0) for row in rows]

    @property
    def _empty(self) -> bool:
        return self._open is None and not self._path.exists()

    # -- the connection ---------------------------------------------------------------------------------------------
    def _connection(self) -> sqlite3.Connection:
        """The open connection; one made for reading trusts that nobody changes the file."""
        if self._open is None:
            place = quote(str(self._path))
            self._open = sqlite3.connect(f"file:{place}?mode=ro&immutable=1", uri=True, check_same_thread=False)
            self._prepare(self._open)
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
                self._open = sqlite3.connect(
                    f"file:{quote(str(self._path))}?mode={mode}", uri=True, check_same_thread=False
                )
                # Durability is the generation's business: it syncs the finished file.
                self._open.execute("PRAGMA journal_mode = OFF")
                self._open.execute("PRAGMA synchronous = OFF")
                self._open.executescript(_SCHEMA)
                self._prepare(self._open)
                self._writable = True
            self._dirty = True
            self._forget_counts()
            yield self._open

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA mmap_size = 268435456")
        connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab ('main', 'terms', 'row')")

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
    for column, names in (
        ("type", wanted.types),
        ("agent", wanted.agents),
        ("session", wanted.sessions),
        ("phase", wanted.phases),
    ):
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


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def _phrase(term: str) -> str:
    return f'"{term}"'


def _candidate(row: Sequence[Any], similarity: float, passage: int = 0) -> Candidate:
    if bytes in map(type, row):
        row = [_text(value) if isinstance(value, bytes) else value for value in row]
    _, key, path, kind, time, importance, context, *talk, asks, pinned = row
    about = kind, moment(time), importance, json.loads(context) if context else {}, *talk, bool(asks), bool(pinned)
    return Candidate._make((key, _whole(path, key), similarity, *about, 0.0, passage))

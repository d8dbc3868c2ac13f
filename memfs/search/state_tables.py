"""The SQLite tables of the state index, and the connection to them.

Converts rows to values and back. A damaged file, or one of another version, is replaced by an empty one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from memfs.errors import IndexUnavailable, MemfsError, NotRegularFile, StorageIO
from memfs.fs import io
from memfs.model.item import Stamp
from memfs.model.state_facts import STATEFUL, StateFacts
from memfs.model.state_query import Iteration, Measure, StateRow

WORD, TEXT = "word", "text"
"""What a focus says, in ``names``: each word, and all of them together."""
NO_TIME = -(1 << 62)
"""The moment of a document without one: before all others."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, folder TEXT NOT NULL,
  kind TEXT NOT NULL, iteration INTEGER, moment INTEGER NOT NULL, task TEXT NOT NULL, state TEXT NOT NULL,
  status TEXT NOT NULL, rating REAL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, mtime INTEGER NOT NULL,
  ctime INTEGER NOT NULL, inode INTEGER NOT NULL, blob TEXT NOT NULL, checked INTEGER NOT NULL, archive TEXT NOT NULL,
  facts TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_kind ON documents (kind, moment);
CREATE INDEX IF NOT EXISTS by_iteration ON documents (iteration, kind, moment);
CREATE INDEX IF NOT EXISTS by_folder ON documents (folder);
CREATE INDEX IF NOT EXISTS by_archive ON documents (archive) WHERE archive != '';
CREATE INDEX IF NOT EXISTS by_status ON documents (status, iteration) WHERE kind = 'system_state';
CREATE TABLE IF NOT EXISTS names (role TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, moment INTEGER NOT NULL,
  id INTEGER NOT NULL, iteration INTEGER, PRIMARY KEY (role, name, kind, moment, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS names_of ON names (id);
CREATE INDEX IF NOT EXISTS names_in ON names (role, name, iteration, kind, moment);
CREATE TABLE IF NOT EXISTS measures (name TEXT NOT NULL, agent TEXT NOT NULL, moment INTEGER NOT NULL,
  id INTEGER NOT NULL, value REAL NOT NULL, iteration INTEGER, kind TEXT NOT NULL,
  PRIMARY KEY (name, agent, moment, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS measures_of ON measures (id);
CREATE INDEX IF NOT EXISTS measures_in ON measures (iteration, name, agent);
CREATE INDEX IF NOT EXISTS measures_near ON measures (name, agent, value, moment) WHERE kind = 'state_update';
CREATE TABLE IF NOT EXISTS entries (iteration INTEGER NOT NULL, aggregate TEXT NOT NULL, maker INTEGER NOT NULL,
  entry TEXT NOT NULL, PRIMARY KEY (iteration, aggregate)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS folders (path TEXT PRIMARY KEY, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,
  inode INTEGER NOT NULL, checked INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (terms, tokenize='ascii');
"""

COLUMNS = "d.facts, d.sha256, d.bytes, d.mtime, d.ctime, d.inode, d.blob, d.checked, d.archive"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UPSERT = (
    "INSERT INTO documents (path, folder, kind, iteration, moment, task, state, status, rating, sha256, bytes, mtime,"
    " ctime, inode, blob, checked, archive, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (path) DO UPDATE SET moment = excluded.moment, task = excluded.task, state = excluded.state,"
    " status = excluded.status, rating = excluded.rating, sha256 = excluded.sha256, bytes = excluded.bytes,"
    " mtime = excluded.mtime, ctime = excluded.ctime, inode = excluded.inode, blob = excluded.blob,"
    " checked = excluded.checked, archive = excluded.archive, facts = excluded.facts RETURNING id"
)


def number_of(moment: datetime | None) -> int:
    """A moment as the tables have it: microseconds since 1970."""
    return NO_TIME if moment is None else (moment - _EPOCH) // _MICROSECOND


def moment_of(number: int) -> datetime | None:
    """A moment out of the tables."""
    return None if number == NO_TIME else _EPOCH + timedelta(microseconds=number)


def row_of(found: Sequence[Any]) -> StateRow:
    """A row out of ``COLUMNS``."""
    facts, sha256, size, mtime, ctime, inode, blob, checked, archive = found
    stamp = Stamp(size, mtime, ctime, inode, blob, checked) if checked else None
    return StateRow(
        facts=StateFacts.from_dict(json.loads(facts)), sha256=sha256, bytes=size, stamp=stamp, archive=archive
    )


def measure_of(found: Sequence[Any]) -> Measure:
    """A figure out of name, value, agent, iteration, moment, kind, path."""
    name, value, agent, iteration, moment, kind, path = found
    return Measure(
        name=name, value=value, agent=agent, iteration=iteration, timestamp=moment_of(moment), kind=kind, path=path
    )


def iteration_of(number: int, facts: str | None, archive: str | None) -> Iteration:
    """An iteration out of its header's facts."""
    header = StateFacts.from_dict(json.loads(facts)) if facts else StateFacts(path="")
    status = header.status or "open"
    return Iteration(number=number, status=status, opened=header.timestamp, closed=header.closed, archive=archive or "")


def put(base: sqlite3.Connection, row: StateRow) -> None:
    """Note a document in place of what was known under its path."""
    old = base.execute(f"SELECT d.id, {COLUMNS} FROM documents d WHERE path = ?", (row.path,)).fetchone()  # noqa: S608
    facts = row.facts
    moment = number_of(facts.timestamp) if facts.timestamp else _substitute(base, row)
    (key,) = base.execute(_UPSERT, _values(row, moment)).fetchone()
    if old is not None:
        before = row_of(old[1:])
        if before.sha256 == row.sha256 and before.facts == facts:
            return
        clear_beside(base, key)
    forget_entries(base, facts)
    base.executemany("INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?, ?, ?)", list(_names(facts, moment, key)))
    base.executemany("INSERT OR IGNORE INTO measures VALUES (?, ?, ?, ?, ?, ?, ?)", list(_measures(facts, moment, key)))


def take(base: sqlite3.Connection, path: str) -> None:
    """Drop a document."""
    old = base.execute("SELECT id, facts FROM documents WHERE path = ?", (path,)).fetchone()
    if old is not None:
        clear_beside(base, old[0])
        forget_entries(base, StateFacts.from_dict(json.loads(old[1])))
        base.execute("DELETE FROM documents WHERE id = ?", (old[0],))


def forget_entries(base: sqlite3.Connection, facts: StateFacts) -> None:
    """Drop what was summed up of a document's iteration, and of those whose hypotheses are measured against it."""
    base.execute("DELETE FROM entries WHERE iteration = ?", (facts.iteration,))
    if facts.kind == "hypothesis":
        children = "SELECT iteration FROM names WHERE role = 'parent' AND name = ?"
        base.execute(f"DELETE FROM entries WHERE iteration IN ({children})", (storable(facts.name),))  # noqa: S608


def clear_beside(base: sqlite3.Connection, key: int) -> None:
    """Drop what else is known of a document."""
    base.execute("DELETE FROM names WHERE id = ?", (key,))
    base.execute("DELETE FROM measures WHERE id = ?", (key,))
    base.execute("DELETE FROM words WHERE rowid = ?", (key,))


def put_words(base: sqlite3.Connection, found: tuple[StateRow, str]) -> None:
    """Note the terms of a document, if it still is the one that they were taken from."""
    row, terms = found
    sql = "SELECT id FROM documents WHERE path = ? AND sha256 = ?"
    for (key,) in base.execute(sql, (row.path, row.sha256)).fetchall():
        base.execute("DELETE FROM words WHERE rowid = ?", (key,))
        base.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (key, storable(terms)))


def _substitute(base: sqlite3.Connection, row: StateRow) -> int:
    """The moment of a document that says none: that of its file, in an archive that of its iteration."""
    if row.stamp is not None:
        return row.stamp.mtime_ns // 1000
    sql = "SELECT max(moment) FROM documents WHERE iteration = ? AND kind = 'system_state'"
    (found,) = base.execute(sql, (row.facts.iteration,)).fetchone()
    return NO_TIME if found is None else int(found)


def _values(row: StateRow, moment: int) -> tuple[Any, ...]:
    facts, stamp = row.facts, row.stamp or Stamp(row.bytes, 0, 0, 0, "", 0)
    return (
        facts.path,
        facts.path.rpartition("/")[0],
        facts.kind,
        facts.iteration,
        moment,
        storable(facts.task),
        storable(facts.state),
        storable(facts.status),
        facts.rating,
        row.sha256,
        row.bytes,
        stamp.mtime_ns,
        stamp.ctime_ns,
        stamp.inode,
        stamp.blob,
        stamp.checked_ns,
        row.archive,
        json.dumps(facts.to_dict()),
    )


def _names(facts: StateFacts, moment: int, key: int) -> Iterator[tuple[str, str, str, int, int, int | None]]:
    roles: dict[str, tuple[str, ...]] = {
        "agent": facts.agents,
        "component": facts.components,
        "hypothesis": facts.hypotheses,
        "parent": facts.parents,
        "name": (facts.name,) if facts.name else (),
    }
    if facts.state == STATEFUL:
        roles[STATEFUL] = facts.agents
    if facts.words:
        roles |= {WORD: facts.words, TEXT: (text_of(facts.words),)}
    for role, names in roles.items():
        for name in names:
            yield role, storable(name), facts.kind, moment, key, facts.iteration


def text_of(words: Iterable[str]) -> str:
    """One short name for all the words of a focus, in whatever order."""
    return hashlib.sha256(storable("\n".join(sorted(words))).encode()).hexdigest()


def _measures(facts: StateFacts, moment: int, key: int) -> Iterator[tuple[Any, ...]]:
    for (agent, name), value in facts.fingerprint.items():
        yield storable(name), storable(agent), moment, key, value, facts.iteration, facts.kind


def storable(text: str) -> str:
    """A text that SQLite takes: lone surrogates, which a hand-written JSON file can hold, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


FILE = "states.sqlite"
VERSION = 6
_BESIDE = ("-wal", "-shm", "-journal")
_WAIT_SECONDS = 10.0
_MEMORY = ":memory:"
# A whole look writes tens of megabytes: with SQLite's own small limits it would wait for the disk most of the time. The
# write-ahead log counts as room that memfs takes: 2,000 pages are 8 MB, also where the documents are few.
_QUICK = ("cache_size = -16384", "wal_autocheckpoint = 2000")
_SHAPE = "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name)"
# What a damaged file makes of a query, or of the reading of its rows.
DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError)

Result = TypeVar("Result")


class StateBase:
    """An SQLite file of derived data: one connection, used by all threads of the process in turn.

    Processes share the file. It is replaced when damaged, as it can be made again from the documents.
    """

    def __init__(
        self,
        folder: Path,
        schema: str,
        *,
        file: str = FILE,
        version: int = VERSION,
        what: str = "the index of state documents",
    ) -> None:
        """
        Args:
            schema: what makes the tables, with ``IF NOT EXISTS`` each.
            file: its name.
            version: of the schema; a file of another one is started over.
            what: what errors call it.
        """
        self._path = folder / file
        self._schema = schema
        self._version = version
        self._what = what
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._inode = 0
        self._in_memory = False
        self._process = os.getpid()
        self._expected = ""

    def ask(self, act: Callable[[sqlite3.Connection], Result]) -> Result:
        """The result of a question to the file; one that is damaged is made again, empty.

        Raises:
            IndexUnavailable: the question itself has no answer.
        """
        return self._tried(act, write=False)

    def change(self, act: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out a change: whole, or not at all."""
        return self._tried(act, write=True)

    def clear(self) -> None:
        """Start over with an empty file."""
        with self._mine():
            self._begin_anew()

    def close(self) -> None:
        """Release the file."""
        with self._mine():
            self._drop()

    # -- within -------------------------------------------------------------------------------------------------------
    def _mine(self) -> threading.RLock:
        """The lock; a forked child begins with its own, and without the parent's connection."""
        if os.getpid() != self._process:
            _abandoned.append(self._open)
            self._process, self._lock, self._open = os.getpid(), threading.RLock(), None
        return self._lock

    def _tried(self, act: Callable[[sqlite3.Connection], Result], write: bool) -> Result:
        with self._mine():
            for last in (False, False, True):
                try:
                    return self._done(act) if write else act(self._connected())
                except UnicodeEncodeError:  # a caller's path that no file of ours has; the file is not to blame
                    raise
                except (*DAMAGE, NotRegularFile, StorageIO) as error:
                    if last:
                        raise IndexUnavailable(
                            f"{self._what} gives no answer: {error}",
                            path=str(self._path),
                            hint="run memfs admin reindex",
                        ) from error
                    self._recover(error)
            raise AssertionError("unreachable")

    def _done(self, act: Callable[[sqlite3.Connection], Result]) -> Result:
        with io.operation("states", self._path):
            base = self._connected()
            base.execute("BEGIN IMMEDIATE")
            try:
                result = act(base)
                base.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    base.execute("ROLLBACK")
                raise
        return result

    def _recover(self, error: Exception) -> None:
        """Go on without the file where the disk takes it not, else with an empty one."""
        name = str(getattr(error, "sqlite_errorname", ""))
        self._drop()
        if isinstance(error, MemfsError) or name.startswith(
            ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_BUSY", "SQLITE_LOCKED")
        ):
            self._in_memory = True
        else:
            self._begin_anew()

    def _connected(self) -> sqlite3.Connection:
        if self._open is not None and (self._in_memory or self._inode == _inode(self._path)):
            return self._open
        self._drop()  # another process started over: what is open has no name any more
        if not self._in_memory:
            io.make_private_folder(self._path.parent)
            io.make_private_file(self._path)
        base = sqlite3.connect(
            _MEMORY if self._in_memory else self._path,
            timeout=_WAIT_SECONDS,
            check_same_thread=False,
            isolation_level=None,
        )
        self._open = base
        for pragma in ("trusted_schema = OFF", "journal_mode = WAL", "synchronous = NORMAL", *_QUICK):
            base.execute(f"PRAGMA {pragma}").fetchall()
        self._lay_out(base)
        self._inode = _inode(self._path)
        return base

    def _lay_out(self, base: sqlite3.Connection) -> None:
        if _version(base) != self._version:
            base.execute("BEGIN IMMEDIATE")  # two processes may be at it
            if not _version(base) and not base.execute(_SHAPE).fetchone()[0]:
                self._make_tables(base)
            base.execute("COMMIT")
        if not self._expected:
            with closing(sqlite3.connect(_MEMORY, isolation_level=None)) as made:
                self._make_tables(made)
                self._expected = made.execute(_SHAPE).fetchone()[0]
        if _version(base) != self._version or base.execute(_SHAPE).fetchone()[0] != self._expected:
            raise ValueError("the file is of another version, or something else is in it")

    def _make_tables(self, base: sqlite3.Connection) -> None:
        for statement in self._schema.split(";"):
            base.execute(statement)
        base.execute(f"PRAGMA user_version = {self._version}")

    def _begin_anew(self) -> None:
        self._drop()
        try:
            for suffix in ("", *_BESIDE):
                io.unlink(f"{self._path}{suffix}", missing_ok=True)
        except StorageIO:
            self._in_memory = True

    def _drop(self) -> None:
        base, self._open = self._open, None
        if base is not None:
            with suppress(sqlite3.Error):
                base.close()


def _version(base: sqlite3.Connection) -> int:
    return int(base.execute("PRAGMA user_version").fetchone()[0])


def _inode(path: Path) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


# Connections of a parent process: closing one in a child would take away the parent's locks.
_abandoned: list[object] = []

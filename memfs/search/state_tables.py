"""The SQLite tables of the state index: converts rows to values and back."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memfs.model.item import Stamp
from memfs.model.state_facts import STATEFUL, StateFacts
from memfs.model.state_query import Iteration, Measure, StateRow

WORD, TEXT = "word", "text"
"""What a focus says, in ``names``: each word, and all of them together."""
FILE = "states.sqlite"
VERSION = "9"
NO_TIME = -(1 << 62)
"""The moment of a document without one: before all others."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, folder TEXT NOT NULL,
  kind TEXT NOT NULL, iteration INTEGER, moment INTEGER NOT NULL, task TEXT NOT NULL, state TEXT NOT NULL,
  status TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, mtime INTEGER NOT NULL,
  ctime INTEGER NOT NULL, inode INTEGER NOT NULL, blob TEXT NOT NULL, checked INTEGER NOT NULL, archive TEXT NOT NULL,
  facts TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_kind ON documents (kind, moment);
CREATE INDEX IF NOT EXISTS by_iteration ON documents (iteration, kind, moment);
CREATE INDEX IF NOT EXISTS by_folder ON documents (folder);
CREATE INDEX IF NOT EXISTS by_archive ON documents (archive) WHERE archive != '';
CREATE INDEX IF NOT EXISTS by_status ON documents (kind, status, iteration)
  WHERE kind = 'system_state' OR kind = 'meta_review';
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
    "INSERT INTO documents (path, folder, kind, iteration, moment, task, state, status, sha256, bytes, mtime,"
    " ctime, inode, blob, checked, archive, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (path) DO UPDATE SET moment = excluded.moment, task = excluded.task, state = excluded.state,"
    " status = excluded.status, sha256 = excluded.sha256, bytes = excluded.bytes,"
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

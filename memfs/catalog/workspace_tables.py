"""The tables of what is derived from the files of one workspace: vectors, and what state documents are about.

They lie in one SQLite file beside the search index. It may be deleted at any time.
"""

from __future__ import annotations

from pathlib import Path

from memfs.catalog.database import Database

FILE = "derived.sqlite"
_RULES = "11"
"""Changes with what the rows of state documents say, and with the analyzer, which cut their words."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (blob TEXT NOT NULL, text TEXT NOT NULL, model TEXT NOT NULL, numbers BLOB NOT NULL,
  UNIQUE (blob, model));
CREATE INDEX IF NOT EXISTS vectors_of_text ON vectors (text, model);
CREATE TABLE IF NOT EXISTS vectors_together (model TEXT PRIMARY KEY, base TEXT NOT NULL, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS documents (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, folder TEXT NOT NULL,
  kind TEXT NOT NULL, iteration INTEGER, moment INTEGER NOT NULL, task TEXT NOT NULL, state TEXT NOT NULL,
  status TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, stamp TEXT NOT NULL, archive TEXT NOT NULL,
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
CREATE TABLE IF NOT EXISTS folders (path TEXT PRIMARY KEY, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,
  inode INTEGER NOT NULL, checked INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (terms, tokenize='ascii');
"""


def workspace_tables(folder: Path | None) -> Database:
    """The file with these tables, made when it is first used.

    Args:
        folder: the workspace's own in the user's cache; None keeps the rows in memory.
    """
    path = folder / FILE if folder is not None else None
    return Database(path, _SCHEMA, _RULES, what="the file of what is derived")

"""Database: an SQLite file that threads and processes share, and that is begun again when it is damaged."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from zlib import crc32

from memfs.errors import IndexUnavailable, MemfsError, NotRegularFile, StorageIO
from memfs.fs import io
from memfs.fs.lock import no_fork
from memfs.startup import TypeVar

BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file, by the end of its name."""
DAMAGED = ".damaged"
"""How the name of a file ends that was set aside."""
_WAIT_SECONDS, _SHORT_SECONDS = 10.0, 2.0
_MEMORY = ":memory:"
# A whole look writes tens of megabytes: with SQLite's own small limits it would wait for the disk most of the time. In
# pages of 8 KB little is left over beside rows of some kilobytes. There is no write-ahead log: SQLite maps a file
# beside it into memory, and a process that truncates it kills all that have it open.
_PRAGMAS = ("page_size = 8192", "trusted_schema = OFF", "cache_size = -16384", "journal_mode = DELETE")
# What a damaged file makes of a query, or of the reading of its rows.
DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError)
_TABLES, _NEW = "SELECT type, sql FROM sqlite_master WHERE type != 'index'", "IF NOT EXISTS "
_REFUSED = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_BUSY", "SQLITE_LOCKED")
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_MISMATCH")

Result = TypeVar("Result")


class Database:
    """One file, with one connection that all threads of the process use in turn. Processes share the file.

    Derived data is deleted where it is damaged or was made by other rules, and kept in memory where the disk takes
    nothing. What cannot be made again (``root``) is set aside instead, for someone to repair it, its deleted rows are
    overwritten, and what the disk refuses is an error.

    Attributes:
        damage: why a file was begun again, "" while none was.
        refusal: why what is kept is in memory only, None while the disk takes it.
        identity: names the file that was last open; one that is made in its place has another.
    """

    def __init__(
        self,
        path: Path | None,
        schema: str,
        made_by: str = "",
        *,
        what: str,
        durable: bool = True,
        root: Path | None = None,
    ) -> None:
        """
        Args:
            path: None keeps everything in memory.
            schema: what makes the tables, with ``IF NOT EXISTS`` each.
            made_by: names the rules by which its rows are made; a file made by others is started over.
            what: what errors call it.
            durable: false where a power cut may leave any rows, since readers prove each.
            root: for what cannot be made again: a folder above the file that is not made. The schema is one table; a
                file with anything else in it counts as damaged, since it may have come with an unpacked repository.
        """
        self._path = path or Path(_MEMORY)
        self._schema = schema
        self._version = crc32(f"{schema}\0{made_by}".encode()) >> 1 | 1
        self._what, self._root = what, root
        synced = f"synchronous = {'NORMAL' if durable else 'OFF'}"
        self._pragmas = (*_PRAGMAS, synced, *(["secure_delete = ON"] if root is not None else []))
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._inode = 0
        self._in_memory = path is None
        self._process = os.getpid()
        self._wait = _WAIT_SECONDS if root is None else _SHORT_SECONDS  # a command waits for it, and can do without
        self.damage = ""
        self.refusal: MemfsError | None = None
        self.identity = 0

    def ask(self, act: Callable[[sqlite3.Connection], Result]) -> Result:
        """The result of a question to the file; one that is damaged is made again, empty.

        Raises:
            IndexUnavailable: the question itself has no answer.
            StorageIO: the disk does not take the file, and it cannot be made again.
        """
        return self._tried(act, write=False)

    def change(self, act: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out a change: whole, or not at all."""
        return self._tried(act, write=True)

    def close(self) -> None:
        """Release the file; the next call opens it again. What is kept in memory stays."""
        with no_fork, self._mine():
            if not self._in_memory:
                self._drop()

    def try_again(self) -> None:
        """Go back to the file after a refusal; what is kept in memory is dropped."""
        with no_fork, self._mine():
            if self.refusal is not None:
                self._drop()
                self._in_memory, self.refusal = False, None

    # -- within -------------------------------------------------------------------------------------------------------
    def _mine(self) -> threading.RLock:
        """The lock; a forked child begins with its own, and without the parent's connection."""
        if os.getpid() != self._process:
            self._process, self._lock = os.getpid(), threading.RLock()
            if not self._in_memory:
                _abandoned.append(self._open)
                self._open = None
        return self._lock

    def _tried(self, act: Callable[[sqlite3.Connection], Result], write: bool) -> Result:
        with no_fork, self._mine():
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
        with io.operation("cache" if self._root is None else "state", self._path):
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
        refused = isinstance(error, NotRegularFile | StorageIO) or name.startswith(_REFUSED)
        if self._root is not None and name and not name.startswith(_BROKEN):
            refused = True  # what SQLite lacked, such as memory, says nothing about the file
        self._drop()
        if not refused:
            self.damage = str(error)
            if self._in_memory or self._inode != _fact(self._path, "st_ino"):
                return  # another process started over
            if self._root is not None:
                set_aside(self._path)
            elif not remove_base(self._path):
                cause = OSError(errno.EROFS, "a damaged file cannot be removed")
                self._in_memory, self.refusal = True, io.storage_error(cause, "remove", str(self._path))
            return
        if not isinstance(error, NotRegularFile | StorageIO):
            number = {"SQLITE_FULL": errno.ENOSPC, "SQLITE_READONLY": errno.EROFS}.get(name, errno.EIO)
            error = io.storage_error(OSError(number, str(error)), "write", str(self._path))
        if self._root is not None:
            raise error
        self._in_memory, self.refusal = True, error

    def _connected(self) -> sqlite3.Connection:
        if self._open is not None and (self._in_memory or self._inode == _fact(self._path, "st_ino")):
            return self._open
        self._drop()  # another process started over: what is open has no name any more
        if not self._in_memory:
            io.make_private_folder(self._path.parent, self._root)
            for suffix in ("", *BESIDE):
                refuse_irregular(f"{self._path}{suffix}", mine=self._root is not None)
            io.make_private_file(self._path)
        base = sqlite3.connect(
            _MEMORY if self._in_memory else self._path,
            timeout=self._wait,
            check_same_thread=False,
            isolation_level=None,
        )
        self._open, self._inode = base, _fact(self._path, "st_ino")
        try:
            for pragma in self._pragmas:
                base.execute(f"PRAGMA {pragma}").fetchall()
            if self._root is not None:
                base.execute(self._schema)
                if base.execute(_TABLES).fetchall() != [("table", self._schema.replace(_NEW, "", 1))]:
                    raise ValueError("something else is in the file")
            elif _number(base, "user_version") != self._version:
                self._lay_out(base)
            self.identity = _number(base, "application_id")
        except BaseException:
            self._drop()
            raise
        return base

    def _lay_out(self, base: sqlite3.Connection) -> None:
        base.execute("BEGIN IMMEDIATE")  # two processes may be at it
        if not _number(base, "user_version") and not base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in self._schema.split(";"):
                base.execute(statement)
            base.execute(f"PRAGMA user_version = {self._version}")
            base.execute(f"PRAGMA application_id = {int.from_bytes(os.urandom(4), sys.byteorder) >> 1 | 1}")
        base.execute("COMMIT")
        if _number(base, "user_version") != self._version:
            raise ValueError("the file was made by other rules, or something else is in it")

    def _drop(self) -> None:
        base, self._open = self._open, None
        if base is not None:
            with suppress(sqlite3.Error):
                base.close()


def remove_base(path: Path) -> bool:
    """Remove a file with what SQLite keeps beside it; whether the disk allowed it."""
    try:
        for suffix in ("", *BESIDE):
            io.unlink(f"{path}{suffix}", missing_ok=True)
    except StorageIO:
        return False
    return True


def refuse_irregular(path: str | Path, mine: bool) -> None:
    """Refuse what is no file: SQLite would wait for the other end of a pipe, and follow a link.

    Args:
        mine: refuse what has another name, too, or belongs to another user.

    Raises:
        NotRegularFile: naming it.
    """
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        shared = mine and (found.st_nlink > 1 or found.st_uid != os.getuid())
        if shared or not S_ISREG(found.st_mode):
            raise NotRegularFile("something else is in the place of a database", path=str(path), hint="remove it")


def set_aside(path: Path) -> None:
    """Give a damaged file another name, in place of one that was damaged before."""
    aside = path.with_suffix(DAMAGED)
    for suffix in ("", "-journal"):
        io.unlink(f"{aside}{suffix}", missing_ok=True)
        with suppress(FileNotFoundError):
            io.rename(f"{path}{suffix}", f"{aside}{suffix}")
    remove_base(path)


def _number(base: sqlite3.Connection, pragma: str) -> int:
    return int(base.execute(f"PRAGMA {pragma}").fetchone()[0])


def _fact(path: str | Path, name: str) -> int:
    """What the system says of a file, 0 where it says nothing."""
    try:
        return int(getattr(os.stat(path), name))
    except OSError:
        return 0


# Connections of a parent process: closing one in a child would take away the parent's locks.
_abandoned: list[object] = []

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

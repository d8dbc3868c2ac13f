"""State base: an SQLite file of what is derived from the files, shared by processes and replaced when damaged.

Owns opening, locking and beginning anew: the file is derived, so that whatever is wrong with it, it is made again from
the documents. What its tables mean is the business of ``memfs.index.states`` and ``memfs.index.rowbase``.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from memfs.errors import IndexUnavailable, MemfsError, NotRegularFile, StorageIO
from memfs.files import io

FILE = "states.sqlite"
VERSION = 4
_BESIDE = ("-wal", "-shm", "-journal")
_WAIT_SECONDS = 10.0
_MEMORY = ":memory:"
# A whole look writes tens of megabytes: with SQLite's own small limits it would wait for the disk most of the time. The
# log counts as room that memfs takes: 2,000 pages are 8 MB, also where the documents are few.
_QUICK = ("cache_size = -16384", "wal_autocheckpoint = 2000")
_SHAPE = "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name)"
# What a damaged file makes of a query, or of the reading of its rows.
DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError)

Result = TypeVar("Result")


class StateBase:
    """One connection to the file, used by all threads of the process in turn."""

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
            version: of the schema; a file of another one is begun anew.
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
        """The result of a question to the file; one that is damaged is made anew, empty.

        Raises:
            IndexUnavailable: the question itself has no answer.
        """
        return self._tried(act, write=False)

    def change(self, act: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out a change: whole, or not at all."""
        return self._tried(act, write=True)

    def clear(self) -> None:
        """Begin anew with an empty file."""
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
                            hint="run memfs reindex",
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
        self._drop()  # another process began anew: what is open has no name any more
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

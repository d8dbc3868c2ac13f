"""Counts how often, and when last, each item was recalled.

The counts are one SQLite file in the workspace's private state, local and unversioned: deleting it loses counts and
nothing else, and a disk that takes no writes costs counts, never answers.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.errors import CorruptRecord, StorageIO, WorkspaceClosed
from memfs.fs import io
from memfs.fs.executor import Worker
from memfs.fs.lock import no_fork, renewed_in_child
from memfs.store.access_log import OFF, ServedLog, named

if TYPE_CHECKING:
    import sqlite3


FILE = "usage.db"
_ABOVE = 2  # the folder of the repository, above that of its workspaces and that of this one
_BESIDE = ("-wal", "-shm", "-journal")
_GROWTH = 1.05
_HIGHEST = 2.0
_ENOUGH = 15  # uses after which the highest is reached
_MOST = 1_000_000_000
_CHUNK = 500
_WAIT_SECONDS = 2.0
_GATHER_SECONDS = 0.25
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FURTHEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_MISMATCH")
_TABLE = "CREATE TABLE used (id TEXT PRIMARY KEY, count INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID"
_TABLES = "SELECT type, sql FROM sqlite_master WHERE type != 'index'"
_ADD = (
    "INSERT INTO used VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
    " count = min(count + excluded.count, 1000000000), last = max(last, excluded.last)"
)


@dataclass(frozen=True, slots=True)
class Use:
    """How an item was used.

    Attributes:
        count: how often it was recalled.
        last: when it was recalled last, None where it never was.
    """

    count: int = 0
    last: datetime | None = None

    @property
    def relevance(self) -> float:
        """``relevance_score``: 1, a twentieth more with each use, at most 2."""
        return min(_HIGHEST, _GROWTH ** min(self.count, _ENOUGH))


NEVER = Use()


class _ImportedCount(ValueError):
    """The file holds more than counts: a view or trigger in it could run without end."""


class Usage:
    """The counts of one workspace. May be used from several threads and processes.

    No method raises because of the disk: ``problem`` says why counts were lost, "" while none were.

    Attributes:
        served: the record of who was given which items, and when.
    """

    def __init__(self, path: Path, served: ServedLog = OFF, unnamed: str = "") -> None:
        """
        Args:
            path: the file; it is made with the first use.
            served: where it is noted who was given what.
            unnamed: what ids begin with that are not written down here; "" for none.
        """
        self._path, self._unnamed = path, unnamed
        self.served = served
        self._guard = threading.Lock()
        self._base = threading.RLock()
        self._pending: Counter[str] = Counter()
        self._last = _EPOCH
        self._worker = Worker("memfs-usage", self._write_down, lambda error: self._fail(str(error)))
        self._open: sqlite3.Connection | None = None
        self._closed = False
        self.problem = ""
        renewed_in_child(self)

    def begin_anew_in_child(self) -> None:
        """Begin with a connection of its own, and without what the parent counts."""
        self._pending = Counter()
        _abandoned.append(self._open)
        self._open = None

    # -- counting -----------------------------------------------------------------------------------------------------
    def touch(self, ids: Iterable[str], now: datetime) -> None:
        """Count one use of each item, without waiting for the disk: a thread that ends by itself writes down together
        what is counted within a quarter of a second.
        """
        self._require_open()
        with self._guard:
            self._pending.update(named(ids, self._unnamed))
            self._last = max(self._last, now)
            due = bool(self._pending)
        if due:
            self._worker.wake(_GATHER_SECONDS)

    def _write_down(self) -> None:
        with self._base:
            with self._guard:
                counted, self._pending = self._pending, Counter()
                moment = (self._last - _EPOCH) // _MICROSECOND
            rows = [(key, count, moment) for key, count in counted.items()]
            if rows:
                self._tried(lambda base: base.executemany(_ADD, rows), write=True)

    def flush(self) -> None:
        """Wait until what was counted is written down."""
        self._worker.settle()

    # -- asking -------------------------------------------------------------------------------------------------------
    def of(self, ids: Iterable[str]) -> Mapping[str, Use]:
        """The uses of these items by id; one that was never used is absent."""
        asked = list(dict.fromkeys(ids))
        found: dict[str, Use] = {}
        with self._reading() as waiting:
            for start in range(0, len(asked), _CHUNK):
                part = asked[start : start + _CHUNK]
                marks = ", ".join("?" * len(part))
                found |= self._rows(f"SELECT id, count, last FROM used WHERE id IN ({marks})", part)  # noqa: S608
            return _joined(found, {key: waiting[key] for key in asked if key in waiting}, self._last)

    def all(self) -> Mapping[str, Use]:
        """Every item that was ever used, by id; ids of items that are gone may be among them."""
        with self._reading() as waiting:
            return _joined(self._rows("SELECT id, count, last FROM used"), waiting, self._last)

    def forget(self, ids: Iterable[str]) -> None:
        """Drop the counts of these items, from the file's bytes too."""
        self._require_open()
        gone = [(key,) for key in dict.fromkeys(ids)]
        self.flush()
        if gone and os.path.lexists(self._path):
            self._tried(lambda base: base.executemany("DELETE FROM used WHERE id = ?", gone), write=True)
            self._tried(lambda base: base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())

    def close(self) -> None:
        """Write down what was counted and release the file."""
        self.flush()
        with no_fork, self._base:
            self._drop()
            self._closed = True
            if self.served is not OFF:
                self.served.closed = True

    @contextmanager
    def _reading(self) -> Iterator[Counter[str]]:
        """What is counted and not written down yet; nothing is written down meanwhile."""
        self._require_open()
        with self._base:
            with self._guard:
                waiting = Counter(self._pending)
            yield waiting

    def _rows(self, sql: str, values: Iterable[str] = ()) -> dict[str, Use]:
        if self._open is None and not os.path.lexists(self._path):
            return {}
        return self._tried(lambda base: dict(map(_use, base.execute(sql, tuple(values))))) or {}

    # -- the file -----------------------------------------------------------------------------------------------------
    def _tried(self, act: Any, *, write: bool = False) -> Any:
        """The result of an act on the file, None where that cannot be had; a damaged file is started over."""
        import sqlite3  # costs start-up time, and not every Python is built with it

        with no_fork, self._base:
            for attempt in (1, 2):
                try:
                    return self._done(act) if write else act(self._connected())
                except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
                    self._fail(str(error))
                    if attempt == 2 or not _is_damage(error, write) or not self._begin_anew():
                        return None
                except StorageIO as error:
                    self._fail(error.message)
                    return None
        return None

    def _done(self, act: Any) -> Any:
        with io.operation("usage", self._path):
            base = self._connected()
            result = act(base)
            base.commit()
        return result

    def _fail(self, reason: str) -> None:
        self.problem = f"uses were not counted: {reason}"
        self._drop()

    def _connected(self) -> sqlite3.Connection:
        import sqlite3

        if self._open is None:
            self._refuse_planted()
            io.make_private_folder(self._path.parent, self._path.parents[_ABOVE])
            io.make_private_file(self._path)
            base = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, check_same_thread=False)
            self._open = base
            # the file may have come with an unpacked repository: nothing in it is to run
            base.execute("PRAGMA trusted_schema = OFF")
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
            base.execute("PRAGMA secure_delete = ON")
            if not base.execute(_TABLES).fetchone():
                base.execute(_TABLE.replace("TABLE", "TABLE IF NOT EXISTS", 1))
                base.commit()
            if base.execute(_TABLES).fetchall() != [("table", _TABLE)]:
                raise _ImportedCount("something else is in the file where uses are counted")
        return self._open

    def _refuse_planted(self) -> None:
        """Only plain files of this user's are opened: a link would lead to a file of another purpose."""
        for suffix in ("", *_BESIDE):
            place = f"{self._path}{suffix}"
            with suppress(FileNotFoundError):
                found = io.facts(place)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_nlink > 1:
                    raise StorageIO("something else stands where uses are counted", path=place, hint="remove it")

    def _begin_anew(self) -> bool:
        """Remove a damaged file."""
        self._drop()
        with suppress(StorageIO):
            for suffix in ("", *_BESIDE):
                io.unlink(f"{self._path}{suffix}", missing_ok=True)
            return True
        return False

    def _drop(self) -> None:
        import sqlite3

        base, self._open = self._open, None
        if base is not None:
            with suppress(sqlite3.Error):
                base.close()

    def _require_open(self) -> None:
        if self._closed:
            raise WorkspaceClosed(path=str(self._path))


# Connections of a parent process: closing one in a child would take away the parent's locks.
_abandoned: list[object] = []


def snapshot(path: Path) -> bytes | None:
    """The content of a usage file as one whole database, for a backup; None where there is none.

    Raises:
        CorruptRecord: it cannot be read as one.
        StorageIO: the disk does not give it.
    """
    import sqlite3

    if not os.path.lexists(path):
        return None
    usage = Usage(path)
    try:
        with no_fork, io.operation("usage", path):
            usage._refuse_planted()
            base = sqlite3.connect(path, timeout=_WAIT_SECONDS)
            try:
                base.execute("PRAGMA trusted_schema = OFF")
                return base.serialize()
            finally:
                base.close()
    except sqlite3.Error as error:
        raise CorruptRecord(
            f"the counts of uses cannot be read: {error}", path=str(path), hint="remove it; only counts are lost"
        ) from error


def _is_damage(error: Exception, write: bool) -> bool:
    """Whether the file is to blame: what it says of itself, or rows that nobody writes so."""
    name = str(getattr(error, "sqlite_errorname", ""))
    return isinstance(error, _ImportedCount) or name.startswith(_DAMAGE) or (not name and not write)


def _use(row: tuple[Any, Any, Any]) -> tuple[str, Use]:
    key, count, last = row
    moment = _EPOCH + timedelta(microseconds=min(max(int(last), 0), _FURTHEST))
    return str(key), Use(count=min(max(int(count), 0), _MOST), last=moment)


def _joined(found: dict[str, Use], waiting: Mapping[str, int], last: datetime) -> dict[str, Use]:
    for key, count in waiting.items():
        known = found.get(key, NEVER)
        found[key] = Use(count=known.count + count, last=max(known.last or last, last))
    return found

"""Counts how often, and when last, each item was recalled.

The counts are one SQLite file in the workspace's private state, local and unversioned: deleting it loses counts and
nothing else, and a disk that takes no writes costs counts, never answers. A damaged file is set aside.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memfs.catalog.database import DAMAGED, Database, refuse_irregular
from memfs.dataclass import dataclass
from memfs.errors import CorruptRecord, MemfsError, NotRegularFile, WorkspaceClosed
from memfs.fs import io
from memfs.fs.executor import Worker
from memfs.fs.lock import no_fork, reset_on_fork
from memfs.model import Recall
from memfs.model.time import EPOCH
from memfs.startup import Any, json
from memfs.store.access_log import OFF, ServedLog, named

FILE = "usage.db"
ASIDE = (f"usage{DAMAGED}", f"usage{DAMAGED}-journal")
"""What a damaged file becomes."""
_ABOVE = 2  # the folder of the repository, above that of its workspaces and that of this one
_GROWTH = 1.05
_HIGHEST = 2.0
_ENOUGH = 15  # uses after which the highest is reached
_MOST = 1_000_000_000
_GATHER_SECONDS = 0.25
_MICROSECOND = timedelta(microseconds=1)
_FURTHEST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS used (id TEXT PRIMARY KEY, count INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID"
)
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
        self._base = _base(path)
        self._writing = threading.RLock()
        self._pending: Counter[str] = Counter()
        self._last = EPOCH
        self._worker = Worker("memfs-usage", self._write_down, self._note)
        self._closed = False
        self.problem = ""
        reset_on_fork(self)

    def after_fork(self) -> None:
        """Begin without what the parent counts."""
        self._pending = Counter()

    @property
    def notes(self) -> Path:
        """The folder where it is noted what was recalled and to whom."""
        return self._path.parent

    def note_in(self, notes: Path) -> None:
        """Count, and note who was given what, in another folder from here on, where no id is left out."""
        self._require_open()
        self._base.close()
        self._path, self._unnamed = notes / FILE, ""
        self._base = _base(self._path)
        self.served.note_in(notes)

    # -- counting -----------------------------------------------------------------------------------------------------
    def hand_out(self, answer: Recall, now: datetime) -> None:
        """Note that the hits of an answer were handed out, and count one use of each."""
        ids = [hit.item.id for hit in answer.hits]
        self.served.note("recall", ids, now, question=answer.query.text, hits=answer.hits)
        self.touch(ids, now)

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
        with self._writing:
            with self._guard:
                counted, self._pending = self._pending, Counter()
                moment = (self._last - EPOCH) // _MICROSECOND
            rows = [(key, count, moment) for key, count in counted.items()]
            if rows:
                self._change(lambda base: base.executemany(_ADD, rows))

    def flush(self) -> None:
        """Wait until what was counted is written down."""
        self._worker.settle()

    # -- asking -------------------------------------------------------------------------------------------------------
    def of(self, ids: Iterable[str]) -> Mapping[str, Use]:
        """The uses of these items by id; one that was never used is absent."""
        keys = dict.fromkeys(ids)
        sql = "SELECT u.id, count, last FROM json_each(?) w CROSS JOIN used u ON u.id = w.value"
        with self._reading() as waiting:
            found = self._rows(sql, json.dumps(list(keys)))
            return _joined(found, {key: waiting[key] for key in keys if key in waiting}, self._last)

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
            self._change(lambda base: base.executemany("DELETE FROM used WHERE id = ?", gone))

    def close(self) -> None:
        """Write down what was counted and release the file."""
        self.flush()
        self._base.close()
        self._closed = True
        if self.served is not OFF:
            self.served.closed = True

    @contextmanager
    def _reading(self) -> Iterator[Counter[str]]:
        """What is counted and not written down yet; nothing is written down meanwhile."""
        self._require_open()
        with self._writing:
            with self._guard:
                waiting = Counter(self._pending)
            yield waiting

    def _rows(self, sql: str, *values: str | int) -> dict[str, Use]:
        if not os.path.lexists(self._path):
            return {}
        return self._tried(self._base.ask, lambda base: dict(map(_use, base.execute(sql, values)))) or {}

    def _change(self, act: Callable[[sqlite3.Connection], Any]) -> None:
        self._tried(self._base.change, act)

    def _tried(self, do: Callable[[Any], Any], act: Callable[[sqlite3.Connection], Any]) -> Any:
        """The result of an act on the file, None where the file cannot be used."""
        damage = self._base.damage
        try:
            return do(act)
        except (MemfsError, UnicodeEncodeError) as error:
            self._note(error)
            return None
        finally:
            if self._base.damage != damage:
                self.problem = f"a damaged file of uses was set aside: {self._base.damage}"

    def _note(self, error: Exception) -> None:
        self.problem = f"uses were not counted: {error}"

    def _require_open(self) -> None:
        if self._closed:
            raise WorkspaceClosed(path=str(self._path))


def snapshot(path: Path) -> bytes | None:
    """The content of a usage file as one whole database, for a backup; None where there is none.

    Raises:
        CorruptRecord: it cannot be read as one.
        StorageIO: the disk does not give it.
    """
    if not os.path.lexists(path):
        return None
    try:
        with no_fork, io.operation("state", path):
            refuse_irregular(path, mine=True)
            with closing(sqlite3.connect(path)) as base:
                base.execute("PRAGMA trusted_schema = OFF")
                return base.serialize()
    except (sqlite3.Error, NotRegularFile) as error:
        raise CorruptRecord(
            f"the counts of uses cannot be read: {error}", path=str(path), hint="remove it; only counts are lost"
        ) from error


def _base(path: Path) -> Database:
    return Database(path, _SCHEMA, what="the counts of uses", root=path.parents[_ABOVE])


def _use(row: tuple[Any, Any, Any]) -> tuple[str, Use]:
    key, count, last = row
    moment = EPOCH + timedelta(microseconds=min(max(int(last), 0), _FURTHEST))
    return str(key), Use(count=min(max(int(count), 0), _MOST), last=moment)


def _joined(found: dict[str, Use], waiting: Mapping[str, int], last: datetime) -> dict[str, Use]:
    for key, count in waiting.items():
        known = found.get(key, NEVER)
        found[key] = Use(count=known.count + count, last=max(known.last or last, last))
    return found

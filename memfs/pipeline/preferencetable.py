"""Preference table: what is known of each preference without opening its file.

Owns the table of them, kept in step with the index, and the order in which they come. Where there are many, the user's
cache keeps them for the next process. What is told of one is read from its file by ``memfs.pipeline.preferences``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from heapq import heapify, heappop
from itertools import chain
from math import inf, log
from typing import Any, NamedTuple

from memfs.errors import IndexUnavailable, StorageIO
from memfs.files.forked import renewed_in_child
from memfs.index.analyzer import identity, terms
from memfs.index.question import weights
from memfs.index.rowbase import RowBase
from memfs.index.stamps import Entry, StampTable
from memfs.model import Candidate, MemoryItem
from memfs.model.item import VOUCHED
from memfs.pipeline.disputes import OVER, contradicted, disputes_among
from memfs.pipeline.wording import gist
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts

KIND = "preference"
_NOT_HELD = frozenset({"proposed", "done", *OVER})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
FILE = "preferences.sqlite"
_VERSION = 1
_WORTH_KEEPING = 100
"""With fewer files it takes no longer to read them than to open a cache."""
_KEEP_AT = 200
_LOOKED_INTO = 5_000
_COMMON = 0.5
_FEW = 8


class PreferenceRow(NamedTuple):
    """What is known of one preference.

    Attributes:
        id, path, blob: the item, its file, and what the file held when this was made of it.
        time: when it was said, for the last time, in seconds since 1970.
        importance, pinned, trust, status: of the item.
        expires: when it stops being true, in seconds since 1970; infinite for never.
        terms: the terms of its text, each once, with spaces between them.
        supersedes: ids of the items it replaces.
        against: ids of the items that it contradicts.
    """

    id: str
    path: str
    blob: str
    time: float
    importance: float
    pinned: bool
    trust: str
    status: str
    expires: float
    terms: str
    supersedes: tuple[str, ...]
    against: tuple[str, ...]

    @property
    def order(self) -> tuple[bool, float, float, str]:
        """Sorts the first one first."""
        return (not self.pinned, -self.importance, -self.time, self.id)

    def candidate(self) -> Candidate:
        """What the store loads it by."""
        moment = datetime.fromtimestamp(self.time, UTC)
        return Candidate(id=self.id, path=self.path, similarity=0.0, type=KIND, timestamp=moment)


@dataclass(frozen=True)
class _Table:
    """The rows that hold, in order; the ids that are in dispute; and until when."""

    held: tuple[PreferenceRow, ...] = ()
    disputed: frozenset[str] = field(default_factory=frozenset)
    until: float = inf

    @cached_property
    def having(self) -> Mapping[str, Sequence[int]]:
        """Which of the rows have a term."""
        found: dict[str, list[int]] = {}
        for place, row in enumerate(self.held):
            for term in row.terms.split():
                found.setdefault(term, []).append(place)
        return found


class PreferenceTable:
    """The table of the preferences of one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._folder = f"{CONTENT}/{parts.kinds.get(KIND).folder}/"
        self._lock = threading.Lock()
        renewed_in_child(self)
        self._seen: tuple[StampTable, Mapping[str, str]] | None = None
        self._below: Mapping[str, str] = {}
        self._missed: dict[str, str] = {}
        self._rows: dict[str, PreferenceRow] = {}
        self._table = _Table()
        made_by = f"{_VERSION}/{identity()}"
        self._base = RowBase(parts.index.folder, made_by, file=FILE, what="the index of preferences")
        self._unkept: dict[str, PreferenceRow | None] = {}

    def ordered(self, context: str, now: datetime) -> Iterator[PreferenceRow]:
        """Those that hold, each once: what fits the context first, the best first; then by importance and time."""
        table = self._current(now)
        fits = _fitting(table, context)
        best = [(-worth, place) for place, worth in fits.items()]
        heapify(best)  # of thousands only the first few are asked for
        fitting = (heappop(best)[1] for _ in range(len(best)))
        for place in chain(fitting, (place for place in range(len(table.held)) if place not in fits)):
            yield table.held[place]

    def disputed(self, name: str, now: datetime) -> bool:
        """Whether an item contradicts another one, or is contradicted, as the files say."""
        return name in self._current(now).disputed

    def close(self) -> None:
        """Keep what was learned for the next process. May be repeated."""
        with self._lock:
            self._keep(0)
            self._base.close()

    # -- keeping in step ------------------------------------------------------------------------------------------
    def _current(self, now: datetime) -> _Table:
        self._store.follow()
        with self._lock:
            with self._parts.index.held():
                base, stamps = self._parts.index.base_stamps(), self._parts.index.stamps()
                over = stamps.changed_below(self._folder)
            changed = self._seen is None or self._seen[0] is not base or self._seen[1] != over
            if changed:
                self._take(base, over)
            read = self._catch_up(stamps) if self._missed else False
            if changed or read or self._table.until <= now.timestamp():
                self._table = _table(self._rows.values(), now.timestamp())
                self._keep(_KEEP_AT)
            return self._table

    def _take(self, base: StampTable, over: Mapping[str, str]) -> None:
        """Forget what is no longer as it was read; what is to be read is then missed."""
        if self._seen is None or self._seen[0] is not base:
            self._below = {path: blob for path, blob in base.blobs() if path.startswith(self._folder)}
        held = {path: blob for path, blob in {**self._below, **over}.items() if blob}
        first = self._seen is None and len(held) > _WORTH_KEEPING
        known = {row.path: row for row in self._kept()} if first else self._rows
        self._unkept.update((path, None) for path in known if path not in held)
        self._rows = {path: row for path, row in known.items() if row.blob == held.get(path)}
        self._missed = {path: blob for path, blob in held.items() if path not in self._rows}
        self._seen = base, over

    def _catch_up(self, stamps: Mapping[str, Entry]) -> bool:
        """Read the files that are missed; whether any could be. What cannot be read now is tried again next time."""
        before = len(self._missed)
        for path, blob in list(self._missed.items()):
            item = self._loaded(path, stamps[path][0]) if path in stamps else None
            if item is not None:
                self._rows[path] = self._unkept[path] = _row(item, path, blob)
                del self._missed[path]
        return len(self._missed) < before

    def _loaded(self, path: str, name: str) -> MemoryItem | None:
        asked = Candidate(id=name, path=path, similarity=0.0, type=KIND, timestamp=_LONG_AGO)
        loaded = self._store.load(asked)
        return None if loaded is None else loaded.item

    def _kept(self) -> list[PreferenceRow]:
        try:
            return self._base.load(_rows)
        except (IndexUnavailable, StorageIO):  # a cache: without it the files are read
            return []

    def _keep(self, most: int) -> None:
        """Write down what was learned where it is more than ``most`` rows."""
        if len(self._unkept) <= most or len(self._rows) <= _WORTH_KEEPING:
            return
        rows, self._unkept = self._unkept, {}
        with suppress(IndexUnavailable, StorageIO):  # a cache: the next process reads the files
            self._base.keep(
                [(path, row.blob, list(row)) for path, row in rows.items() if row is not None],
                [path for path, row in rows.items() if row is None],
            )


def is_wanted(item: MemoryItem, now: datetime) -> bool:
    """Whether a preference may be given, whatever others say of it: a person stands behind it, and it is not over."""
    expired = item.expires is not None and item.expires <= now
    return _is_held(item.trust, item.status) and not expired


def in_order(items: Iterable[MemoryItem], now: datetime) -> Sequence[PreferenceRow]:
    """Of preferences at hand those that hold, in the order in which they are given where nothing fits better."""
    return _table([_row(item, item.path, "") for item in items], now.timestamp()).held


def _is_held(trust: str, status: str) -> bool:
    return trust in VOUCHED and status.strip() not in _NOT_HELD


def _table(rows: Iterable[PreferenceRow], now: float) -> _Table:
    present = [row for row in rows if _is_held(row.trust, row.status) and row.expires > now]
    replaced = {name for row in present for name in row.supersedes}
    holding = [row for row in present if row.id not in replaced]
    against = disputes_among([(row.id, row.against) for row in holding])
    given = sorted(_undisputed(holding, against), key=lambda row: row.order)
    until = min((row.expires for row in present), default=inf)
    return _Table(tuple(given), frozenset(against), until)


def _undisputed(rows: Iterable[PreferenceRow], against: Mapping[str, Sequence[str]]) -> Iterator[PreferenceRow]:
    """The rows without those that a newer one contradicts which is given itself."""
    given: set[str] = set()
    for row in sorted(rows, key=lambda one: (-one.time, one.id)) if against else rows:
        if given.isdisjoint(against.get(row.id, ())):
            given.add(row.id)
            yield row


def _row(item: MemoryItem, path: str, blob: str) -> PreferenceRow:
    return PreferenceRow(
        id=item.id,
        path=path,
        blob=blob,
        time=min((item.timestamp or item.created or _LONG_AGO).timestamp(), _LAST),
        importance=float(item.importance),
        pinned=item.pinned,
        trust=item.trust,
        status=item.status,
        expires=inf if item.expires is None else item.expires.timestamp(),
        terms=" ".join(dict.fromkeys(terms(f"{item.title}\n{gist(item)}\n{' '.join(item.tags)}"[:_LOOKED_INTO]))),
        supersedes=tuple(item.supersedes),
        against=contradicted(item),
    )


_SORTS = [str, str, str, float, float, bool, str, str, float, str, tuple, tuple]


def _rows(kept: list[Any]) -> list[PreferenceRow]:
    """The rows again.

    Raises:
        ValueError: one of them is damaged.
    """
    found = []
    for values in kept:
        *facts, supersedes, against = values
        row = [*facts, tuple(supersedes), tuple(against)]
        if list(map(type, row)) != _SORTS:
            raise ValueError("a row is damaged")
        found.append(PreferenceRow._make(row))
    return found


def _fitting(table: _Table, context: str) -> dict[int, float]:
    """How well preferences fit a context, by place: the worth of the terms they share, the rarer the more.

    A term that half of them have tells nothing, unless there are few.
    """
    found: dict[int, float] = {}
    count = len(table.held)
    for term, worth in weights(context[:_LOOKED_INTO]).items() if context.strip() else ():
        places = table.having.get(term, ())
        if places and (count < _FEW or len(places) < _COMMON * count):
            share = worth * log(1 + count / len(places))
            for place in places:
                found[place] = found.get(place, 0.0) + share
    return found

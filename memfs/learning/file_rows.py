"""FileRows: what is known of each item of some folders, one row a file, in step with the files.

The rows are cached for the next process. A row is good only for the very bytes it was made of, so that deleting the
cache costs time alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from memfs.errors import IndexUnavailable, StorageIO
from memfs.model import Candidate, MemoryItem, Stamp
from memfs.search.stamps import Entry, StampTable
from memfs.search.trigger_table import RowBase
from memfs.store.reader import Followable
from memfs.store.store import Machinery

_TRIED = 20
_UNTIMED = datetime.min.replace(tzinfo=UTC)


class FileRow(Protocol):
    """A row that names its file, and what the file held when the row was made of it."""

    @property
    def path(self) -> str: ...

    @property
    def blob(self) -> str: ...


Row = TypeVar("Row", bound=FileRow)


class FileRows(Generic[Row]):
    """The rows of one workspace. Not safe for several threads, ``follow`` aside: the holder sees to that.

    Attributes:
        rows: by path, as the files were at the last ``update``.
    """

    def __init__(
        self,
        store: Followable,
        parts: Machinery,
        folders: tuple[str, ...],
        cache: RowBase,
        make: Callable[[MemoryItem, str], Row],
        *,
        pack: Callable[[Row], list[Any]],
        unpack: Callable[[list[Any]], list[Row]],
        worth_caching: int = 0,
    ) -> None:
        """Nothing is read before the first ``update``.

        Args:
            folders: where the items are, each ending in "/".
            make: makes the row of an item, and of what its file holds.
            pack, unpack: what of a row is cached, as JSON can tell it, and rows of that again.
            worth_caching: with fewer files it takes no longer to read them than to open a cache.
        """
        self._store, self._parts = store, parts
        self._folders, self._cache, self._make = folders, cache, make
        self._pack, self._unpack = pack, unpack
        self._worth_caching = worth_caching
        self.rows: dict[str, Row] = {}
        self._seen: tuple[StampTable, Mapping[str, str]] | None = None
        self._below: Mapping[str, str] = {}
        self._missed: dict[str, str] = {}
        self._changed: dict[str, Row | None] = {}
        self._uncached: dict[str, Row | None] = {}
        self._first: dict[str, tuple[MemoryItem, str]] | None = None
        store.index_sync.listeners.append(self._heard)

    def follow(self) -> None:
        """Bring the index in step with the files. What it reads before there are rows is not read for these again."""
        if self._seen is None and self._first is None:
            self._first = {}
        try:
            self._store.follow()
        except BaseException:
            self._first = None
            raise

    def update(self) -> None:
        """Bring the rows in step with the index; what cannot be read now is tried again the next time."""
        try:
            base, over, stamps = self._index()
            if self._seen is None:
                self._load(base, over)
                base, over, stamps = self._index()
            if self._seen is None or self._seen[0] is not base or self._seen[1] != over:
                self._compare(base, over)
            self._read(stamps)
        finally:
            self._first = None

    def changes(self) -> Mapping[str, Row | None]:
        """The rows that came or changed since the last call, by path; None for those that are gone."""
        changed, self._changed = self._changed, {}
        return changed

    def keep(self, most: int = 0) -> None:
        """Write what is new into the cache where it is more than ``most`` rows."""
        if len(self._uncached) <= most or len(self.rows) < self._worth_caching:
            return
        rows, self._uncached = self._uncached, {}
        with suppress(IndexUnavailable, StorageIO):  # a cache: the next process reads the files
            self._cache.keep(
                [(path, row.blob, self._pack(row)) for path, row in rows.items() if row is not None],
                [path for path, row in rows.items() if row is None],
            )

    def close(self) -> None:
        """Write what is new into the cache, and release it. May be repeated."""
        self.keep()
        self._cache.close()

    # -- in step with the index -------------------------------------------------------------------------------------
    def _heard(self, written: Sequence[tuple[MemoryItem, Stamp]], _gone: Sequence[str]) -> None:
        """Takes what the index reads. Waits for nothing: the caller holds the index."""
        first = self._first
        if first is not None:
            mine = (pair for pair in written if pair[0].path.startswith(self._folders))
            first.update((item.path, (item, stamp.blob)) for item, stamp in mine)

    def _index(self) -> tuple[StampTable, dict[str, str], Mapping[str, Entry]]:
        """The base of the index, what lies over it here, and both together, at one moment."""
        with self._parts.index.held():
            base, stamps = self._parts.index.base_stamps(), self._parts.index.stamps()
            over: dict[str, str] = {}
            for folder in self._folders:
                over.update(stamps.changed_below(folder))
        return base, over, stamps

    def _held(self, base: StampTable, over: Mapping[str, str]) -> dict[str, str]:
        if self._seen is None or self._seen[0] is not base:
            self._below = {path: blob for path, blob in base.blobs() if path.startswith(self._folders)}
        return {path: blob for path, blob in {**self._below, **over}.items() if blob}

    def _load(self, base: StampTable, over: Mapping[str, str]) -> None:
        """Begin with the cached rows."""
        held = self._held(base, over)
        if len(held) < self._worth_caching:
            return
        try:
            self.rows = {row.path: row for row in self._cache.load(self._unpack)}
        except (IndexUnavailable, StorageIO):  # a cache: without it the files are read
            self.rows = {}
        self._changed.update(self.rows)
        lost = [path for path in self.rows if path not in held]
        if any(self._parts.seen.entry(path) is not None for path in lost[:_TRIED]):
            self._store.refresh()  # the index was damaged, and lacks what is there

    def _compare(self, base: StampTable, over: Mapping[str, str]) -> None:
        """Forget the rows that are no longer what the files hold; what is to be read is then missed."""
        held = self._held(base, over)
        for path in [path for path, row in self.rows.items() if row.blob != held.get(path)]:
            del self.rows[path]
            self._changed[path] = self._uncached[path] = None
        self._missed = {path: blob for path, blob in held.items() if path not in self.rows}
        self._seen = base, over

    def _read(self, stamps: Mapping[str, Entry]) -> None:
        for path, blob in list(self._missed.items()):
            item = self._item(path, blob, stamps)
            if item is not None:
                self.rows[path] = self._changed[path] = self._uncached[path] = self._make(item, blob)
                del self._missed[path]

    def _item(self, path: str, blob: str, stamps: Mapping[str, Entry]) -> MemoryItem | None:
        item, read = (self._first or {}).get(path, (None, ""))
        if item is not None and read == blob:
            return item
        if path not in stamps:
            return None
        asked = Candidate(id=stamps[path][0], path=path, similarity=0.0, type="", timestamp=_UNTIMED)
        loaded = self._store.load(asked)
        return None if loaded is None else loaded.item

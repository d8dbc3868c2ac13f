"""Caches what is read out of items, once for each content.

Equal bytes are read once, and the cache is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from memfs.errors import MemfsError
from memfs.fs.lock import renewed_in_child
from memfs.model import Candidate, Kind, MemoryItem, Query
from memfs.search.search_index import SearchIndex
from memfs.store.parts import CONTENT
from memfs.store.store import Store

Facts = TypeVar("Facts")

_LARGEST = 1 << 16
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _CachedItem(Generic[Facts]):
    blob: str
    size: int
    facts: Facts


class Catalogue(Generic[Facts]):
    """Caches facts of the items of one store. May be used from several threads.

    At most 64 MiB of files are kept, and none above 64 KiB: others are read again each time.
    """

    def __init__(self, store: Store, index: SearchIndex, read: Callable[[MemoryItem], Facts]) -> None:
        """``read`` returns the facts of an item, which callers share and must not change."""
        self._store = store
        self._index = index
        self._read = read
        self._kept: dict[str, _CachedItem[Facts]] = {}
        self._bytes = 0
        self._guard = threading.Lock()
        renewed_in_child(self)

    def of(self, query: Query) -> list[Facts]:
        """The facts of all items that pass a query's filters, the newest first; see ``Searcher.every``.

        Of a file that is invalid at present, those of its last good version.
        """
        found = []
        for candidate in list(self._store.every(query)):
            kept = self._kept.get(candidate.path)
            if kept is not None and kept.blob == self._blob(candidate.path):
                found.append(kept.facts)
            else:
                found.extend(self._loaded(candidate))
        return found

    def every(self, kind: Kind) -> list[Facts]:
        """The facts of all items of a kind, in no order; as ``of``, and quicker where most were read before."""
        self._store.follow()
        folder, found, missing = f"{CONTENT}/{kind.folder}/", [], set()
        for path, blob in self._index.stamps().blobs():
            if path.startswith(folder):
                kept = self._kept.get(path)
                if kept is not None and kept.blob == blob:
                    found.append(kept.facts)
                else:
                    missing.add(path)
        if missing:
            for candidate in list(self._store.every(Query(types=frozenset({kind.name})))):
                if candidate.path in missing:
                    found.extend(self._loaded(candidate))
        return found

    def _blob(self, path: str) -> str:
        row = self._index.stamps().get(path)
        return row[1].blob if row else ""

    def _loaded(self, candidate: Candidate) -> list[Facts]:
        """The facts of one item, none where it is gone."""
        before = self._index.stamps().get(candidate.path)
        loaded = self._store.load(candidate)
        item = loaded.item if loaded is not None else self._read_again(candidate.path)
        if item is None:
            return []
        facts = self._read(item)
        unchanged = before is not None and before[1].blob == self._blob(candidate.path)
        if before is not None and unchanged and loaded is not None and not loaded.stale:
            self._keep(candidate.path, _CachedItem(before[1].blob, before[1].size, facts))
        return [facts]

    def _read_again(self, path: str) -> MemoryItem | None:
        """The item in a file that changed since the index was asked."""
        self._store.refresh([path])
        try:
            return self._store.read(path)
        except (FileNotFoundError, MemfsError):
            return None

    def _keep(self, path: str, fresh: _CachedItem[Facts]) -> None:
        with self._guard:
            before = self._kept.pop(path, None)
            self._bytes -= before.size if before is not None else 0
            if fresh.size <= _LARGEST and self._bytes + fresh.size <= _MOST_BYTES:
                self._kept[path] = fresh
                self._bytes += fresh.size

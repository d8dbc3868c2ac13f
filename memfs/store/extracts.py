"""Extracts: what is read out of the items of a store, once for each content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from memfs.errors import MemfsError
from memfs.model import Kind, MemoryItem, Query
from memfs.store.parts import CONTENT
from memfs.store.store import Store

Extract = TypeVar("Extract")
_MOST = 100_000


class Extracts(Generic[Extract]):
    """What is read out of items, kept for those whose content the catalog knows. May be used from several threads."""

    def __init__(self, store: Store, read: Callable[[MemoryItem], Extract]) -> None:
        """``read`` returns what callers share and must not change."""
        self._store = store
        self._read = read
        self._kept: dict[str, tuple[str, Extract]] = {}

    def of(self, query: Query) -> list[Extract]:
        """The extracts of all items that pass a query's filters, the newest first; see ``Reader.every``.

        Of a file that is invalid at present, that of its last good version.
        """
        paths, stamps = [one.path for one in self._store.every(query)], self._store.index_sync.index.stamps()
        return self._extracts((path, row[1].blob) for path in paths if (row := stamps.get(path)) is not None)

    def every(self, kind: Kind) -> list[Extract]:
        """The extracts of all items of a kind, in no order; as ``of``, without asking the index."""
        self._store.follow()
        folder, held = f"{CONTENT}/{kind.folder}/", self._store.index_sync.index.stamps().blobs()
        return self._extracts((path, blob) for path, blob in held if path.startswith(folder))

    def _extracts(self, held: Iterable[tuple[str, str]]) -> list[Extract]:
        if len(self._kept) > _MOST:
            self._kept = {}
        kept, blobs, passing = self._kept, dict(held), dict[str, Extract]()
        changed = [path for path, blob in blobs.items() if path not in kept or kept[path][0] != blob]
        stamps = self._store.index_sync.index.stamps()
        lacking = {path: row[1] for path in changed if (row := stamps.get(path)) is not None}
        for path in changed:
            kept.pop(path, None)
        for path, item, exact in self._store.load_all(dict(lacking)):
            del lacking[path]
            passing[path] = extract = self._read(item)
            if exact:
                kept[path] = blobs[path], extract
        for path in lacking:
            if (now := self._read_again(path)) is not None:
                passing[path] = self._read(now)
        return [
            passing[path] if path in passing else kept[path][1] for path in blobs if path in passing or path in kept
        ]

    def _read_again(self, path: str) -> MemoryItem | None:
        """The item in a file that changed since the index was asked."""
        self._store.refresh([path])
        try:
            return self._store.read(path)
        except (FileNotFoundError, MemfsError):
            return None

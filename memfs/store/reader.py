"""The protocols of everything that reads a store, and MountedStore, the reader of a mounted workspace.

A mounted store is never written to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from memfs.errors import StorageIO
from memfs.format.codec import Codec
from memfs.fs.tree import Tree
from memfs.model import Candidate, Freshness, KindTable, MemoryItem, Query
from memfs.search.search_index import SearchIndex
from memfs.store.index_sync import IndexSync, SyncResult
from memfs.store.searcher import ChangeDetector
from memfs.store.store import StoreReader
from memfs.store.values import FlushResult, LoadedItem


class QuerySearch(Protocol):
    """Finds items by the index in files as they are now; see ``memfs.store.searcher.Searcher`` for each."""

    def snapshot(self) -> AbstractContextManager[None]:
        """All that this thread asks within sees one state of the files."""

    def candidates(self, query: Query) -> list[Candidate]:
        """The items that answer a query, best first."""

    def has_conversations(self) -> bool:
        """Whether any item has a place in a talk."""

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters."""


class ItemLister(Protocol):
    """As ``QuerySearch``, for going through all items."""

    def every(self, query: Query) -> Iterator[Candidate]:
        """All items that pass a query's filters, the newest first."""


class Browsable(Protocol):
    """Lists, finds and loads items."""

    @property
    def searcher(self) -> ItemLister:
        """Asks the index."""

    def find(self, reference: str) -> MemoryItem:
        """The item a person means."""

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate as its file has it now."""


class Followable(Protocol):
    """Keeps its index in step with its files."""

    def follow(self) -> SyncResult:
        """Bring the index in step with what was seen to change."""

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:
        """Bring the index in step with the files."""

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate as its file has it now."""


class Readable(Protocol):
    """Finds and loads items; see ``memfs.store.store.Store`` for each."""

    @property
    def searcher(self) -> QuerySearch:
        """Asks the index."""

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate as its file has it now."""

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now."""

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:
        """Bring the index in step with the files."""

    def freshness(self) -> Freshness:
        """The proof of what an answer given now rests on."""


_FOLD_AT = 500


def reader_of(engine: str, invisible: bool) -> str:
    """Whose index it is (``index_folder``) where a workspace is read as a mount: settings decide what it holds."""
    return f"mounted {engine} {'invisible' if invisible else ''}".strip()


class MountedStore(StoreReader):
    """Reads the memories of one workspace as its files have them. May be used from several threads.

    Nothing below the other workspace's folder is ever written: no journal, lock, state folder or history; its index is
    in this user's cache.

    Attributes:
        tree, codec, kinds, index, clock: what it reads with.
    """

    def __init__(
        self, tree: Tree, codec: Codec, kinds: KindTable, index: SearchIndex, clock: Callable[[], datetime]
    ) -> None:
        """``index``: in a folder of this user's own."""
        self.tree, self.codec, self.kinds, self.index, self.clock = tree, codec, kinds, index, clock
        index_sync = IndexSync(tree, codec, kinds, index, None)
        super().__init__(self, index_sync, ChangeDetector(index_sync))
        self._closed = False

    @property
    def seen(self) -> Tree:
        """The files as readers see them."""
        return self.tree

    def stop_watching(self) -> None:
        """Look at every file before each question from now on."""
        self.change_detector.close()

    def head(self) -> tuple[str | None, str | None]:
        """Nothing: its history is not looked at."""
        return None, None

    def tend(self) -> None:
        """Fold the index when many files are not in its base; where there is no room for it, the next process scans."""
        if self.index.overlay_size() > _FOLD_AT:
            self._fold()

    def flush(self, adopt: bool | None = None, *, quiet_seconds: float = 0) -> FlushResult:  # noqa: ARG002
        """Nothing is ever to be committed here."""
        return FlushResult()

    def _fold(self) -> None:
        with contextlib.suppress(StorageIO):
            self.index_sync.settle()
            self.index.fold()

    def close(self) -> None:
        """Fold the index, release everything. May be repeated."""
        with contextlib.ExitStack() as release:
            for part in (self.tree, self.index):
                release.callback(part.close)
            self.change_detector.close()
            if not self._closed and self.index.spares_others(self.searcher.asked):
                self._fold()
            self._closed = True

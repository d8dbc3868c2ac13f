"""MountedStore: reads a mounted workspace, and never writes to it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime

from memfs.errors import StorageIO
from memfs.format.codec import Codec
from memfs.fs.tree import Tree
from memfs.model import KindTable
from memfs.search.search_index import SearchIndex
from memfs.store.index_sync import IndexSync
from memfs.store.searcher import ChangeDetector
from memfs.store.store import StoreReader
from memfs.store.values import FlushResult

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
            if not self._closed and self.index.spares_others(self.asked):
                self._fold()
            self._closed = True

"""MountedStore: the items of another workspace, for reading only.

Owns the promise that nothing below the other workspace's folder is ever written: no journal, no lock, no state folder,
no history; its index lies in this user's cache. Which workspace that is, and whether it may be read, is decided above.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from datetime import datetime

from memfs.errors import MemfsError, StorageIO
from memfs.files.codec import Codec
from memfs.files.rot import corrupt, rotten
from memfs.files.tree import Content, Tree
from memfs.index.layers import SearchIndex
from memfs.model import Candidate, KindTable, MemoryItem, Problem, Query
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.time import from_timestamp_ns
from memfs.store.decoded import Decoded
from memfs.store.following import Following
from memfs.store.naming import in_types
from memfs.store.outcome import Refreshed
from memfs.store.seeking import Seeking
from memfs.store.sight import Sight
from memfs.store.values import Eyes, Flushed, Loaded

_FOLD_AT = 500


def reader_of(engine: str, invisible: bool) -> str:
    """Whose index it is (``index_folder``) where a workspace is read as a mount: settings decide what it holds."""
    return f"mounted {engine} {'invisible' if invisible else ''}".strip()


class MountedStore:
    """Reads the memories of one workspace as its files have them. May be used from several threads.

    It offers what answers are made from (``memfs.store.readable.Readable``) and what is watched.

    Attributes:
        tree, codec, kinds, index, clock: what it reads with; ``seeking`` asks the index.
    """

    def __init__(
        self, tree: Tree, codec: Codec, kinds: KindTable, index: SearchIndex, clock: Callable[[], datetime]
    ) -> None:
        """``index``: in a folder of this user's own."""
        self.tree, self.codec, self.kinds, self.index, self.clock = tree, codec, kinds, index, clock
        self.following = Following(tree, codec, kinds, index, lambda _: None)
        self.seeking = Seeking(self, self.follow, self.refresh)
        self._sight = Sight(self.following, self.refresh, lambda: set())
        self._decoded = Decoded()
        self._failures: list[Problem] = []
        self._closed = False

    @property
    def seen(self) -> Tree:
        """The files as readers see them."""
        return self.tree

    # -- reading ----------------------------------------------------------------------------------------------------
    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, None when there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        path = self.following.locate(item_id)
        if not path:
            self.follow()
            path = self.following.locate(item_id)
        try:
            return self._decode(path, self._content(path)) if path else None
        except FileNotFoundError:
            return None

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate as its file has it now; None when the file is no longer what was found, or is
        invalid at present.
        """
        if self.following.rejected(candidate.path):
            return None
        try:
            content = self._content(candidate.path)
            stamp = self.following.stamp_of(candidate.path)
            if stamp is None or stamp.blob != content.stamp.blob:
                return None
            return Loaded(item=self._decode(candidate.path, content), stale=False)
        except (FileNotFoundError, MemfsError):
            return None

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now; ``problems`` says why."""
        return self.following.unread(in_types(query, self.kinds)) if self.following.rejected_items() else []

    def count(self) -> int:
        """How many valid items there are."""
        self.follow()
        return len(self.index.stamps())

    def problems(self) -> list[Problem]:
        """What is wrong with its files, and with reading them."""
        return [*self.following.problems(), *self._failures]

    def _content(self, path: str) -> Content:
        content = self.tree.read(path, ITEM_LIMIT)
        known = self.index.stamps().get(path)
        if known is not None and rotten(known[1], content, self.tree.root):
            raise corrupt(path, known[1], content)
        return content

    def _decode(self, path: str, content: Content) -> MemoryItem:
        def decode() -> MemoryItem:
            return self.codec.read(content.data, path, from_timestamp_ns(content.stamp.mtime_ns))

        return self._decoded.item(path, content.stamp, decode, checked=True)

    # -- keeping in step --------------------------------------------------------------------------------------------
    def watch_with(self, make_eyes: Callable[[], Eyes]) -> None:
        """Rely on something that sees changes, instead of a scan before each question, from the first one on."""
        self._sight.watch_with(make_eyes)

    def stop_watching(self) -> None:
        """Look at every file before each question from now on."""
        self._sight.close()

    @property
    def watching(self) -> str:
        """``on``, ``off``, or ``degraded`` with the reason."""
        return self._sight.state

    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:
        """Bring the index in step with the given files, or with every file."""
        if self.index.reload():
            self.following.forget_owners()
        return self.following.refresh(paths)

    def follow(self) -> Refreshed:
        """Bring the index in step with what was seen to change; with every file where that is not known for sure."""
        return self._sight.follow()

    def head(self) -> tuple[str | None, str | None]:
        """Nothing: its history is not looked at."""
        return None, None

    def tend(self) -> None:
        """Fold the index when many files are not in its base; where there is no room for it, the next process scans."""
        if self.index.overlay_size() > _FOLD_AT:
            self._fold()

    def flush(self, adopt: bool | None = None, *, quiet_seconds: float = 0) -> Flushed:  # noqa: ARG002
        """Nothing is ever to be committed here."""
        return Flushed()

    def note_failure(self, error: Exception) -> None:
        """Report what went wrong behind the scenes, once, among the problems."""
        found = Problem(path="", code=type(error).__name__, message=str(error), hint="memfs tries again by itself")
        if found not in self._failures:
            self._failures.append(found)

    def _fold(self) -> None:
        with contextlib.suppress(StorageIO):
            self.following.settle()
            self.index.fold()

    def close(self) -> None:
        """Fold the index, release everything. May be repeated."""
        with contextlib.ExitStack() as release:
            for part in (self.tree, self.index):
                release.callback(part.close)
            self._sight.close()
            if not self._closed and self.index.spares_others(self.seeking.asked):
                self._fold()
            self._closed = True

"""Reading: items from their files, and the last good version of those that are invalid at present.

Owns the promise that text comes from a file that was looked at, never from the index.
"""

from __future__ import annotations

from memfs.errors import HistoryError, MemfsError
from memfs.files.rot import corrupt, rotten
from memfs.files.tree import Content
from memfs.model import Candidate, MemoryItem
from memfs.model.ids import stem_of
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.time import from_timestamp_ns
from memfs.store.decoded import Decoded
from memfs.store.following import Following
from memfs.store.parts import Parts
from memfs.store.values import Loaded


class Reading:
    """Reads items of one workspace."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known = Decoded()

    def read(self, path: str) -> MemoryItem:
        """See ``Store.read``."""
        content = self._parts.seen.read(path, ITEM_LIMIT)
        self.refuse_rot(path, content)
        return self._decoded(path, content)

    def refuse_rot(self, path: str, content: Content) -> None:
        """Raise ``CorruptItem`` where the disk changed bytes that nobody wrote."""
        known = self._parts.index.stamps().get(path)
        if known is not None and rotten(known[1], content, self._parts.tree.root):
            raise corrupt(path, known[1], content)

    def _decoded(self, path: str, content: Content, checked: bool = False) -> MemoryItem:
        def decode() -> MemoryItem:
            modified = from_timestamp_ns(content.stamp.mtime_ns)
            return self._parts.codec.read(content.data, path, modified, checked=checked)

        return self._known.item(path, content.stamp, decode, checked=not checked)

    def load(self, candidate: Candidate, following: Following) -> Loaded | None:
        """See ``Store.load``."""
        if following.damaged(candidate.path):
            return None
        if following.rejected(candidate.path):
            item = self.last_good_item(candidate.path, following)
            return Loaded(item=item, stale=True) if item else None
        try:
            content = self._parts.seen.read(candidate.path, ITEM_LIMIT)
            stamp = following.stamp_of(candidate.path)
            if stamp is None or stamp.blob != content.stamp.blob:
                return None
            return Loaded(item=self._decoded(candidate.path, content, checked=True), stale=False)
        except (FileNotFoundError, MemfsError):
            return None

    def last_good(self, path: str) -> bytes | None:
        """What history has for a path, None when it has nothing or cannot be read."""
        try:
            head = self._parts.repository.head()
            return self._parts.repository.read(head.commit, path) if head.commit else None
        except HistoryError:
            return None

    def last_good_item(self, path: str, following: Following) -> MemoryItem | None:
        """The last good version of an item whose file is invalid; None where there is none, or the disk changed it."""
        if following.damaged(path) or not following.rejected(path):
            return None
        fresh = self._parts.index.item(stem_of(path))
        if fresh is not None and fresh.path == path:
            return fresh
        stamp = following.stamp_of(path)
        try:
            data = self._parts.repository.blob(stamp.blob) if stamp else self.last_good(path)
            written = from_timestamp_ns(stamp.mtime_ns) if stamp else self._parts.clock()
            return self._parts.codec.read(data, path, written) if data else None
        except MemfsError:
            return None

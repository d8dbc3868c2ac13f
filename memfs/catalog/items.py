"""The items of one workspace by the content of their files: the same bytes are parsed once, whoever reads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress

from memfs.catalog.facts import Catalog, Key, maker
from memfs.errors import MemfsError
from memfs.format.codec import Codec
from memfs.fs.lock import renewed_in_child
from memfs.fs.tree import Content
from memfs.model import MemoryItem, Stamp
from memfs.model.time import from_timestamp_ns

_FORM = 1
_AT_ONCE = 500
_LONGEST = 1 << 16
# What making an item of a fact raises that another program wrote.
_UNFIT = (MemfsError, ValueError, TypeError, LookupError, AttributeError)


class ItemCatalog:
    """Makes items of files, by the facts that are kept of their contents. May be used from several threads.

    A fact holds what the file says: id and path follow from where it lies, and a time that it does not name from the
    file. What is above 64 KiB is not kept.

    Attributes:
        catalog: where they are kept, for whoever has more to say of the same contents.
        codec: how files are read.
    """

    def __init__(self, catalog: Catalog, codec: Codec) -> None:
        """``catalog``: where facts are kept; one without texts has none of them: they are kept in memory."""
        self.catalog, self.codec = catalog if catalog.texts else Catalog(None), codec
        self._maker = maker("item", f"{_FORM} {codec.rules}")
        self._fresh: dict[Key, str] = {}
        self._guard = threading.Lock()
        renewed_in_child(self)

    def known(self, path: str, stamp: Stamp, *, checked: bool = True) -> MemoryItem | None:
        """The item in a file that is known to hold this content; None where no fact says what that is.

        Args:
            checked: these very bytes obeyed the schema before.
        """
        return self.known_all({path: stamp}, checked=checked).get(path)

    def known_all(self, stamps: Mapping[str, Stamp], *, checked: bool = True) -> dict[str, MemoryItem]:
        """As ``known``, of many files, by path."""
        keys = {path: self.key(path, stamp.blob) for path, stamp in stamps.items()}
        facts = self.catalog.found(self._maker, keys.values()) if keys else {}
        found = {}
        for path, key in keys.items():
            with suppress(*_UNFIT):
                mapping, sha256 = facts.pop(key)  # two items share nothing that can be changed
                modified = from_timestamp_ns(stamps[path].mtime_ns)
                item = self.codec.known(mapping, path, modified, sha256, checked=checked)
                if item is not None:
                    found[path] = item
        return found

    def read(self, path: str, content: Content, *, checked: bool = False, keep: bool = False) -> MemoryItem:
        """The item in bytes that were just read from a file, parsed only where no fact says what they hold.

        Args:
            checked: as ``known``.
            keep: make it a fact, from the next ``flush`` on; for bytes that may be in the user's cache.

        Raises:
            ContentError, IdInvalid: as ``Codec.read``.
        """
        known = self.known(path, content.stamp, checked=checked)
        if known is not None:
            return known
        modified = from_timestamp_ns(content.stamp.mtime_ns)
        item, mapping = self.codec.decoded(content.data, path, modified, checked=checked)
        if keep and len(content.data) <= _LONGEST:
            with self._guard:
                self._fresh[self.key(path, content.stamp.blob)] = json.dumps([mapping, item.sha256])
                full = len(self._fresh) >= _AT_ONCE
            if full:
                self.flush()
        return item

    def flush(self) -> None:
        """Keep what was read, for every process."""
        with self._guard:
            fresh, self._fresh = self._fresh, {}
        if fresh:
            self.catalog.keep(self._maker, fresh)

    def close(self) -> None:
        """Keep what was read, and release the catalog. May be repeated."""
        self.flush()
        self.catalog.close()

    def begin_anew_in_child(self) -> None:
        """Leave what waits to the parent."""
        self._fresh = {}

    def key(self, path: str, blob: str) -> Key:
        """What decides about an item: its bytes, how they are read, and its kind, which its folder tells.

        Raises:
            SchemaInvalid: the folder belongs to no kind.
        """
        kind = self.codec.kind_at(path)
        return blob, f"{kind.name}.json" if path.endswith(".json") else kind.name

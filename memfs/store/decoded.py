"""Decoded: the items of files that were read before, so that equal bytes are not decoded again.

Owns which are kept, and that nobody can change what others get. Whether a file still holds those bytes is found out by
reading it, each time, by whoever asks here. Knows nothing of files and formats.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from memfs.files.forked import renewed_in_child
from memfs.model import MemoryItem, Stamp

_MOST = 2_000
_MOST_BYTES = 4 << 20
_LONGEST = 1 << 16
_FREE = frozenset({"context", "metadata", "data"})
_FIXED = tuple(name for name in MemoryItem.__slots__ if name not in _FREE)


@dataclass(frozen=True, slots=True)
class _Kept:
    item: MemoryItem
    stamp: Stamp
    checked: bool


class Decoded:
    """The items that were decoded last, at most 2,000 and 4 MiB of bytes. May be used from several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0
        self._guard = threading.Lock()
        renewed_in_child(self)

    def item(self, path: str, stamp: Stamp, decode: Callable[[], MemoryItem], *, checked: bool) -> MemoryItem:
        """The item in a file that was just read, decoded anew unless the same bytes were.

        Args:
            stamp: taken with the bytes; content and time must be the same, as the time may be part of the item.
            checked: ``decode`` checks the bytes against their schema; an item decoded without that is not enough.
        """
        with self._guard:
            known = self._kept.get(path)
            if known is not None:
                self._kept.move_to_end(path)
        same = known is not None and known.stamp.blob == stamp.blob and known.stamp.mtime_ns == stamp.mtime_ns
        if known is not None and same and (known.checked or not checked):
            return _apart(known.item)
        item = decode()
        if stamp.size <= _LONGEST:
            self._keep(path, _Kept(_apart(item), stamp, checked))
        return item

    def _keep(self, path: str, fresh: _Kept) -> None:
        with self._guard:
            before = self._kept.pop(path, None)
            self._kept[path] = fresh
            self._bytes += fresh.stamp.size - (before.stamp.size if before is not None else 0)
            while len(self._kept) > _MOST or self._bytes > _MOST_BYTES:
                self._bytes -= self._kept.popitem(last=False)[1].stamp.size


def _apart(item: MemoryItem) -> MemoryItem:
    """An equal item that shares nothing that can be changed; not built anew, as it was proved when it was decoded."""
    copy = object.__new__(MemoryItem)
    put = object.__setattr__
    for name in _FIXED:
        put(copy, name, getattr(item, name))
    for name in _FREE:
        value = getattr(item, name)
        put(copy, name, deepcopy(value) if value else {})
    return copy

"""Overlay: what one process has indexed beyond the base generation, in memory.

Owns fresh items with their stamps, and which of the base's paths are gone and ids are covered. Knows nothing of
folders.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import ref

from memfs.index.memory import MemoryIndex
from memfs.index.stamps import Entry, LayeredStamps, Rows, StampTable
from memfs.model import MemoryItem, Stamp


@dataclass(frozen=True, slots=True)
class Changes:
    """A moment's content of an overlay, for making a generation of it.

    Attributes:
        entries: path to (id, stamp) of what was added.
        items: the added items that the index holds, one for each id.
        gone: base paths that were removed.
        hidden: base ids to take out.
        versions: which version of each path this is.
    """

    entries: Mapping[str, Entry]
    items: tuple[MemoryItem, ...]
    gone: frozenset[str]
    hidden: frozenset[str]
    versions: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.entries or self.gone)


class Overlay:
    """Fresh items over a base's stamp table. Not safe for several threads: ``SearchIndex`` holds its lock.

    ``rows`` is what ``entries``, ``gone`` and ``restamped`` (base paths looked at again) say together. ``clock`` rises
    with every change that is more than a new stamp.
    """

    def __init__(self, base: StampTable) -> None:
        self._base = base
        self.index = MemoryIndex()
        self.items: dict[str, MemoryItem] = {}
        self.entries: dict[str, Entry] = {}
        self.gone: dict[str, int] = {}
        self.restamped: dict[str, Entry] = {}
        self.rows: Rows = {}
        self._views: list[ref[LayeredStamps]] = []
        self.hidden: set[str] = set()
        self._versions: dict[str, int] = {}
        self.clock = 0

    def __len__(self) -> int:
        return len(self.entries) + len(self.gone)

    def view(self) -> LayeredStamps:
        """Base and overlay together as of now; costs the same however much there is."""
        made = LayeredStamps(self._base, self.rows)
        self._views = [other for other in self._views if other() is not None]
        self._views.append(ref(made))
        return made

    def restamp(self, path: str, stamp: Stamp) -> None:
        """Give a known path another stamp: its content is what it was, so that views made before learn it too."""
        held = self.entries.get(path)
        if held is not None:
            self.entries[path] = self.rows[path] = (held[0], stamp)
        elif path in self._base and path not in self.gone:
            self.restamped[path] = self.rows[path] = (self._base[path][0], stamp)

    def add(self, item: MemoryItem, stamp: Stamp, *, later: bool = False) -> None:
        """Index an item in place of whatever its path and its id held; ``later`` with the next search."""
        self._keep(item.path)
        before = self._drop(item.path)
        self.gone.pop(item.path, None)
        self.restamped.pop(item.path, None)
        self.entries[item.path] = self.rows[item.path] = (item.id, stamp)
        self.items[item.id] = item
        if later:
            self.index.postpone(item)
        else:
            self.index.add([item])
        self._touch(item.path)
        self._settle(item.id, before, self._base_id(item.path))

    def remove(self, path: str) -> None:
        """Forget a path; one that is not known is ignored."""
        self._keep(path)
        before = self._drop(path)
        self.restamped.pop(path, None)
        if path in self._base:
            self.gone[path] = time.time_ns()
            self.rows[path] = None
        elif before:
            self.rows.pop(path, None)
        else:
            return
        self._touch(path)
        self._settle(before, self._base_id(path))

    def changes(self) -> Changes:
        """What it holds now."""
        return Changes(
            dict(self.entries),
            tuple(self.items.values()),
            frozenset(self.gone),
            frozenset(self.hidden),
            dict(self._versions),
        )

    def rebased(self, base: StampTable, done: Mapping[str, int] | None = None) -> Overlay:
        """This overlay over another base, less what that base already says.

        Args:
            base: the new base's stamps.
            done: versions of paths that the new base was made from; without it, whichever of base and overlay looked at
                a file later is believed (the next freshness check corrects what clocks got wrong).
        """
        fresh = Overlay(base)
        for path, (key, stamp) in self.entries.items():
            if self._done(path, done) or (done is None and _known(base, path, stamp)):
                continue
            item = self.items.get(key)
            if item is not None and item.path == path:
                fresh.add(item, stamp)
            else:
                fresh.entries[path] = fresh.rows[path] = (key, stamp)
                fresh._settle(key, fresh._base_id(path))
            fresh._versions[path] = self._versions[path]
        for path, when in self.gone.items():
            covered = self._done(path, done) or (done is None and path in base and base[path][1].checked_ns > when)
            if not covered and path in base:
                fresh.remove(path)
                fresh.gone[path] = when
                fresh._versions[path] = self._versions[path]
        fresh.clock = self.clock
        return fresh

    def _done(self, path: str, done: Mapping[str, int] | None) -> bool:
        return done is not None and done.get(path) == self._versions[path]

    def _keep(self, path: str) -> None:
        for other in self._views:
            view = other()
            if view is not None:
                view.keep(path)

    def _touch(self, path: str) -> None:
        self.clock += 1
        self._versions[path] = self.clock

    def _drop(self, path: str) -> str:
        """Take a path's item out; return its id."""
        key, _ = self.entries.pop(path, ("", None))
        item = self.items.get(key)
        if item is not None and item.path == path:
            del self.items[key]
            self.index.remove([key])
        return key

    def _base_id(self, path: str) -> str:
        return self._base[path][0] if path in self._base else ""

    def _settle(self, *ids: str) -> None:
        """Hide a base id if the overlay holds it, or its file is gone or has changed; else show it."""
        for key in ids:
            holder = self._base.holder(key)
            if holder is not None and (key in self.items or holder in self.gone or holder in self.entries):
                self.hidden.add(key)
            else:
                self.hidden.discard(key)


def _known(base: StampTable, path: str, stamp: Stamp) -> bool:
    if path not in base:
        return False
    _, theirs = base[path]
    return theirs.blob == stamp.blob or theirs.checked_ns > stamp.checked_ns

"""Finds items by the names people give them, and detects which files changed since the index was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from memfs.config_names import SETTINGS_FILE
from memfs.errors import ItemNotFound
from memfs.fs.lock import renewed_in_child
from memfs.model import KindTable, MemoryItem, Query
from memfs.model.ids import of_mount
from memfs.model.kinds import nearest
from memfs.store.index_sync import SyncResult
from memfs.store.parts import CONTENT
from memfs.store.snapshot import Snapshot
from memfs.store.values import FileWatcher
from memfs.store.write import FileWriter


def meant(reference: str, get: Callable[[str], MemoryItem | None], every: Callable[[], Collection[str]]) -> MemoryItem:
    """The item with an id, or with the only id that begins so; ``get`` and ``every`` as a store has them.

    Raises:
        ItemNotFound: naming the nearest id.
    """
    found = get(reference)
    if found is not None:
        return found
    ids = every()
    starting = [item_id for item_id in ids if item_id.casefold().startswith(reference.casefold())]
    if len(starting) == 1 and (only := get(starting[0])) is not None:
        return only
    raise not_found(reference, starting, ids)


def path_of(reference: str) -> str:
    """The path below the workspace that a person's path means, whether or not it begins with ``ContextMemory/``."""
    cleaned = reference.removeprefix("./")
    return cleaned if cleaned.startswith((CONTENT + "/", SETTINGS_FILE)) else f"{CONTENT}/{cleaned}"


def in_types(query: Query, kinds: KindTable) -> Query:
    """The query with its layers written out as types."""
    types = query.types
    if query.layers:
        in_layers = kinds.in_layers(query.layers)
        types = (types & in_layers if types else in_layers) or frozenset({""})
    return Query(**{name: getattr(query, name) for name in Query.__slots__} | {"types": types})


def not_found(reference: str, starting: Sequence[str], ids: Iterable[str]) -> ItemNotFound:
    """The error for a name that no item, or more than one, answers to."""
    if starting:
        hint = "it could be " + ", ".join(sorted(starting)[:5])
    else:
        hint = nearest(reference, known := list(ids)) or "memfs list shows what there is"
        if (mount := of_mount(reference)) and not any(map(of_mount, known)):  # asked for where mounts are not looked at
            hint = f"what is mounted is only read and shown: change it in the workspace that {mount!r} names"
    return ItemNotFound(f"no memory is called {reference!r}", hint=hint)


class ChangeDetector:
    """Detects the changed files of one store. Watching begins with the first look."""

    def __init__(self, snapshot: Snapshot, writing: FileWriter | None = None) -> None:
        """``writing`` tells what other processes wrote, and brings home what waits; None where nobody writes."""
        self._snapshot = snapshot
        self._writing = writing
        self._watcher: FileWatcher | None = None
        self._make: Callable[[], FileWatcher] | None = None
        self._made: Callable[[], FileWatcher] | None = None
        self._turn = threading.RLock()
        renewed_in_child(self)
        self._once = threading.local()

    def watch_with(self, make: Callable[[], FileWatcher]) -> None:
        """Begin to watch with the next ``follow``."""
        self._make = make

    def begin_anew_in_child(self) -> None:
        """Watch with a watcher of its own: that of the parent sees nothing in a child."""
        self._once = threading.local()
        if self._watcher is not None:
            _abandoned.append(self._watcher)
            self._watcher, self._make = None, self._made

    @property
    def state(self) -> str:
        """``on``, ``off``, or ``degraded`` with the reason."""
        if self._watcher is None:
            return "off"
        return f"degraded: {self._watcher.degraded}" if self._watcher.degraded else "on"

    @contextmanager
    def once(self) -> Iterator[None]:
        """Within, this thread looks once: who asks several that look each is spared all looks but the first."""
        if getattr(self._once, "looked", None) is not None:  # within another one
            yield
            return
        self._once.looked = False
        try:
            yield
        finally:
            self._once.looked = None

    def follow(self) -> SyncResult:
        """Look at what was seen to change; at every file where that is not known for sure."""
        if getattr(self._once, "looked", None):
            return SyncResult()
        found = self._follow()
        if getattr(self._once, "looked", None) is not None:
            self._once.looked = True
        return found

    def refresh(self) -> SyncResult:
        """Look at every file."""
        if self._writing is not None:
            self._writing.bring_home()
        return self._snapshot.catch_up()

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Within, every file is looked at to bring the index in step; for ``once`` that is this thread's look."""
        with self._turn:
            yield
        if getattr(self._once, "looked", None) is not None:
            self._once.looked = True

    def _follow(self) -> SyncResult:
        with self._turn:
            opened = self._open()
            news = self._writing.news() if self._writing is not None else set()
            seen = self._watcher.drain() if self._watcher else None
            if opened or news is None or seen is None:
                return self.refresh()
            try:
                return self._snapshot.refresh({*news, *seen}) if news or seen else SyncResult()
            except BaseException:
                if self._watcher is not None:
                    self._watcher.give_back([*news, *seen])
                raise

    def close(self) -> None:
        """Stop watching, and do not begin to."""
        with self._turn:  # not while they close: they wait for a thread that may wait for its turn
            watcher, self._watcher, self._make = self._watcher, None, None
        if watcher is not None:
            watcher.close()

    def _open(self) -> bool:
        make, self._make = self._make, None
        if make is None:
            return False
        self._watcher, self._made = make(), make
        return True


# Watchers of a parent process: taking them apart in a child would end what the parent watches with.
_abandoned: list[FileWatcher] = []

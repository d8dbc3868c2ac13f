"""Detects which files changed since one process last looked.

Uses a watcher where one runs and a scan of every file otherwise, so that a scan finds what events may have missed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memfs.fs.lock import renewed_in_child
from memfs.store.index_sync import IndexSync, SyncResult
from memfs.store.values import FileWatcher
from memfs.store.write import FileWriter


class ChangeDetector:
    """Detects the changed files of one store. Watching begins with the first look."""

    def __init__(self, index_sync: IndexSync, writing: FileWriter | None = None) -> None:
        """``writing`` tells what other processes wrote, and brings home what waits; None where nobody writes."""
        self._index_sync = index_sync
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
        return self._index_sync.catch_up()

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
                return self._index_sync.refresh({*news, *seen}) if news or seen else SyncResult()
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

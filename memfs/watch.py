"""Watching: hearing of changed files while nobody asks, through watchdog.

Owns the observer and the thread that brings the index up to date behind the scenes. Events only say where to look; what
is true is read from the files, and a scan takes over whenever events may have been missed (faults row 44).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memfs.config import MEMORY_FOLDER
from memfs.settings import WatchSettings
from memfs.store import Refreshed, Store

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

_STORM = 500
_LONGEST_WAIT = 1.0
_TICK = 0.5

Listener = Callable[["Noticed"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """One round of catching up: which files changed, and why the round was made.

    ``reason`` is ``events``, ``scan`` or ``head``; ``error`` is what went wrong, "" when nothing did.
    """

    refreshed: Refreshed
    reason: str
    error: str = ""


class Watcher:
    """The eyes of one open store (``memfs.store.Eyes``)."""

    def __init__(
        self,
        store: Store,
        root: Path,
        settings: WatchSettings,
        *,
        quiet_seconds: float | None = None,
        listener: Listener | None = None,
    ) -> None:
        """Begin to watch at once.

        Args:
            quiet_seconds: commit a person's edits that rested for so long; None leaves them.
            listener: told of each round that found something.
        """
        self._store = store
        self._root = root
        self._settings = settings
        self._quiet = quiet_seconds
        self._listener = listener
        self._paths: set[str] = set()
        self._missed = False
        self._guard = threading.Lock()
        self._seen = threading.Event()
        self._closing = threading.Event()
        self._scanned_at = time.monotonic()
        self._adopt_at: float | None = None
        self._head = store.head()
        self.degraded = ""
        self._log = _OverflowLog(self._miss)
        self._watched = (0, 0)
        self._observer = self._start_observer()
        self._adopt_soon()
        self._thread = threading.Thread(target=self._run, name="memfs-watch", daemon=True)
        self._thread.start()

    # -- Eyes -----------------------------------------------------------------------------------------------------
    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None when a scan is needed to be sure."""
        sure = self._is_sure()
        with self._guard:
            paths, missed = self._paths, self._missed
            self._paths, self._missed = set(), False
        if missed or not sure or len(paths) > _STORM:
            self._scanned_at = time.monotonic()
            return None
        return sorted(paths)

    def give_back(self, paths: list[str]) -> None:
        """Take back paths that could not be looked at."""
        with self._guard:
            self._paths.update(paths)

    def close(self) -> None:
        """Stop watching."""
        self._closing.set()
        self._seen.set()
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        logging.getLogger("watchdog").removeHandler(self._log)

    def _is_sure(self) -> bool:
        """Whether events can be relied on: all watching threads live, and they watch the folder that is there now."""
        observer = self._observer
        if observer is None:
            return False
        alive = observer.is_alive() and all(emitter.is_alive() for emitter in observer.emitters)
        if alive and self._folder_id() == self._watched:
            self.degraded = ""
            return True
        self.degraded = "the watched folder was replaced, or watching it ended; scanning instead"
        return False

    def _folder_id(self) -> tuple[int, int]:
        try:
            facts = os.stat(self._root / MEMORY_FOLDER)
        except OSError:
            return (0, 0)
        return facts.st_dev, facts.st_ino

    # -- hearing --------------------------------------------------------------------------------------------------
    def _start_observer(self) -> BaseObserver | None:
        # Imported here because only a process that stays needs it, and it costs start-up time.
        from watchdog.events import (
            DirDeletedEvent,
            DirMovedEvent,
            FileClosedEvent,
            FileCreatedEvent,
            FileDeletedEvent,
            FileModifiedEvent,
            FileMovedEvent,
            FileSystemEventHandler,
        )
        from watchdog.observers import Observer

        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        logging.getLogger("watchdog").addHandler(self._log)
        handler = FileSystemEventHandler()
        handler.on_any_event = self._hear  # type: ignore[method-assign]
        written = FileClosedEvent if sys.platform == "linux" else FileModifiedEvent
        kinds: list[type[FileSystemEvent]] = [written, FileCreatedEvent, FileDeletedEvent, FileMovedEvent]
        kinds += [DirMovedEvent, DirDeletedEvent]
        observer = Observer()
        self._watched = self._folder_id()
        try:
            observer.schedule(handler, str(self._root / MEMORY_FOLDER), recursive=True, event_filter=kinds)
            observer.start()
        except OSError as error:
            self.degraded = f"watching is not possible: {error.strerror or error}; scanning instead"
            return None
        return observer

    def _hear(self, event: FileSystemEvent) -> None:
        paths = [self._relative(path) for path in (event.src_path, event.dest_path) if path]
        with self._guard:
            if event.is_directory:
                self._missed = True
            self._paths.update(path for path in paths if path)
        self._adopt_soon()
        self._seen.set()

    def _relative(self, path: bytes | str) -> str:
        text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
        prefix = f"{self._root}/"
        return text[len(prefix) :] if text.startswith(prefix) else ""

    def _miss(self) -> None:
        with self._guard:
            self._missed = True
        self._adopt_soon()
        self._seen.set()

    # -- catching up ----------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while not self._closing.is_set():
            if self._seen.wait(_TICK):
                self._wait_for_quiet()
            if self._closing.is_set():
                return
            self._round()

    def _wait_for_quiet(self) -> None:
        began = time.monotonic()
        while time.monotonic() - began < _LONGEST_WAIT:
            self._seen.clear()
            if not self._seen.wait(self._settings.debounce_ms / 1000) or self._closing.is_set():
                return

    def _round(self) -> None:
        try:
            noticed = self._catch_up()
            self._adopt()
            self._store.fold_if_large()
        except Exception as error:  # noqa: BLE001  reported, see tests/test_architecture.py
            # A thread that died here would leave the index behind in silence: say what happened, and go on scanning.
            self._store.note_failure(error)
            noticed = Noticed(refreshed=Refreshed(), reason="scan", error=str(error))
            self._miss()
            self._closing.wait(_LONGEST_WAIT)
        if self._listener is not None and (noticed.refreshed or noticed.error or noticed.reason == "head"):
            self._listener(noticed)

    def _adopt_soon(self) -> None:
        if self._quiet is not None:
            self._adopt_at = time.monotonic() + self._quiet

    def _adopt(self) -> None:
        if self._adopt_at is None or time.monotonic() < self._adopt_at:
            return
        self._adopt_at = None
        if self._store.flush(adopt=True, quiet_seconds=self._quiet or 0).reason:
            self._adopt_soon()

    def _catch_up(self) -> Noticed:
        reason = self._due()
        if reason:
            self._miss()
        with self._guard:
            idle, missed = not self._paths and not self._missed, self._missed
        if idle:
            return Noticed(refreshed=Refreshed(), reason="events")
        refreshed = self._store.follow()
        return Noticed(refreshed=refreshed, reason=reason or ("scan" if missed else "events"))

    def _due(self) -> str:
        """Why every file should be looked at now, "" when nothing calls for it."""
        head = self._store.head()
        if head != self._head:
            self._head = head
            return "head"
        return "scan" if time.monotonic() - self._scanned_at >= self._settings.scan_seconds else ""


class _OverflowLog(logging.Handler):
    """Listens to watchdog's own log, the only place where it says that events were lost."""

    def __init__(self, missed: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._missed = missed

    def emit(self, record: logging.LogRecord) -> None:
        """Take any warning of watchdog as a sign that events are missing."""
        del record
        self._missed()

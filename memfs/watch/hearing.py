"""Hearing: one attempt at being told by the operating system what changes below a folder, through watchdog.

Owns the observer, and knowing whether what it says is all there is to say. What is done about a change, and whether
another attempt is made, is ``watcher``'s business.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memfs.files.mounts import UNTOLD_TYPES, file_system
from memfs.watch.coverage import uncovered

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

Heard = Callable[[list[str], bool], None]
"""Told of the absolute paths of one event, and whether it concerns a folder."""

_LONGEST_END = 5.0
_READERS: set[str] = set()
"""The sorts of threads behind the scenes that were ever seen here: where one is shared and has died, a new observer has
nobody to read for it, and would not tell."""


class Hearing:
    """Events from below one folder, from now on."""

    def __init__(self, folder: Path, heard: Heard, missed: Callable[[], None]) -> None:
        """
        Args:
            heard: told of each event, on a thread of watchdog's.
            missed: told that events were lost.

        ``hopeless`` says why another attempt would be no better, "" where it might be.
        """
        self._folder = folder
        self._heard = heard
        self._log = _OverflowLog(missed)
        self._refused = ""
        self._gap = ""
        kind = file_system(str(folder))
        self.hopeless = f"this file system ({kind}) does not tell what others change" if kind in UNTOLD_TYPES else ""
        self._watched = self._folder_id()
        self._observer = self._start()
        self._threads = self._own_threads()
        readers = {type(thread).__name__ for thread in self._threads}
        if self._observer is not None and _READERS - readers:
            self._refused = "the thread that reads the system's events has ended"
        self.check_coverage()

    def doubt(self) -> str:
        """Why what was heard may not be all, "" when it can be relied on. Costs next to nothing."""
        if self._refused:
            return self._refused
        if not all(thread.is_alive() for thread in self._threads):
            return "watching the files ended unexpectedly"
        if self._folder_id() != self._watched:
            return "the watched folder was moved or replaced"
        return self._gap

    def check_coverage(self) -> None:
        """Ask the system whether each folder is watched, and remember what is missing."""
        self._gap = self.hopeless
        if self._observer is None or sys.platform != "linux":
            return
        missing, folders = uncovered(str(self._folder)) or (0, 0)
        if missing:
            self._gap = (
                f"{missing} of {folders} folders are not watched: the limit of watches is reached"
                " (sysctl fs.inotify.max_user_watches)"
            )

    def close(self) -> None:
        """Stop listening; ends within seconds even where the library's threads died."""
        logging.getLogger("watchdog").removeHandler(self._log)
        if self._observer is not None:
            # A thread that was killed may have left a lock locked: whoever stops the others then waits for ever.
            ending = threading.Thread(target=self._end, args=(self._observer,), name="memfs-watch-end", daemon=True)
            ending.start()
            ending.join(_LONGEST_END)

    @staticmethod
    def _end(observer: BaseObserver) -> None:
        observer.stop()
        observer.join()

    def _folder_id(self) -> tuple[int, int]:
        try:
            facts = os.stat(self._folder)
        except OSError:
            return (0, 0)
        return facts.st_dev, facts.st_ino

    def _start(self) -> BaseObserver | None:
        # Imported here because only a process that stays needs it, and it costs start-up time.
        from watchdog.events import (
            DirCreatedEvent,
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
        kinds += [DirCreatedEvent, DirMovedEvent, DirDeletedEvent]
        try:
            observer = Observer()
            observer.schedule(handler, str(self._folder), recursive=True, event_filter=kinds)
            observer.start()
        except OSError as error:
            self._refused = f"watching is not possible: {error.strerror or error}"
            return None
        return observer

    def _own_threads(self) -> list[threading.Thread]:
        """Every thread the events come through: the observer, its emitters, and those they read from."""
        if self._observer is None:
            return []
        from watchdog.observers.api import BaseObserver, EventEmitter

        seen = (BaseObserver, EventEmitter)
        behind = [
            thread
            for thread in threading.enumerate()
            if type(thread).__module__.startswith("watchdog.") and not isinstance(thread, seen)
        ]
        _READERS.update(type(thread).__name__ for thread in behind)
        return [self._observer, *self._observer.emitters, *behind]

    def _hear(self, event: FileSystemEvent) -> None:
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        self._heard(paths, event.is_directory)


class _OverflowLog(logging.Handler):
    """Listens to watchdog's own log, the only place where it says that events were lost."""

    def __init__(self, missed: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._missed = missed

    def emit(self, record: logging.LogRecord) -> None:
        """Take any warning of watchdog as a sign that events are missing."""
        del record
        self._missed()

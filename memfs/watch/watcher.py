"""The watcher: the index is brought up to date behind the scenes, and says when it may not be.

Owns the thread that follows changes, the choice between events and a scan, and the note that tells other processes how
this one watches. Events only say where to look; what is true is read from the files, and a scan takes over whenever
events may have been missed (faults row 44).
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memfs.config import MEMORY_FOLDER
from memfs.files.presence import Presence
from memfs.settings import WatchSettings
from memfs.store import Refreshed
from memfs.store.values import Flushed
from memfs.watch.hearing import Hearing

_STORM = 500
_LONGEST_WAIT = 1.0
_TICK = 0.5
_FIRST_RETRY = 1.0
_LONGEST_RETRY = 30.0
_SHORTEST_SCAN = 2.0
_REST_AFTER_SCAN = 50
_SAY_SECONDS = 10.0
_ABOVE = 2  # the git folder, above the folder of its workspaces, that of this one, and the notes in it

Listener = Callable[["Noticed"], None]


class Watched(Protocol):
    """The store whose files are watched; see ``memfs.store.Store`` for each."""

    def head(self) -> tuple[str | None, str | None]:
        """The branch and commit checked out at present."""

    def follow(self) -> Refreshed:
        """Bring the index in step with what was seen to change."""

    def tend(self) -> None:
        """Do what is due from time to time."""

    def flush(self, adopt: bool | None = None, *, quiet_seconds: float = 0) -> Flushed:
        """Commit what waits."""

    def note_failure(self, error: Exception) -> None:
        """Report what went wrong behind the scenes."""


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
        store: Watched,
        root: Path,
        settings: WatchSettings,
        *,
        quiet_seconds: float | None = None,
        listener: Listener | None = None,
        notes: Path | None = None,
    ) -> None:
        """Begin to watch at once.

        Args:
            quiet_seconds: commit a person's edits that rested for so long; None leaves them.
            listener: told of each round that found something.
            notes: the folder where other processes read how this one watches.
        """
        self._store = store
        self._root = root
        self._settings = settings
        self._quiet = quiet_seconds
        self._listener = listener
        self._paths: set[str] = set()
        self._events = 0
        self._missed = False
        self._folders_changed = False
        self._guard = threading.Lock()
        self._tending = threading.RLock()
        self._seen = threading.Event()
        self._closing = threading.Event()
        self._scanned_at = time.monotonic()
        self._scan_took = 0.0
        self._adopt_at: float | None = None
        self._head = store.head()
        self._retry_at = 0.0
        self._retry_after = _FIRST_RETRY
        self._said_at = 0.0
        self._presence = Presence(notes, notes.parents[_ABOVE]) if notes is not None else None
        self.degraded = ""
        self._hearing = self._listen()
        self._tend()
        self._adopt_soon()
        self._thread = self._started()

    # -- Eyes -----------------------------------------------------------------------------------------------------
    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None when a scan is needed to be sure."""
        self._revive()
        sure = self._tend()
        with self._guard:
            paths, missed, events = self._paths, self._missed, self._events
            self._paths, self._missed, self._events = set(), False, 0
        if missed or not sure or events > _STORM:
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
        with self._tending:
            self._hearing.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        if self._presence is not None:
            self._presence.close()

    # -- hearing --------------------------------------------------------------------------------------------------
    def _listen(self) -> Hearing:
        return Hearing(self._root / MEMORY_FOLDER, self._heard, self._miss)

    def _heard(self, paths: list[str], of_folder: bool) -> None:
        prefix = f"{self._root}/"
        with self._guard:
            self._events += 1
            if of_folder:
                self._missed = self._folders_changed = True
            self._paths.update(path[len(prefix) :] for path in paths if path.startswith(prefix))
        self._adopt_soon()
        self._seen.set()

    def _miss(self) -> None:
        with self._guard:
            self._missed = self._folders_changed = True
        self._adopt_soon()
        self._seen.set()

    def _tend(self) -> bool:
        """Whether events can be relied on now; where they cannot, say why, and from time to time begin anew."""
        with self._tending:
            if self._closing.is_set():
                return False
            with self._guard:
                changed, self._folders_changed = self._folders_changed, False
            if changed:
                self._hearing.check_coverage()
            doubt = self._hearing.doubt()
            if doubt and doubt != self._hearing.hopeless and time.monotonic() >= self._retry_at:
                doubt = self._begin_anew()
            if not doubt:
                self._retry_after = _FIRST_RETRY
            self._say(f"{doubt}; scanning instead" if doubt else "")
            return not doubt

    def _begin_anew(self) -> str:
        self._retry_at = time.monotonic() + self._retry_after
        self._retry_after = min(self._retry_after * 2, _LONGEST_RETRY)
        self._hearing.close()
        self._hearing = self._listen()
        with self._guard:
            self._missed = True
        return self._hearing.doubt()

    def _say(self, degraded: str) -> None:
        news = degraded != self.degraded or not self._said_at
        self.degraded = degraded
        if self._presence is not None and (news or time.monotonic() - self._said_at >= _SAY_SECONDS):
            self._said_at = time.monotonic()
            self._presence.say({"host": socket.gethostname(), "reason": degraded})

    # -- catching up ----------------------------------------------------------------------------------------------
    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="memfs-watch", daemon=True)
        thread.start()
        return thread

    def _revive(self) -> None:
        """Start the thread again if something killed it: nothing else would scan while nobody asks."""
        with self._tending:
            if not self._thread.is_alive() and not self._closing.is_set():
                self._thread = self._started()
                self._miss()

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
            self._store.tend()
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
        self._tend()
        reason = self._due()
        with self._guard:
            if reason:
                self._missed = self._folders_changed = True
            idle, missed = not self._paths and not self._missed, self._missed
        if idle:
            return Noticed(refreshed=Refreshed(), reason="events")
        began = time.monotonic()
        refreshed = self._store.follow()
        if missed:
            self._scan_took = time.monotonic() - began
        if refreshed:
            self._adopt_soon()
        return Noticed(refreshed=refreshed, reason=reason or ("scan" if missed else "events"))

    def _due(self) -> str:
        """Why every file should be looked at now, "" when nothing calls for it."""
        head = self._store.head()
        if head != self._head:
            self._head = head
            return "head"
        return "scan" if time.monotonic() - self._scanned_at >= self._scan_seconds() else ""

    def _scan_seconds(self) -> float:
        """How long to trust events alone; without events a scan is all there is, and its cost decides."""
        if not self.degraded:
            return self._settings.scan_seconds
        return min(self._settings.scan_seconds, max(_SHORTEST_SCAN, _REST_AFTER_SCAN * self._scan_took))

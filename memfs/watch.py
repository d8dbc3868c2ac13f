"""Watches a workspace's files and updates the index in the background; reports how each process watches.

Events only say where to look: the files decide, and a scan takes over whenever events may have been missed. A resident
has no thread and asks Linux itself: the kernel queues an event within the call that changes a file, so that a search
after a change finds it.
"""

from __future__ import annotations

import os
import re
import select
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.executor import in_daemon
from memfs.fs.io import UNWATCHED_TYPES, file_system
from memfs.fs.workspace_location import MEMORY_FOLDER
from memfs.model.state_paths import WATCHERS
from memfs.settings import WatchSettings
from memfs.startup import TYPE_CHECKING, Any, json
from memfs.store import SyncResult
from memfs.store.reader import FolderReader

if TYPE_CHECKING:
    import logging

    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

_MODIFY, _ATTRIB, _FROM, _TO, _CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 2, 4, 64, 128, 256, 512, 1024, 2048
_OVERFLOW, _IGNORED, _UNMOUNT = 0x4000, 0x8000, 0x2000
_OF_FOLDER = 0x40000000
_FOLDERS_CHANGED = _OVERFLOW | _IGNORED | _UNMOUNT | _DELETE_SELF | _MOVE_SELF | _OF_FOLDER
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_WANTED = _MODIFY | _ATTRIB | _FROM | _TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS | _NO_LINKS
_HEAD = struct.Struct("iIII")
_MOST = 1 << 16


class FolderEvents:
    """Events of all that is below one folder, from now on.

    Attributes:
        doubt: why what is heard may not be all, "" where it can be relied on.
    """

    def __init__(self, top: Path) -> None:
        self._top = top
        self._fd = -1
        self._folders: dict[int, str] = {}
        self.doubt = ""
        self.begin()

    def fileno(self) -> int:
        """What to wait for; -1 where nothing will come."""
        return self._fd

    def begin(self) -> None:
        """Watch every folder that there is now; a scan of the files after this misses nothing."""
        self.close()
        kind = file_system(str(self._top))
        try:
            if kind in UNWATCHED_TYPES:
                raise OSError(0, f"this file system ({kind}) does not report what others change")
            self._fd = io.watch_descriptor()
            for folder in _folders(str(self._top)):
                with suppress(FileNotFoundError, NotADirectoryError):  # gone meanwhile: its parent's events say so
                    self._folders[io.add_watch(self._fd, folder, _WANTED)] = folder
            self.doubt = "" if self._folders else "there is no such folder"
        except OSError as error:
            self.doubt = error.strerror or str(error)
            self.close()

    def waiting(self) -> bool:
        """Whether there are unread events; costs one system call."""
        if self._fd < 0:
            return False
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def read(self) -> set[str] | None:
        """The paths of what changed since the last call; None where any file may have changed.

        After None the folders are watched as they are now.
        """
        paths: set[str] = set()
        whole = not self.doubt
        while self.waiting():
            for watch, mask, name in _parsed(os.read(self._fd, _MOST)):
                folder = self._folders.get(watch)
                if mask & _FOLDERS_CHANGED or folder is None:
                    whole = False
                elif name:
                    paths.add(os.path.join(folder, name))
        if whole:
            return paths
        self.begin()
        return None

    def close(self) -> None:
        """Stop listening. May be repeated."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._folders = -1, {}


def _parsed(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size + length
        yield watch, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))


def _folders(top: str) -> Iterator[str]:
    """The folder and all below it, each before what it holds is read; links are not followed."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        yield folder
        with suppress(OSError), os.scandir(folder) as entries:
            waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def uncovered(folder: str) -> tuple[int, int] | None:
    """How many folders at and below this one have no watch, and how many there are; None where that is unknown.

    A library that could not set a watch, because the user's limit was reached, may keep that to itself; the kernel does
    not. Only Linux says; elsewhere nothing is reported.
    """
    watched = _watched_inodes()
    if watched is None:
        return None
    inodes = []
    for place in _folders(folder):
        with suppress(OSError):
            inodes.append(os.stat(place, follow_symlinks=False).st_ino)
    return sum(inode not in watched for inode in inodes), len(inodes)


def _watched_inodes() -> set[int] | None:
    """The inodes of everything this process has a watch on."""
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return None
    found: set[int] = set()
    for name in names:
        try:
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:inotify":
                facts = Path(f"/proc/self/fdinfo/{name}").read_text("ascii", "replace")
                found.update(int(number, 16) for number in re.findall(r"^inotify .*? ino:(\S+)", facts, re.MULTILINE))
        except OSError:  # closed meanwhile
            continue
    return found


_LONGEST_END = 5.0
_READERS: set[str] = set()
"""The sorts of threads in the background that were ever seen here: where one is shared and has died, a new observer has
no thread to read for it, and would not say so."""


class FileEvents:
    """Events of changes below one folder, from now on, by watchdog."""

    def __init__(self, folder: Path, heard: Callable[[list[str], bool], None], missed: Callable[[], None]) -> None:
        """
        Args:
            heard: called with the absolute paths of each event, and whether it concerns a folder, on a thread of
                watchdog's.
            missed: called when events were lost.

        ``hopeless`` says why another attempt would be no better, "" where it might be.
        """
        import logging  # asking for the watchers' states watches nothing

        def hear(_: logging.LogRecord) -> bool:
            missed()
            return False

        self._folder, self._heard = folder, heard
        # watchdog's own log is the only place where it says that events were lost: any warning is a sign
        self._log = logging.Handler(logging.WARNING)
        self._log.addFilter(hear)
        self._refused = ""
        self._gap = ""
        kind = file_system(str(folder))
        self.hopeless = (
            f"this file system ({kind}) does not report what others change" if kind in UNWATCHED_TYPES else ""
        )
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
        import logging

        logging.getLogger("watchdog").removeHandler(self._log)
        if self._observer is not None:
            # A thread that was killed may have left a lock locked: a thread that stops the others then waits forever.
            ending = in_daemon("memfs-watch-end", partial(self._end, self._observer))
            with suppress(TimeoutError):
                ending.exception(_LONGEST_END)

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
        import logging

        from watchdog import events
        from watchdog.observers import Observer

        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        logging.getLogger("watchdog").addHandler(self._log)

        def hear(event: FileSystemEvent) -> None:
            paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
            self._heard(paths, event.is_directory)

        handler = events.FileSystemEventHandler()
        handler.on_any_event = hear  # type: ignore[method-assign]
        written = events.FileClosedEvent if sys.platform == "linux" else events.FileModifiedEvent
        kinds: list[type[FileSystemEvent]] = [written, events.FileCreatedEvent, events.FileDeletedEvent]
        kinds += [events.FileMovedEvent, events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent]
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


_SUFFIX = ".json"
_LIMIT = 4096


_SILENT_AFTER = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStatus:
    """How one long-lived process watches: ``reason`` says why it cannot rely on events, "" when it can."""

    pid: int
    host: str
    reason: str

    @property
    def state(self) -> str:
        """``on``, or ``degraded`` with the reason in brackets."""
        return f"degraded ({self.reason})" if self.reason else "on"


class Presence:
    """This process's own note. Where none can be written, nothing is said: a note is for messages only.

    Its writer says at least once a minute that it is there: an older note counts for nothing.
    """

    def __init__(self, folder: Path, root: Path | None = None) -> None:
        """``root``: a folder above, which is not made, and from which no link may lead here."""
        self._owner = os.getpid()
        self._path = folder / f"{self._owner}-{os.urandom(4).hex()}{_SUFFIX}"
        with suppress(MemfsError, OSError):
            io.make_private_folder(folder, root)

    def say(self, reason: str) -> None:
        """Say why events cannot be relied on, "" where they can. A forked child says nothing."""
        note = {"pid": self._owner, "host": os.uname().nodename, "reason": reason, "time": time.time()}
        if os.getpid() == self._owner:
            with suppress(MemfsError, OSError):
                io.write_file(self._path, json.dumps(note).encode(), durable=False)

    def close(self) -> None:
        """Take the note away."""
        if os.getpid() == self._owner:
            with suppress(MemfsError, OSError):
                io.unlink(self._path, missing_ok=True)


def watchers(folder: Path) -> list[WatchStatus]:
    """How each living process watches, those that cannot rely on events first; notes of the dead are taken away."""
    found = filter(None, (_read(folder / name) for name in io.listed(folder) if name.endswith(_SUFFIX)))
    return sorted(found, key=lambda row: (not row.reason, row.pid))


def _read(path: Path) -> WatchStatus | None:
    try:
        note = io.read_record(path, _LIMIT)
        pid, host, reason = int(note["pid"]), str(note["host"]), str(note["reason"])
        ended = host == os.uname().nodename and not io.is_running(pid)
        if not ended and abs(time.time() - note["time"]) <= _SILENT_AFTER:
            return WatchStatus(pid=pid, host=host, reason=reason)
    except (TypeError, ValueError, LookupError):
        pass
    with suppress(StorageIO):
        io.unlink(path, missing_ok=True)
    return None


_STORM = 500
_LONGEST_WAIT = 1.0
_TICK = 0.5
_RETRY_SECONDS = 2.0
_SHORTEST_SCAN = 2.0
_REST_AFTER_SCAN = 50
_SAY_SECONDS = 10.0
_ABOVE = 2  # the git folder, above the folder of its workspaces, that of this one, and the notes in it

Listener = Callable[["NoticedChange"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticedChange:
    """One round of catching up: which files changed, and why the round was made.

    ``reason`` is ``events``, ``scan`` or ``head``; ``error`` is what went wrong, "" when nothing did.
    """

    refreshed: SyncResult
    reason: str
    error: str = ""


class Watcher:
    """Watches the files of one open store (see ``memfs.store.parts.FileWatcher``)."""

    hears_at_once = False

    def __init__(
        self,
        store: FolderReader,
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
            listener: called with each round that found something.
            notes: the folder where other processes read how this one watches.
        """
        self._store, self._root, self._settings = store, root, settings
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
        self._reported_at = 0.0
        self._presence = Presence(notes, notes.parents[_ABOVE]) if notes is not None else None
        self.degraded = ""
        self._hearing = self._listen()
        self._maintain()
        self._adopt_soon()
        self._thread = self._started()

    # -- FileWatcher ----------------------------------------------------------------------------------------------
    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None when a scan is needed to be sure."""
        self._revive()
        sure = self._maintain()
        with self._guard:
            paths, missed, events = self._paths, self._missed, self._events
            self._paths, self._missed, self._events = set(), False, 0
        if missed or not sure or events > _STORM:
            self._scanned_at = time.monotonic()
            return None
        return sorted(paths)

    def give_back(self, paths: Collection[str] | None) -> None:
        """Take back paths that could not be looked at, None: every file."""
        with self._guard:
            self._paths.update(paths or ())
            self._missed |= paths is None

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
    def _listen(self) -> FileEvents:
        return FileEvents(self._root / MEMORY_FOLDER, self._heard, self._miss)

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

    def _maintain(self) -> bool:
        """Whether events can be relied on now; where they cannot, say why, and from time to time start over."""
        with self._tending:
            if self._closing.is_set():
                return False
            with self._guard:
                changed, self._folders_changed = self._folders_changed, False
            if changed:
                self._hearing.check_coverage()
            doubt = self._hearing.doubt()
            if doubt and doubt != self._hearing.hopeless and time.monotonic() >= self._retry_at:
                self._retry_at = time.monotonic() + _RETRY_SECONDS
                self._hearing.close()
                self._hearing = self._listen()
                with self._guard:
                    self._missed = True
                doubt = self._hearing.doubt()
            before, self.degraded = self.degraded, f"{doubt}; scanning instead" if doubt else ""
            news = self.degraded != before or not self._reported_at
            if self._presence is not None and (news or time.monotonic() - self._reported_at >= _SAY_SECONDS):
                self._reported_at = time.monotonic()
                self._presence.say(self.degraded)
            return not doubt

    # -- catching up ----------------------------------------------------------------------------------------------
    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="memfs-watch", daemon=True)
        thread.start()
        return thread

    def _revive(self) -> None:
        """Start the thread again if something killed it: nothing else would scan while no one asks."""
        with self._tending:
            if not self._thread.is_alive() and not self._closing.is_set():
                self._thread = self._started()
                self._miss()

    def _run(self) -> None:
        while not self._closing.is_set():
            heard, began = self._seen.wait(_TICK), time.monotonic()
            while heard and not self._closing.is_set() and time.monotonic() - began < _LONGEST_WAIT:
                self._seen.clear()
                heard = self._seen.wait(self._settings.debounce_ms / 1000)
            if self._closing.is_set():
                return
            self._round()

    def _round(self) -> None:
        try:
            noticed = self._catch_up()
            if self._adopt_at is not None and time.monotonic() >= self._adopt_at:
                self._adopt_at = None
                if self._store.flush(adopt=True, quiet_seconds=self._quiet or 0).reason:
                    self._adopt_soon()
            self._store.maintain()
        except Exception as error:  # noqa: BLE001  reported, see tests/test_architecture.py
            # A thread that died here would leave the index behind in silence: say what happened, and go on scanning.
            self._store.note_failure(error)
            noticed = NoticedChange(refreshed=SyncResult(), reason="scan", error=str(error))
            self._miss()
            self._closing.wait(_LONGEST_WAIT)
        if self._listener is not None and (noticed.refreshed or noticed.error or noticed.reason == "head"):
            self._listener(noticed)

    def _adopt_soon(self) -> None:
        if self._quiet is not None:
            self._adopt_at = time.monotonic() + self._quiet

    def _catch_up(self) -> NoticedChange:
        self._maintain()
        reason = self._due()
        with self._guard:
            if reason:
                self._missed = self._folders_changed = True
            idle, missed = not self._paths and not self._missed, self._missed
        if idle:
            return NoticedChange(refreshed=SyncResult(), reason="events")
        began = time.monotonic()
        refreshed = self._store.follow()
        if missed:
            self._scan_took = time.monotonic() - began
        if refreshed:
            self._adopt_soon()
        return NoticedChange(refreshed=refreshed, reason=reason or ("scan" if missed else "events"))

    def _due(self) -> str:
        """Why every file should be looked at now, "" when nothing calls for it."""
        head = self._store.head()
        if head != self._head:
            self._head = head
            return "head"
        # how long to trust events alone; without events a scan is all there is, and its cost decides
        longest = self._settings.scan_seconds
        if self.degraded:
            longest = min(longest, max(_SHORTEST_SCAN, _REST_AFTER_SCAN * self._scan_took))
        return "scan" if time.monotonic() - self._scanned_at >= longest else ""


def notes_folder(state: Path) -> Path:
    """The folder of the notes of a workspace's watchers, below its state folder."""
    return state / WATCHERS


def summary(found: list[WatchStatus]) -> str:
    """How the watchers are, in words: the worst first."""
    if not found:
        return "off (no long-lived process; every question compares the files first)"
    pids = ", ".join(str(row.pid) for row in found if row.state == found[0].state)
    others = sum(row.state != found[0].state for row in found)
    return f"{found[0].state}, pid {pids}" + (f"; {others} more" if others else "")


def watch_facts(state: Path) -> dict[str, Any]:
    """The row of ``memfs status``: the summary, and each process with its own state."""
    found = watchers(notes_folder(state))
    rows = [{"pid": row.pid, "host": row.host, "state": row.state} for row in found]
    return {"state": summary(found), "processes": rows}

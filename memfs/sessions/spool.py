"""The spool: events of sessions that have not become memories yet.

Events are durable once they are added, and come back in order, by session. Any number of processes may add to it at
once. Imports little, so that a hook which only keeps an event ends at once.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from memfs.fs import append_log, io
from memfs.model.problem import Problem
from memfs.sessions.event import SessionEvent, bounded, encoded, from_record

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """One event that waits.

    Attributes:
        event: what was reported.
        key: a digest of it and its moment, by which it is known whenever it is taken.
        end: where its line ends in the session's file.
        text: the line.
    """

    event: SessionEvent
    key: str
    end: int
    text: bytes = b""


@dataclass(frozen=True, slots=True)
class Look:
    """What lies in a file of the spool: events in order, lines that are damaged, and where the last whole line ends."""

    events: list[PendingEvent]
    damaged: list[bytes]
    end: int


class Spool:
    """The waiting events of one workspace, by session. Any number of processes may add to it at once."""

    def __init__(self, state: Path) -> None:
        """``state``: the workspace's state folder (``Place.state``, ``workspace.repository.state``)."""
        self.folder = state / append_log.FOLDER

    def append(self, event: SessionEvent) -> None:
        """Keep an event; on return it survives kill -9 and a power cut.

        Raises:
            StorageFull, StorageReadOnly, StorageIO: it could not be kept.
            LockTimeout: a process that was stopped holds the session's file.
        """
        kept = bounded(event)
        text, path = encoded(kept), self.path(kept.session)
        try:
            append_log.append(path, text)
        except FileNotFoundError:
            io.make_private_folder(self.folder)
            append_log.append(path, text)

    def path(self, session: str) -> Path:
        """The file in which a session's events wait."""
        return self.folder / f"{file_name(session)}{append_log.SUFFIX}"

    def waiting(self) -> int:
        """How many events wait, of all sessions."""
        return sum(len(self.look(path).events) for path in append_log.waiting(self.folder))

    def look(self, path: Path) -> Look:
        """What lies in one of the spool's files.

        Raises:
            NotRegularFile, StorageIO: it cannot be read.
        """
        lines, damaged = append_log.read(path)
        events = [
            PendingEvent(event, sha256(line.text).hexdigest()[:16], line.end, line.text)
            for line in lines
            if (event := _event(line.text)) is not None
        ]
        return Look(events, damaged, lines[-1].end if lines else 0)


def file_name(session: str) -> str:
    """A session's name as a file's stem: as it is where that is safe, else a digest."""
    if not session:
        return _UNNAMED
    if _PLAIN.fullmatch(session) and session != _UNNAMED:
        return session
    return f"_{sha256(session.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _event(text: bytes) -> SessionEvent | None:
    try:
        return from_record(json.loads(text))
    except (ValueError, RecursionError):
        return None


_TOO_LONG_SECONDS = 24 * 3600.0


def problems(state: Path, now: float | None = None) -> list[Problem]:
    """Events that were kept aside because nothing could be made of them, and events that wait for more than a day.

    Args:
        state: the workspace's state folder.
        now: the time, in seconds since 1970.
    """
    folder = state / append_log.FOLDER
    return [*_aside(folder), *_waiting(folder, time.time() if now is None else now)]


def _aside(folder: Path) -> list[Problem]:
    kept = append_log.kept_aside(folder)
    if not kept:
        return []
    events = "event of a session" if len(kept) == 1 else "events of sessions"
    message = f"{len(kept)} {events} could not be made into memories"
    hint = f"look at them in {folder / append_log.ASIDE}, and remove them"
    return [Problem.warning("", "EventsAside", message, hint)]


def _waiting(folder: Path, now: float) -> list[Problem]:
    old = [path for path in append_log.waiting(folder) if now - _changed(path) > _TOO_LONG_SECONDS]
    if not old:
        return []
    sessions = "a session" if len(old) == 1 else f"{len(old)} sessions"
    message = f"what {sessions} told has waited for more than a day to become memories"
    hint = "the next session that begins here takes it in; see also what hooks reported"
    return [Problem.warning("", "EventsWaiting", message, hint)]


def _changed(path: Path) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return float("inf")

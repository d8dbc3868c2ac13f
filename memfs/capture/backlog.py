"""Backlog: what of the sessions' events could not become memories, told as problems.

Owns when waiting is too long to be usual, and the words for it. It changes nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from memfs.files import spoolfile
from memfs.model.problem import WARNING, Problem

_TOO_LONG_SECONDS = 24 * 3600.0


def problems(state: Path, now: float | None = None) -> list[Problem]:
    """Events that were kept aside because nothing could be made of them, and events that wait for more than a day.

    Args:
        state: the workspace's state folder.
        now: the time, in seconds since 1970.
    """
    folder = state / spoolfile.FOLDER
    return [*_aside(folder), *_waiting(folder, time.time() if now is None else now)]


def _aside(folder: Path) -> list[Problem]:
    kept = spoolfile.kept_aside(folder)
    if not kept:
        return []
    events = "event of a session" if len(kept) == 1 else "events of sessions"
    return [
        Problem(
            path="",
            code="EventsAside",
            message=f"{len(kept)} {events} could not be made into memories",
            hint=f"look at them in {folder / spoolfile.ASIDE}, and remove them",
            severity=WARNING,
        )
    ]


def _waiting(folder: Path, now: float) -> list[Problem]:
    old = [path for path in spoolfile.waiting(folder) if now - _changed(path) > _TOO_LONG_SECONDS]
    if not old:
        return []
    sessions = "a session" if len(old) == 1 else f"{len(old)} sessions"
    return [
        Problem(
            path="",
            code="EventsWaiting",
            message=f"what {sessions} told has waited for more than a day to become memories",
            hint="the next session that begins here takes it in; see also what hooks reported",
            severity=WARNING,
        )
    ]


def _changed(path: Path) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return float("inf")

"""Log what goes wrong in hooks, for ``memfs status`` and ``memfs check`` to report.

The log is short and lies in the workspace's private state. Writing it never raises because of the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from memfs.errors import MemfsError
from memfs.fs import append_log
from memfs.model.problem import Problem
from memfs.model.time import format_time, time_in, utc_now

FILE = "hooks.log"
_LARGEST = 128 * 1024
_LONGEST = 500
_TOLD_FOR = timedelta(days=3)


def note(state: Path, event: str, sentence: str) -> None:
    """Write down what went wrong. Never raises because of the disk."""
    row = [format_time(utc_now()), event[:_LONGEST], " ".join(sentence.split())[:_LONGEST]]
    with suppress(MemfsError, OSError):
        append_log.note(state / FILE, json.dumps(row).encode(), _LARGEST)


def problems(state: Path, now: datetime | None = None) -> list[Problem]:
    """What went wrong within the last days, as one problem; none where nothing did."""
    since = (now or utc_now()) - _TOLD_FOR
    rows = ((row, time_in(row[0])) for row in _read(state / FILE))
    found = [row for row, moment in rows if moment is not None and moment >= since]
    if not found:
        return []
    moment, event, sentence = found[-1]
    times = "once" if len(found) == 1 else f"{len(found)} times"
    message = f"hooks report trouble, {times} in three days; last {event} at {moment}: {sentence}"
    hint = f"{state / FILE} has all of it; what is older than three days is not told any more"
    return [Problem.warning("", "HookFailed", message, hint)]


def _read(path: Path) -> Iterator[tuple[str, str, str]]:
    """The rows that ``note`` wrote: when, at which event, and one sentence."""
    for line in append_log.noted(path, _LARGEST):
        with suppress(ValueError, TypeError, RecursionError):
            moment, event, sentence = json.loads(line)
            if all(isinstance(text, str) for text in (moment, event, sentence)):
                yield moment, event, sentence

"""Count the failures of plugins, and pause those that fail again and again.

The counts lie in the user's cache, so that short-lived processes such as hooks share them. Without the file, counting
begins again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from memfs.errors import MemfsError
from memfs.fs import io
from memfs.fs.lock import renewed_in_child

FILE = "sources.json"
IN_A_ROW = 3
"""After so many failures in a row a source is paused."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 3600.0
_LIMIT = 1 << 20
_REASON_LETTERS = 300


class Late(Exception):
    """Foreign code gave no answer in time; it goes on in its thread, which keeps nobody waiting."""


class Busy(Late):
    """Foreign code was not called, since it has not answered earlier calls."""


class PluginFailure(Exception):
    """Foreign code failed; the message says how, in one line, and ``hint`` what to do, where that is known."""

    def __init__(self, reason: str = "", hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


def error_line(error: BaseException) -> str:
    """What an error says, in one line of a bounded length; it may be one that cannot even be shown."""
    try:
        reason = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001  the error itself is foreign code
        reason = ""
    name = type(error).__name__
    line = f"{name}: {reason[:_REASON_LETTERS]}" if reason else name
    return line.encode("utf-8", "backslashreplace").decode()[:_REASON_LETTERS]


@dataclass(frozen=True, slots=True)
class Failures:
    """What is known of one source.

    Attributes:
        total: failures since it was first asked.
        in_a_row: failures since it last answered.
        until: when it is asked again, in seconds since 1970; 0 while it is not paused.
        reason: why it failed last.
    """

    total: int = 0
    in_a_row: int = 0
    until: float = 0.0
    reason: str = ""


class FailureBook:
    """The failures of sources by name. May be used from several threads; two processes at once may miss a count."""

    def __init__(self, path: Path | None = None, now: Callable[[], float] = time.time) -> None:
        """Without a ``path``, or where it takes no writes, this process alone counts."""
        self._path = path
        self._now = now
        self._lock = threading.Lock()
        renewed_in_child(self)
        self._counts: dict[str, Failures] = {}

    def paused(self, name: str) -> str:
        """Why a source is not asked at present, "" where it is."""
        found = self.of(name)
        left = found.until - self._now()
        if not 0 < left <= LONGEST_PAUSE + 1:  # no pause is longer: the clock was set back, or the file is damaged
            return ""
        return f"it is paused for {left:.0f} s after {found.in_a_row} failures in a row, the last: {found.reason}"

    def of(self, name: str) -> Failures:
        """What is known of a source."""
        with self._lock:
            return self._read().get(name, Failures())

    def failed(self, name: str, reason: str) -> None:
        """Count a failure; from the third in a row on the source is paused, each time for longer."""
        old = self.of(name)
        row = old.in_a_row + 1
        pause = min(FIRST_PAUSE * 2.0 ** min(row - IN_A_ROW, 10), LONGEST_PAUSE)
        until = self._now() + pause if row >= IN_A_ROW else 0.0
        self._write(name, Failures(total=old.total + 1, in_a_row=row, until=until, reason=reason))

    def worked(self, name: str) -> None:
        """Note that a source answered: its next failure is the first in a row again."""
        old = self.of(name)
        if old.in_a_row or old.until:
            self._write(name, replace(old, in_a_row=0, until=0.0))

    def _read(self) -> dict[str, Failures]:
        """What all processes counted; what this one did, where the file is missing or damaged."""
        if self._path is not None:
            with suppress(MemfsError, OSError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
                rows = json.loads(io.read_file(self._path, _LIMIT))
                self._counts = {name: _row(**row) for name, row in rows.items()}
        return self._counts

    def _write(self, name: str, failures: Failures) -> None:
        with self._lock:
            self._counts = {**self._read(), name: failures}
            if self._path is None:
                return
            # What an error quotes may be anything, and lies nowhere where an erase would not look for it.
            rows = {one: {**asdict(row), "reason": row.reason.partition(":")[0]} for one, row in self._counts.items()}
            with suppress(MemfsError, OSError):  # a full disk: this process counts alone
                io.write_file(self._path, json.dumps(rows, indent=1, sort_keys=True).encode() + b"\n", durable=False)


def _row(total: int, in_a_row: int, until: float, reason: str) -> Failures:
    """A row of the file.

    Raises:
        TypeError, ValueError, OverflowError: it is none.
    """
    return Failures(int(total), min(int(in_a_row), 1_000_000), float(until), str(reason))

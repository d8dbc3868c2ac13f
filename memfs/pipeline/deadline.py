"""Deadline: how long an answer may still take.

Owns the clock of one question. What is given up when it has passed, the pipeline decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """A moment that lies so many seconds ahead; without seconds it never comes."""

    def __init__(self, seconds: float | None, tick: Callable[[], float] = time.monotonic) -> None:
        """``tick`` tells the time in seconds."""
        self._tick = tick
        self.seconds = seconds
        self._end = None if seconds is None else tick() + seconds

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        return self._end is not None and self._tick() >= self._end

    def left(self, most: float | None = None) -> float | None:
        """The seconds that are left, at most ``most``; None where nothing bounds them."""
        if self._end is None:
            return most
        rest = max(0.0, self._end - self._tick())
        return rest if most is None else min(rest, most)

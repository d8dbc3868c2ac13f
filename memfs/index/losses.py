"""Losses: which paths a base generation held that the one in its place lacks, and which threads know of it.

Owns the rule that no thread takes a part of the index for the whole while another thread adds the rest again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from weakref import WeakSet


class Losses:
    """What was lost and not added again. Not safe for several threads: ``SearchIndex`` holds its lock."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._told: WeakSet[threading.Thread] = WeakSet()  # not their numbers, which come again

    def add(self, paths: set[str]) -> None:
        """Note lost paths; every thread is to be told anew."""
        if paths:
            self._paths |= paths
            self._told.clear()

    def made_good(self, *paths: Iterable[str]) -> None:
        """These were added again, or are known to be gone."""
        if self._paths:
            self._paths.difference_update(*paths)

    def to_tell(self) -> bool:
        """Whether this thread has something to be told; it counts as told from now on.

        A lost path whose file is gone as well is never made good, so that a thread is told once only.
        """
        if not self._paths or threading.current_thread() in self._told:
            return False
        self._told.add(threading.current_thread())
        return True

    def clear(self) -> None:
        """Nothing is missing: all was made anew."""
        self._paths.clear()

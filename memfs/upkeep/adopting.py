"""Adopting: edits by hand become commits also in a process that writes for days and watches nothing.

Owns how often a writer looks for them. What counts as an edit, and when it has rested, the store knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from memfs.errors import MemfsError
from memfs.store import Store

_EVERY = 60.0


class Adopter:
    """Commits rested edits of one workspace now and then, for ``history.adopt = "auto"``."""

    def __init__(self, store: Store, quiet_seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        """The first look is due a minute from now: a process that ends before leaves edits to the next.

        Args:
            quiet_seconds: how long an edit must have rested.
        """
        self._store = store
        self._quiet_seconds = quiet_seconds
        self._now = now
        self._looked = now()

    def keep_up(self) -> None:
        """Commit what has rested, where the last look was long enough ago."""
        if self._now() - self._looked < _EVERY:
            return
        self._looked = self._now()
        try:
            self._store.flush(adopt=True, quiet_seconds=self._quiet_seconds)
        except MemfsError as error:  # the edit stays where it is; whoever writes is not to fail for it
            self._store.note_failure(error)

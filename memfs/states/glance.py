"""Glance: what is known of documents, for a writer that cannot wait for a look at every folder that changed.

Owns how old a writer's knowledge of changes by hand may be. What memfs's own processes write is known at once: each
notes it in the index they share.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memfs.model.statequery import Question, Row
    from memfs.states.reading import StateReading

_SECONDS = 1.0


class Glance:
    """Finds documents by what is known of them; looks at the files themselves once a second at most."""

    def __init__(self, reading: StateReading, seconds: float = _SECONDS) -> None:
        self._reading = reading
        self._seconds = seconds
        self._looked: float | None = None

    def rows(self, question: Question) -> list[Row]:
        """What is known of the documents that agree with a question."""
        now = time.monotonic()
        if self._looked is None or now - self._looked > self._seconds:
            self._reading.catch_up()
            self._looked = now
        return self._reading.index.find(question)

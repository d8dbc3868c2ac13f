"""Trends: how often the meta-reviews name a pattern, over the iterations (seed 001; S10).

Owns finding the reviews, archived ones included. When two name the same pattern, and what a direction is, ``patterns``
knows.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from memfs.errors import ContentError, CorruptRecord
from memfs.files.forked import renewed_in_child
from memfs.model.insights import TrendReport
from memfs.model.statequery import Question, Row
from memfs.states.patterns import Named, patterns_of, trends_of

if TYPE_CHECKING:
    from memfs.states.reading import StateReading

_REVIEW = "meta_review"
_HELD = 5_000


class Trends:
    """The trends of one workspace. May be used from several threads."""

    def __init__(self, reading: StateReading) -> None:
        self._reading = reading
        self._known: dict[tuple[str, str], list[Named]] = {}
        self._guard = threading.Lock()
        renewed_in_child(self)

    def patterns(self) -> TrendReport:
        """Every pattern that a meta-review names: first and last seen, counts by iteration, direction.

        As the documents say it now: a review that was stored, changed or removed a moment ago counts.

        A review that cannot be read is named in ``missing``, and the others count.
        """
        reviews: dict[int, list[Named]] = {}
        missing = []
        for row in self._reading.rows(Question(kinds=(_REVIEW,))):
            if row.facts.iteration is None:
                continue
            try:
                reviews[row.facts.iteration] = self._patterns(row)
            except FileNotFoundError:  # removed a moment ago
                continue
            except (ContentError, CorruptRecord) as error:
                missing.append(f"the review of iteration {row.facts.iteration} cannot be read: {error}")
        return TrendReport(
            iterations=tuple(sorted(reviews)), patterns=trends_of(reviews), missing=tuple(sorted(missing))
        )

    def _patterns(self, row: Row) -> list[Named]:
        key = (row.path, row.sha256)
        with self._guard:
            known = self._known.get(key)
        if known is None:
            known = patterns_of(self._reading.load(row))
            with self._guard:
                self._known[key] = known
                while len(self._known) > _HELD:
                    del self._known[next(iter(self._known))]
        return known

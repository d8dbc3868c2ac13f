"""EpisodicMemory: warns of what failed in a similar situation (seed 004, P3).

Owns the seed's heading, bullets and settings. When two situations are similar is its store's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from memfs.model.episode import Outcome, StateSnapshot
from memfs.model.item import MemoryItem
from memfs.sources.plugin import Delivery, Entry, Selection
from memfs.sources.provenance import vouched
from memfs.sources.storesource import StoreSource, takes

HEADING = "Past issues with similar context:"


class EpisodicMemory(StoreSource):
    """Finds similar past episodes and surfaces those that failed.

    Args:
        store: anything with ``find_similar(state, limit=...)``, at once or awaited, whose answers have ``outcome``,
            ``action.description`` and ``error_message``; such as ``memfs.pipeline.episodes.Episodes``. Where it takes a
            ``threshold``, it is given one.
        items: gives the item of an id, for its trust and origin.

    Attributes:
        similarity_threshold: from this similarity on, 0 to 1, an episode is similar.
        max_warnings: so many warnings at most.
    """

    name: ClassVar[str] = "episodic"
    layer: ClassVar[str] = Delivery.TRIGGERED.value

    similarity_threshold: float
    max_warnings: int

    def __init__(self, store: Any, items: Callable[[str], MemoryItem | None] | None = None) -> None:
        super().__init__(store)
        self._items = items
        self._takes_threshold = takes(store.find_similar, "threshold")

    def _ask(self, state: StateSnapshot) -> Any:
        if not self.max_warnings:
            return ()
        more = {"threshold": self.similarity_threshold} if self._takes_threshold else {}
        return self.store.find_similar(state, limit=self.max_warnings, **more)

    def _selection(self, found: Iterable[Any] | None) -> Selection:
        failures = [one for one in found or () if one.outcome == Outcome.FAILURE]
        return Selection(heading=HEADING, entries=[self._entry(one) for one in failures[: self.max_warnings]])

    def _text(self, selection: Selection) -> str | None:
        return str(selection) or None

    def _entry(self, episode: Any) -> Entry:
        text = f"{episode.action.description}: {episode.error_message}"
        return Entry(text=text, **vouched(episode, self._items))

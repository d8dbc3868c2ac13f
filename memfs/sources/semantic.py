"""SemanticMemory: gives learned rules where they match (seed 004, P3).

Owns the seed's heading, bullets and settings. Which rules match is its store's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from memfs.model.episode import StateSnapshot
from memfs.model.item import MemoryItem
from memfs.sources.plugin import Delivery, Entry, Selection
from memfs.sources.provenance import vouched
from memfs.sources.storesource import StoreSource

HEADING = "Learned patterns:"


class SemanticMemory(StoreSource):
    """Matches learned rules against the situation.

    Args:
        store: anything with ``find_matching_rules(context, min_confidence=...)``, at once or awaited, whose answers
            have ``action`` and ``confidence``; such as ``memfs.pipeline.rules.Rules``.
        items: gives the item of an id, for its trust and origin.
        whole: whether the store is given the whole situation in place of its ``context``: it knows of files, too.

    Attributes:
        min_confidence: rules below it, 0 to 1, are kept back.
    """

    name: ClassVar[str] = "semantic"
    layer: ClassVar[str] = Delivery.TRIGGERED.value

    min_confidence: float

    def __init__(
        self, store: Any, items: Callable[[str], MemoryItem | None] | None = None, *, whole: bool = False
    ) -> None:
        super().__init__(store)
        self._items = items
        self._whole = whole

    def _ask(self, state: StateSnapshot) -> Any:
        return self.store.find_matching_rules(
            state if self._whole else state.context, min_confidence=self.min_confidence
        )

    def _selection(self, found: Iterable[Any] | None) -> Selection:
        return Selection(heading=HEADING, entries=[self._entry(one) for one in found or ()])

    def _text(self, selection: Selection) -> str | None:
        return str(selection) or None

    def _entry(self, rule: Any) -> Entry:
        return Entry(text=f"{rule.action} (confidence: {rule.confidence:.0%})", **vouched(rule, self._items))

"""PreferencesMemory: tells an agent how the person wants things done (seed 004, P3).

Owns the seed's heading, bullets and settings. Which preferences hold, and in which order, is its store's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from memfs.model.episode import StateSnapshot
from memfs.sources.plugin import Delivery, Entry, Selection
from memfs.sources.provenance import vouched
from memfs.sources.storesource import StoreSource

HEADING = "User preferences:"


class PreferencesMemory(StoreSource):
    """Surfaces a person's corrections and explicit preferences.

    Args:
        store: anything with ``get_relevant(context, limit=...)``, at once or awaited, whose answers are texts or have
            one as ``str``; such as ``memfs.pipeline.preferences.Preferences``.

    Attributes:
        max_items: so many preferences at most.
    """

    name: ClassVar[str] = "preferences"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value

    max_items: int

    def _ask(self, state: StateSnapshot) -> Any:
        return self.store.get_relevant(state.context, limit=self.max_items)

    def _selection(self, found: Iterable[Any] | None) -> Selection:
        return Selection(heading=HEADING, entries=[_entry(one) for one in found or ()])


def _entry(found: Any) -> Entry:
    return Entry(text=str(found), **vouched(found, None))

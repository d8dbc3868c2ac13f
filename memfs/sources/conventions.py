"""ConventionsMemory: tells an agent what the team agreed on (seed 004, P3).

Owns the heading and the bullets. Which conventions hold for which files is its store's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from memfs.model.episode import StateSnapshot
from memfs.model.ids import of_mount
from memfs.model.item import VOUCHED, MemoryItem
from memfs.sources.plugin import Delivery, Entry, Selection
from memfs.sources.provenance import origin_of
from memfs.sources.storesource import StoreSource

HEADING = "Project conventions:"
_TOLD = VOUCHED | {""}


class ConventionsMemory(StoreSource):
    """Surfaces the accepted conventions that hold for the files of a situation; all of them where it names none.

    Only those that a person stands behind, or that were reviewed.

    Args:
        store: anything with ``holding(files=...)``, at once or awaited, whose answers have a text as ``str``, the most
            important first; such as ``memfs.pipeline.conventions.Conventions``.

    Attributes:
        max_items: so many conventions at most.
    """

    name: ClassVar[str] = "conventions"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value

    max_items: int

    def _ask(self, state: StateSnapshot) -> Any:
        return self.store.holding(files=state.files)

    def _selection(self, found: Iterable[Any] | None) -> Selection:
        given = [one for one in found or () if getattr(one, "trust", "") in _TOLD]
        return Selection(heading=HEADING, entries=[_entry(one) for one in given[: self.max_items]])


def _entry(convention: Any) -> Entry:
    scope = ", ".join(getattr(convention, "scope", ()))
    item = getattr(convention, "item", None)
    return Entry(
        text=f"{convention} ({scope})" if scope else str(convention),
        id=str(getattr(convention, "id", "") or ""),
        trust=str(getattr(convention, "trust", "") or ""),
        origin=origin_of(item.origin, of_mount(item.id)) if isinstance(item, MemoryItem) else "",
    )

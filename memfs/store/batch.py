"""Batch: several writes gathered to be carried out together.

Owns the rule that one batch touches an item once. Nothing is written here.
"""

from __future__ import annotations

from memfs.errors import Conflict
from memfs.model import MemoryItem
from memfs.model.ids import stem_of
from memfs.store.plan import Planned, Planner


class Batch:
    """What ``Store.batch`` hands to its block."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._paths: set[str] = set()
        self._ids: set[str] = set()
        self.plans: list[Planned] = []

    def put(self, item: MemoryItem, expected: str | None = None, *, allow_secret: str = "") -> MemoryItem:
        """Plan to store an item; see ``Store.put``. It is stored when the block ends."""
        plans = self._planner.put(item, expected, allow_secret)
        self._take(plans)
        stored = plans[0].item
        return item if stored is None else stored

    def delete(self, item_id: str, expected: str | None = None) -> MemoryItem | None:
        """Plan to remove an item; see ``Store.delete``."""
        plan = self._planner.delete(item_id, expected)
        self._take([plan])
        return plan.item

    def _take(self, plans: list[Planned]) -> None:
        paths = {plan.path.casefold() for plan in plans}
        ids = {stem_of(plan.path).casefold() for plan in plans}
        if paths & self._paths or ids & self._ids:
            raise Conflict(
                "this batch writes the same item twice", path=plans[0].path, hint="merge the two writes into one"
            )
        self._paths |= paths
        self._ids |= ids
        self.plans.extend(plans)

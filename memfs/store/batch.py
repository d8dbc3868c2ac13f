"""Batch: several writes gathered to be carried out together.

Owns the rule that one batch touches a path once. Nothing is written here.
"""

from __future__ import annotations

from memfs.errors import Conflict
from memfs.model import MemoryItem
from memfs.store.plan import Planned, Planner


class Batch:
    """What ``Store.batch`` hands to its block."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._paths: set[str] = set()
        self.plans: list[Planned] = []

    def put(self, item: MemoryItem, expected: str | None = None) -> MemoryItem:
        """Plan to store an item; see ``Store.put``. It is stored when the block ends."""
        plans = self._planner.put(item, expected)
        self._take(plans)
        stored = plans[0].item
        return item if stored is None else stored

    def delete(self, item_id: str, expected: str | None = None) -> MemoryItem | None:
        """Plan to remove an item; see ``Store.delete``."""
        plan = self._planner.delete(item_id, expected)
        self._take([plan])
        return plan.item

    def _take(self, plans: list[Planned]) -> None:
        for plan in plans:
            folded = plan.path.casefold()
            if folded in self._paths:
                raise Conflict("this batch writes the same file twice", path=plan.path, hint="merge the two writes")
            self._paths.add(folded)
        self.plans.extend(plans)

"""Selection: which of the ranked hits are given back (C4).

Owns that duplicates go before the token budget is spent, what a hit costs, and where to stop. The order of the hits is
decided before, by the ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from memfs.model import Hit, MemoryItem, Query
from memfs.pipeline.fence import frame, quoted
from memfs.pipeline.likeness import Shape, alike
from memfs.pipeline.tokens import count_tokens
from memfs.pipeline.wording import whole

Mark = Callable[[MemoryItem], Hashable]
"""What items that tell the same have in common; None for one that stands for itself."""
_COMPARED = 200
_MISFITS = 20


class Selection:
    """Takes hits, best first, until there is no more room.

    Attributes:
        hits: those that were taken.
        duplicates: id of each one that repeats a hit, with that hit's id.
        misfits: ids of those that had no room in the token budget.
        tokens: what the hits take together, with the frame around them where they are fenced.
    """

    def __init__(self, query: Query, *, fenced: bool = False, mark: Mark | None = None) -> None:
        """
        Args:
            fenced: the hits will be shown as quoted data, whose overhead counts.
            mark: of items with the same mark the best one is taken, and the others repeat it.
        """
        self._query = query
        self._mark = mark or (lambda _: None)
        self._marked: dict[Hashable, str] = {}
        self._fenced = fenced
        self._shapes: list[tuple[str, Shape, MemoryItem]] = []
        self._plain: dict[str, list[MemoryItem]] = {}
        self.hits: list[Hit] = []
        self.duplicates: dict[str, str] = {}
        self.misfits: list[str] = []
        self.tokens = 0

    @property
    def full(self) -> bool:
        """Whether the limit is reached, or so many had no room that it is not worth while to look for smaller ones."""
        return len(self.hits) >= self._query.limit or len(self.misfits) >= _MISFITS

    def offer(self, hit: Hit) -> bool:
        """Take a hit, unless it repeats one that was taken or has no room; say whether it was taken."""
        mark = self._mark(hit.item)
        if mark is not None and mark in self._marked:
            self.duplicates[hit.item.id] = self._marked[mark]
            return False
        shape = Shape(whole(hit.item)) if self._query.deduplicate else None
        if shape is not None and (repeated := self._repeated(shape, hit.item)):
            self.duplicates[hit.item.id] = repeated
            return False
        cost = self._cost(hit)
        most = self._query.max_tokens
        if most is not None and self.tokens + cost > most:
            self.misfits.append(hit.item.id)
            return False
        self.hits.append(hit)
        self.tokens += cost
        if mark is not None:
            self._marked[mark] = hit.item.id
        if shape is not None:
            self._plain.setdefault(shape.plain, []).append(hit.item)
            self._shapes.append((hit.item.id, shape, hit.item))
        return True

    def _repeated(self, shape: Shape, item: MemoryItem) -> str:
        """The id of the hit that an item repeats, "" for none.

        Every hit is compared word by word, the best ones by likeness too: a long list costs no more than a short one.
        """
        for held in self._plain.get(shape.plain, ()):
            if _same_body(held, item):
                return held.id
        least = self._query.similarity_threshold
        for held_id, other, held in self._shapes[:_COMPARED]:
            if _same_body(held, item) and alike(shape, other, least) >= least:
                return held_id
        return ""

    def _cost(self, hit: Hit) -> int:
        if not self._fenced:
            return count_tokens(whole(hit.item))
        return count_tokens(quoted(hit) + "\n\n") + (0 if self.hits else count_tokens(frame()))


def _same_body(one: MemoryItem, other: MemoryItem) -> bool:
    return not (one.data or other.data) or one.data == other.data

"""``Memory``: a copy of a remembered thing, with its score and how it was used; and ``MemoryStats``, the counts.

Changing a copy changes nothing that is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memfs.model import Hit, MemoryItem, MemoryType
from memfs.model.time import Moment, format_time
from memfs.recall.conflict_notes import unresolved_note
from memfs.recall.rerank import relevances
from memfs.recall.tokens import count_tokens, gist
from memfs.usage import NEVER, Use

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered thing, as it was when it was asked for.

    Attributes:
        id: the item's id.
        type: its type: a ``MemoryType``, or plain text where the workspace added the type.
        content: its text; the title where it has no other.
        timestamp: when it happened, in UTC; ``memfs.model.time.Moment``, which compares with ``datetime.now()``, too.
        token_count: about how many tokens the content is (``memfs.recall.tokens``).
        metadata: free facts.
        context: the circumstances it belongs to.
        relevance_score: how well it answers the question it was found with, 0 to 1; 1 where nothing was asked.
        undecided: what a merge left open, with the other value; "" where nothing is.
    """

    id: str
    type: MemoryType | str
    content: str
    timestamp: datetime
    token_count: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    relevance_score: float | None = None
    undecided: str = ""

    @property
    def relevance(self) -> float:
        """``relevance_score`` under its short name; 0 where it was not found by a question."""
        return self.relevance_score or 0.0


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """How many memories there are, and how many of each type."""

    total_count: int
    by_type: Mapping[str, int] = field(default_factory=dict)


def memory_of(item: MemoryItem, relevance: float | None = None, use: Use | None = None) -> Memory:
    """An item as a memory.

    Args:
        relevance: how well it answers, 0 to 1.
        use: how it was used, reported in ``metadata`` beside the item's own facts.
    """
    content = gist(item)
    known = item.memory_type in MemoryType.__members__.values()
    return Memory(
        id=item.id,
        type=MemoryType(item.memory_type) if known else item.memory_type,
        content=content,
        timestamp=Moment.of(item.timestamp or item.created or _LONG_AGO),
        token_count=count_tokens(content),
        metadata={**item.metadata, **({} if use is None else _told(use))},
        context=dict(item.context),
        relevance_score=relevance,
        undecided=unresolved_note(item),
    )


def memories_of(hits: Sequence[Hit], asked: bool = True, uses: Mapping[str, Use] | None = None) -> list[Memory]:
    """The hits of an answer as memories; with ``uses``, by id, each also tells how it was used."""
    return [
        memory_of(hit.item, relevance, None if uses is None else uses.get(hit.item.id, NEVER))
        for hit, relevance in zip(hits, relevances(hits, asked), strict=True)
    ]


def _told(use: Use) -> dict[str, Any]:
    """The facts of an item's use as fields of ``Memory``."""
    last = None if use.last is None else format_time(use.last)
    return {"access_count": use.count, "last_accessed": last, "relevance_score": round(use.relevance, 4)}

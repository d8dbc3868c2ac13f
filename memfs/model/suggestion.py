"""Suggestion: something memfs worked out by itself, which is no memory until somebody accepts it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from memfs.dataclass import dataclass
from memfs.model.item import MemoryItem


class Keep(StrEnum):
    """What becomes of what memfs learns by itself."""

    OFF = "off"
    SUGGEST = "suggest"
    WRITE = "write"


class Source(StrEnum):
    """Where a suggestion comes from."""

    PATTERN = "pattern"
    RULE = "rule"
    PREFERENCE = "preference"
    LESSON = "lesson"
    SESSION = "session"


class SuggestionDecision(StrEnum):
    """What somebody decided about a suggestion."""

    WAITING = ""
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One suggestion; its id is the id that the memory would have.

    Attributes:
        id: what it is accepted by; one of private memory begins with ``private:``.
        item: the memory, as it would be stored.
        source: where it comes from.
        count: how many memories, failures or statements speak for it.
        evidence: the ids of those of them that are memories, the newest first where there are many.
        reason: where it was heard, or why it matters, in words; "" where the evidence says it.
        made: when it was suggested first.
        decision: what was decided about it.
    """

    item: MemoryItem
    source: Source
    made: datetime
    count: int = 1
    evidence: tuple[str, ...] = ()
    reason: str = ""
    decision: SuggestionDecision = SuggestionDecision.WAITING

    @property
    def id(self) -> str:
        """The id that the memory would have."""
        return self.item.id

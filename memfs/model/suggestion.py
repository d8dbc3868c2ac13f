"""Suggestion: something memfs worked out by itself, which is no memory until somebody accepts it.

And what reviewers say of a draft, and what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from memfs.dataclass import dataclass, field
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """The judgement of several reviewers.

    Attributes:
        consensus_score: mean of the scores of those that answered, 0 to 10; 0 where none did.
        agent_scores: each reviewer's score by its name.
        reasons: each reviewer's reason by its name, one sentence.
        absent: reviewers that gave no usable answer in time, with why.
    """

    consensus_score: float
    agent_scores: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreResult:
    """What became of a draft.

    Attributes:
        stored: whether the memory is held now, in its own item or merged into ``merged_into``.
        memory_id: id of the item that holds it, None where it was refused.
        consensus_score: what the reviewers said together, 0 to 10; 0 where they were not asked.
        reason: one sentence; of a trivial draft it holds the word "trivial".
        review: the whole judgement, None where the reviewers were not asked.
        merged_into: id of the item it repeats, "" where it is new.
        near: ids of items that say nearly the same, linked to it.
        contradicts: ids of items that say otherwise, linked to it.
    """

    stored: bool
    memory_id: str | None
    consensus_score: float
    reason: str
    review: ReviewResult | None = None
    merged_into: str = ""
    near: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()

"""Reviewer: the protocols of those who read drafts, judge them, and judge answers (seed 003, C3, D7).

Owns what a reviewer may be able to do, and the shape of its score. Who is asked, for how long, and what the scores
decide is ``memfs.pipeline.review``'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memfs.model import MemoryItem

STORAGE_SCALE = (0.0, 10.0)
RELEVANCE_SCALE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Score:
    """A reviewer's judgement: a number on the scale that was asked for, and one sentence of why."""

    value: float
    reason: str = ""


@runtime_checkable
class Reviewer(Protocol):
    """Judges whether a draft is worth keeping.

    It may be asked from several threads at once. What it raises leaves it out of that judgement, and is reported.
    """

    name: str

    def score_storage(self, item: MemoryItem) -> Score:
        """How much the draft is worth keeping, 0 to 10."""


@runtime_checkable
class Extractor(Protocol):
    """A reviewer that also reads what drafts of a type say into fields of their own, before they are judged."""

    name: str

    def extract(self, item: MemoryItem) -> MemoryItem:
        """The draft with what its text says in title, tags, metadata and the like; as it is where it is none of its."""


@runtime_checkable
class RelevanceReviewer(Protocol):
    """A reviewer that also judges what an item is worth to a question."""

    name: str

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        """How much the item has to do with the question, 0 to 1."""


@runtime_checkable
class BatchReviewer(Protocol):
    """A relevance reviewer that judges all items in one go, as a model does in one call."""

    name: str

    def score_relevance_all(self, items: Sequence[MemoryItem], query: str) -> Sequence[Score]:
        """One score an item, in their order, 0 to 1."""


AnyReviewer = Reviewer | RelevanceReviewer | BatchReviewer | Extractor

"""AgentReview: several judges of one memory, as seed 003 names them.

Owns the names of the judges and the door to them; how each scores is ``memfs.pipeline.reviewers``' business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from memfs.facades.memory import Memory
from memfs.model import MemoryItem
from memfs.model.review import ReviewResult
from memfs.pipeline.relevance import Relevance
from memfs.pipeline.review import Review
from memfs.pipeline.reviewer import RelevanceReviewer, Reviewer, Score
from memfs.pipeline.reviewers import RELEVANCE_REVIEWERS, STORAGE_REVIEWERS, reviewers_named

Judged = Memory | MemoryItem | str


class AgentReview:
    """What several reviewers say of a memory, alone and together (C3).

    A subclass may name other judges in ``STORAGE_AGENTS`` and ``RETRIEVAL_AGENTS``, registered ones
    (``memfs.pipeline.reviewers.register_reviewer``) or its own, whom it scores in ``_score_storage`` and
    ``_score_relevance``.
    """

    STORAGE_AGENTS: ClassVar[Sequence[str]] = list(STORAGE_REVIEWERS)
    RETRIEVAL_AGENTS: ClassVar[Sequence[str]] = list(RELEVANCE_REVIEWERS)

    def __init__(self, seconds: float = 5.0, relevance_seconds: float = 2.0) -> None:
        """``seconds``, ``relevance_seconds``: how long the judges may take over a draft, and over an answer."""
        self._seconds, self._relevance_seconds = seconds, relevance_seconds
        self._reviews: dict[tuple[str, ...], Review] = {}

    def review_storage(self, memory: Judged) -> ReviewResult:
        """What the storage judges say of a draft: each one's score and reason, 0 to 10, and their mean."""
        return self._review("storage", self.STORAGE_AGENTS, self._seconds).storage(item_of(memory))

    def score_relevance(self, memory: Judged, query: str) -> float:
        """How much a memory has to do with a question, 0 to 1: the mean of the retrieval judges."""
        review = self._review("relevance", self.RETRIEVAL_AGENTS, self._relevance_seconds)
        return review.relevance([item_of(memory)], query)[0]

    def _review(self, question: str, names: Sequence[str], seconds: float) -> Review:
        """The same one for the same judges, so that it knows which of them are still busy."""
        judges = [_Judge(self, name) for name in names]
        return self._reviews.setdefault((question, *names), Review(judges, seconds))

    def _score_storage(self, memory: MemoryItem, agent_type: str) -> tuple[float, str]:
        (reviewer,) = reviewers_named([agent_type])
        if not isinstance(reviewer, Reviewer):
            return 0.0, "it judges no drafts"
        score = reviewer.score_storage(memory)
        return score.value, score.reason

    def _score_relevance(self, memory: MemoryItem, query: str, agent_type: str) -> float:
        (reviewer,) = reviewers_named([agent_type])
        return reviewer.score_relevance(memory, query).value if isinstance(reviewer, RelevanceReviewer) else 0.0


def relevance_by(review: AgentReview, seconds: float) -> Relevance | None:
    """What orders answers by the word of a review; None for one that judges them as the workspace does anyway.

    Args:
        seconds: how long it may take over one answer.
    """
    own = type(review)
    names = ("score_relevance", "_score_relevance", "RETRIEVAL_AGENTS")
    if isinstance(review, AgentReview) and all(getattr(own, name) is getattr(AgentReview, name) for name in names):
        return None
    return Relevance([_Whole(review)], seconds, alone=True)


class _Whole:
    """A review as one judge of answers."""

    name = "agent_review"

    def __init__(self, review: AgentReview) -> None:
        self._review = review

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        return Score(self._review.score_relevance(item, query))


class _Judge:
    """One of the judges an ``AgentReview`` names, as a reviewer."""

    def __init__(self, review: AgentReview, name: str) -> None:
        self.name = name
        self._review = review

    def score_storage(self, item: MemoryItem) -> Score:
        return Score(*self._review._score_storage(item, self.name))

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        return Score(self._review._score_relevance(item, query, self.name))


def item_of(memory: Judged) -> MemoryItem:
    """A memory, or a text alone, as an item."""
    if isinstance(memory, MemoryItem):
        return memory
    if isinstance(memory, str):
        return MemoryItem(memory)
    return MemoryItem(
        memory.content, memory.type, timestamp=memory.timestamp, metadata=memory.metadata, context=memory.context
    )

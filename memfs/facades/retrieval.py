"""RetrievalPipeline: from a question to memories, as seed 003 calls it.

Owns the seed's arguments and results, and that no convention is among them that is not accepted (K8). Searching,
ranking, budget and duplicates are the business of ``Recaller``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memfs.facades.memory import Memory, memories_of, memory_of
from memfs.facades.opening import Facade
from memfs.facades.review import AgentReview, relevance_by
from memfs.model import Query, Recall
from memfs.pipeline import strategies
from memfs.pipeline.conventions import withheld
from memfs.workspace import Workspace

if TYPE_CHECKING:
    from memfs.pipeline.retrieval import Recaller


class RetrievalPipeline(Facade):
    """Finds memories of one workspace."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        db_path: str | os.PathLike[str] | None = None,
        workspace: Workspace | None = None,
        agent_review: AgentReview | None = None,
    ) -> None:
        """As ``Facade``, and ``agent_review``: whose ``score_relevance`` orders answers, where it is one's own (D7)."""
        super().__init__(path, db_path=db_path, workspace=workspace)
        self.agent_review = agent_review

    @property
    def _recall(self) -> Recaller:
        recall = self.workspace.recall
        if self.agent_review is None:
            return recall
        judges = relevance_by(self.agent_review, self.workspace.settings.review.relevance_seconds)
        return recall if judges is None else recall.reviewed_by(judges)

    def retrieve(
        self,
        query: str = "",
        memory_types: Iterable[str] | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        since: datetime | str | None = None,
        deduplicate: bool = False,
        similarity_threshold: float = 0.85,
        **more: Any,
    ) -> list[Memory]:
        """The memories that answer a question best, the best first; without a question the newest first (C4).

        Args:
            query: natural words.
            memory_types: only these types; None means all.
            limit: at most so many.
            max_tokens: together at most so many tokens.
            since: only what happened since then; a time without an offset is local time.
            deduplicate: leave out what repeats a better one, from ``similarity_threshold`` on.
            more: other fields of ``Query``, such as ``context``, ``sessions``, ``strategy`` or ``seconds``.

        Raises:
            QueryInvalid: an argument cannot be understood; ``field`` names it.
        """
        chosen = _fields(memory_types, limit, max_tokens, since, deduplicate, similarity_threshold, more)
        return _memories(self._recall.search(Query(text=query, **chosen), leave_out=withheld))

    def batch_retrieve(
        self,
        queries: Iterable[str],
        memory_types: Iterable[str] | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        since: datetime | str | None = None,
        deduplicate: bool = False,
        similarity_threshold: float = 0.85,
        **more: Any,
    ) -> dict[str, list[Memory]]:
        """``retrieve`` for several questions over one state of the index; the answers by question (C5)."""
        chosen = _fields(memory_types, limit, max_tokens, since, deduplicate, similarity_threshold, more)
        asked = [Query(text=text, **chosen) for text in dict.fromkeys(queries)]
        found = self._recall.search_many(asked, leave_out=withheld)
        return {text: _memories(answer) for text, answer in found.items()}


class TimeWeightedRetrieval(Facade):
    """Finds memories by relevance mixed with recency (C5)."""

    def retrieve_time_weighted(self, query: str, recency_weight: float = 0.3, limit: int = 10) -> list[Memory]:
        """The best by ``relevance x (1 - weight) + recency x weight``, the best first.

        Relevance, told as ``relevance_score``, is the score over that of the best match; recency is
        ``1 / (1 + 0.1 x days)``.

        Raises:
            QueryInvalid: the weight is not from 0 to 1, or another argument cannot be understood.
        """
        mixing = strategies.TimeWeightedRetrieval(self.workspace.recall, self.workspace.parts.clock)
        found = mixing.retrieve_time_weighted(query, recency_weight, limit)
        return [memory_of(hit.item, hit.reasons["relevance"]) for hit in found if not withheld(hit.item)]


def _memories(answer: Recall) -> list[Memory]:
    return memories_of(answer.hits, bool(answer.query.text))


def _fields(
    memory_types: Iterable[str] | None,
    limit: int,
    max_tokens: int | None,
    since: datetime | str | None,
    deduplicate: bool,
    similarity_threshold: float,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """The seed's arguments as fields of a query."""
    return {
        "types": () if memory_types is None else memory_types,
        "limit": limit,
        "max_tokens": max_tokens,
        "since": since,
        "deduplicate": deduplicate,
        "similarity_threshold": similarity_threshold,
        **more,
    }

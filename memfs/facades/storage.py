"""StoragePipeline: from a text to a stored memory, as seed 003 calls it.

Owns the seed's arguments; filtering, reviewing and storing is the business of the workspace's intake.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from memfs.facades.memory import Memory
from memfs.facades.opening import Facade
from memfs.facades.review import AgentReview, item_of
from memfs.model import MemoryItem
from memfs.model.item import Trust
from memfs.model.review import StoreResult
from memfs.pipeline.learner import as_program
from memfs.pipeline.trivial import TrivialFilter
from memfs.workspace import Workspace

SOURCE = "coordinator"


class StoragePipeline(Facade):
    """Filters, reviews and stores texts in one workspace."""

    teaches = True

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        db_path: str | os.PathLike[str] | None = None,
        workspace: Workspace | None = None,
        agent_review: AgentReview | None = None,
    ) -> None:
        """As ``Facade``, and ``agent_review``: who judges, instead of the reviewers that the settings name."""
        super().__init__(path, db_path=db_path, workspace=workspace)
        self.agent_review = agent_review
        self.trivial_filter = TrivialFilter()

    @property
    def consensus_threshold(self) -> float:
        """The mean score from which a text is stored: the setting ``review.threshold``."""
        return self.workspace.settings.review.threshold

    def store(
        self,
        content: str,
        memory_type: str = "semantic",
        metadata: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> StoreResult:
        """Store a text if it is worth it (C3).

        Args:
            content: what to remember.
            memory_type: name of its type, also as ``MemoryType``.
            metadata: free facts; ``session_id`` names the session it belongs to.
            context: the circumstances, matched at recall.

        Returns:
            What became of it, with score and reasons; of a trivial text the reason holds "trivial".

        Raises:
            SettingInvalid: there is no such type.
            SchemaInvalid, SecretDetected, StorageIO: as ``Store.put``; nothing was stored.
        """
        workspace = self.workspace
        workspace.kinds.get(str(memory_type))
        if trivial := self.trivial_filter.reason(content):  # before all else: an empty text makes no item
            return StoreResult(stored=False, memory_id=None, consensus_score=0.0, reason=trivial)
        extracted = self._extract_memory(content, str(memory_type), metadata, context)
        item = item_of(extracted).replace(trust=Trust.AGENT.value)
        intake = workspace.intake
        if self.agent_review is not None:
            intake = intake.reviewed_by(self.agent_review.review_storage)
        with as_program():
            return intake.store(item, source=SOURCE)

    def _extract_memory(
        self,
        content: str,
        memory_type: str,
        metadata: Mapping[str, Any] | None,
        context: Mapping[str, Any] | None,
    ) -> MemoryItem | Memory:
        """The draft that a text makes; a subclass may read more out of it, by type (D7).

        Title, keywords, names and dates are filled in afterwards, where they are missing.
        """
        return MemoryItem(content, memory_type, metadata=metadata or {}, context=context or {})

"""MemoryInjector: seed 002's way of memories into a context that an agent is about to be given (M6).

Owns what it asks and the shape of what it adds; the question a situation makes is ``memfs.pipeline.injection``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.facades.memory_context import MemoryContext
from memfs.pipeline.injection import ADDED, LIMIT, question


class MemoryInjector:
    """Adds what is remembered about a situation to a context."""

    def __init__(self, memory_context: MemoryContext) -> None:
        """``memory_context``: where to look; it stays the caller's to close."""
        self.memory = memory_context

    def inject(self, context: Mapping[str, Any], situation: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a context with ``relevant_memories`` added, at most five, the best first.

        Args:
            context: what the agent is about to be given.
            situation: ``tool`` and the ``intent`` of ``params`` are what is asked, all of it the circumstances.

        Returns:
            The context with ``relevant_memories``, each with type, content, relevance and context; as it was where
            nothing is found.
        """
        asked = question(situation)
        found = self.memory.recall(asked, situation, LIMIT) if asked.strip() else []
        rows = [
            {"type": str(one.type), "content": one.content, "relevance": one.relevance, "context": dict(one.context)}
            for one in found
        ]
        return {**context, ADDED: rows} if rows else dict(context)

    inject_memories = inject

"""MemoryInjector: seed 002's way of memories into a context that an agent is about to be given (M6).

Owns the seed's name for it; what is added is said by the rules of the memory context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.facades.memory_context import MemoryContext


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
            nothing is found, or no rule for ``context_accessed`` injects memories.
        """
        return self.memory.workspace.reactions.access(context, situation)

    inject_memories = inject

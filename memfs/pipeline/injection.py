"""Injection: what the memory adds to a context that an agent is about to be given (M6).

Owns the question that a situation asks, and the shape of ``relevant_memories``. Finding and ranking is retrieval's
business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.model import MemoryItem, Query
from memfs.pipeline.conventions import withheld
from memfs.pipeline.relevance import relevances
from memfs.pipeline.retrieval import Recaller
from memfs.pipeline.undecided import told
from memfs.pipeline.wording import gist

ADDED = "relevant_memories"
LIMIT = 5


def question(situation: Mapping[str, Any]) -> str:
    """What a situation asks of the memory: its ``tool`` and the ``intent`` of its ``params``; "" where it has none."""
    params = situation.get("params")
    intent = params.get("intent") if isinstance(params, Mapping) else None
    return " ".join(str(part) for part in (situation.get("tool"), intent) if part)


def relevant(recall: Recaller, situation: Mapping[str, Any], limit: int = LIMIT) -> list[dict[str, Any]]:
    """What is remembered about a situation, best first: type, content, relevance and context of each memory.

    One of which a merge left something open also has ``undecided``, with the other value.
    """
    asked = question(situation)
    if not asked.strip():
        return []
    query = Query(text=asked, context=situation, limit=limit, deduplicate=True)
    hits = recall.search(query, leave_out=withheld).hits
    return [_row(hit.item, relevance) for hit, relevance in zip(hits, relevances(hits), strict=True)]


def injected(recall: Recaller, context: Mapping[str, Any], situation: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a context with ``relevant_memories`` added; as it was where nothing is found."""
    found = relevant(recall, situation)
    return {**context, ADDED: found} if found else dict(context)


def _row(item: MemoryItem, relevance: float) -> dict[str, Any]:
    row = {"type": item.type, "content": gist(item), "relevance": relevance, "context": dict(item.context)}
    left = told(item)
    return {**row, "undecided": left} if left else row

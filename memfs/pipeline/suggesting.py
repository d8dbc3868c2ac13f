"""Suggesting: which patterns may help with what is at hand (seed 002, M2).

Owns what a pattern is worth for a text and its circumstances. How patterns come about is not its business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from memfs.model import Hit, MemoryItem, Query
from memfs.pipeline.patterns import PatternDetector
from memfs.store import Store

_CONTEXT = 1.5
_FOLLOWED = 2.0
_PER_HIT = 4
_LEAST = 20
FOLLOWERS = 2
"""So many hits that follow a pattern are told before it."""


def suggested(store: Store, detector: PatternDetector, text: str, context: Mapping[str, Any], limit: int) -> list[Hit]:
    """The patterns that may help, best first; see ``Patterns.suggest``."""
    hits = []
    for candidate in store.candidates(
        Query(text=text, types=frozenset({"pattern"}), limit=max(limit * _PER_HIT, _LEAST))
    ):
        loaded = store.load(candidate)
        if loaded is not None:
            reasons = _reasons(loaded.item, candidate.similarity or 1.0, text, context, detector)
            hits.append(Hit(item=loaded.item, score=prod(reasons.values()), reasons=reasons, stale=loaded.stale))
    asked = bool(text.strip()) or not context
    known = [hit for hit in hits if hit.score > 0 and (asked or "context" in hit.reasons)]
    return sorted(known, key=lambda hit: (-hit.score, hit.item.id))[:limit]


def with_patterns(hits: Sequence[Hit], patterns: Sequence[Hit], detector: PatternDetector) -> list[Hit]:
    """As many hits, with each pattern that more than ``FOLLOWERS`` of them follow before the next one that does."""
    ordered = list(hits)
    for pattern in patterns:
        key = pattern.item.id
        others = [hit for hit in ordered if hit.item.id != key]
        followers = [place for place, hit in enumerate(others) if detector.follows(hit.item, pattern.item)]
        if len(followers) <= FOLLOWERS:
            continue
        here = next((place for place, hit in enumerate(ordered) if hit.item.id == key), len(hits))
        place = followers[FOLLOWERS]
        if place < here:
            told = next((hit for hit in ordered if hit.item.id == key), pattern)
            ordered = [*others[:place], replace(told, score=others[place].score), *others[place:]][: len(hits)]
    return ordered


def _reasons(
    pattern: MemoryItem, similarity: float, text: str, context: Mapping[str, Any], detector: PatternDetector
) -> dict[str, float]:
    """The factors that make a suggestion's score; 0 among them where its circumstances all differ."""
    common: Mapping[str, Any] = pattern.data.get("common_context", pattern.context)
    both = common.keys() & context.keys()
    shared = [key for key in both if common[key] == context[key]]
    reasons = {"text": similarity, "confidence": float(pattern.data.get("confidence", 0.5))}
    kind = pattern.data.get("pattern_type", "")
    if text.strip() and kind and detector.follows(MemoryItem(text, kind), pattern):
        reasons["follows"] = _FOLLOWED
    if both:
        reasons["context"] = _CONTEXT if shared else 0.0
    return reasons

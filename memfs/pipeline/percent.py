"""Relevance from 0 to 100: what a person is told of a score, which has no scale of its own.

The best hit gets the share of the question's words that it holds, each by what it is worth; the others their part of
that, by their scores. So 100 says that a hit holds all that was asked for, and the order is that of the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

from memfs.index import analyzer, question
from memfs.model import Hit

_BY_MEANING = 0.8
"""The most that a best hit gets which shares no word with the question, and was found by what it means."""


def relevances(text: str, hits: Sequence[Hit]) -> list[int]:
    """How relevant each hit is, 1 to 100, in their order; nothing is said of hits where nothing was asked.

    Args:
        text: the question.
        hits: with the factors that made their scores.
    """
    best = max(hits, key=lambda hit: hit.score, default=None)
    if best is None or best.score <= 0 or not text.strip():
        return []
    share = _share(text, best)
    return [max(1, round(100 * share * max(hit.score, 0.0) / best.score)) for hit in hits]


def _share(text: str, best: Hit) -> float:
    wanted = question.weights(text)
    held, _ = analyzer.weighted_terms(best.item)
    words = sum(weight for term, weight in wanted.items() if term in held) / (sum(wanted.values()) or 1.0)
    by_text = best.reasons.get("text", 0.0)
    meaning = best.reasons.get("meaning", 0.0) / by_text if by_text > 0 else 0.0
    return min(1.0, max(words, _BY_MEANING * min(meaning, 1.0)))

"""Reorders hits by what reviewers say of their relevance, and puts a relevance on each hit.

Only the first hits are reviewed. Built-in reviewers, which work by rules, count a little; a model, or a reviewer of
one's own, counts much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from memfs.model import Hit
from memfs.recall.review import Review
from memfs.recall.reviewers import (
    RELEVANCE_REVIEWERS,
    STORAGE_REVIEWERS,
    BatchReviewer,
    RelevanceReviewer,
    model_of,
    reviewers_named,
)
from memfs.search import analyzer, terms
from memfs.settings import ReviewSettings

JUDGED = 30
"""The most hits that reviewers see."""
RULES, OWN, MODEL = "reviewers", "own_reviewers", "model"
# Chosen in benchmarks/retrieval: more than this for the rules gained nothing.
_SHARES = {RULES: 0.15, OWN: 2.0, MODEL: 2.0}
_CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class JudgedHit:
    """Reviewed hits, best first, and the reviewers that gave no usable answer, with the reason."""

    hits: list[Hit]
    absent: Mapping[str, str] = field(default_factory=dict)


class Relevance:
    """Asks the reviewers of one workspace how relevant hits are to a query."""

    def __init__(
        self, reviewers: Sequence[RelevanceReviewer | BatchReviewer], seconds: float, *, alone: bool = False
    ) -> None:
        """Ask these.

        Args:
            seconds: how long they may take over one answer, all together.
            alone: whether their word alone is the score, and not a factor of it.
        """
        self._review = Review(reviewers, seconds)
        self.seconds = seconds
        self._alone = alone
        self._groups = {one.name: _group(one) for one in reviewers}

    def room(self, limit: int) -> int:
        """How many hits to have judged for an answer of at most ``limit``: a word that counts may lift one far."""
        if self._alone:
            return max(JUDGED, _CANDIDATES * limit)
        return min(JUDGED, limit + limit // 5) if {*self._groups.values()} <= {RULES} else JUDGED

    def judged(self, hits: Sequence[Hit], text: str, seconds: float | None = None) -> JudgedHit:
        """The hits in the order that the reviewers' word gives them.

        A hit's score is multiplied by ``reviewers``, 1 and a share of the mean score of the rules, by
        ``own_reviewers``, 1 and twice the mean score of one's own, and by ``model``, the same of models.

        Args:
            text: what was asked.
            seconds: how long the reviewers may take, where that is less than they usually may.
        """
        seen = list(hits) if self._alone else list(hits[:JUDGED])
        if not seen or not text:
            return JudgedHit(list(hits))
        result = self._review.relevance_result([hit.item for hit in seen], text, seconds)
        marked = seen
        for reason in (RULES, OWN, MODEL):
            scores = [row for name, row in result.by_reviewer.items() if self._groups[name] == reason]
            if scores:
                rows = zip(marked, zip(*scores, strict=True), strict=True)
                marked = [_marked(hit, reason, sum(row) / len(row)) for hit, row in rows]
        if self._alone and result.by_reviewer:
            scored = [replace(hit, score=reviewed_relevance(hit.reasons) or 0.0) for hit in marked]
            marked = sorted(scored, key=lambda hit: -hit.score)
        elif all(one.score >= other.score for one, other in pairwise(seen)):  # else a strategy has its own order
            marked.sort(key=lambda hit: -hit.score)
        return JudgedHit([*marked, *hits[len(seen) :]], result.absent)


def reviewed_relevance(reasons: Mapping[str, float]) -> float | None:
    """What reviewers said of a hit with these reasons, 0 to 1: a model's word first, then one's own; else None."""
    for reason in (MODEL, OWN, RULES):
        if reason in reasons:
            return (reasons[reason] - 1.0) / _SHARES[reason]
    return None


def relevances(hits: Sequence[Hit], asked: bool = True) -> list[float]:
    """How well each hit answers, 0 to 1, in the order of their scores.

    The best one counts as much as the reviewers say that any of them has to do with the question (wholly, where they
    said nothing), the others in proportion to their scores.

    Args:
        asked: whether there was a question; without one every item answers it wholly.
    """
    best = max((hit.score for hit in hits), default=0.0)
    if not asked or best <= 0:
        return [1.0] * len(hits)
    strength = max((said for hit in hits if (said := reviewed_relevance(hit.reasons)) is not None), default=0.0) or 1.0
    return [round(strength * max(0.0, hit.score) / best, 4) for hit in hits]


def _marked(hit: Hit, reason: str, mean: float) -> Hit:
    factor = 1.0 + _SHARES[reason] * mean
    return replace(hit, score=hit.score * factor, reasons={**hit.reasons, reason: factor})


def _group(reviewer: RelevanceReviewer | BatchReviewer) -> str:
    """The reason under which a reviewer's word counts."""
    if isinstance(reviewer, BatchReviewer):
        return MODEL
    return RULES if reviewer.name in RELEVANCE_REVIEWERS else OWN


def relevance_of(settings: ReviewSettings) -> Relevance:
    """The relevance reviewers of a workspace, as its settings say: the built-in two, a model where one is set, and
    those of one's own that judge answers, too.

    Raises:
        SettingInvalid: a reviewer is named that there is none of, or the model's address cannot be asked.
    """
    names = [*RELEVANCE_REVIEWERS, *(name for name in settings.reviewers if name not in STORAGE_REVIEWERS)]
    reviewers = [one for one in reviewers_named(names) if isinstance(one, RelevanceReviewer | BatchReviewer)]
    return Relevance([*reviewers, *model_of(settings)], settings.relevance_seconds)


_BY_MEANING = 0.8
"""The most that a best hit gets which shares no word with the question, and was found by what it means."""


def relevance_percents(text: str, hits: Sequence[Hit]) -> list[int]:
    """How relevant each hit is, 1 to 100, in their order; nothing is said of hits where nothing was asked.

    The best hit gets the share of the question's words that it holds, each by what it is worth; the others their part
    of that, by their scores. So 100 says that a hit holds all that was asked for, and the order is that of the scores.

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
    wanted = terms.weights(text)
    held, _ = analyzer.weighted_terms(best.item)
    words = sum(weight for term, weight in wanted.items() if term in held) / (sum(wanted.values()) or 1.0)
    by_text = best.reasons.get("text", 0.0)
    meaning = best.reasons.get("meaning", 0.0) / by_text if by_text > 0 else 0.0
    return min(1.0, max(words, _BY_MEANING * min(meaning, 1.0)))

"""Asks several reviewers at once, and reorders hits by what they say of their relevance.

They run in parallel within a time limit. A reviewer that fails, is late or gives no score is left out and named. Only
the first hits are reviewed, by a model or by reviewers of one's own; what the built-in ones say of answers is a factor
of the ranking.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from memfs.dataclass import NamedTuple, dataclass, field, replace
from memfs.errors import SettingInvalid
from memfs.model import Hit, MemoryItem
from memfs.recall.foreign import REASON_LETTERS, ForeignCode, ForeignFailure
from memfs.recall.ranking import JUDGED_SHARE
from memfs.recall.reviewers import (
    RELEVANCE_SCALE,
    STORAGE_REVIEWERS,
    STORAGE_SCALE,
    Analyzer,
    AnyReviewer,
    BatchReviewer,
    Extractor,
    KnowledgeArchaeologist,
    PatternsReviewer,
    RelevanceReviewer,
    Reviewer,
    Score,
    model_of,
    reviewers_named,
)
from memfs.settings import ReviewSettings
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs.model.learning import ReviewResult

# They neither wait nor fail: threads of their own would take longer than they do.
_IMMEDIATE = frozenset({Analyzer, PatternsReviewer, KnowledgeArchaeologist})


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceResult:
    """What reviewers say of an answer.

    Attributes:
        scores: the mean score of each item, 0 to 1, in their order; 0 where no reviewer answered.
        by_reviewer: the scores of each reviewer that answered, by its name.
        absent: reviewers that gave no usable answer in time, with why.
    """

    scores: tuple[float, ...]
    by_reviewer: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


class Review:
    """Asks reviewers. May be used from several threads."""

    def __init__(self, reviewers: Sequence[AnyReviewer], seconds: float = 5.0) -> None:
        """
        Args:
            reviewers: whom to ask; each question goes to those that can answer it.
            seconds: how long they may take over one draft or one answer, all together.

        Raises:
            SettingInvalid: two of them have one name.
        """
        self._reviewers = tuple(reviewers)
        self._seconds = seconds
        self._code = ForeignCode(seconds)
        self._immediate = frozenset(one.name for one in self._reviewers if type(one) in _IMMEDIATE)
        self._of_answers = [one for one in self._reviewers if isinstance(one, RelevanceReviewer | BatchReviewer)]
        twice = [name for name, count in Counter(one.name for one in self._reviewers).items() if count > 1]
        if twice:
            raise SettingInvalid(
                f"two reviewers are called {twice[0]!r}", field="review.reviewers", hint="name each one once"
            )

    def storage(self, item: MemoryItem) -> ReviewResult:
        """What the reviewers say of a draft, and the mean of the scores of those that answered."""
        questions = {one.name: partial(one.score_storage, item) for one in self._reviewers if isinstance(one, Reviewer)}
        answers, absent = self._ask(questions, self._seconds)
        found = {name: _score(answer, STORAGE_SCALE) for name, answer in answers.items()}
        absent |= {name: one for name, one in found.items() if isinstance(one, str)}
        scores = {name: one for name, one in found.items() if isinstance(one, Score)}
        from memfs.model.learning import ReviewResult

        return ReviewResult(
            consensus_score=sum(score.value for score in scores.values()) / len(scores) if scores else 0.0,
            agent_scores={name: score.value for name, score in scores.items()},
            reasons={name: score.reason for name, score in scores.items()},
            absent=absent,
        )

    def extraction(self, item: MemoryItem) -> tuple[MemoryItem, Mapping[str, str]]:
        """A draft with what those that read drafts made of it, one after the other, and who gave none in time.

        Whatever they do, it keeps its id, its type and its trust.
        """
        deadline = time.monotonic() + self._seconds
        absent: dict[str, str] = {}
        for reviewer in self._reviewers:
            if isinstance(reviewer, Extractor):
                left = max(0.0, deadline - time.monotonic())
                answers, missing = self._ask({reviewer.name: partial(reviewer.extract, item)}, left)
                absent |= missing
                for answer in answers.values():
                    if isinstance(answer, MemoryItem):
                        item = answer.replace(id=item.id, memory_type=item.memory_type, trust=item.trust)
                    else:
                        absent[reviewer.name] = _line(f"its version of the draft is not a memory: {ascii(answer)[:80]}")
        return item, absent

    def relevance_result(
        self, items: Sequence[MemoryItem], query: str, seconds: float | None = None
    ) -> RelevanceResult:
        """The mean score of each item, with what each reviewer said and who gave no usable answer.

        Args:
            seconds: how long they may take, where that is less than they usually may.
        """
        questions: dict[str, Callable[[], object]] = {}
        for reviewer in self._of_answers:
            if isinstance(reviewer, BatchReviewer):
                questions[reviewer.name] = partial(reviewer.score_relevance_all, items, query)
            elif isinstance(reviewer, RelevanceReviewer):
                questions[reviewer.name] = partial(_one_by_one, reviewer, items, query)
        limit = self._seconds if seconds is None else min(seconds, self._seconds)
        answers, absent = self._ask(questions, limit) if questions else ({}, {})
        found = {name: _scores(answer, len(items)) for name, answer in answers.items()}
        absent |= {name: one for name, one in found.items() if isinstance(one, str)}
        scores = {name: one for name, one in found.items() if isinstance(one, tuple)}
        means = tuple(sum(row) / len(row) for row in zip(*scores.values(), strict=True)) if scores else ()
        return RelevanceResult(scores=means or (0.0,) * len(items), by_reviewer=scores, absent=absent)

    def _ask(
        self, questions: Mapping[str, Callable[[], object]], seconds: float
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The answers by name in the order of the questions, and why there is none of the others."""
        begun = {name: question for name, question in questions.items() if name not in self._immediate}
        found = self._code.call_all(begun, seconds)
        for name in questions.keys() - begun.keys():
            found[name] = questions[name]()
        absent = {name: answer.reason for name, answer in found.items() if isinstance(answer, ForeignFailure)}
        return {name: found[name] for name in questions if name not in absent}, absent


def _one_by_one(reviewer: RelevanceReviewer, items: Sequence[MemoryItem], query: str) -> list[Score]:
    return [reviewer.score_relevance(item, query) for item in items]


# -- what counts as a score ---------------------------------------------------------------------------------------
def _score(answer: object, scale: tuple[float, float]) -> Score | str:
    """An answer as a score, also one that is a number, or a number and a reason; else why it is none."""
    value, reason = answer, ""
    if isinstance(answer, Score):
        value, reason = answer.value, answer.reason
    elif isinstance(answer, tuple) and len(answer) == 2:
        value, reason = answer
    low, high = scale
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return _line(f"its answer is not a score: {ascii(answer)[:80]}")
    if not low <= value <= high:
        return f"its score {value:g} is not from {low:g} to {high:g}"
    return Score(float(value), _line(str(reason)))


def _scores(answers: object, wanted: int) -> tuple[float, ...] | str:
    if not isinstance(answers, (list, tuple)) or len(answers) != wanted:
        return f"it did not give one score for each of {wanted} memories"
    found = []
    for answer in answers:
        score = _score(answer, RELEVANCE_SCALE)
        if not isinstance(score, Score):
            return score
        found.append(score.value)
    return tuple(found)


def _line(text: str) -> str:
    return " ".join(text.split())[:REASON_LETTERS]


JUDGED = 30
"""The most hits that reviewers see."""
RULES, OWN, MODEL = "reviewers", "own_reviewers", "model"
_SHARES = {RULES: JUDGED_SHARE, OWN: 2.0, MODEL: 2.0}
_CANDIDATES = 3


class JudgedHit(NamedTuple):
    """Reviewed hits, best first, and the reviewers that gave no usable answer, with the reason."""

    hits: list[Hit]
    absent: Mapping[str, str]


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
        self.seconds, self._alone = seconds, alone
        self._groups = {one.name: MODEL if isinstance(one, BatchReviewer) else OWN for one in reviewers}

    def room(self, limit: int) -> int:
        """How many hits to have judged for an answer of at most ``limit``: a word that counts may lift one far."""
        return max(JUDGED, _CANDIDATES * limit) if self._alone else JUDGED

    def judged(self, hits: Sequence[Hit], text: str, seconds: float | None = None) -> JudgedHit:
        """The hits in the order that the reviewers' word gives them.

        A hit's score is multiplied by ``own_reviewers``, 1 and twice the mean score of one's own, and by ``model``, the
        same of models.

        Args:
            text: what was asked.
            seconds: how long the reviewers may take, where that is less than they usually may.
        """
        seen = list(hits) if self._alone else list(hits[:JUDGED])
        if not seen or not text:
            return JudgedHit(list(hits), {})
        result = self._review.relevance_result([hit.item for hit in seen], text, seconds)
        marked = seen
        for reason in (OWN, MODEL):
            scores = [row for name, row in result.by_reviewer.items() if self._groups[name] == reason]
            if scores:
                means = (sum(row) / len(row) for row in zip(*scores, strict=True))
                factors = [1.0 + _SHARES[reason] * mean for mean in means]
                marked = [
                    replace(hit, score=hit.score * factor, reasons={**hit.reasons, reason: factor})
                    for hit, factor in zip(marked, factors, strict=True)
                ]
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
    strength = max((it for hit in hits if (it := reviewed_relevance(hit.reasons)) is not None), default=0.0) or 1.0
    return [round(strength * max(0.0, hit.score) / best, 4) for hit in hits]


def relevance_of(settings: ReviewSettings) -> Relevance | None:
    """The reviewers that judge answers, as settings say: a model where one is set, and a person's own that judge
    answers; None where there are none. The two built-in ones are a factor of the ranking.

    Raises:
        SettingInvalid: a reviewer is named that there is none of, or the model's address cannot be asked.
    """
    names = [name for name in settings.reviewers if name not in STORAGE_REVIEWERS]
    reviewers = [one for one in reviewers_named(names) if isinstance(one, RelevanceReviewer | BatchReviewer)]
    reviewers += model_of(settings)
    return Relevance(reviewers, settings.relevance_seconds) if reviewers else None

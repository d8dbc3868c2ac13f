"""Asks several reviewers at once, and combines their scores.

They run in parallel within a time limit. A reviewer that fails, is late or gives no score is left out and named.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from memfs.errors import SettingInvalid
from memfs.model import MemoryItem
from memfs.recall.foreign import REASON_LETTERS, ForeignCode, ForeignFailure
from memfs.recall.reviewers import (
    RELEVANCE_SCALE,
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
)

if TYPE_CHECKING:
    from memfs.model.review import ReviewResult

# They neither wait nor fail: threads of their own would take longer than they do.
_IMMEDIATE = frozenset({Analyzer, PatternsReviewer, KnowledgeArchaeologist})


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceResult:
    """What reviewers say of an answer.

    Attributes:
        scores: the mean score of each item, 0 to 1, in their order; 0 where nobody answered.
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
        twice = [name for name, count in Counter(one.name for one in self._reviewers).items() if count > 1]
        if twice:
            raise SettingInvalid(
                f"two reviewers are called {twice[0]!r}", field="review.reviewers", hint="name each one once"
            )

    def storage(self, item: MemoryItem) -> ReviewResult:
        """What the reviewers say of a draft, and the mean of the scores of those that answered."""
        questions = {one.name: partial(one.score_storage, item) for one in self._reviewers if isinstance(one, Reviewer)}
        answers, absent = self._ask(questions, self._seconds)
        scores: dict[str, Score] = {}
        for name, answer in answers.items():
            found = _score(answer, STORAGE_SCALE)
            if isinstance(found, Score):
                scores[name] = found
            else:
                absent[name] = found
        from memfs.model.review import ReviewResult

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
        for one in self._reviewers:
            if isinstance(one, Extractor):
                left = max(0.0, deadline - time.monotonic())
                answers, missing = self._ask({one.name: partial(one.extract, item)}, left)
                absent |= missing
                for answer in answers.values():
                    if isinstance(answer, MemoryItem):
                        item = answer.replace(id=item.id, memory_type=item.memory_type, trust=item.trust)
                    else:
                        absent[one.name] = _line(f"what it made of the draft is no memory: {ascii(answer)[:80]}")
        return item, absent

    def relevance(self, items: Sequence[MemoryItem], query: str) -> list[float]:
        """The mean score of each item, 0 to 1, in their order; 0 where nobody answered."""
        return list(self.relevance_result(items, query).scores)

    def relevance_result(
        self, items: Sequence[MemoryItem], query: str, seconds: float | None = None
    ) -> RelevanceResult:
        """As ``relevance``, with what each reviewer said and who gave no usable answer.

        Args:
            seconds: how long they may take, where that is less than they usually may.
        """
        questions: dict[str, Callable[[], object]] = {}
        for one in self._reviewers:
            if isinstance(one, BatchReviewer):
                questions[one.name] = partial(one.score_relevance_all, items, query)
            elif isinstance(one, RelevanceReviewer):
                questions[one.name] = partial(_one_by_one, one, items, query)
        answers, absent = self._ask(questions, self._seconds if seconds is None else min(seconds, self._seconds))
        scores: dict[str, tuple[float, ...]] = {}
        for name, answer in answers.items():
            found = _scores(answer, len(items))
            if isinstance(found, tuple):
                scores[name] = found
            else:
                absent[name] = found
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
        return _line(f"its answer is no score: {ascii(answer)[:80]}")
    if not low <= value <= high:
        return f"its score {value:g} is not from {low:g} to {high:g}"
    return Score(float(value), _line(str(reason)))


def _scores(answers: object, wanted: int) -> tuple[float, ...] | str:
    if not isinstance(answers, (list, tuple)) or len(answers) != wanted:
        given = len(answers) if isinstance(answers, (list, tuple)) else "no"
        return f"it gave {given} scores for {wanted} memories"
    found = []
    for answer in answers:
        score = _score(answer, RELEVANCE_SCALE)
        if not isinstance(score, Score):
            return score
        found.append(score.value)
    return tuple(found)


def _line(text: str) -> str:
    return " ".join(text.split())[:REASON_LETTERS]

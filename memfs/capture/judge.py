"""Judges: what of a person's messages is kept, told by cues, or by a model where one is set for review (P4, C6).

A judge sorts a message's own sentences and never words them anew. It runs where events become memories, not where a
hook answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from memfs.capture.prompts import intention
from memfs.capture.sentences import sentences
from memfs.capture.statements import MOST, Statement, facts_in
from memfs.errors import MemfsError
from memfs.files.secrets import find
from memfs.pipeline.corrections import corrections, is_refusal, passed_over
from memfs.settings import ReviewSettings

if TYPE_CHECKING:
    from memfs.pipeline.llm_reviewer import LlmReviewer

_LEAST_SECONDS = 1.0
_MOST_SENTENCES = 60
_MOST_LETTERS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What of one message is kept.

    Attributes:
        corrections: the sentences that correct the agent, or say how things are to be done.
        facts: what it tells of the work that lasts, decisions included.
        later: what it says of work to be done later, "" where it says nothing of that.
        rest: whether it says anything beside corrections.
    """

    corrections: tuple[str, ...] = ()
    facts: tuple[Statement, ...] = ()
    later: str = ""
    rest: bool = True


class Judge(Protocol):
    """Says what of messages is kept."""

    absent: list[str]
    """Why it could not be asked, a sentence each."""

    def judge(self, messages: Sequence[str]) -> list[Judgement]:
        """A judgement for each message, in order."""
        ...


class CueJudge:
    """Judges by the cues of the languages that memfs knows."""

    def __init__(self) -> None:
        self.absent: list[str] = []

    def judge(self, messages: Sequence[str]) -> list[Judgement]:
        """See ``Judge``."""
        return [_by_cues(text) for text in messages]


def _by_cues(text: str) -> Judgement:
    wishes = corrections(text)
    return Judgement(
        corrections=wishes,
        facts=tuple(one for one in facts_in(text) if one.text not in wishes),
        later=intention(text),
        rest=bool(passed_over(text)),
    )


class ModelJudge:
    """Asks a model about the sentences of all messages in one call; where it gives no answer in time, cues judge."""

    def __init__(self, reviewer: LlmReviewer, seconds: float, until: float) -> None:
        """
        Args:
            reviewer: asks the model.
            seconds: how long one call may take.
            until: when all of it must be over, by ``time.monotonic``.
        """
        self.absent: list[str] = []
        self._reviewer, self._seconds, self._until = reviewer, seconds, until

    def judge(self, messages: Sequence[str]) -> list[Judgement]:
        """See ``Judge``. A message with a secret in it, or one that is too long, is not sent."""
        asked = dict(_fitting(messages))
        labels = self._labels([one for said in asked.values() for one in said])
        if labels is None:
            asked = {}
        given = iter(labels or ())
        sorted_by_model = {text: _by_labels([(one, next(given)) for one in said]) for text, said in asked.items()}
        return [sorted_by_model[text] if text in sorted_by_model else _by_cues(text) for text in messages]

    def _labels(self, said: list[str]) -> list[str] | None:
        """A label for each sentence; None where there is no answer, or no time to ask."""
        seconds = min(self._seconds, self._until - time.monotonic())
        if not said or self.absent or seconds < _LEAST_SECONDS:
            return None
        try:
            return self._reviewer.labels(said, seconds)
        except MemfsError as error:
            self.absent.append(f"{self._reviewer.name} did not judge what was said, cues did: {error.message}")
            return None


def _fitting(messages: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The messages that go to the model, each with its sentences."""
    count = letters = 0
    for text in dict.fromkeys(messages):
        said = sentences(text)
        if not said or find(text):
            continue
        count, letters = count + len(said), letters + sum(map(len, said))
        if count > _MOST_SENTENCES or letters > _MOST_LETTERS:
            return
        yield text, said


def _by_labels(labelled: Sequence[tuple[str, str]]) -> Judgement:
    from memfs.pipeline.llm_reviewer import DECISION, FACT, NOTHING, TODO, WISHES  # as in ``judge_of``

    sorts = {DECISION: "choice", FACT: "fact"}
    facts = [Statement(one, label == DECISION, sorts[label]) for one, label in labelled if label in sorts]
    return Judgement(
        corrections=tuple(one for one, label in labelled if label in WISHES),
        facts=tuple(facts[:MOST]),
        later="\n".join(one for one, label in labelled if label == TODO),
        rest=any(label not in WISHES and not (label == NOTHING and is_refusal(one)) for one, label in labelled),
    )


def judge_of(settings: ReviewSettings, until: float) -> Judge:
    """The judge of a workspace, as its settings say: the model that reviews, else cues.

    Args:
        until: when all judging must be over, by ``time.monotonic``.
    """
    if not settings.endpoint:
        return CueJudge()
    from memfs.pipeline.reviewers import model_of  # a workspace without a model is spared them

    return ModelJudge(model_of(settings)[0], settings.seconds, until)

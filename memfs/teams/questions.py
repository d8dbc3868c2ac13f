"""Pinned questions: what a team wants to be told when its answers change (B1, B4).

Owns the file that lists them, asking each of two sides, and what counts as broken. How an answer is found is
recall's business; how a side is asked, that of ``memfs.teams.past``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memfs.errors import ContentError, MemfsError
from memfs.files.documents import QUESTIONS
from memfs.files.textguard import shown
from memfs.model import Query
from memfs.model.query import Recall
from memfs.pipeline.neighbours import Searched
from memfs.pipeline.wording import gist
from memfs.teams.reviewcodes import finding
from memfs.teams.reviewsides import Side
from memfs.teams.reviewvalues import Answered, Finding

LIMIT = 5
"""So many answers are looked at where a question does not say."""
Texts = dict[str, str]


class Recalling(Protocol):
    """Answers a question; see ``memfs.pipeline.retrieval.Recaller.search``."""

    def search(self, query: Query | str) -> Recall: ...


class PastMemory(Protocol):
    """The memory of one side; see ``memfs.teams.past.Past``."""

    @property
    def recall(self) -> Recalling:
        """Answers from it."""

    @property
    def store(self) -> Searched:
        """Finds its items by their words."""


Travelling = Callable[[Side, datetime], PastMemory]
"""Goes to a side of a comparison, at a moment that counts as the present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One pinned question: its words, the ids that must be among so many first answers."""

    ask: str
    expect: tuple[str, ...] = ()
    limit: int = LIMIT


def questions_of(side: Side) -> list[Question]:
    """The questions that a side pins, each once; none where it has no such file, or an invalid one.

    That the file is invalid is found with all other files.
    """
    data = side.data(QUESTIONS)
    if data is None:
        return []
    try:
        document = side.codec.read_document(data, QUESTIONS, "questions")
    except ContentError:
        return []
    found = {
        row["ask"].strip(): Question(
            ask=row["ask"].strip(), expect=tuple(row.get("expect", ())), limit=row.get("limit", LIMIT)
        )
        for row in document["questions"]
    }
    return [one for name, one in found.items() if name]


def answers(recall: Recalling, question: Question) -> Texts:
    """The answers to a question, best first: what each says, by its id."""
    found = recall.search(Query(text=question.ask, limit=question.limit, deduplicate=True))
    return {hit.item.id: f"{hit.item.title}\n{gist(hit.item)}" for hit in found.hits}


def compare(questions: Iterable[Question], before: Recalling | None, after: Recalling) -> Iterator[Answered]:
    """How the answers to each question change between two revisions; ``before`` None where there was no memory yet."""
    for one in questions:
        new = answers(after, one)
        old = answers(before, one) if before is not None else None
        yield Answered(
            ask=one.ask,
            expect=one.expect,
            before=None if old is None else tuple(old),
            after=tuple(new),
            missing=tuple(name for name in one.expect if name not in new),
            changed=tuple(name for name in new if old is not None and name in old and old[name] != new[name]),
        )


def question_findings(answered: Iterable[Answered]) -> Iterator[Finding]:
    """Expected answers that are missing: broken by this change, or missing before."""
    for one in answered:
        for name in one.missing:
            was_there = one.before is None or name in one.before
            code = "AnswerBroken" if was_there else "AnswerMissing"
            when = "not among the answers any more" if one.before and was_there else "not among the answers"
            message = f"{shown(name)} is {when} to {shown(one.ask)!r}"
            hint = "memfs recall QUESTION --diff A..B shows what changed the answer"
            yield finding(code, message, path=QUESTIONS, id=name, hint=hint)


def not_asked(error: MemfsError | OSError) -> Finding:
    """What is said where the questions could not be asked."""
    reason = error.sentence if isinstance(error, MemfsError) else str(error)
    hint = error.hint or "" if isinstance(error, MemfsError) else ""
    return finding("QuestionsNotAsked", reason, path=QUESTIONS, hint=hint)

"""Ask questions of several revisions at one moment, and check pinned questions and the answers expected of them.

Each state of the memory is asked once, so that equal states give equal answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memfs.config_names import QUESTIONS
from memfs.errors import ContentError, MemfsError
from memfs.format.text_guard import shown
from memfs.git.repository import Repository
from memfs.model import MemoryItem, Query
from memfs.recall.recaller import Recaller
from memfs.recall.tokens import gist
from memfs.team.asof import Travel
from memfs.team.culprit import state_of
from memfs.team.review_changes import Side
from memfs.team.review_report import AnsweredQuestion, ReviewFinding, finding


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedHit:
    """An item in an answer.

    Attributes:
        item: as it was then.
        rank: its place, from 1.
        score: what it was ranked by.
    """

    item: MemoryItem
    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionAnswer:
    """What a question brings at a commit.

    Attributes:
        commit: the commit that was asked.
        time: when it was made.
        placed: what it found, best first, by id.
        notes: what the past says of its own limits.
    """

    commit: str
    time: datetime
    placed: Mapping[str, PlacedHit]
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, best first."""
        return tuple(self.placed)


@dataclass(slots=True)
class Answers:
    """The answers to one question.

    Attributes:
        travel: opens the past.
        now: what counts as the present at every commit, so that no difference is one of time alone.
    """

    travel: Travel
    repository: Repository
    query: Query
    now: datetime
    _kept: dict[tuple[tuple[str, str], ...], RevisionAnswer] = field(default_factory=dict)

    def of(self, commit: str) -> RevisionAnswer:
        """The answer at a commit.

        Raises:
            MemfsError: the memory of that commit cannot be read, or does not understand the question.
        """
        state = tuple(sorted(state_of(self.repository, commit).items()))
        kept = self._kept.get(state)
        if kept is None:
            past = self.travel.at(commit, now=self.now)
            hits = past.recall.search(self.query).hits
            placed = {
                hit.item.id: PlacedHit(item=hit.item, rank=rank, score=hit.score) for rank, hit in enumerate(hits, 1)
            }
            kept = RevisionAnswer(commit=commit, time=past.time, placed=placed, notes=past.notes)
            self._kept[state] = kept
        return replace(kept, commit=commit, time=self.repository.commit_object(commit).time)

    def tried(self, commit: str) -> RevisionAnswer | None:
        """The answer at a commit; None where its memory cannot be read."""
        try:
            return self.of(commit)
        except MemfsError:
            return None


LIMIT = 5
"""So many answers are looked at where a question does not say."""
Texts = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedQuestion:
    """One pinned question: its words, the ids that must be among so many first answers."""

    ask: str
    expect: tuple[str, ...] = ()
    limit: int = LIMIT


def questions_of(side: Side) -> list[PinnedQuestion]:
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
        row["ask"].strip(): PinnedQuestion(
            ask=row["ask"].strip(), expect=tuple(row.get("expect", ())), limit=row.get("limit", LIMIT)
        )
        for row in document["questions"]
    }
    return [one for name, one in found.items() if name]


def answers(recall: Recaller, question: PinnedQuestion) -> Texts:
    """The answers to a question, best first: what each says, by its id."""
    found = recall.search(Query(text=question.ask, limit=question.limit, deduplicate=True))
    return {hit.item.id: f"{hit.item.title}\n{gist(hit.item)}" for hit in found.hits}


def compare(
    questions: Iterable[PinnedQuestion], before: Recaller | None, after: Recaller
) -> Iterator[AnsweredQuestion]:
    """How the answers to each question change between two revisions; ``before`` None where there was no memory yet."""
    for one in questions:
        new = answers(after, one)
        old = answers(before, one) if before is not None else None
        yield AnsweredQuestion(
            ask=one.ask,
            expect=one.expect,
            before=None if old is None else tuple(old),
            after=tuple(new),
            missing=tuple(name for name in one.expect if name not in new),
            changed=tuple(name for name in new if old is not None and name in old and old[name] != new[name]),
        )


def question_findings(answered: Iterable[AnsweredQuestion]) -> Iterator[ReviewFinding]:
    """Expected answers that are missing: broken by this change, or missing before."""
    for one in answered:
        for name in one.missing:
            was_there = one.before is None or name in one.before
            code = "AnswerBroken" if was_there else "AnswerMissing"
            when = "not among the answers any more" if one.before and was_there else "not among the answers"
            message = f"{shown(name)} is {when} to {shown(one.ask)!r}"
            hint = "memfs recall QUESTION --diff A..B shows what changed the answer"
            yield finding(code, message, path=QUESTIONS, id=name, hint=hint)


def not_asked(error: MemfsError | OSError) -> ReviewFinding:
    """What is said where the memory of a side could not be asked."""
    reason = error.sentence if isinstance(error, MemfsError) else str(error)
    hint = error.hint or "" if isinstance(error, MemfsError) else ""
    return finding("NotAsked", reason, hint=hint)

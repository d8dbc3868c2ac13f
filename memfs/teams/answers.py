"""Answers: what one question brings at one revision after another, asked at one moment.

Owns that each state of the memory is asked once, and what of an answer is kept for comparing. How the past answers is
``memfs.teams.past``'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memfs.errors import MemfsError
from memfs.history.repository import Repository
from memfs.model import MemoryItem, Query
from memfs.teams.culprit import state_of
from memfs.teams.past import Past

At = Callable[[str, datetime | None], Past]
"""The memory at a revision, with what counts as the present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An item in an answer: its rank, from 1, and its score."""

    item: MemoryItem
    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a question brings at a commit, best first, by id; and what the past says of its own limits."""

    commit: str
    time: datetime
    placed: Mapping[str, Placed]
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, best first."""
        return tuple(self.placed)


@dataclass(slots=True)
class Answers:
    """The answers to one question.

    Attributes:
        at: opens the past.
        now: what counts as the present at every commit, so that no difference is one of time alone.
    """

    at: At
    repository: Repository
    query: Query
    now: datetime
    _kept: dict[tuple[tuple[str, str], ...], Answer] = field(default_factory=dict)

    def of(self, commit: str) -> Answer:
        """The answer at a commit.

        Raises:
            MemfsError: the memory of that commit cannot be read, or does not understand the question.
        """
        state = tuple(sorted(state_of(self.repository, commit).items()))
        kept = self._kept.get(state)
        if kept is None:
            past = self.at(commit, self.now)
            hits = past.recall.search(self.query).hits
            placed = {
                hit.item.id: Placed(item=hit.item, rank=rank, score=hit.score) for rank, hit in enumerate(hits, 1)
            }
            kept = Answer(commit=commit, time=past.time, placed=placed, notes=past.notes)
            self._kept[state] = kept
        return replace(kept, commit=commit, time=self.repository.commit_object(commit).time)

    def tried(self, commit: str) -> Answer | None:
        """The answer at a commit; None where its memory cannot be read."""
        try:
            return self.of(commit)
        except MemfsError:
            return None

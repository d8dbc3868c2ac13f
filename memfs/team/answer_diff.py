"""Compare the answers to a question at two revisions, and find the commit that changed one.

An item counts as changed when it came, went, changed its rank against others, or says something else; a rank that
only slid because of others is reported separately.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from memfs.format.field_merge import rising
from memfs.git.repository import Repository
from memfs.model import MemoryItem, Query
from memfs.team.asof import Travel
from memfs.team.bisect import Answers, Culprit, Holds, PlacedHit, RevisionAnswer, culprit_between

_ASIDE = frozenset({"sha256", "path"})


class RankChange(StrEnum):
    """What became of an item in the answer; ``slid``: its rank differs only as others came, went or moved."""

    CAME = "came"
    WENT = "went"
    MOVED = "moved"
    CHANGED = "changed"
    SLID = "slid"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChange:
    """One item whose place or text differs.

    Attributes:
        id: its id.
        fate: what became of it.
        before, after: its place in the older and in the newer answer; None where it was in none.
        fields: what the item says otherwise, where it is in both answers.
        by: the commit that did it; None where none is found, and for what slid.
        taken_back: whether only the older revision has that commit: the newer one lacks what it did.
    """

    id: str
    fate: RankChange
    before: PlacedHit | None = None
    after: PlacedHit | None = None
    fields: tuple[str, ...] = ()
    by: Culprit | None = None
    taken_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How an answer changed: what came, went, moved, says something else, and slid, in this order.

    Attributes:
        now: what counted as the present in both answers.
        older, newer: the answers.
        changes: what differs.
    """

    query: Query
    now: datetime
    older: RevisionAnswer
    newer: RevisionAnswer
    changes: tuple[AnswerChange, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the answers lack that one of today might have, in sentences."""
        return tuple(dict.fromkeys((*self.older.notes, *self.newer.notes)))


class AnswerDiff:
    """Compares answers of one workspace's past. May be used from several threads."""

    def __init__(self, travel: Travel, repository: Repository) -> None:
        """``travel`` opens the memory at a revision."""
        self._travel = travel
        self._repository = repository

    def between(self, query: Query, older: str, newer: str = "HEAD") -> Difference:
        """How the answer differs from one revision to another, both asked at the later one's time.

        What differs is what a commit changed, never time alone: equal memories give equal answers.

        Args:
            older, newer: revisions or dates.

        Raises:
            HistoryUnavailable: there is no such revision, or it cannot be read.
            QueryInvalid: the question cannot be understood there.
            ContentError, SettingInvalid: the kinds or settings of one of them are invalid.
        """
        commits = self._repository.resolve(older), self._repository.resolve(newer)
        now = max(self._repository.commit_object(commit).time for commit in commits)
        query = replace(query, seconds=None)  # an answer that is cut short differs by chance
        answers = Answers(self._travel, self._repository, query, now)
        before, after = map(answers.of, commits)
        blaming = _RankBlame(self._repository, answers, *commits, before.ids, after.ids)
        changes = tuple(map(blaming.blamed, _changes(before.placed, after.placed)))
        return Difference(query=query, now=now, older=before, newer=after, changes=changes)


def _changes(before: Mapping[str, PlacedHit], after: Mapping[str, PlacedHit]) -> Iterator[AnswerChange]:
    """What differs, without who did it."""
    for name, placed in after.items():
        if name not in before:
            yield AnswerChange(id=name, fate=RankChange.CAME, after=placed)
    for name, placed in before.items():
        if name not in after:
            yield AnswerChange(id=name, fate=RankChange.WENT, before=placed)
    both = [name for name in after if name in before]
    stay = {both[at] for at in rising([before[name].rank for name in both])}  # all others moved past these
    rest: list[AnswerChange] = []
    for name in both:
        old, new = before[name], after[name]
        differing = _fields(old.item, new.item)
        fate = RankChange.MOVED if name not in stay else RankChange.CHANGED if differing else RankChange.SLID
        if fate is not RankChange.SLID or old.rank != new.rank:
            rest.append(AnswerChange(id=name, fate=fate, before=old, after=new, fields=differing))
    yield from sorted(rest, key=lambda change: list(RankChange).index(change.fate))


def _fields(old: MemoryItem, new: MemoryItem) -> tuple[str, ...]:
    names = (one.name for one in dataclasses.fields(MemoryItem) if one.name not in _ASIDE)
    return tuple(name for name in names if getattr(old, name) != getattr(new, name))


@dataclass(slots=True)
class _RankBlame:
    """Finds who changed an answer, between two commits."""

    repository: Repository
    answers: Answers
    older: str
    newer: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def blamed(self, change: AnswerChange) -> AnswerChange:
        """A change with the commit that made it."""
        if change.fate is RankChange.SLID:
            return change
        culprit, back = culprit_between(self.repository, self.older, self.newer, self._as_older(change))
        return replace(change, by=culprit, taken_back=back)

    def _as_older(self, change: AnswerChange) -> Holds:
        """Tells whether things stand at a commit as they do at the older end."""
        if change.fate is RankChange.CHANGED and change.before is not None and change.after is not None:
            return self._says_the_same(change.before.item, change.after.item)
        holds = self._stands_the_same if change.fate is RankChange.MOVED else self._is_there

        def as_older(commit: str) -> bool | None:
            answer = self.answers.tried(commit)
            return None if answer is None else holds(change, answer.ids)

        return as_older

    @staticmethod
    def _is_there(change: AnswerChange, ids: Sequence[str]) -> bool:
        return (change.id in ids) is (change.fate is RankChange.WENT)

    def _stands_the_same(self, change: AnswerChange, ids: Sequence[str]) -> bool:
        """Whether the same stand before it, of those that both ends have."""
        both = set(self.before).intersection(self.after, ids)
        return change.id in both and _ahead(ids, change.id, both) == _ahead(self.before, change.id, both)

    def _says_the_same(self, old: MemoryItem, new: MemoryItem) -> Holds:
        def as_older(commit: str) -> bool:
            datas = (self.repository.read(commit, path) for path in {old.path, new.path})
            return any(data is not None and sha256(data).hexdigest() == old.sha256 for data in datas)

        return as_older


def _ahead(ids: Sequence[str], name: str, of: Collection[str]) -> set[str]:
    return {one for one in ids[: ids.index(name)] if one in of}

"""Find the commit that broke an answer.

Both ends are checked before the search begins: the answer must be right at one and wrong at the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memfs.errors import QueryInvalid
from memfs.git.ancestry import is_ancestor, merge_bases
from memfs.git.log import OWN_PATHS
from memfs.git.repository import Repository
from memfs.model import Query
from memfs.model.ids import check_id
from memfs.team.answers import Answers, RevisionAnswer
from memfs.team.asof import Travel
from memfs.team.culprit import Culprit, Search

_ARROW = "=>"
_NOT = "!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a question is to bring, or must not bring.

    Attributes:
        query: what is asked.
        id: the item that is to be among the hits.
        absent: whether it must not be there instead.
    """

    query: Query
    id: str
    absent: bool = False

    @classmethod
    def read(cls, text: str, query: Query) -> Expectation:
        """An expectation as a person writes it: ``QUERY => ID``, or ``QUERY => !ID`` for what must not be there.

        Args:
            query: the limit and filters that hold; its text does not count.

        Raises:
            QueryInvalid: it is none; the hint shows the form.
        """
        asked, arrow, wanted = text.rpartition(_ARROW)
        name = wanted.strip().removeprefix(_NOT).strip()
        if not arrow or not asked.strip() or not name:
            raise QueryInvalid(
                f"{ascii(text)[:80]} does not say what is expected", field="expect", hint='write "QUERY => ID"'
            )
        absent = wanted.strip().startswith(_NOT)
        return cls(query=replace(query, text=asked.strip()), id=check_id(name), absent=absent)

    def met(self, answer: RevisionAnswer) -> bool:
        """Whether an answer is as expected."""
        return (self.id in answer.placed) is not self.absent

    def __str__(self) -> str:
        return f"{self.query.text} {_ARROW} {_NOT if self.absent else ''}{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broke:
    """What an expectation met before and after the commit.

    Attributes:
        expectation: what was expected.
        before, after: ids of the hits, best first.
    """

    expectation: Expectation
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def expect(self) -> str:
        """The expectation as it was written."""
        return str(self.expectation)

    @property
    def broken(self) -> bool:
        """Whether it is this one that broke."""
        name, absent = self.expectation.id, self.expectation.absent
        return (name in self.before) is not absent and (name in self.after) is absent


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectResult:
    """The commit that broke an answer.

    Attributes:
        good, bad: the ends of the search.
        answers: how each expectation was met before and after the commit.
        changes: the memory's files that the commit ``added``, ``changed`` or ``removed``, against its first parent.
        notes: what the answers lack that one of today might have, in sentences.
    """

    good: str
    bad: str
    culprit: Culprit
    answers: tuple[Broke, ...]
    changes: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


class Bisect:
    """Searches the history of one workspace. May be used from several threads."""

    def __init__(self, travel: Travel, repository: Repository) -> None:
        """``travel`` opens the memory at a revision."""
        self._travel = travel
        self._repository = repository

    def find(
        self,
        expectations: Sequence[Expectation],
        good: str,
        bad: str = "HEAD",
        tell: Callable[[int, int], object] | None = None,
    ) -> BisectResult:
        """The commit between ``good`` and ``bad`` with which an expectation was not met any more.

        Both ends are asked first. Commits whose memory cannot be read are passed over. Everything is asked at one
        time, that of ``bad``, so that what is found is what a commit did.

        Args:
            good, bad: revisions or dates; every expectation is met at the one, and one is not at the other.
            tell: hears how many commits are left to try, and about how many steps.

        Raises:
            QueryInvalid: an end is not what it is said to be; ``field`` names it.
            HistoryUnavailable: there is no such revision, or it cannot be read.
        """
        ends = self._repository.resolve(good), self._repository.resolve(bad)
        now = self._repository.commit_object(ends[1]).time
        expected = [(Answers(self._travel, self._repository, one.query, now), one) for one in expectations]
        self._check(expected, *ends)
        holds = partial(_met, expected)
        start = self._start(*ends, holds)
        culprit = Search(self._repository, start, holds, tell, cleared=ends[0]).culprit(ends[1])
        notes = [note for answers, _ in expected for note in answers.of(ends[1]).notes]
        return BisectResult(
            good=ends[0],
            bad=ends[1],
            culprit=culprit,
            answers=tuple(self._broke(*one, culprit.commit) for one in expected),
            changes=tuple(self._changes(culprit)),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _changes(self, culprit: Culprit) -> Iterator[tuple[str, str]]:
        parents = self._repository.commit_object(culprit.commit).parents
        for path in culprit.revision.paths:
            if path.partition("/")[0] in OWN_PATHS:
                was = parents and self._repository.entry(parents[0], path)
                now = self._repository.entry(culprit.commit, path)
                yield ("changed" if was and now else "added" if now else "removed", path)

    def _check(self, expected: Sequence[tuple[Answers, Expectation]], good: str, bad: str) -> None:
        """Refuse ends that are not what they are said to be."""
        for answers, one in expected:
            if not one.met(answers.of(good)):
                raise _not_good(one, answers.of(good), self._in_its_time(one, good))
        if all(one.met(answers.of(bad)) for answers, one in expected):
            raise QueryInvalid(
                f"every expectation is met at {bad[:10]}, so nothing broke",
                field="bad",
                hint="name with --bad a commit at which one is not met, or with '=> !ID' what must not come",
            )

    def _in_its_time(self, one: Expectation, commit: str) -> bool:
        """Whether an expectation was met at a commit when that was made."""
        return one.met(
            Answers(self._travel, self._repository, one.query, self._repository.commit_object(commit).time).of(commit)
        )

    def _start(self, good: str, bad: str, holds: Callable[[str], bool | None]) -> str:
        """The commit from which the search begins: where the lines of both ends met last."""
        if is_ancestor(self._repository, bad, good):
            raise QueryInvalid(
                f"{bad[:10]} comes before {good[:10]}: something was mended between them, not broken",
                field="good",
                hint="exchange them, and write '=> !ID' to find the commit that mended it",
            )
        bases = merge_bases(self._repository, good, bad)
        if not bases:
            raise QueryInvalid(
                "the two commits have no history in common", field="good", hint="name another good commit"
            )
        held = next((base for base in bases if holds(base)), "")
        if not held:
            raise QueryInvalid(
                f"it is not met where the two lines met ({bases[0][:10]}): on that of {bad[:10]} it never was",
                field="good",
                hint="name a good commit of that line",
            )
        return held

    def _broke(self, answers: Answers, expectation: Expectation, commit: str) -> Broke:
        parents = self._repository.commit_object(commit).parents
        before = next((found for one in parents if (found := answers.tried(one)) and expectation.met(found)), None)
        return Broke(expectation=expectation, before=before.ids if before else (), after=answers.of(commit).ids)


def _met(expected: Sequence[tuple[Answers, Expectation]], commit: str) -> bool | None:
    """Whether all expectations are met at a commit; None where it cannot be read."""
    found = [(answers.tried(commit), one) for answers, one in expected]
    known = [one.met(answer) for answer, one in found if answer is not None]
    return None if len(known) < len(found) else all(known)


def _not_good(one: Expectation, answer: RevisionAnswer, once: bool) -> QueryInvalid:
    if once:
        return QueryInvalid(
            f"'{one}' was met at {answer.commit[:10]}, and is not met by the same files at the later time",
            field="good",
            hint="no commit broke it: it faded; 'memfs agent feedback ID good' or 'pinned: true' keeps an item up",
        )
    brought = ", ".join(answer.ids[:5]) or "nothing"
    return QueryInvalid(
        f"'{one}' is not met at {answer.commit[:10]}: it brings {brought}",
        field="good",
        hint="name a commit at which it was met; 'memfs recall QUERY --as-of COMMIT' shows the answer",
    )

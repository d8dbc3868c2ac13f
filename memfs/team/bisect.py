"""Ask questions of several revisions, and find the commit with which something ceases to hold, such as an answer.

A history of many lines is halved. A commit that cannot be read is passed over and reported; commits that leave memory
and settings as they were are not tried. Each state of the memory is asked once: equal states give equal answers. Of two
answers an item counts as changed when it came, went, changed its rank against others, or says something else; a rank
that only slid because of others is reported separately.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from hashlib import sha256

from memfs.dataclass import dataclass, field, replace
from memfs.errors import MemfsError, QueryInvalid
from memfs.format.field_merge import rising
from memfs.git.commit_object import AGENT, SESSION, SOURCE
from memfs.git.log import OWN_PATHS, Revision, one_line, revisions
from memfs.git.repository import Repository, is_ancestor, merge_bases
from memfs.model import MemoryItem, Query
from memfs.model.ids import check_id
from memfs.team.asof import Travel


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


def stretch(repository: Repository, end: str, without: Iterable[str], *options: str) -> list[str]:
    """The commits that lead to one and not to others, as far as they changed the memory; newest first.

    Args:
        without: these, and what leads to them, are left out.
        options: for ``git rev-list``; with ``--bisect-all`` those nearest to the middle come first.

    Raises:
        GitFailed: git cannot tell.
    """
    names = [one_line(repository.full(path)) for path in OWN_PATHS]
    left_out = [f"^{commit}".encode() for commit in without]
    request = b"\n".join((end.encode(), *left_out, b"--", *names, b""))
    out = repository.git.run("rev-list", *options, "--stdin", data=request)
    return [line.split(None, 1)[0].decode() for line in out.splitlines() if line]


Holds = Callable[[str], bool | None]
"""Whether it holds at a commit; None where that cannot be known."""
_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The commit that did it.

    Attributes:
        agents, sessions, sources: whose it is, of which sessions, and through which doors it was written.
        revision: it does not hold there, and held at each parent that counts.
        or_earlier: commits that could not be tried; one of them may have done it instead.
        brought: of a merge that joined a line on which it never held: the commits of that line, newest first.
        steps: how many commits were tried.
    """

    revision: Revision
    or_earlier: tuple[str, ...] = ()
    brought: tuple[Revision, ...] = ()
    steps: int = 0

    @property
    def commit(self) -> str:
        """Its id."""
        return self.revision.commit

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents whose writes it holds."""
        return self.revision.trailers.get(AGENT, ())

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions it comes from."""
        return self.revision.trailers.get(SESSION, ())

    @property
    def sources(self) -> tuple[str, ...]:
        """The doors it came through, such as ``cli`` or ``mcp``."""
        return self.revision.trailers.get(SOURCE, ())


@dataclass(slots=True)
class Search:
    """One search. A commit of a line that left before ``good`` counts only where it held when that line left.

    Attributes:
        good: it holds there.
        holds: asked of each commit once.
        tell: hears how many commits are left, and about how many steps.
        cleared: a commit at which it holds, too: nothing that leads to it did it.
    """

    repository: Repository
    good: str
    holds: Holds
    tell: Callable[[int, int], object] | None = None
    cleared: str = ""
    _known: dict[str, bool | None] = field(default_factory=dict)

    def culprit(self, bad: str) -> Culprit:
        """The commit on the way from ``good`` to ``bad`` with which it broke; at ``bad`` it must not hold.

        Every parent of what is found is tried, too, so that it is right also where it broke and was mended before.

        Raises:
            HistoryError: git's files are damaged, or a shallow clone lacks them.
        """
        end = bad
        while True:
            end, skipped = self._narrowed(end)
            worse, beside, unknown = self._parents(end)
            if not worse:
                return self._said(end, (*skipped, *unknown), beside)
            end = worse

    def _narrowed(self, end: str) -> tuple[str, list[str]]:
        """The earliest commit at which it is known not to hold, and those before it that could not be tried."""
        without, skipped = [one for one in (self.good, self.cleared) if one], set[str]()
        while True:
            every = stretch(self.repository, end, without, "--bisect-all")
            half = next((one for one in every if one != end and one not in skipped), "")
            if not half:
                return end, [one for one in every if one in skipped]
            if half not in self._known and self.tell is not None:
                self.tell(len(every), len(every).bit_length())
            held = self._held(half)
            if held is None:
                skipped.add(half)
            elif held or not self._counts(half):
                without.append(half)
            else:
                end = half

    def _held(self, commit: str) -> bool | None:
        if commit not in self._known:
            self._known[commit] = self.holds(commit)
        return self._known[commit]

    def _counts(self, commit: str) -> bool:
        """Whether a commit at which it does not hold lost something: it held where the commit's line began."""
        if self.cleared and is_ancestor(self.repository, commit, self.cleared):
            return False
        bases = merge_bases(self.repository, self.good, commit)
        return bool(bases) and all(base == self.good or self._held(base) for base in bases)

    def _parents(self, commit: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Of a commit's parents: one that lost it before; those that never had it; those that cannot be tried."""
        beside: list[str] = []
        unknown: list[str] = []
        for parent in self.repository.commit_object(commit).parents:
            held = parent == self.good or self._held(parent)
            if held is None:
                unknown.append(parent)
            elif not held and self._counts(parent):
                return parent, (), ()
            elif not held:
                beside.append(parent)
        return "", tuple(beside), tuple(unknown)

    def _said(self, commit: str, unknown: tuple[str, ...], beside: tuple[str, ...]) -> Culprit:
        brought: list[str] = []
        for parent in beside:
            others = [one for one in self.repository.commit_object(commit).parents if one != parent]
            brought += stretch(self.repository, parent, others, f"--max-count={_MOST}")
        found = revisions(self.repository, [commit, *dict.fromkeys(brought)])
        return Culprit(
            revision=found[0],
            or_earlier=tuple(dict.fromkeys(unknown)),
            brought=tuple(found[1:]),
            steps=len(self._known),
        )


def culprit_between(repository: Repository, older: str, newer: str, as_older: Holds) -> tuple[Culprit | None, bool]:
    """The commit that made the difference between two commits, and whether it is one that only ``older`` has.

    Args:
        as_older: whether things stand at a commit as they do at ``older``; at ``newer`` they do not.

    Returns:
        None where the two have nothing in common, or what they have in common cannot be tried.

    Raises:
        HistoryError: git's files are damaged, or a shallow clone lacks them.
    """
    bases = merge_bases(repository, older, newer)
    stand = {base: base == older or (base != newer and as_older(base)) for base in bases}
    if not bases or None in stand.values():
        return None, False
    base = next((one for one in bases if stand[one]), bases[0])
    if stand[base]:
        return Search(repository, base, as_older, cleared=older).culprit(newer), False

    def as_newer(commit: str) -> bool | None:
        held = as_older(commit)
        return None if held is None else not held

    return Search(repository, base, as_newer, cleared=newer).culprit(older), True


def state_of(repository: Repository, commit: str) -> Mapping[str, str]:
    """What of a commit decides its answers: the ids of the memory and of the settings. Equal ones give equal answers.

    Raises:
        HistoryUnavailable: it is not there.
    """
    found = {path: repository.entry(commit, path) for path in OWN_PATHS}
    return {path: entry.id for path, entry in found.items() if entry is not None}


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
        self._travel, self._repository = travel, repository

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
        self._travel, self._repository = travel, repository

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

"""Ask questions of several revisions, and find the commit with which something ceases to hold, such as an answer.

A history of many lines is halved. A commit that cannot be read is passed over and reported; commits that leave memory
and settings as they were are not tried. Each state of the memory is asked once: equal states give equal answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from memfs.dataclass import dataclass, field, replace
from memfs.errors import MemfsError, QueryInvalid
from memfs.git.commit_object import AGENT, SESSION, SOURCE
from memfs.git.log import OWN_PATHS, Revision, one_line, revisions
from memfs.git.repository import Repository, is_ancestor, merge_bases
from memfs.model import Query
from memfs.model.ids import check_id
from memfs.team.asof import Travel

Holds = Callable[[str], bool | None]
"""Whether it holds at a commit; None where that cannot be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBadCommit:
    """The commit that did it.

    Attributes:
        agents: the agents whose writes it holds.
        sessions: those it comes from.
        sources: the doors it came through, such as ``cli`` or ``mcp``.
        revision: it does not hold there, and held at each parent that counts.
        or_earlier: commits that could not be tried; one of them may have done it instead.
        steps: how many commits were tried.
    """

    revision: Revision
    or_earlier: tuple[str, ...] = ()
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
        cleared: a commit at which it holds, too: nothing that leads to it did it.
    """

    repository: Repository
    good: str
    holds: Holds
    cleared: str = ""
    _known: dict[str, bool | None] = field(default_factory=dict)

    def culprit(self, bad: str) -> FirstBadCommit:
        """The commit on the way from ``good`` to ``bad`` with which it broke; at ``bad`` it must not hold.

        Every parent of what is found is tried, too, so that it is right also where it broke and was mended before.

        Raises:
            HistoryError: git's files are damaged, or a shallow clone lacks them.
        """
        end = bad
        while True:
            end, skipped = self._narrowed(end)
            worse, unknown = self._parents(end)
            if not worse:
                (found,) = revisions(self.repository, [end])
                earlier = tuple(dict.fromkeys((*skipped, *unknown)))
                return FirstBadCommit(revision=found, or_earlier=earlier, steps=len(self._known))
            end = worse

    def _narrowed(self, end: str) -> tuple[str, list[str]]:
        """The earliest commit at which it is known not to hold, and those before it that could not be tried."""
        without, skipped = [f"^{one}".encode() for one in (self.good, self.cleared) if one], set[str]()
        names = [one_line(self.repository.full(path)) for path in OWN_PATHS]
        while True:
            # those that lead to the end and not to what is left out and changed the memory, nearest to the middle first
            request = b"\n".join((end.encode(), *without, b"--", *names, b""))
            out = self.repository.git.run("rev-list", "--bisect-all", "--stdin", data=request)
            every = [line.split(None, 1)[0].decode() for line in out.splitlines() if line]
            half = next((one for one in every if one != end and one not in skipped), "")
            if not half:
                return end, [one for one in every if one in skipped]
            held = self._held(half)
            if held is None:
                skipped.add(half)
            elif held or not self._counts(half):
                without.append(f"^{half}".encode())
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

    def _parents(self, commit: str) -> tuple[str, list[str]]:
        """Of a commit's parents one that lost it before, "" for none, and those that cannot be tried."""
        unknown: list[str] = []
        for parent in self.repository.commit_object(commit).parents:
            held = parent == self.good or self._held(parent)
            if held is None:
                unknown.append(parent)
            elif not held and self._counts(parent):
                return parent, []
        return "", unknown


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
        question, arrow, expected = text.rpartition(_ARROW)
        name = expected.strip().removeprefix(_NOT).strip()
        if not arrow or not question.strip() or not name:
            raise QueryInvalid(
                f"{ascii(text)[:80]} does not say what is expected", field="expect", hint='write "QUERY => ID"'
            )
        absent = expected.strip().startswith(_NOT)
        return cls(query=replace(query, text=question.strip()), id=check_id(name), absent=absent)

    def met(self, ids: tuple[str, ...]) -> bool:
        """Whether an answer is as expected."""
        return (self.id in ids) is not self.absent

    def __str__(self) -> str:
        return f"{self.query.text} {_ARROW} {_NOT if self.absent else ''}{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectResult:
    """The commit that broke an answer.

    Attributes:
        good, bad: the ends of the search.
        expect: what was expected, as it was written.
        before, after: ids of the hits before and after the commit, best first.
        changes: the memory's files that the commit ``added``, ``changed`` or ``removed``, against its first parent.
        notes: what the answers lack that one of today might have, in sentences.
    """

    good: str
    bad: str
    culprit: FirstBadCommit
    expect: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    changes: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


class Bisect:
    """Searches the history of one workspace. May be used from several threads."""

    def __init__(self, travel: Travel, repository: Repository) -> None:
        """``travel`` opens the memory at a revision."""
        self._travel, self._repository = travel, repository

    def find(self, expectation: Expectation, good: str, bad: str = "HEAD") -> BisectResult:
        """The commit between ``good`` and ``bad`` with which an expectation was not met any more.

        Both ends are asked first. Commits whose memory cannot be read are passed over. Everything is asked at one
        time, that of ``bad``, so that what is found is what a commit did.

        Args:
            good, bad: revisions or dates; the expectation is met at the one, and not at the other.

        Raises:
            QueryInvalid: the expectation is not met at ``good``, or is met at ``bad``; ``field`` names the end.
            HistoryUnavailable: there is no such revision, or it cannot be read.
        """
        ends = self._repository.resolve(good), self._repository.resolve(bad)
        now = self._repository.commit_object(ends[1]).time
        known: dict[tuple[datetime, tuple[str, ...]], tuple[str, ...]] = {}

        def answer(commit: str, at: datetime = now) -> tuple[str, ...]:
            """The ids of what the question brings at a commit, best first."""
            # Equal states of the memory and the settings give equal answers.
            entries = (self._repository.entry(commit, path) for path in OWN_PATHS)
            state = at, tuple(entry.id if entry is not None else "" for entry in entries)
            if state not in known:
                hits = self._travel.at(commit, now=at).recall.search(expectation.query).hits
                known[state] = tuple(hit.item.id for hit in hits)
            return known[state]

        def holds(commit: str) -> bool | None:
            try:
                return expectation.met(answer(commit))
            except MemfsError:
                return None

        if not expectation.met(answer(ends[0])):
            in_its_time = answer(ends[0], self._repository.commit_object(ends[0]).time)
            if expectation.met(in_its_time):
                raise QueryInvalid(
                    f"'{expectation}' was met at {ends[0][:10]}, and is not met by the same files at the later time",
                    field="good",
                    hint="no commit broke it: it faded; 'memfs agent feedback ID good' or 'pinned: true' keeps an"
                    " item up",
                )
            brought = ", ".join(answer(ends[0])[:5]) or "nothing"
            raise QueryInvalid(
                f"'{expectation}' is not met at {ends[0][:10]}: it brings {brought}",
                field="good",
                hint="name a commit at which it was met; 'memfs recall QUERY --as-of COMMIT' shows the answer",
            )
        if expectation.met(answer(ends[1])):
            raise QueryInvalid(
                f"it is met at {ends[1][:10]}, so nothing broke",
                field="bad",
                hint="name with --bad a commit at which it is not met, or with '=> !ID' what must not come",
            )
        start = self._start(*ends, holds)
        culprit = Search(self._repository, start, holds, cleared=ends[0]).culprit(ends[1])
        parents = self._repository.commit_object(culprit.commit).parents
        before = next((answer(one) for one in parents if holds(one)), ())
        return BisectResult(
            good=ends[0],
            bad=ends[1],
            culprit=culprit,
            expect=str(expectation),
            before=before,
            after=answer(culprit.commit),
            changes=tuple(self._changes(culprit)),
            notes=self._travel.at(ends[1], now=now).notes,
        )

    def _changes(self, culprit: FirstBadCommit) -> Iterator[tuple[str, str]]:
        parents = self._repository.commit_object(culprit.commit).parents
        for path in culprit.revision.paths:
            if path.partition("/")[0] in OWN_PATHS:
                was = parents and self._repository.entry(parents[0], path)
                now = self._repository.entry(culprit.commit, path)
                yield ("changed" if was and now else "added" if now else "removed", path)

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

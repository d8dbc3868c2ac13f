"""Find the commit with which something ceases to hold, by halving a history of many lines.

A commit that cannot be read is passed over and reported. Commits that leave memory and settings as they were are not
tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from memfs.git.ancestry import is_ancestor, merge_bases
from memfs.git.commit_object import AGENT, SESSION, SOURCE
from memfs.git.log import OWN_PATHS, Revision, one_line, revisions
from memfs.git.repository import Repository


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

"""History join: what two lines of history have differently below the workspace, and what they come to (B3).

Owns reading their commits, the versions from which both began, and the refusal of what memfs does not merge: files that
are not memory, links, files that no rule can join. Writes nothing.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memfs.errors import MergeRefused
from memfs.files.markers import has_markers
from memfs.files.ownpath import is_own
from memfs.history.ancestry import merge_bases, objects_beyond
from memfs.history.objects import REGULAR, Entry
from memfs.history.repository import Repository
from memfs.history.snapshots import Snapshot, snapshots
from memfs.teams.ownbranch import is_separate
from memfs.teams.treejoin import Contested, TreeJoin, Unjoined, Version, Versions, crossing

_SHOWN = 3
_MOST_BASES = 32


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file that a merge changes: its bytes before and after, None where there is none."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class JoinedHistory:
    """What two lines come to: the files that change here, and what gave way in files."""

    wanted: tuple[Wanted, ...]
    contested: tuple[Contested, ...]


class HistoryJoin:
    """Joins lines of history of one workspace's repository. It writes nothing."""

    def __init__(self, repository: Repository, join: TreeJoin) -> None:
        self._repository = repository
        self._join = join

    def outcome(self, ours: str | None, theirs: str, bases: Sequence[str]) -> JoinedHistory:
        """What the files here come to when ``theirs`` is joined with ``ours`` (None: a branch without a commit).

        Raises:
            MergeRefused: the other line changes what is not memory, or a file that cannot be joined.
            HistoryUnavailable: a commit is not in the repository.
        """
        base, here, there = self.sides(ours, theirs, bases, memory_only=True)
        joined = self._join.join(base, here, there)
        if joined.unjoined:
            raise _cannot(joined.unjoined)
        changed = sorted(path for path in {*here, *joined.versions} if here.get(path) != joined.versions.get(path))
        wanted = tuple(self._wanted(path, here, joined.versions) for path in changed)
        _refuse_markers(wanted)
        return JoinedHistory(wanted, tuple(joined.contested))

    def sides(
        self, ours: str | None, theirs: str, bases: Sequence[str], *, memory_only: bool = False
    ) -> tuple[Versions, Versions, Versions]:
        """The files from which both lines began, and those of each, as far as the three differ.

        Args:
            memory_only: refuse a line that changes other files.

        Raises:
            MergeRefused: it does, or the lines crossed too often.
            HistoryUnavailable: a commit is not in the repository.
        """
        commits = [ours, theirs, *self._below(bases)]
        taken = snapshots(self._repository, commits)
        if memory_only:
            self._refuse_outside(theirs, taken, [taken[commits.index(base)] for base in bases])
        versions = {
            commit or "": self._versions(snapshot) for commit, snapshot in zip(commits, taken, strict=True)
        }  # a commit that stands there twice has the same versions
        here, there = versions[ours or ""], versions[theirs]
        base = crossing(self._join, bases, versions, self._met)
        return {**base, **self._shared(base, here, there, (ours, theirs), bases)}, here, there

    def _shared(
        self, base: Versions, here: Versions, there: Versions, tips: tuple[str | None, str], bases: Sequence[str]
    ) -> Versions:
        """Versions that both lines had of items which each brought in by a commit of its own.

        Without them, a side that never changed such an item would contradict the side that did.
        """
        known = self._join.names(base)
        new = self._join.names(here) & self._join.names(there) - known
        if not new or tips[0] is None or all(there.get(path) == here[path] for path in here):
            return {}
        ours, theirs = (objects_beyond(self._repository, tip or "", bases) for tip in tips)
        found: dict[str, Version] = {}
        for blob, name in ours.items():
            path = self._repository.below(os.fsencode(name)) if blob in theirs else None
            if path is not None and (names := self._join.names((path,)) & new):
                found[path] = Version(blob)
                new -= names
        return found

    def _wanted(self, path: str, here: Versions, after: Versions) -> Wanted:
        return Wanted(path, self._join.content(here.get(path)), self._join.content(after.get(path)))

    def _met(self, one: str, other: str) -> Sequence[str]:
        return merge_bases(self._repository, one, other)

    def _below(self, bases: Sequence[str]) -> list[str]:
        """The commits in which lines met, and, where those lines crossed, in which these met, and so on.

        Raises:
            MergeRefused: they crossed too often.
        """
        found = list(bases)
        waiting = [tuple(bases)]
        while waiting:
            group = waiting.pop()
            for number, other in enumerate(group[1:], 1):
                below = tuple(dict.fromkeys(name for one in group[:number] for name in self._met(one, other)))
                found += [name for name in below if name not in found]
                waiting.append(below)
            if len(found) > _MOST_BASES:
                raise MergeRefused("these lines of history crossed too often", hint="join them with git merge")
        return found

    def _versions(self, snapshot: Snapshot) -> Versions:
        below = ((self._repository.below(path), entry) for path, entry in snapshot.items())
        return {path: Version(entry.id) for path, entry in below if path is not None and _is_file(path, entry)}

    def _refuse_outside(self, commit: str, taken: Sequence[Snapshot], bases: Sequence[Snapshot]) -> None:
        """Refuse what the other line changed beside memory: there memfs writes nothing."""
        ours, theirs = taken[:2]
        foreign = sorted(
            path
            for path in {*ours, *theirs}
            if ours.get(path) != theirs.get(path)
            and all(base.get(path) != theirs.get(path) for base in bases or ({},))
            and not self._is_memory(path, [ours.get(path), theirs.get(path)])
        )
        if foreign:
            named = named_files(path.decode("utf-8", "backslashreplace") for path in foreign)
            raise MergeRefused(
                f"the other line changes {len(foreign)} file(s) that memfs does not merge: {named}",
                path=foreign[0].decode("utf-8", "backslashreplace"),
                hint=self._by_git(commit, strangers=not bases),
            )

    def _by_git(self, commit: str, *, strangers: bool) -> str:
        """How a person joins it; the memory's own branch is joined where it is checked out, not among the code."""
        if not is_separate(self._repository):
            return "join it with git pull --no-rebase or git merge: memory is merged by memfs there, too"
        option = "--allow-unrelated-histories " if strangers else ""
        place = shlex.quote(str(self._repository.work_tree))
        return f"git -C {place} merge {option}{commit[:12]} joins it: memory is merged by memfs there, too"

    def _is_memory(self, path: bytes, entries: Sequence[Entry | None]) -> bool:
        below = self._repository.below(path)
        return below is not None and all(entry is None or _is_file(below, entry) for entry in entries)


def _is_file(path: str, entry: Entry) -> bool:
    return is_own(path) and entry.mode in REGULAR


def _refuse_markers(wanted: Sequence[Wanted]) -> None:
    """Refuse a line of history in which somebody committed conflict markers: everybody would get them."""
    for one in wanted:
        if one.after is not None and has_markers(one.after) and not (one.before and has_markers(one.before)):
            raise MergeRefused(
                "the other line has conflict markers in this file",
                path=one.path,
                hint="there: memfs resolve, memfs commit; then join it again",
            )


def _cannot(unjoined: Sequence[Unjoined]) -> MergeRefused:
    named = named_files(f"{one.path} ({one.reason})" for one in unjoined)
    return MergeRefused(
        f"{len(unjoined)} file(s) cannot be joined: {named}",
        path=unjoined[0].path,
        hint="correct them on one side and commit; or join the lines with git merge, then memfs resolve",
    )


def named_files(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:_SHOWN]) + (f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")

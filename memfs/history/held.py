"""Which of the groups to commit a branch holds already.

Owns recognising our own commits after a crash between the branch's move and the journal's note of it. Without that, a
chain that gave one path two contents would be committed a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memfs.errors import HistoryUnavailable
from memfs.history import objects
from memfs.history.ancestry import beyond, is_ancestor
from memfs.history.commitobject import compose, encode_commit, parse_commit
from memfs.history.group import Group
from memfs.history.identity import Identity, author
from memfs.history.refs import HEX
from memfs.history.repository import Repository

AT_LEAST = 4
AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stays the same in a commit when it is rebased."""

    author: bytes
    message: bytes


def not_held(repository: Repository, groups: Sequence[Group], tip: str | None, since: str = "") -> list[Group]:
    """The groups that no commit after ``since`` made: same author, time, message and content.

    Each commit stands for one group at most, the oldest first: of two equal groups the second is not held by the commit
    of the first. Where the branch does not hold ``since``, the recent commits of its own line are looked at. A group
    that joins a line of history is held where the branch has that line, whoever joined it.
    """
    if tip is None or not groups or tip == since:
        return list(groups)
    groups = [group for group in groups if not (group.merges and is_ancestor(repository, group.merges, tip))]
    if not groups:
        return []
    since = since if HEX.fullmatch(since) else ""
    person = repository.identity()
    marks = [_mark(commit_bytes(group, objects.EMPTY_TREE, (), person)) for group in groups]
    found: dict[_Mark, list[str]] = {}
    for mark, commit in _after(repository, groups, tip, since):
        if mark in marks:
            found.setdefault(mark, []).append(commit)
    return [group for group, mark in zip(groups, marks, strict=True) if not _taken(repository, group, found.get(mark))]


def _taken(repository: Repository, group: Group, commits: list[str] | None) -> bool:
    """Whether one of the commits, newest first, holds the group; that one is taken out."""
    for commit in reversed(commits or ()):
        if _holds(repository, commit, group):
            if commits is not None:
                commits.remove(commit)
            return True
    return False


def commit_bytes(group: Group, tree: str, parents: Sequence[str], person: Identity) -> bytes:
    """The commit object of a group."""
    return encode_commit(
        tree,
        parents,
        author(group.writers, person.author),
        person.committer,
        group.time,
        compose(group.message, group.writers),
    )


def _after(repository: Repository, groups: Sequence[Group], tip: str, since: str) -> list[tuple[_Mark, str]]:
    """The commits to look at with their marks, newest first."""
    recent = list(_line(repository, tip, int(min(group.time for group in groups).timestamp()), len(groups), since))
    reached = any(since in parents[:1] for _, _, parents in recent)
    if since and not reached and is_ancestor(repository, since, tip):
        # The person joined another line to the one that held it: what lies on either is looked at.
        names = beyond(repository, [tip], [since], most=AT_MOST)
        return [(_mark(repository.object(name).data), name) for name in names]
    return [(mark, commit) for mark, commit, _ in recent]


def _line(
    repository: Repository, tip: str, oldest: int, groups: int, since: str
) -> Iterator[tuple[_Mark, str, tuple[str, ...]]]:
    """The branch's own line with each commit's parents, back to ``since``, or to the time of the oldest group and a few
    further, as clocks may differ.
    """
    commit = tip
    for seen in range(AT_MOST):
        try:
            data = repository.object(commit).data
        except HistoryUnavailable:  # the end of a shallow clone
            return
        parsed = parse_commit(data)
        if seen >= groups + AT_LEAST and parsed.time.timestamp() < oldest:
            return
        yield _mark(data), commit, parsed.parents
        if not parsed.parents or parsed.parents[0] == since:
            return
        commit = parsed.parents[0]


def _mark(data: bytes) -> _Mark:
    head, _, message = data.partition(b"\n\n")
    line = next((line for line in head.split(b"\n") if line.startswith(b"author ")), b"")
    return _Mark(line, message)


def _holds(repository: Repository, commit: str, group: Group) -> bool:
    for change in group.changes:
        entry = repository.entry(commit, change.path)
        blob = None if change.data is None else repository.blob_id(change.data)
        if (entry.id if entry else None) != blob:
            return False
    return True

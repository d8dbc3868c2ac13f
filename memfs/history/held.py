"""Which of the groups to commit a branch holds already.

Owns recognising our own commits after a crash between the branch's move and the journal's note of it. Without that, a
chain that gave one path two contents would be committed a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memfs.errors import HistoryUnavailable
from memfs.history import objects
from memfs.history.commitobject import compose, encode_commit, parse_commit
from memfs.history.group import Group
from memfs.history.identity import Identity, author
from memfs.history.repository import Repository

AT_LEAST = 4
AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stays the same in a commit when it is rebased."""

    author: bytes
    message: bytes


def not_held(repository: Repository, groups: Sequence[Group], tip: str | None) -> list[Group]:
    """The groups that no recent commit of the branch's own line made: same author, time, message and content."""
    if tip is None or not groups:
        return list(groups)
    person = repository.identity()
    wanted = {_mark(commit_bytes(group, objects.EMPTY_TREE, None, person)) for group in groups}
    found = _recent(repository, tip, wanted, int(min(group.time for group in groups).timestamp()), len(groups))
    return [
        group
        for group in groups
        if not any(
            _holds(repository, commit, group)
            for commit in found.get(_mark(commit_bytes(group, objects.EMPTY_TREE, None, person)), ())
        )
    ]


def commit_bytes(group: Group, tree: str, parent: str | None, person: Identity) -> bytes:
    """The commit object of a group."""
    return encode_commit(
        tree,
        (parent,) if parent else (),
        author(group.writers, person.author),
        person.committer,
        group.time,
        compose(group.message, group.writers),
    )


def _recent(repository: Repository, tip: str, wanted: set[_Mark], since: int, groups: int) -> dict[_Mark, list[str]]:
    """The commits with a wanted mark, back to the time of the oldest group and a few further, as clocks may differ."""
    found: dict[_Mark, list[str]] = {}
    commit: str | None = tip
    for seen in range(AT_MOST):
        if commit is None:
            break
        try:
            data = repository.object(commit).data
        except HistoryUnavailable:  # the end of a shallow clone
            break
        parsed = parse_commit(data)
        if seen >= groups + AT_LEAST and parsed.time.timestamp() < since:
            break
        mark = _mark(data)
        if mark in wanted:
            found.setdefault(mark, []).append(commit)
        commit = parsed.parents[0] if parsed.parents else None
    return found


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

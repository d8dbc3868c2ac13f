"""Taken out: whether a line of history is another one again, without some of its files, as an erase leaves it.

Owns telling such a line from one that somebody reset, amended or began anew. Changes nothing; what follows from the
answer is its callers' business.
"""

from __future__ import annotations

from collections.abc import Iterator

from memfs.errors import GitFailed, HistoryUnavailable
from memfs.history.ancestry import beyond
from memfs.history.repository import Repository
from memfs.history.snapshots import snapshots

_MOST = 1000


def taken_out(repository: Repository, old: str, new: str) -> str:
    """The newest commit of the line to ``old`` that the line to ``new`` has again with fewer files; "" for none.

    It is known by who made it and when, to the second: an erase keeps that, whatever it takes out of the message.
    """
    try:
        again = dict(_marked(repository, new, old))
        for mark, commit in _marked(repository, old, new):
            if mark in again and _has_less(repository, commit, again[mark]):
                return commit
    except (GitFailed, HistoryUnavailable):  # something of it is not here
        return ""
    return ""


def _marked(repository: Repository, tip: str, other: str) -> Iterator[tuple[tuple[bytes, ...], str]]:
    for commit in beyond(repository, [tip], [other], most=_MOST):
        head = repository.object(commit).data.partition(b"\n\n")[0]
        yield tuple(line for line in head.split(b"\n") if line.startswith((b"author ", b"committer "))), commit


def _has_less(repository: Repository, one: str, other: str) -> bool:
    before, after = snapshots(repository, [one, other])
    return bool(before) and not after

"""Asks git how commits descend from each other: ancestors, merge bases, and what one tip has beyond another.

Changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from memfs.errors import GitFailed, HistoryUnavailable

if TYPE_CHECKING:
    from memfs.git.repository import Repository

_PATIENCE = 600.0
"""Seconds for a question that may go through the whole of a long history: no answer must not pass for a "no"."""


def is_ancestor(repository: Repository, old: str, new: str) -> bool:
    """Whether a line of parents leads from ``new`` to ``old``; false too where one of them is not there."""
    if old == new:
        return True
    try:
        repository.git.run("merge-base", "--is-ancestor", old, new, timeout=_PATIENCE)
    except GitFailed:
        return False
    return True


def merge_bases(repository: Repository, one: str, other: str) -> tuple[str, ...]:
    """The best common ancestors of two commits, newest first; several where lines crossed, none of strangers.

    Of equally old ones the order is that of their ids, so that every clone has the same.

    Raises:
        HistoryUnavailable: a commit on the way to them is not in the repository.
    """
    if one == other:
        return (one,)
    try:
        found = repository.git.run("merge-base", "--all", one, other, accept=(0, 1), timeout=_PATIENCE)
    except GitFailed as error:
        raise HistoryUnavailable(
            f"where {one[:10]} and {other[:10]} met cannot be found: {error.message}",
            hint="a shallow clone lacks it: git fetch --unshallow",
        ) from error
    bases = sorted(found.decode().split())
    if len(bases) > 1:
        bases.sort(key=lambda base: repository.commit_object(base).time, reverse=True)
    return tuple(bases)


def beyond(
    repository: Repository, tips: Iterable[str], known: Iterable[str] = (), *, most: int = 0, own_line: bool = False
) -> list[str]:
    """The commits that lead to some tips and not to what is known, none before one that came of it; newest first.

    Args:
        most: so many at the most; 0 for all.
        own_line: without those that a merge brought.

    Raises:
        GitFailed: a commit is not there.
    """
    bound = [*([f"--max-count={most}"] if most else []), *(["--first-parent"] if own_line else [])]
    request = _request(tips, known)
    out = repository.git.run("rev-list", "--topo-order", *bound, "--stdin", data=request, timeout=_PATIENCE)
    return out.decode().split()


def objects_beyond(repository: Repository, tip: str, known: Iterable[str]) -> dict[str, str]:
    """The objects that came with the commits which lead to a tip and not to what is known: the path of each by its id.

    Newest first. Paths are as git has them, from the top of the working tree.

    Raises:
        GitFailed: a commit is not there.
    """
    out = repository.git.run("rev-list", "--objects", "--stdin", data=_request([tip], known), timeout=_PATIENCE)
    rows = (os.fsdecode(row).partition(" ") for row in out.splitlines())
    return {name: path for name, _, path in rows if path}


def count_beyond(repository: Repository, tip: str, known: str | None) -> int:
    """How many commits lead to a tip and not to what is known; 0 without a tip.

    Raises:
        GitFailed: a commit is not there.
    """
    if not tip or tip == known:
        return 0
    request = _request([tip], [known] if known else [])
    return int(repository.git.run("rev-list", "--count", "--stdin", data=request, timeout=_PATIENCE))


def cut_off(repository: Repository) -> frozenset[str]:
    """The commits at which the history of a shallow clone ends; none in a whole one."""
    try:
        text = (repository.common_dir / "shallow").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    return frozenset(text.split())


def holds_commit(repository: Repository, commit: str) -> bool:
    """Whether the repository has a commit, with its tree."""
    try:
        repository.read_tree(repository.root(commit))
    except HistoryUnavailable:
        return False
    return True


def _request(tips: Iterable[str], known: Iterable[str]) -> bytes:
    return "\n".join((*tips, *(f"^{name}" for name in known), "")).encode()

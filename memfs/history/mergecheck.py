"""Mergecheck: whether a merge commit says anything that its parents did not.

Owns that comparison of four trees. What is to be made of the answer is its caller's business.
"""

from __future__ import annotations

from memfs.errors import HistoryUnavailable
from memfs.history.ancestry import merge_bases
from memfs.history.objects import FOLDER, Entry
from memfs.history.repository import Repository


def adds_nothing(repository: Repository, commit: str, paths: tuple[str, ...]) -> bool:
    """Whether below some workspace paths a merge holds of each file what one side made of it, and dropped nothing.

    That is so where of every file only one side has changed it since both began, and the merge has that side's; whoever
    merges so has decided nothing. Not to be told where the clone is shallow, or both sides began more than once.
    """
    parents = repository.commit_object(commit).parents
    if len(parents) != 2:
        return False
    try:
        bases = merge_bases(repository, *parents)
        if len(bases) != 1:
            return False
        rows = [[repository.entry(name, path) for name in (commit, parents[0], parents[1], bases[0])] for path in paths]
    except HistoryUnavailable:
        return False
    return all(_explained(repository, *row) for row in rows)


def _explained(
    repository: Repository, result: Entry | None, ours: Entry | None, theirs: Entry | None, base: Entry | None
) -> bool:
    if (result == ours and theirs in (base, ours)) or (result == theirs and ours in (base, theirs)):
        return True
    sides = [_names(repository, entry) for entry in (result, ours, theirs, base)]
    if any(side is None for side in sides):
        return False
    names = {name for side in sides if side for name in side}
    return all(_explained(repository, *((side or {}).get(name) for side in sides)) for name in names)


def _names(repository: Repository, entry: Entry | None) -> dict[bytes, Entry] | None:
    """What lies in a folder; nothing where there is nothing, None where a file stands there."""
    if entry is None:
        return {}
    return dict(repository.read_tree(entry.id)) if entry.mode == FOLDER else None

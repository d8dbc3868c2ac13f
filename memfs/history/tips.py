"""Tips: what any branch, tag or stash of a repository has, beside the commit that is checked out.

Owns the question whether a file that is not in the tree now is at home elsewhere. Changes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from memfs.errors import MemfsError

if TYPE_CHECKING:
    from memfs.history.repository import Repository


def at_a_tip(repository: Repository, path: str) -> bool:
    """Whether HEAD's commit or that of any ref has a file at a workspace path; so too where that cannot be told.

    What memfs keeps outside git beside such a file is then no leftover: whoever checks that branch out needs it.
    """
    try:
        return bool(blobs_at_tips(repository, path))
    except (MemfsError, OSError):
        return True


def blobs_at_tips(repository: Repository, path: str) -> set[str]:
    """The ids of the blobs that a workspace path has in HEAD's commit and in those of all refs.

    Raises:
        HistoryError: git or its files are damaged or missing.
    """
    listed = repository.git.run("for-each-ref", "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)")
    commits = {words[-1] for line in listed.splitlines() if (words := os.fsdecode(line).split())[-2] == "commit"}
    head = repository.head_commit()
    entries = (repository.entry(commit, path) for commit in {*commits, *([head] if head else [])})
    return {entry.id for entry in entries if entry is not None}

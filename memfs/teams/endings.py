"""Endings: outcomes of open merges on their way to the file, the person's index and the records (row 43; K4, B3).

Owns their order, and that no bytes of a person's are written over. Which outcome is right, it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from memfs.errors import Conflict
from memfs.files.placing import FileChanged, sha256
from memfs.files.tree import Tree
from memfs.history.repository import Repository
from memfs.history.unmerged import stage
from memfs.model.time import utc_now
from memfs.store.parts import READ_LIMIT
from memfs.store.setaside import keep_aside
from memfs.teams.openmerges import Outcome, is_known
from memfs.upkeep.mergespool import MergeSpool, can_wait, records_of


def keep_conflicts(spool: MergeSpool, one: Outcome) -> None:
    """Keep the conflicts that the outcome cannot hold itself."""
    if one.conflicts and not one.recorded and can_wait(one.open.path):
        records = records_of(one.open.path, one.conflicts, utc_now())
        spool.keep(records, one.data, (one.open.ours, one.open.theirs))


def end_merges(tree: Tree, repository: Repository, outcomes: Sequence[Outcome]) -> None:
    """Files first, then the index: whoever is killed in between joins the same versions again.

    Raises:
        Conflict: a file changed at this very moment. What came before it is finished.
        GitBusy: somebody holds the index.
        StorageIO.
    """
    for one in outcomes:
        place(tree, repository, one)
    contents: dict[str, tuple[str, bytes | None]] = {}
    for one in outcomes:
        contents |= dict.fromkeys(one.open.also, (one.open.mode, None))
        contents[one.open.path] = (one.open.mode, one.data)
    stage(repository, contents)


def place(tree: Tree, repository: Repository, one: Outcome) -> None:
    """Write an outcome into its file.

    Raises:
        Conflict: the file changed at this very moment.
        StorageIO.
    """
    path = one.open.path
    if one.touched and one.before is not None:
        _set_aside(repository, path, one.before)
    try:
        if one.data is None:
            if one.before is not None:
                tree.remove(path, over=sha256(one.before))
        elif one.data != one.before:
            tree.write(path, one.data, over="" if one.before is None else sha256(one.before))
        for other in one.open.also:
            with suppress(FileNotFoundError):
                _remove(tree, repository, one, other)
    except FileChanged as error:
        raise Conflict("the file changed while it was joined", path=path, hint="look at it, and try again") from error


def _remove(tree: Tree, repository: Repository, one: Outcome, path: str) -> None:
    """Take a file away whose item lies elsewhere; what a person made of it is set aside."""
    data = tree.read(path, READ_LIMIT).data
    if not is_known(one.open, data):
        _set_aside(repository, path, data)
    tree.remove(path, over=sha256(data))


def _set_aside(repository: Repository, path: str, data: bytes) -> None:
    keep_aside(repository.state, path, data, f"merge-{sha256(data)[:16]}")

"""Reads the paths that a person's merge left unmerged in their index, and stages an outcome for them.

Nothing in the person's index changes but at their request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from memfs.dataclass import dataclass
from memfs.errors import GitBusy, GitFailed
from memfs.git.busy import lock_reason
from memfs.git.layout import facts_of
from memfs.git.objects import FILE, REGULAR, Object, TreeEntry, write_loose
from memfs.git.process import entries_of, tether, wait_for_children
from memfs.git.refs import NULL
from memfs.git.repository import Repository
from memfs.git.transaction import index_of, keep_date, lock_of

_TRIES = 20
_PAUSE = 0.1
REVERTED = "REVERT_HEAD"
"""Names a commit of which git brings in the parent."""
MERGED = "MERGE_HEAD"
_OPEN = (MERGED, "REBASE_HEAD", "CHERRY_PICK_HEAD", REVERTED)
_REBASING = ("rebase-merge", "rebase-apply")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmergedPath:
    """A path that git could not join.

    Attributes:
        path: below the workspace.
        base, ours, theirs: the versions; None where there is none: it was added, or that side removed it.
    """

    path: str
    base: TreeEntry | None = None
    ours: TreeEntry | None = None
    theirs: TreeEntry | None = None

    @property
    def plain(self) -> bool:
        """Whether each version is a file: no link, no submodule."""
        return all(stage is None or stage.mode in REGULAR for stage in (self.base, self.ours, self.theirs))

    @property
    def mode(self) -> str:
        """The mode of the outcome."""
        found = self.ours or self.theirs or self.base
        return found.mode if found else FILE


def unmerged(repository: Repository) -> tuple[list[UnmergedPath], int]:
    """The paths of the workspace that the person's index holds in several versions, and how many others it does.

    Raises:
        GitFailed: the index cannot be read.
    """
    found: dict[str, dict[int, TreeEntry]] = {}
    others: set[bytes] = set()
    for one in entries_of(repository.git, unmerged=True):
        path = repository.below(one.path)
        if path is None:
            others.add(one.path)
        else:
            found.setdefault(path, {})[one.stage] = TreeEntry(one.mode, one.blob)
    return [
        UnmergedPath(path=path, base=stages.get(1), ours=stages.get(2), theirs=stages.get(3))
        for path, stages in sorted(found.items())
    ], len(others)


def situation(repository: Repository) -> str:
    """The commit that the person's merge, cherry-pick, revert or rebase brings in, by its name; "" where none does."""
    folder = repository.git_dir
    rebases = any(os.path.lexists(folder / name) for name in _REBASING)  # git leaves REBASE_HEAD behind when it is over
    found = (name for name in _OPEN if rebases or name != "REBASE_HEAD")
    return next((name for name in found if os.path.lexists(folder / name)), "")


def stage(repository: Repository, contents: Mapping[str, tuple[str, bytes | None]]) -> None:
    """Put outcomes into the person's index, in place of the versions there, as ``git add`` and ``git rm`` would.

    The contents are durable before. Other entries stay.

    Args:
        contents: by path, the mode and the bytes; None for a file that is gone.

    Raises:
        GitBusy: somebody holds the index, or a git of an ended memfs still works on it. Nothing was changed.
        GitFailed, StorageIO.
    """
    blobs = {path: repository.blob_id(data) for path, (_, data) in contents.items() if data is not None}
    objects = {blobs[path]: Object("blob", data) for path, (_, data) in contents.items() if data is not None}
    write_loose(repository.common_dir / "objects", objects)
    lines = []
    for path, (mode, data) in contents.items():
        name = repository.full(path)
        lines.append(b"0 " + NULL.encode() + b"\t" + name + b"\0")
        if data is not None:
            lines.append(f"{mode} {blobs[path]}\t".encode() + name + b"\0")
    if lines:
        wait_for_children(repository.state)  # one that was killed here may still be about to put its outcomes there
        _update(repository, b"".join(lines))


def _update(repository: Repository, lines: bytes) -> None:
    index = index_of(repository.git_dir)
    lock = lock_of(index)
    before = facts_of(index)
    for left in reversed(range(_TRIES)):
        try:
            with tether(repository.state) as held:
                repository.git.run("update-index", "-z", "--index-info", data=lines, keep=(held,))
        except GitFailed as error:
            reason = lock_reason(repository.layout, lock)
            if not reason and not left:
                raise
            if not left:
                raise GitBusy(reason, path=str(lock), hint="try again when it is gone") from error
            time.sleep(_PAUSE)
        else:
            if before is not None:
                keep_date(index, before[2])
            return

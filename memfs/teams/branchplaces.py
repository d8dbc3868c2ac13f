"""Branchplaces: the working trees in which agents' branches are checked out, as seen from another one.

Owns reaching into such a place: what waits there, who works there, and committing it. Where the places are is
``memfs.history.branchlist``'s business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memfs import trust
from memfs.config import load
from memfs.errors import BranchRefused
from memfs.files.journal import Journal
from memfs.files.lock import FileLock
from memfs.history.branchlist import Given, short_name
from memfs.history.layout import Layout, state_folder
from memfs.history.processes import users_of
from memfs.history.repository import Repository
from memfs.index.caches import drop
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.values import Flushed
from memfs.teams.sidecarsharing import share_sidecars
from memfs.teams.worktrees import at, lay_out
from memfs.upkeep.opening import parts_of


class Places:
    """The places of one repository's branches, seen from one workspace of it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._repository = parts.repository

    def layout(self, row: Given | None) -> Layout | None:
        """Where a branch's working tree keeps what, as its workspace sees it; None where it has none, or it is gone."""
        found = at(Path(row.folder), self._repository) if row is not None else None
        if found is None:
            return None
        prefix = self._repository.prefix
        return replace(found, workspace=found.work_tree / prefix, prefix=prefix)

    def beside(self, ref: str) -> Path:
        """Where a branch's working tree goes if nobody says: next to this one."""
        top, common = self._repository.work_tree, self._repository.common_dir
        top = common.parent if top.is_relative_to(common) else top  # the memory's own branch lies in the git folder
        return top.parent / f"{top.name}.branches" / short_name(ref).replace("/", "-")

    def lay(self, row: Given, commit: str) -> Given:
        """Make the working tree of a branch; its row when that is complete."""
        layout = lay_out(self._repository, Path(row.folder), row.branch, commit)
        share_sidecars(self._parts.tree.root, layout.work_tree / self._repository.prefix)
        return replace(row, git_dir=os.path.relpath(layout.git_dir, self._repository.common_dir), ready=True)

    def bring(self, layout: Layout | None) -> None:
        """Take over what documents refer to and git does not have."""
        if layout is not None:
            share_sidecars(layout.workspace, self._parts.tree.root)

    def gone(self, row: Given | None) -> Layout | None:
        """Where memfs keeps what of a working tree whose folder was removed; None where there never was one."""
        if row is None or not row.git_dir or self.layout(row) is not None:
            return None
        git_dir = self._repository.common_dir / row.git_dir
        return replace(self._repository.layout, work_tree=Path(row.folder), git_dir=git_dir)

    def forget_caches(self, row: Given) -> None:
        """Remove what this user's cache has of a working tree that was taken away."""
        drop(self._repository.state.parent, lambda root: root.is_relative_to(row.folder))

    def waiting(self, layout: Layout | None) -> int:
        """How many writes in a place are not committed yet."""
        if layout is None:
            return 0
        journal = Journal(state_folder(layout) / "journal")
        try:
            return len(journal.operations())
        finally:
            journal.close()

    def alive(self, layout: Layout | None) -> tuple[tuple[int, str], ...]:
        """The processes at work in a place, as id and name."""
        return tuple(users_of(str(layout.work_tree), str(state_folder(layout)))) if layout is not None else ()

    @contextmanager
    def still(self, layout: Layout | None) -> Iterator[None]:
        """Let nobody write in a place."""
        if layout is None:
            yield
            return
        with FileLock(state_folder(layout) / "lock", home=self._repository.common_dir).hold("drop a branch"):
            yield

    def flush(self, layout: Layout | None, adopt: bool | None = None) -> tuple[Flushed, tuple[str, ...]]:
        """Commit what waits in a place; what was done, and which edits by hand are left out.

        Args:
            adopt: commit those, too; None: as its settings say.
        """
        if layout is None:
            return Flushed(), ()
        with self._opened(layout.workspace) as store:
            if store.pending().count == 0:
                flushed = store.flush(adopt=False)
                if not flushed.reason and store.edits.untouched():
                    return flushed, ()
            return store.flush(adopt=adopt), tuple(store.hand_edits())

    @contextmanager
    def _opened(self, root: Path) -> Iterator[Store]:
        settings = load(root)
        repository = Repository.find(root, allow_detached=settings.history.allow_detached, trusted=trust.repository)
        if repository is None:
            raise BranchRefused("its working tree is in no repository", path=str(root), hint="git worktree repair")
        store = Store(parts_of(root, repository, settings, self._parts.clock))
        try:
            yield store
        finally:
            store.close()

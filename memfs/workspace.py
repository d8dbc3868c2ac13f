"""Workspace: one open workspace, as a record of its parts.

Owns the wiring, and nothing else: which part is built from which.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from memfs import trust
from memfs.behaviours import Behaviours
from memfs.config import MEMORY_FOLDER, find_workspace, first_policies, load
from memfs.errors import RepoUnsupported, StorageIO, WorkspaceNotFound
from memfs.files import io
from memfs.files.codec import Codec
from memfs.files.journal import Journal
from memfs.files.lock import FileLock
from memfs.files.tree import Tree
from memfs.history.busy import ERASE_FOLDER
from memfs.history.repository import Repository
from memfs.index.layers import SearchIndex
from memfs.model import KindTable
from memfs.model.time import utc_now
from memfs.pipeline.retrieval import Recaller
from memfs.settings import Settings
from memfs.store import Store
from memfs.store.parts import Parts, Policy
from memfs.upkeep.format import check_format
from memfs.upkeep.kindfile import load_kinds
from memfs.upkeep.quota import Quota
from memfs.upkeep.secondary import find_secondary, problems_of

if TYPE_CHECKING:
    from memfs.upkeep.backups import Backups
    from memfs.upkeep.check import Checker
    from memfs.upkeep.cleanup import Cleaner
    from memfs.upkeep.erase import Eraser
    from memfs.upkeep.history import History
    from memfs.upkeep.layout import Created
    from memfs.upkeep.recovered import Recovered
    from memfs.upkeep.repair import Repairer


@dataclass(frozen=True, kw_only=True, repr=False)
class Workspace:
    """The parts of one open workspace. The name of a part says which module to open.

    Attributes:
        root: the folder that holds ``ContextMemory/``.
        store: the only door for durable change.
        recall: answers questions.
        created: what was made, when ``open_workspace`` made the workspace.
    """

    root: Path
    settings: Settings
    kinds: KindTable
    repository: Repository
    store: Store
    recall: Recaller
    parts: Parts
    behaviours: Behaviours
    quota: Quota
    created: Created | None = None

    # The parts below are made when first used: a process that only recalls is spared what they import.
    @cached_property
    def history(self) -> History:
        """Reads and rewinds git history."""
        from memfs.upkeep.history import History

        return History(self.store, self.repository, self.parts.commit_lock)

    @cached_property
    def recovered(self) -> Recovered:
        """Contents displaced by a person's change."""
        from memfs.upkeep.recovered import Recovered

        return Recovered(self.store, self.repository)

    @cached_property
    def checker(self) -> Checker:
        """Finds what is wrong, and repairs it."""
        from memfs.upkeep.check import Checker

        return Checker(
            store=self.store, parts=self.parts, recovered=self.recovered, backups=lambda: self.backups.kept()
        )

    @cached_property
    def backups(self) -> Backups:
        """Makes and keeps backups."""
        from memfs.upkeep.backups import Backups

        return Backups(self.parts, self.settings.backup, self.behaviours.fire)

    @cached_property
    def cleaner(self) -> Cleaner:
        """Makes room without losing anything."""
        from memfs.upkeep.cleanup import Cleaner

        return Cleaner(store=self.store, parts=self.parts, backups=self.backups)

    def _keep_up(self) -> None:
        if self.settings.backup.interval_hours:
            self.backups.keep_up()

    @cached_property
    def eraser(self) -> Eraser:
        """Takes an item out of history, too."""
        from memfs.upkeep.erase import Eraser

        return Eraser(self.store, self.parts, self.backups)

    @cached_property
    def repairer(self) -> Repairer:
        """Puts right what the disk damaged."""
        from memfs.upkeep.repair import Repairer

        return Repairer(self.store, self.parts)

    def __repr__(self) -> str:
        return f"<Workspace {self.root}>"

    def close(self) -> None:
        """Commit what waits where the policy says so, make the backup that is due after a write, release everything."""
        try:
            if self.quota.written:
                self.quota.tend()
        finally:
            self.store.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_workspace(
    path: str | os.PathLike[str] | None = None,
    create: bool = False,
    watch: bool | None = None,
    settings: dict[str, Any] | None = None,
) -> Workspace:
    """Open the workspace at or above ``path``.

    Args:
        path: a folder; None means ``MEMFS_WORKSPACE`` or else the current folder.
        create: make the workspace, and a repository where none encloses the path.
        watch: whether to watch the files instead of scanning them before each recall; None starts watching with the
            first recall.
        settings: values by dotted key that take precedence over ``memfs.toml``.

    Raises:
        WorkspaceNotFound, RepoUnsupported, RepoUntrusted, SettingInvalid, FormatUnsupported.
    """
    root = _make(Path(path or ".")) if create else find_workspace(path)
    fresh = create and not (root / "memfs.toml").exists()
    chosen = load(root, settings)
    repository, made = _repository(root, create, chosen.history.allow_detached)
    if fresh:
        chosen = load(root, {**first_policies(made), **(settings or {})})
    parts = _parts(root, repository, chosen)
    behaviours = Behaviours(lambda error: store.note_failure(error))
    quota = Quota(parts, behaviours.fire)
    parts = replace(parts, gate=quota)
    store = Store(parts)
    store.notes.extend(problems_of(parts.tree, repository, parts.secondary))
    if watch is not False and chosen.watch.enabled:
        _arrange_watching(store, parts, chosen, at_once=watch is True)
    workspace = Workspace(
        root=root,
        settings=chosen,
        kinds=parts.kinds,
        repository=repository,
        store=store,
        recall=Recaller(store, chosen.recall.preset, parts.clock, parts.kinds),
        parts=parts,
        behaviours=behaviours,
        quota=quota,
        created=_lay_out(store, made) if create else None,
    )
    behaviours.on("storage_threshold", lambda _: workspace.cleaner.clean())
    quota.chores.append(workspace._keep_up)
    if os.path.lexists(repository.state / ERASE_FOLDER):
        workspace.eraser.take_up()
    return workspace


def _lay_out(store: Store, made: bool) -> Created:
    from memfs.upkeep.layout import lay_out  # wanted once in a workspace's life

    return lay_out(store, made)


def _make(path: Path) -> Path:
    root = path.expanduser().resolve()
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / MEMORY_FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise WorkspaceNotFound(
            f"cannot make a workspace: {error.strerror}", path=str(root), hint="choose a folder you can write in"
        ) from error
    return root


def _repository(root: Path, create: bool, allow_detached: bool) -> tuple[Repository, bool]:
    """The repository that holds the workspace, and whether it was made now."""
    found = Repository.find(root, allow_detached=allow_detached, trusted=trust.repository)
    if found is not None:
        return found, False
    if not create:
        raise RepoUnsupported(
            "this workspace is in no git repository",
            path=str(root),
            hint=f"to make one: memfs init {shlex.quote(str(root))}",
        )
    return Repository.create(root), True


def _arrange_watching(store: Store, parts: Parts, settings: Settings, at_once: bool) -> None:
    from memfs.watch import Watcher, notes_folder  # a process that answers once does not need it

    quiet = settings.history.adopt_after_seconds if settings.history.adopt == "auto" else None
    notes = notes_folder(parts.repository.state)
    store.watch_with(lambda: Watcher(store, parts.tree.root, settings.watch, quiet_seconds=quiet, notes=notes), at_once)


def _parts(root: Path, repository: Repository, settings: Settings) -> Parts:
    tree = Tree(root)
    try:
        check_format(tree)
        kinds, schemas = load_kinds(tree)
        state = repository.state
        journal = Journal(state / "journal")
        return Parts(
            tree=tree,
            journal=journal,
            lock=FileLock(state / "lock", home=repository.common_dir),
            commit_lock=FileLock(state.parent / "commit.lock", home=repository.common_dir),
            repository=repository,
            codec=Codec(schemas, kinds, settings.security.allow_invisible),
            kinds=kinds,
            index=SearchIndex(index_folder(root), settings.index.engine),
            policy=Policy(
                commit=settings.history.commit,
                interval=settings.history.interval_seconds,
                adopt=settings.history.adopt,
            ),
            clock=utc_now,
            secondary=find_secondary(tree, repository, journal, settings.storage.secondary),
        )
    except BaseException:
        tree.close()
        repository.close()
        raise


def index_folder(root: Path) -> Path:
    """Where a workspace's index lies: in the user's cache, named by path, inode and user, never in the workspace."""
    facts = root.stat()
    key = hashlib.sha256(f"{root}\0{facts.st_ino}\0{os.getuid()}".encode("utf-8", "surrogateescape")).hexdigest()[:20]
    named = os.environ.get("XDG_CACHE_HOME")
    fallback = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    folder = (Path(named) if named else fallback) / "memfs" / key
    try:
        io.make_private_folder(folder)
    except StorageIO:  # a full disk keeps nobody from reading: there is no index then
        if os.path.lexists(folder):
            raise
    return folder

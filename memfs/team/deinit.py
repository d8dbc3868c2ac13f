"""Take memfs out of a repository, and with it a workspace's files where that is asked for.

Everything that would be lost is named before anything is done. The state folder goes last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memfs import private, trust
from memfs.admin.store_builder import uninstall_driver
from memfs.config_names import SETTINGS_FILE
from memfs.context.agents_md import FILE, AgentsBlock, BlockResult, BlockStatus
from memfs.dataclass import dataclass
from memfs.errors import DeinitRefused, GitBusy, MemfsError, NotRegularFile, PathEscape, StorageIO
from memfs.format.text import shortlist
from memfs.fs import append_log, io
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.journal import Journal
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import BRANCH, is_workspace, place_in
from memfs.git.busy import BusyProcess, users_of
from memfs.git.layout import HEADS, discover, state_path
from memfs.git.log import OUTSIDE_GIT
from memfs.git.process import wait_for_children
from memfs.git.repository import Repository, blobs_in_history
from memfs.model.state_paths import document_of_sidecar
from memfs.search.generations import cache_home, drop, recorded
from memfs.store.parts import CONTENT, RECOVERED_FOLDER
from memfs.store.plan import FilePlan
from memfs.store.recovery import all_aside
from memfs.team import own_branch

if TYPE_CHECKING:
    from memfs.admin.history import RecoveryCopies
    from memfs.store import Store
    from memfs.store.parts import Parts

_REFS = "refs/memfs/"
_RESCUED = "refs/memfs/rescue/"
_AGENT_FILES = (FILE, "CLAUDE.md")
_COPY = "copy what you want to keep elsewhere"
_LATER = "leave when that is over"
_MESSAGE = "Remove memfs and its memory"
_LARGEST = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class DeinitPlan:
    """What a deinit removes beside memfs's own parts of the repository and the cache, and what prevents it.

    Attributes:
        root: the workspace.
        files: with ``purge``, the workspace's own files.
        blocks: with it, the agents' files out of which a block of memfs is taken.
        branch: with it, the memory's own branch; "" where it has none.
        links: the working trees of code whose link to the memory's own branch goes.
        losses: what nothing else holds, in words; it goes only by force.
        remedies: what to do about them, in words.
        processes: who is at work in the workspace.
        refused: why it would be refused without force, "" where it would not.
        leaves: what stays and memfs does not take away, in words.
    """

    root: Path
    files: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    branch: str = ""
    links: tuple[Path, ...] = ()
    losses: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    processes: tuple[BusyProcess, ...] = ()
    leaves: tuple[str, ...] = ()

    @property
    def refused(self) -> str:
        """Why it would be refused without force, "" where it would not."""
        reasons = [f"{name} (process {number}) is at work in this workspace" for number, name in self.processes]
        return "; ".join([*reasons, *self.losses])

    @property
    def remedy(self) -> str:
        """What to do where it is refused."""
        if self.processes:
            return "end it first; --force continues all the same"
        return "; ".join([*self.remedies, "with --force it is lost"])


class Deinit:
    """Takes one open workspace out of its repository."""

    def __init__(
        self,
        store: Store,
        parts: Parts,
        *,
        recovered: RecoveryCopies,
        block: AgentsBlock,
        purge: bool,
        losses: Sequence[tuple[str, str]] = (),
    ) -> None:
        """
        Args:
            block: keeps the agents' files.
            purge: the files of the workspace go, too.
            losses: what else goes that nothing else holds, each with what to do about it, in words.
        """
        self._store, self._parts, self._repository = store, parts, parts.repository
        self._recovered, self._block, self._purge, self._also = recovered, block, purge, losses
        self._root = parts.tree.root
        self._record = self._repository.state.parent
        self._others = tuple(_others(self._repository, self._root))
        self._own = own_branch.is_separate(self._repository)

    # -- looking --------------------------------------------------------------------------------------------------
    def plan(self) -> DeinitPlan:
        """What would be done now. Changes nothing.

        Raises:
            GitBusy: a person is in the middle of something.
        """
        if busy := self._repository.busy():
            raise GitBusy(busy, hint=_LATER)
        losses = [*self._losses(), *self._also]
        # Who has the workspace open, and which memfs was started in its folder: a server opens it when first asked.
        opened = users_of(str(self._repository.state))
        started = [row for row in users_of(str(self._root)) if row[1] == "memfs"]
        return DeinitPlan(
            root=self._root,
            files=tuple(filter(self._is_own, _memory_files(self._parts.tree))) if self._purge else (),
            blocks=tuple(self._blocks()),
            branch=BRANCH if self._own and self._purge else "",
            links=tuple(own_branch.linked(self._repository)) if self._own else (),
            losses=tuple(loss for loss, _ in losses),
            remedies=tuple(dict.fromkeys(remedy for _, remedy in losses)),
            processes=tuple(sorted({row for row in (*opened, *started) if row[1] != "git"})),
            leaves=tuple(self._leaves()),
        )

    def _commits(self) -> bool:
        return self._parts.policy.commit != "manual"

    def _is_own(self, path: str) -> bool:
        return self._store.edit_finder.is_own(path) or bool(document_of_sidecar(path)) or path.endswith(OUTSIDE_GIT)

    def _blocks(self) -> list[str]:
        """The files for agents that hold a block of memfs, named from the folder they are in."""
        return [name for name in _AGENT_FILES if self._block_at(name) is not None] if self._purge else []

    def _block_at(self, name: str) -> BlockStatus | None:
        with suppress(MemfsError):
            looked = self._block.check(self._block.folder / name)
            if looked.line:
                return looked.status
        return None

    # -- what would be lost ---------------------------------------------------------------------------------------
    def _losses(self) -> Iterator[tuple[str, str]]:
        """Each with what to do about it."""
        self._store.notice_commits(thorough=True)
        if count := len(self._recovered.uncommitted()) + len(self._recovered.damaged()):
            yield (
                f"versions that only memfs still holds: {count}",
                "'memfs restore --displaced' lists them and brings them back",
            )
        # Writes for the branch that is checked out memfs commits before, where it commits at all.
        here = self._repository.head().ref
        operations = [] if self._commits() else self._parts.journal.operations()
        if names := sorted(
            {one.branch.removeprefix(HEADS) for one in operations if one.branch not in ("", None, here)}
        ):
            yield f"writes wait for their commit to {', '.join(names)}", "check that out, and commit them there"
        if self._purge or self._own:
            yield from self._uncommitted()
        if self._purge and self._own and (count := self._beyond(own_branch.REF, "--remotes")):
            yield f"commits of the branch {BRANCH} that no remote has: {count}", "'memfs sync' pushes them"
        storage = self._store.storage()
        if storage.waiting:
            yield f"writes that wait in {storage.secondary}: {storage.waiting}", _COPY
        yield from _kept_in(self._repository.state)
        if not self._others:
            yield from self._shared_losses()

    def _shared_losses(self) -> Iterator[tuple[str, str]]:
        """What goes with the last workspace of a repository."""
        states = {path for path in self._record.iterdir() if path.is_dir()} - {self._repository.state}
        for state in sorted(states):
            if count := _lost(self._repository, _waiting_in(state)):
                yield f"writes of a working tree that is gone, in {state}: {count}", _COPY
            aside = [[(path, data)] for _, path, data in all_aside(state)]
            if len(io.listed(state / RECOVERED_FOLDER)) > len(aside) or _lost(self._repository, aside):
                yield f"contents set aside in {state / RECOVERED_FOLDER}", _COPY
            yield from _kept_in(state)
        others = ("--branches", "--tags", "--remotes", *filter(None, [self._repository.head().commit]))
        for ref in _refs(self._repository):
            if ref.startswith(_RESCUED) and (count := self._beyond(ref, *others)):
                yield f"commits that only {ref} keeps: {count}", f"'git branch NAME {ref}' keeps them"

    def _uncommitted(self) -> Iterator[tuple[str, str]]:
        """The files of memfs that HEAD does not have as they are."""
        committed = self._store.edit_finder.committed()
        tree = self._parts.tree
        own = filter(self._is_own, _memory_files(tree))
        found = [path for path in own if path not in committed or committed[path] != _blob_now(tree, path)]
        if beside := [path for path in found if path.endswith(OUTSIDE_GIT)]:
            yield f"large files that git never holds: {shortlist(beside)}", _COPY
        if rest := [path for path in found if not path.endswith(OUTSIDE_GIT)]:
            yield f"uncommitted files: {shortlist(rest)}", "'memfs commit' commits what is valid"
        for name in self._blocks():
            if self._block_at(name) is BlockStatus.EDITED:
                yield f"somebody edited the block in {name}", "move what you want to keep out of it"

    def _beyond(self, ref: str, *others: str) -> int:
        """How many commits a ref has that others have not."""
        tip = self._repository.ref_commit(ref)
        return int(self._repository.git.run("rev-list", "--count", tip, "--not", *others)) if tip else 0

    def _leaves(self) -> Iterator[str]:
        if self._own:
            if not self._purge:
                yield f"the branch {BRANCH} with the memory ('memfs deinit --purge' removes it, too)"
        elif not self._purge:
            yield f"the files: {CONTENT}/ and {SETTINGS_FILE} ('memfs deinit --purge' removes them, too)"
        else:
            strays = [path for path in _memory_files(self._parts.tree) if not self._is_own(path)]
            if strays:
                yield f"files in {CONTENT}/ that are not memfs's: {shortlist(strays)}"
        if self._repository.head().commit is not None and not (self._own and self._purge):
            yield "the commits in git's history (only 'memfs admin erase ID', before you leave, rewrites those)"
        for other in self._others:
            yield f"what the repository's other workspace needs: {other}"

    # -- doing ----------------------------------------------------------------------------------------------------
    def files(self, force: bool = False) -> tuple[str | None, tuple[str, ...]]:
        """Commit what waits and, with ``purge``, take the files away. The workspace is closed next.

        Returns:
            The commit that removed the files, None where there is none; the files for agents that were changed.

        Raises:
            DeinitRefused: something would be lost, or somebody has the workspace open.
            GitBusy: what waits cannot be committed now.
        """
        if self._commits():
            self._store.flush_now(_LATER)
        planned = self.plan()
        if planned.refused and not force:
            raise DeinitRefused(planned.refused, path=str(planned.root), hint=planned.remedy)
        if not self._purge:
            return None, ()
        taken = ((name, self._block.remove(self._block.folder / name, force=force)) for name in planned.blocks)
        edited = tuple(name for name, done in taken if done in (BlockResult.REMOVED, BlockResult.DELETED))
        committed = self._store.edit_finder.committed()
        with self._store.exclude_writers("remove the workspace"):
            for path in planned.files:
                self._parts.tree.remove(path, durable=False)
            io.remove_empty(self._root / CONTENT)
        gone = [path for path in committed if self._parts.tree.entry(path) is None]
        if not self._commits() or not gone:
            return None, edited
        plans = [FilePlan(path=path, before=None, after=None, item=None) for path in gone]
        self._store.writing.record_edits(plans, _MESSAGE)
        self._store.flush_now(_LATER)
        return self._repository.head().commit, edited


def take_out(root: Path, *, keep_key: bool = False, purge: bool = False) -> None:
    """Take memfs's own parts out of the repository around a closed workspace: driver, refs, caches, trust, state.

    Of a memory on its own branch the links and the working tree go too, and with ``purge`` the branch. Killed anywhere,
    it can be called again while the state folder is there. Nobody else commits meanwhile.

    Args:
        keep_key: the key of the project stays, by which its private memory is found again.
        purge: a memory's own branch goes.

    Raises:
        MemfsError: something cannot be removed; what went before stays removed.
    """
    found = Repository.find(root, trusted=trust.repository)
    if found is None:
        raise DeinitRefused("there is no repository around it", path=str(root))
    with closing(found) as repository:
        record, state = repository.state.parent, repository.state
        others, separate = tuple(_others(repository, root)), own_branch.is_separate(repository)
        locks = FileLock(record / "commit.lock"), FileLock(state / "lock")
        with locks[0].hold("leave the repository"), locks[1].hold("leave the repository"):
            wait_for_children(record)
            if not others:
                uninstall_driver(repository)
            if refs := () if others else _refs(repository):
                own_branch.update_refs(repository, [f"delete {ref}" for ref in refs], "memfs deinit")
            # with the last workspace go all caches that the repository ever had
            roots = {root} if others else {root, *(made for _, made in recorded(record))}
            drop(record, lambda made: made in roots)
            if os.path.lexists(trust.list_path()):
                trust.revoke(root)
            if place_in(repository.common_dir) is not None and (separate or not others):
                own_branch.take_out(repository, branch=purge)
            _remove_state(record, state, whole=not others, keep_key=keep_key)
    for folder in (repository.common_dir / "refs/memfs", repository.common_dir / "logs/refs/memfs"):
        if folder.is_dir():
            io.remove_empty(folder)
    with suppress(StorageIO, OSError):  # others have their caches there, too
        io.rmdir(cache_home())


def _others(repository: Repository, root: Path) -> Iterator[Path]:
    """The other workspaces of the repository that were ever opened and are still there."""
    for other in sorted({made for _, made in recorded(repository.state.parent)} - {root}):
        if not is_workspace(other):
            continue
        with suppress(MemfsError):
            layout = discover(other)
            if layout is not None and layout.common_dir == repository.common_dir and state_path(layout).is_dir():
                yield other


def _kept_in(state: Path) -> Iterator[tuple[str, str]]:
    folder = state / append_log.FOLDER
    if count := len(append_log.waiting(folder)):
        yield f"session events that are not processed yet, in {folder}: {count}", _COPY


def _refs(repository: Repository) -> tuple[str, ...]:
    return tuple(os.fsdecode(repository.git.run("for-each-ref", "--format=%(refname)", _REFS)).splitlines())


def _remove_state(record: Path, state: Path, whole: bool, keep_key: bool) -> None:
    """Remove a workspace's state folder; with all that is beside it where it is the last one. By it an interrupted
    deinit is taken up: it goes last.
    """
    for path in sorted(record.iterdir()) if whole else ():
        if path.is_dir() and not path.is_symlink():
            if path != state:
                io.remove_all(path)
        elif path.name != private.KEY_FILE or not keep_key:
            io.unlink(path, missing_ok=True)
    if state.is_dir():
        io.remove_all(state)
    if whole and not os.listdir(record):
        io.rmdir(record)


# -- files ----------------------------------------------------------------------------------------------------------
def _blob_now(tree: Tree, path: str) -> str:
    """The blob id of what is there; "" where nothing does, or no file."""
    try:
        return tree.read(path, _LARGEST).stamp.blob
    except (FileNotFoundError, NotRegularFile, PathEscape):
        return ""


def _memory_files(tree: Tree) -> Iterator[str]:
    """The files below ``ContextMemory`` and the settings, but for what a writer left half-written."""
    for entry in tree.scan(CONTENT, hidden=True):
        if entry.regular and not is_temporary(entry.path.rpartition("/")[2]):
            yield entry.path
    if tree.entry(SETTINGS_FILE) is not None:
        yield SETTINGS_FILE


def _waiting_in(state: Path) -> list[list[tuple[str, bytes]]]:
    """The writes that wait for a workspace that may be gone, as paths and contents; a removal loses nothing."""
    if not os.path.lexists(state / "journal"):
        return []
    with closing(Journal(state / "journal")) as journal:
        operations = journal.operations()
    return [[(change.path, change.data) for change in one.changes if change.data is not None] for one in operations]


def _lost(repository: Repository, writes: Sequence[Sequence[tuple[str, bytes]]]) -> int:
    """How many of these writes no commit of any branch holds whole."""
    held = blobs_in_history(repository, {path for write in writes for path, _ in write})
    return sum(any(repository.blob_id(data) not in held for _, data in write) for write in writes)

"""Replace the history of a repository by a rewritten one, while nobody else writes into it.

An erase and a cut of history both go this way: look at everything, build the new repository beside the old one, and
swap it in; where somebody changed the repository meanwhile, look again.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from memfs.config_names import SETTINGS_FILE
from memfs.errors import CorruptRecord, EraseRefused, GitBusy, GitFailed, LockTimeout, MemfsError, StorageIO
from memfs.fs import append_log, io
from memfs.fs.journal import Journal
from memfs.fs.lock import FileLock
from memfs.git import maintenance
from memfs.git.busy import ERASE_FOLDER, ERASE_RECORD, running_git, situation
from memfs.git.commit_object import SOURCE, parse_commit
from memfs.git.commits import recover
from memfs.git.layout import read_config
from memfs.git.process import entries_of
from memfs.git.refs import NULL
from memfs.git.remote import LOCK, RemoteHistory
from memfs.git.repository import Repository
from memfs.git.rewrite import (
    PATIENCE,
    SWAP_LOCK,
    Before,
    MovedRef,
    Rewritten,
    Successor,
    Survey,
    finish,
    fsck,
    release,
    swap,
)
from memfs.model import Problem
from memfs.store import Store
from memfs.store.parts import Parts

LOCK_WAIT = 60.0
_PATIENCE_AT_OPENING = 0.2
_ATTEMPTS = 4

T = TypeVar("T")


class HistoryRewrite:
    """Rewrites the history of one repository.

    ``what`` names the reason to processes that wait meanwhile, ``code`` is that of one that cannot be ended.
    """

    def __init__(self, parts: Parts, what: str, code: str) -> None:
        self._parts = parts
        self._repository = parts.repository
        self._what, self._code = what, code
        self._folder = parts.repository.state / ERASE_FOLDER
        self._record = parts.repository.state / ERASE_RECORD

    @contextmanager
    def alone(self, patience: float) -> Iterator[None]:
        """Hold ``commit.lock``, and what keeps all workspaces of the repository from syncing, for the block.

        Args:
            patience: seconds to wait for each lock.

        Raises:
            LockTimeout: somebody held one for longer.
        """
        with self._no_syncs(patience), self._parts.commit_lock.hold(self._what, timeout=patience):
            recover(self._repository)
            yield

    def attempts(self, attempt: Callable[[], T], patience: float) -> T:
        """Do what is attempted while no workspace of the repository writes, again where the repository changes.

        Raises:
            EraseRefused: it is busy, or changes again and again; where nothing was begun, nothing was changed.
        """
        for _ in range(_ATTEMPTS):
            try:
                with self._no_writes(patience):
                    return attempt()
            except MovedRef:
                continue
            except GitBusy as error:
                self._sweep()
                raise EraseRefused(error.message, path=error.path, hint=error.hint) from error
            except MemfsError:
                with suppress(MemfsError):
                    self._sweep()
                raise
        self._sweep()
        raise EraseRefused(
            "the repository changes again and again meanwhile",
            hint="try again when nobody works in it; the next memfs command ends what was begun",
        )

    def before(self) -> Before:
        """Remove what an earlier attempt left, and note how the repository is now."""
        self.clear(ended=False)
        RemoteHistory(self._repository).note_all()
        return Before.of(self._repository)

    def successor(self) -> Successor:
        """An empty repository, for what will be made."""
        # Never a folder that an earlier attempt's git could still be writing to.
        successor = Successor(self._repository, self._folder / f"new-{secrets.token_hex(4)}")
        successor.begin()
        return successor

    def put_in_place(
        self,
        successor: Successor,
        survey: Survey,
        before: Before,
        done: Rewritten,
        record: Mapping[str, Any],
        *,
        strict: bool,
        blobs: Collection[str] = (),
        paths: Collection[bytes] = (),
        remove_files: Callable[[], None] = lambda: None,
    ) -> None:
        """Complete the second repository, check it, and let it take the place of the first.

        Args:
            done: what was rewritten, and all that goes.
            record: what is noted durably before anything is changed, by which an interrupted one is known and ended.
            strict: whether it has to pass git's strict check.
            blobs, paths: what of the trees and the index is left out.
            remove_files: takes what is left out from the working tree.

        Raises:
            MovedRef: the repository changed meanwhile.
            EraseRefused: the new repository is not what it should be; nothing was begun.
            GitBusy: somebody holds a lock; nothing was begun.
        """
        kept = survey.facts.keys() - done.gone
        successor.pack(kept)
        successor.name(before.names, done)
        entries = entries_of(self._repository.git)
        successor.write_index({one.path for one in entries if one.path in paths or one.blob in blobs})
        successor.compare(_moved(survey, before, done), blobs, paths)
        successor.check(strict)
        RemoteHistory(self._repository).note_erased(_first_replaced(survey, done))
        swap(self._repository, successor, before, done, lambda: self._begin(record), remove_files)
        finish(self._repository, successor, before, done, kept.union(done.mapped.values()))
        head = self._repository.head_commit() or ""
        for journal in journals_of(self._parts):
            if os.path.lexists(journal.path):
                journal.drop([], tip=head)  # the commit behind the last drop has a new id

    def end_at_opening(self, store: Store, end: Callable[[float], T], hint: str) -> T | None:
        """End what a killed process began when a workspace is opened; None where that is not done.

        Where it cannot be done, that is among the store's notes; not where another process is at it.

        Args:
            end: given how many seconds to wait for locks.
            hint: what is to be known where it cannot be ended.
        """
        try:
            return end(_PATIENCE_AT_OPENING)
        except LockTimeout:
            return None
        except (MemfsError, OSError) as error:
            message = f"an interrupted {self._what} cannot be ended: {error}"
            remedy = (isinstance(error, CorruptRecord) and error.hint) or hint
            store.notes.append(Problem(path="", code=self._code, message=message, hint=remedy))
            return None

    # -- the record -----------------------------------------------------------------------------------------------
    @property
    def begun(self) -> bool:
        """Whether one has begun here and not ended; nothing is removed before that is durable."""
        return os.path.lexists(self._record)

    def record(self) -> dict[str, Any] | None:
        """What the one that has begun noted; None where none has.

        Raises:
            CorruptRecord: it cannot be read, or was not made here: a copy or clone cannot bring one that history obeys.
        """
        try:
            found = json.loads(io.read_file(self._record))
            made_here = found["folder"] == self._inode()
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self.damaged() from None
        if not made_here:
            raise CorruptRecord(
                "the record of an interrupted erase was not made here: it came with a copy of the repository",
                path=str(self._record),
                hint=f"remove {self._record}; what was to go is to be erased again",
            )
        return dict(found)

    def damaged(self) -> CorruptRecord:
        """The error for a record from which nobody can tell what was begun."""
        hint = f"remove {self._record} and erase again"
        return CorruptRecord("the record of an interrupted erase is damaged", path=str(self._record), hint=hint)

    def _begin(self, record: Mapping[str, Any]) -> None:
        io.write_file(self._record, json.dumps({"folder": self._inode(), **record}).encode("ascii"))

    def _inode(self) -> int:
        return os.stat(self._folder).st_ino

    def clear(self, ended: bool) -> None:
        """Remove what one left: its locks and its half-made repository; with ``ended`` the record, first of all.

        The caller holds ``commit.lock``: the process that began is dead or has ended.
        """
        if ended:
            io.unlink(self._record, missing_ok=True)
        if not self._folder.is_dir():
            return
        release(self._repository, self._folder / SWAP_LOCK)
        io.unlink(self._folder / SWAP_LOCK, missing_ok=True)
        for name in sorted(os.listdir(self._folder)):
            # a git process that outlived its eraser may still write there: then it stays for the next time
            if name != self._record.name:
                with suppress(StorageIO):
                    io.remove_all(self._folder / name)
        if not self.begun:
            with suppress(StorageIO):
                io.remove_all(self._folder)
            io.sync_folder(self._folder.parent)

    def renew_graph(self) -> None:
        """Write git's cache of the graph again."""
        with suppress(GitFailed):  # a cache, and somebody else may be writing it
            maintenance.write_graph(self._repository, PATIENCE)

    def _sweep(self) -> None:
        """Take away what was prepared, where nothing was begun."""
        if not self.begun:
            self.clear(ended=True)

    @contextmanager
    def _no_syncs(self, patience: float) -> Iterator[None]:
        """Hold the sync locks of all workspaces of the repository, and those for the events of sessions.

        A process that read a session's events before they were removed would store it after the proof of an erase.
        """
        states = states_of(self._parts)
        spools = [state / append_log.FOLDER for state in states]
        locked = [*(state / LOCK for state in states), *(one / append_log.LOCK for one in spools if one.is_dir())]
        with ExitStack() as locks:
            for path in locked:
                try:
                    locks.enter_context(FileLock(path).hold(self._what, timeout=patience))
                except StorageIO:
                    if path.parent.exists():  # else its branch was dropped meanwhile, and nobody syncs there
                        raise
            yield

    @contextmanager
    def _no_writes(self, patience: float) -> Iterator[None]:
        """Hold the locks of the stores of all workspaces of the repository."""
        own = self._parts.lock
        others = [state / own.path.name for state in states_of(self._parts) if state != self._repository.state]
        with ExitStack() as locks:
            for lock in (own, *(FileLock(path) for path in others if os.path.lexists(path))):
                locks.enter_context(lock.hold(self._what, timeout=patience))
            yield


def _first_replaced(survey: Survey, done: Rewritten) -> list[str]:
    """The commits that are replaced, but for those that came of another one."""
    replaced = survey.commits.keys() & done.gone
    return sorted(commit for commit in replaced if replaced.isdisjoint(survey.commits[commit][1]))


def _moved(survey: Survey, before: Before, done: Rewritten) -> dict[str, str]:
    """The commits that refs name, but for notes, with those that take their places."""
    refs = before.names.refs
    notes = {found for ref, found in refs.items() if ref.startswith("refs/notes/")}
    tips = {found: done.mapped.get(found, NULL) for found in refs.values() if found in survey.commits}
    return {old: new for old, new in tips.items() if new != NULL and old not in notes}


def states_of(parts: Parts) -> list[Path]:
    """The state folders of all workspaces that the repository ever had, those of removed working trees included."""
    return sorted(path for path in parts.repository.state.parent.iterdir() if path.is_dir())


def journals_of(parts: Parts) -> Iterator[Journal]:
    """The journals of all workspaces of the repository, each open until the next is asked for."""
    yield parts.journal
    for state in states_of(parts):
        path = state / parts.journal.path.name
        if state != parts.repository.state and os.path.lexists(path):
            journal = Journal(path)
            try:
                yield journal
            finally:
                journal.close()


CUT = "cut"
"""The source of a commit that stands for the history before it."""
_WAY_OUT = (
    "'memfs team branch drop' those of agents, where need be after 'memfs team branch merge'; "
    "'git worktree remove' the others, or 'git worktree prune' those gone"
)
_PATIENCE = 5.0
_PAUSE = 0.05
# What only reads, or lasts as long as an editor is open, is in nobody's way.
_HARMLESS = frozenset(
    {"blame", "cat-file", "check-ignore", "config", "credential-cache--daemon", "describe", "diff", "for-each-ref"}
    | {"fsmonitor--daemon", "grep", "log", "ls-files", "ls-tree", "rev-list", "rev-parse", "show", "status"}
)
# What a killed memfs may have left at work: it would bring back what is taken out, or write into what is prepared.
_OF_OURS = frozenset(
    {"commit-graph", "fetch", "index-pack", "pack-objects", "push", "repack", "unpack-objects", "update-index"}
    | {"update-ref"}
)


def refuse_kind(repository: Repository) -> None:
    """Refuse a repository whose objects are not all its own, or which others work in.

    Raises:
        EraseRefused: with the way out.
    """
    for check in _KINDS:
        check(repository)


def refuse_damage(repository: Repository) -> bool:
    """Refuse a damaged repository; return whether it passes git's strict check, which old ones may not.

    Raises:
        EraseRefused: it is damaged.
    """
    try:
        fsck(repository, strict=True)
    except GitFailed:
        try:
            fsck(repository, strict=False)
        except GitFailed as error:
            raise EraseRefused(
                f"the repository is damaged: {error.message}", hint="'git fsck --full' names what is missing"
            ) from error
        return False
    return True


def refuse_busy(repository: Repository) -> None:
    """Refuse while git is in the middle of something, or a person's own command runs.

    Raises:
        EraseRefused: with the way out.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        found = situation(repository.layout, repository.head(), allow_detached=False)
        reason = found.reason if found else _running(repository)
        if not reason:
            return
        if (found and not found.transient) or time.monotonic() >= until:
            hint = "'git switch' to a branch first" if reason == "HEAD is detached" else "finish it first"
            raise EraseRefused(reason, hint=hint)
        time.sleep(_PAUSE)


def _running(repository: Repository) -> str:
    layout = repository.layout
    for process in running_git():
        folder = Path(process.folder)
        inside = folder.is_relative_to(layout.work_tree) or folder.is_relative_to(layout.common_dir)
        ours = folder.is_relative_to(layout.common_dir / "memfs")
        if inside and (process.verb in _OF_OURS if ours else process.verb not in _HARMLESS):
            return f"git {process.verb} is running (process {process.pid})"
    return ""


# -- sorts of repositories ------------------------------------------------------------------------------------------
def _no_other_trees(repository: Repository) -> None:
    folder = repository.common_dir / "worktrees"
    others = sorted(os.listdir(folder)) if folder.is_dir() else []
    if repository.work_tree.is_relative_to(repository.common_dir):
        raise EraseRefused(
            "a memory on its own branch shares its repository with code",
            hint="do it in a clone of that branch alone: see 'Erasing' in docs/teams/own-branch.md",
        )
    if repository.git_dir != repository.common_dir:
        raise EraseRefused(
            "this is a linked working tree, and others use the same history",
            hint=f"run it in the main working tree; before, {_WAY_OUT}",
        )
    if others:
        raise EraseRefused(
            f"other working trees use this history: {', '.join(others)}",
            hint=_WAY_OUT,
        )


def _no_foreign_objects(repository: Repository) -> None:
    top = repository.common_dir / "objects"
    if (
        any(path.is_symlink() for path in (top, *top.iterdir()))
        or os.stat(top).st_dev != os.stat(repository.state).st_dev
    ):
        raise EraseRefused("the objects lie elsewhere", path=str(top), hint="move them into the git folder")
    for name in ("alternates", "http-alternates"):
        if (top / "info" / name).exists():
            raise EraseRefused(
                "the repository borrows objects from another one",
                path=str(top / "info" / name),
                hint="'git repack -a -d' and remove that file; then erase in the other one, too",
            )


def _whole(repository: Repository) -> None:
    if (repository.common_dir / "shallow").exists():
        raise EraseRefused("this is a shallow clone", hint="'git fetch --unshallow' first")
    settings = read_config(repository.common_dir / "config")
    promised = any(name.startswith("remote.") and name.endswith(".promisor") for name in settings)
    if promised or "extensions.partialclone" in settings:
        raise EraseRefused("this is a partial clone", hint="clone it anew without --filter")


def _not_replaced(repository: Repository) -> None:
    common = repository.common_dir
    packed = common / "packed-refs"
    named = packed.exists() and b" refs/replace/" in io.read_file(packed)
    if named or any(names for _, _, names in os.walk(common / "refs/replace")) or (common / "info/grafts").exists():
        raise EraseRefused(
            "the repository replaces objects by others", hint="'git replace -d' them, and remove .git/info/grafts"
        )


def _plain_index(repository: Repository) -> None:
    if any(name.startswith("sharedindex.") for name in os.listdir(repository.git_dir)):
        raise EraseRefused(
            "the index is split", hint="'git update-index --no-split-index' and remove .git/sharedindex.*"
        )


def _no_submodule(repository: Repository) -> None:
    parts = repository.common_dir.parts
    if any(above == ".git" and name == "modules" for above, name in pairwise(parts)):
        raise EraseRefused(
            "this repository is a submodule: the one above it names its commits",
            hint="clone it on its own, erase there, and name the new commit above",
        )


_KINDS = (_no_other_trees, _no_foreign_objects, _whole, _not_replaced, _plain_index, _no_submodule)


def is_shared(repository: Repository) -> bool:
    """Whether memfs did not make the repository: its first commit would be memfs's own, and say so.

    That is the one of ``init``, or the one that a cut of the history of such a repository put first.
    """
    head = repository.head_commit()
    if head is None:
        return repository.prefix != ""
    roots = repository.git.run("rev-list", "--max-parents=0", head, timeout=PATIENCE).decode().split()
    if len(roots) != 1 or repository.prefix:
        return True
    first = parse_commit(repository.object(roots[0]).data)
    settings = repository.read(roots[0], SETTINGS_FILE)
    try:
        adopt = tomllib.loads((settings or b"").decode()).get("history", {}).get("adopt")
    except (ValueError, AttributeError):
        adopt = None
    sources = first.trailers.get(SOURCE, ())
    return CUT not in sources and ("init" not in sources or adopt != "auto")

"""Replace the history of a repository by a rewritten one, while nobody else writes into it.

An erase and a cut of history both go this way: look at everything, build the new repository beside the old one, and
swap it in; where somebody changed the repository meanwhile, look again. A record says what goes before anything does,
and who finds one does the same again.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
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
from memfs.git.refs import HEX
from memfs.git.remote import LOCK, RemoteHistory
from memfs.git.repository import Repository
from memfs.git.rewrite import PATIENCE, SWAP_LOCK, HistoryRemoval, MovedRef, Rewriter, Survey, fsck, release
from memfs.git.rewrite_text import Traces
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

        A process that read a session's events before they were removed would store it after the proof of an erase.

        Args:
            patience: seconds to wait for each lock.

        Raises:
            LockTimeout: somebody held one for longer.
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
            locks.enter_context(self._parts.commit_lock.hold(self._what, timeout=patience))
            recover(self._repository)
            yield

    def attempts(self, attempt: Callable[[], T], patience: float) -> T:
        """Do what is attempted while no workspace of the repository writes, again where the repository changes.

        Raises:
            EraseRefused: it is busy, or changes again and again; where nothing was begun, nothing was changed.
        """
        own = self._parts.lock
        others = (state / own.path.name for state in states_of(self._parts) if state != self._repository.state)
        writers = [own, *(FileLock(path) for path in others if os.path.lexists(path))]
        for _ in range(_ATTEMPTS):
            try:
                with ExitStack() as locks:
                    for lock in writers:
                        locks.enter_context(lock.hold(self._what, timeout=patience))
                    return attempt()
            except MovedRef:
                continue
            except MemfsError as error:
                with suppress(MemfsError):
                    self._sweep()
                if isinstance(error, GitBusy):
                    raise EraseRefused(error.message, path=error.path, hint=error.hint) from error
                raise
        self._sweep()
        raise EraseRefused(
            "the repository changes again and again meanwhile",
            hint="try again when nobody works in it; the next memfs command ends what was begun",
        )

    def survey(self, known: HistoryRemoval | None) -> tuple[Survey, frozenset[str]]:
        """Look at everything, after removing what an earlier attempt left.

        Args:
            known: what the one that has begun removes.

        Returns:
            The survey, and what of that may be gone already: the survey is without it.
        """
        refuse_kind(self._repository)
        self.clear(ended=False)
        refuse_busy(self._repository)
        RemoteHistory(self._repository).note_all()
        survey = Survey(self._repository)
        return survey, survey.leave_out(known.gone) if known else frozenset()

    @contextmanager
    def swapped(self, survey: Survey, removal: HistoryRemoval, record: Mapping[str, Any]) -> Iterator[Rewriter]:
        """Take something out of the repository; the block removes its files, while all locks are held.

        Args:
            record: what is noted beside the removal, durably before anything is changed; by it an interrupted one is
                known and ended.

        Raises:
            MovedRef: the repository changed meanwhile.
            EraseRefused: the new repository is not what it should be; nothing was begun.
            GitBusy: somebody holds a lock; nothing was begun.
        """
        strict = refuse_damage(self._repository)
        # Never a folder that an earlier attempt's git could still be writing to.
        rewriter = Rewriter(self._repository, survey, removal, self._folder / f"new-{secrets.token_hex(4)}")
        rewriter.build(strict)
        RemoteHistory(self._repository).note_erased(rewriter.first_replaced())
        with rewriter.locked():
            self._begin({**record, **_noted(removal), "gone": sorted(rewriter.gone)})
            rewriter.add_pack()
            yield rewriter
            rewriter.turn()
        rewriter.finish()
        head = self._repository.head_commit() or ""
        for journal in journals_of(self._parts):
            if os.path.lexists(journal.path):
                journal.drop([], tip=head)  # the commit behind the last drop has a new id
        with suppress(GitFailed):  # a cache, and somebody else may be writing it
            maintenance.write_graph(self._repository, PATIENCE)

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

    def record(self) -> tuple[HistoryRemoval, dict[str, Any]] | None:
        """What the one that has begun removes, and all that it noted; None where none has.

        Raises:
            CorruptRecord: it cannot be read, or was not made here: a copy or clone cannot bring one that history obeys.
        """
        try:
            found = dict(json.loads(io.read_file(self._record)))
            made_here = found["folder"] == self._inode()
            removal = _removal_of(found)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self.damaged() from None
        if not made_here:
            raise CorruptRecord(
                "the record of an interrupted erase was not made here: it came with a copy of the repository",
                path=str(self._record),
                hint=f"remove {self._record}; what was to go is to be erased again",
            )
        return removal, found

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

    def _sweep(self) -> None:
        """Take away what was prepared, where nothing was begun."""
        if not self.begun:
            self.clear(ended=True)


def _noted(removal: HistoryRemoval) -> dict[str, Any]:
    """What ``_removal_of`` makes the removal of again, where it is interrupted."""
    return {
        "paths": sorted(os.fsdecode(path) for path in removal.paths),
        "blobs": sorted(removal.blobs),
        "versions": [sorted(phrase.hex() for phrase in version) for version in removal.traces.versions],
        "names": [name.hex() for name in removal.traces.names],
        "commits": sorted(removal.commits),
        "last": removal.last,
        "first": removal.first.hex(),
    }


def _removal_of(record: Mapping[str, Any]) -> HistoryRemoval:
    commits, last = record.get("commits", ()), record.get("last", "")
    if not all(map(HEX.fullmatch, (*record["blobs"], *record["gone"], *commits, *([last] if last else ())))):
        raise ValueError("it names no object")
    versions = (frozenset(map(bytes.fromhex, version)) for version in record["versions"])
    return HistoryRemoval(
        blobs=frozenset(record["blobs"]),
        paths=frozenset(map(os.fsencode, record["paths"])),
        traces=Traces(versions=tuple(versions), names=tuple(map(bytes.fromhex, record["names"]))),
        commits=frozenset(commits),
        last=last,
        first=bytes.fromhex(record.get("first", "")),
        gone=frozenset(record["gone"]),
    )


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
    for reason, hint in (*_shared(repository), *_borrowed(repository)):
        raise EraseRefused(reason, hint=hint)


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
def _shared(repository: Repository) -> Iterator[tuple[str, str]]:
    """Why others depend on the history, and the way out."""
    common = repository.common_dir
    others = sorted(io.listed(common / "worktrees"))
    if repository.work_tree.is_relative_to(common):
        yield (
            "a memory on its own branch shares its repository with code",
            "do it in a clone of that branch alone: see 'Erasing' in docs/teams/own-branch.md",
        )
    if repository.git_dir != common:
        yield (
            "this is a linked working tree, and others use the same history",
            f"run it in the main working tree; before, {_WAY_OUT}",
        )
    if others:
        yield f"other working trees use this history: {', '.join(others)}", _WAY_OUT
    if any(above == ".git" and name == "modules" for above, name in pairwise(common.parts)):
        yield (
            "this repository is a submodule: the one above it names its commits",
            "clone it on its own, erase there, and name the new commit above",
        )


def _borrowed(repository: Repository) -> Iterator[tuple[str, str]]:
    """Why what history consists of is not all here or not what it seems, and the way out."""
    common = repository.common_dir
    top = common / "objects"
    linked = any(path.is_symlink() for path in (top, *top.iterdir()))
    if linked or os.stat(top).st_dev != os.stat(repository.state).st_dev:
        yield f"the objects lie elsewhere than in {top}", "move them into the git folder"
    for name in ("alternates", "http-alternates"):
        if (top / "info" / name).exists():
            hint = f"'git repack -a -d' and remove {top / 'info' / name}; then erase in the other one, too"
            yield "the repository borrows objects from another one", hint
    if (common / "shallow").exists():
        yield "this is a shallow clone", "'git fetch --unshallow' first"
    settings = read_config(common / "config")
    if any(re.fullmatch(r"remote\..*\.promisor|extensions\.partialclone", name) for name in settings):
        yield "this is a partial clone", "clone it again without --filter"
    if (common / "info/grafts").exists() or repository.git.run("for-each-ref", "refs/replace/"):
        yield "the repository replaces objects by others", "'git replace -d' them, and remove .git/info/grafts"
    if any(name.startswith("sharedindex.") for name in io.listed(repository.git_dir)):
        yield "the index is split", "'git update-index --no-split-index' and remove .git/sharedindex.*"


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

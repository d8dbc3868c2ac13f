"""Erase an item from files, history and every other place, with a proof.

All locks are held meanwhile, and an erase that was interrupted is finished by the next process that opens the
workspace.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memfs import errors
from memfs.admin.erase_purge import (
    EraseName,
    EraseProof,
    Target,
    TargetFinder,
    journals_of,
    out_of_reach,
    prove,
    purge,
    states_of,
)
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass, replace
from memfs.fs import append_log, io
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.git import rewrite
from memfs.git.busy import running_git, situation
from memfs.git.commit_object import SOURCE
from memfs.git.commits import recover
from memfs.git.layout import ERASE_FOLDER, ERASE_RECORD, HEX, read_config
from memfs.git.process import entries_of, staged_changes
from memfs.git.remote import LOCK, RemoteHistory
from memfs.git.repository import Repository
from memfs.model import Problem
from memfs.model.item import object_id
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

if TYPE_CHECKING:
    from memfs.admin.backup import Backups
    from memfs.usage import Usage

LOCK_WAIT = 60.0
_PATIENCE_AT_OPENING = 0.2
_ATTEMPTS = 4

Wanted = TypeVar("Wanted")
Done = TypeVar("Done")


class HistoryRewrite(Generic[Wanted, Done]):
    """What rewrites the history of one repository.

    Attributes:
        what: the reason for processes that wait meanwhile.
        code: of the problem that an interrupted one cannot be ended; ``again`` is what is to be known then.
    """

    what: str
    code: str
    again: str

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store, self._parts = store, parts
        self._repository = parts.repository
        self._folder = parts.repository.state / ERASE_FOLDER
        self._record = parts.repository.state / ERASE_RECORD

    def _attempt(self, wanted: Wanted | None) -> Done:
        """Do what is wanted, or what a dead process had begun to do, while all locks are held.

        Raises:
            MovedRef: the repository changed meanwhile.
            EraseRefused: it cannot be rewritten as things stand.
        """
        raise NotImplementedError

    def _end(self, patience: float) -> None:
        """End what was interrupted, and note among the store's notes what it was."""
        raise NotImplementedError

    def _end_at_opening(self) -> None:
        """End what a killed process began when a workspace is opened.

        Where it cannot be done, that is among the store's notes; not where another process is at it.
        """
        try:
            self._end(_PATIENCE_AT_OPENING)
        except errors.LockTimeout:
            return
        except (errors.MemfsError, OSError) as error:
            message = f"an interrupted {self.what} cannot be ended: {error}"
            hint = (error.hint if isinstance(error, errors.CorruptRecord) else "") or self.again
            self._store.notes.append(Problem(path="", code=self.code, message=message, hint=hint))

    def _alone(self, wanted: Wanted | None, patience: float) -> Done:
        """Attempt it while no workspace of the repository writes or syncs; again where the repository changes.

        A process that read a session's events before they were removed would store it after the proof of an erase.

        Args:
            patience: seconds to wait for each lock.

        Raises:
            LockTimeout: somebody held one for longer.
            EraseRefused: it cannot be done, or the repository changes again and again; where nothing was begun, nothing
                was changed.
        """
        own, states = self._parts.lock, states_of(self._parts)
        spools = (state / append_log.FOLDER for state in states)
        locked = [*(state / LOCK for state in states), *(one / append_log.LOCK for one in spools if one.is_dir())]
        others = (state / own.path.name for state in states if state != self._repository.state)
        writers = [own, *(FileLock(path) for path in others if os.path.lexists(path))]
        with ExitStack() as locks:
            for path in locked:
                try:
                    locks.enter_context(FileLock(path).hold(self.what, timeout=patience))
                except errors.StorageIO:
                    if path.parent.exists():  # else its branch was dropped meanwhile, and nobody syncs there
                        raise
            locks.enter_context(self._parts.commit_lock.hold(self.what, timeout=patience))
            recover(self._repository)
            for _ in range(_ATTEMPTS):
                try:
                    with ExitStack() as writing:
                        for lock in writers:
                            writing.enter_context(lock.hold(self.what, timeout=patience))
                        return self._attempt(wanted)
                except rewrite.MovedRef:
                    continue
                except errors.MemfsError:
                    with suppress(errors.MemfsError):
                        self._sweep()
                    raise
            self._sweep()
        raise errors.EraseRefused(
            "the repository changes again and again meanwhile",
            hint="try again when nobody works in it; the next memfs command ends what was begun",
        )

    def _survey(self, known: rewrite.HistoryRemoval | None) -> tuple[rewrite.HistorySurvey, frozenset[str]]:
        """Look at everything, after removing what an earlier attempt left.

        Args:
            known: what the one that has begun removes.

        Returns:
            The survey, and what of that may be gone already: the survey is without it.
        """
        refuse_kind(self._repository)
        self._clear(ended=False)
        refuse_busy(self._repository)
        RemoteHistory(self._repository).note_all()
        survey = rewrite.HistorySurvey(self._repository)
        return survey, survey.leave_out(known.gone) if known else frozenset()

    @contextmanager
    def _swapped(
        self, survey: rewrite.HistorySurvey, removal: rewrite.HistoryRemoval, record: Mapping[str, Any]
    ) -> Iterator[rewrite.Rewriter]:
        """Take something out of the repository; the block removes its files, while all locks are held.

        Args:
            record: what is noted beside the removal, durably before anything is changed; by it an interrupted one is
                known and ended.

        Raises:
            MovedRef: the repository changed meanwhile.
            EraseRefused: the new repository is not what it should be, or somebody holds a lock; nothing was begun.
        """
        try:
            rewrite.fsck(self._repository)
        except errors.GitFailed as error:
            raise errors.EraseRefused(
                f"the repository is damaged: {error.message}", hint="'git fsck --full' names what is missing"
            ) from error
        # Never a folder that an earlier attempt's git could still be writing to.
        rewriter = rewrite.Rewriter(self._repository, survey, removal, self._folder / f"new-{secrets.token_hex(4)}")
        rewriter.build()
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

    # -- the record -----------------------------------------------------------------------------------------------
    def _begun(self) -> bool:
        """Whether one has begun here and not ended; nothing is removed before that is durable."""
        return os.path.lexists(self._record)

    def _recorded(self) -> tuple[rewrite.HistoryRemoval, dict[str, Any]] | None:
        """What the one that has begun removes, and all that it noted; None where none has.

        Raises:
            CorruptRecord: it cannot be read, or was not made here: a copy or clone cannot bring one that history obeys.
        """
        try:
            found = dict(json.loads(io.read_file(self._record)))
            if found["folder"] == self._inode():
                return _removal_of(found), found
            reason = "was not made here: it came with a copy of the repository"
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            reason = "is damaged"
        raise errors.CorruptRecord(
            f"the record of an interrupted erase or cut of history {reason}",
            path=str(self._record),
            hint=f"remove {self._record}, then erase or cut again",
        )

    def _begin(self, record: Mapping[str, Any]) -> None:
        io.write_file(self._record, json.dumps({"folder": self._inode(), **record}).encode("ascii"))

    def _inode(self) -> int:
        return os.stat(self._folder).st_ino

    def _clear(self, ended: bool) -> None:
        """Remove what one left: its locks and its half-made repository; with ``ended`` the record, first of all.

        The caller holds ``commit.lock``: the process that began is dead or has ended.
        """
        if ended:
            io.unlink(self._record, missing_ok=True)
        if not self._folder.is_dir():
            return
        rewrite.release(self._repository, self._folder / rewrite.SWAP_LOCK)
        io.unlink(self._folder / rewrite.SWAP_LOCK, missing_ok=True)
        for name in sorted(os.listdir(self._folder)):
            # a git process that outlived its eraser may still write there: then it stays for the next time
            if name != self._record.name:
                with suppress(errors.StorageIO):
                    io.remove_all(self._folder / name)
        if not self._begun():
            with suppress(errors.StorageIO):
                io.remove_all(self._folder)
            io.sync_folder(self._folder.parent)

    def _sweep(self) -> None:
        """Take away what was prepared, where nothing was begun."""
        if not self._begun():
            self._clear(ended=True)


def _noted(removal: rewrite.HistoryRemoval) -> dict[str, Any]:
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


def _removal_of(record: Mapping[str, Any]) -> rewrite.HistoryRemoval:
    commits, last = record.get("commits", ()), record.get("last", "")
    if not all(map(HEX.fullmatch, (*record["blobs"], *record["gone"], *commits, *([last] if last else ())))):
        raise ValueError("it names no object")
    if not commits and not (type(record["reference"]) is str and type(record["is_path"]) is bool):
        raise ValueError("it names neither commits nor an item")
    versions = (frozenset(map(bytes.fromhex, version)) for version in record["versions"])
    return rewrite.HistoryRemoval(
        blobs=frozenset(record["blobs"]),
        paths=frozenset(map(os.fsencode, record["paths"])),
        traces=rewrite.Traces(versions=tuple(versions), names=tuple(map(bytes.fromhex, record["names"]))),
        commits=frozenset(commits),
        last=last,
        first=bytes.fromhex(record.get("first", "")),
        gone=frozenset(record["gone"]),
    )


CUT = "cut"
"""The source of a commit that stands for the history before it."""
_WAY_OUT = "'git worktree remove' the others, or 'git worktree prune' those gone"
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
    for reason, hint in chain(_shared(repository), _borrowed(repository)):
        raise errors.EraseRefused(reason, hint=hint)


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
            raise errors.EraseRefused(reason, hint=hint)
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
    roots = repository.git.run("rev-list", "--max-parents=0", head, timeout=rewrite.PATIENCE).decode().split()
    if len(roots) != 1 or repository.prefix:
        return True
    sources = repository.commit_object(roots[0]).trailers.get(SOURCE, ())
    return {CUT, "init"}.isdisjoint(sources)


_LARGEST = 1 << 31
_NEVER = (SETTINGS_FILE, CONTENT, f"{CONTENT}/.gitattributes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasePlan:
    """What an erase would do.

    Attributes:
        reference: what was named.
        paths: the paths it ever had.
        copies: other paths where the same bytes were; they go, too.
        versions: how many contents it had.
        commits: how many commits are rewritten.
        quotes: files that hold a line of it and stay.
        shared: whether memfs did not make the repository, so that rewriting it must be asked for.
        unreachable: where it may be and memfs cannot go.
        backups: those made before: a new one replaces them where it can be made in the same folder.
        refused: why it could not be done now, "" when nothing stands in the way.
    """

    reference: str
    paths: tuple[str, ...]
    copies: tuple[str, ...]
    versions: int
    commits: int
    quotes: tuple[str, ...]
    shared: bool
    unreachable: tuple[str, ...]
    refused: str = ""
    backups: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseResult:
    """What an erase did, and the proof.

    Attributes:
        plan: as it was carried out.
        proof: what was read afterwards, and every hit in it.
        head: HEAD's commit now.
        backups_left: backups made before that no new one could replace; they may hold it until a person deletes them.
    """

    plan: ErasePlan
    proof: EraseProof
    head: str | None
    backups_left: tuple[Path, ...] = ()


class Eraser(HistoryRewrite[EraseName, "tuple[Target, ErasePlan] | None"]):
    """Erases from one workspace and its repository.

    Attributes:
        ended: the interrupted erase that was ended when the workspace was opened, None where there was none.
    """

    what = "erase"
    code = "EraseUnfinished"
    again = "what is to go may still be in history; the next memfs command tries again"

    def __init__(self, store: Store, parts: Parts, backups: Backups, usage: Usage) -> None:
        super().__init__(store, parts)
        self._backups, self._usage = backups, usage
        self.ended: EraseResult | None = None

    def plan(self, reference: str, is_path: bool = False) -> ErasePlan:
        """What ``erase`` would do; changes nothing.

        Raises:
            ItemNotFound: nothing ever had that name.
        """
        survey = rewrite.HistorySurvey(self._repository)
        target = TargetFinder(self._parts, survey, _named(reference, is_path)).find()
        self._require_found(target)
        plan = self._plan(target, rewrite.Rewriter(self._repository, survey, target.removal))
        with suppress(errors.MemfsError):  # a place that cannot be read
            plan = replace(plan, backups=tuple(self._backups.kept()))
        try:
            refuse_kind(self._repository)
            refuse_busy(self._repository)
            self._refuse_edited(target)
            self._refuse_secondary()
        except errors.EraseRefused as error:
            return replace(plan, refused=str(error))
        return plan

    def erase(self, reference: str, is_path: bool = False, *, rewrite_shared: bool = False) -> EraseResult:
        """Erase an item, or what is at a path, from everything that memfs can reach on this machine.

        Args:
            reference: an id, or with ``is_path`` a path from the workspace's folder.
            rewrite_shared: rewrite also the history of a repository that memfs did not make.

        Raises:
            EraseRefused: history cannot be rewritten as things stand; nothing was erased.
            ItemNotFound: nothing ever had that name.
            MemfsError: it was interrupted; where it had begun, the next opening of the workspace ends it.
        """
        self._parts.require_open()
        if self._begun():
            self._carry_out(None, LOCK_WAIT)
        named = _named(reference, is_path)
        refuse_kind(self._repository)
        if is_shared(self._repository) and not rewrite_shared:
            raise errors.EraseRefused(
                "memfs did not make this repository: others may rely on its history",
                hint="talk to them, then use --rewrite-shared-history",
            )
        flushed = self._store.flush(adopt=False)
        if flushed.reason:
            raise errors.EraseRefused(flushed.reason, hint="erase when that is over")
        self._refuse_secondary()
        self._usage.flush()  # what is counted later would tell of it again
        done = self._carry_out(named, LOCK_WAIT)
        assert done is not None  # it was named, so it was done or refused
        return done

    def take_up(self) -> None:
        """End an interrupted erase when a workspace is opened; what came of it is among the store's notes."""
        self._parts.require_open()
        self._end_at_opening()

    # -- the steps ------------------------------------------------------------------------------------------------
    def _end(self, patience: float) -> None:
        self.ended = self._carry_out(None, patience)
        if self.ended is not None:
            traces = len(self.ended.proof.hits) + len(self.ended.backups_left)
            message = f"an interrupted erase was ended; {traces} trace(s) of it are left"
            left = ", ".join(map(str, self.ended.backups_left))
            hint = f"delete {left}" if left else "nothing is to be done"
            self._store.notes.append(Problem.warning("", "EraseEnded", message, hint))

    def _carry_out(self, named: EraseName | None, patience: float) -> EraseResult | None:
        """Erase what is named, or what a dead process had begun to; None where neither is."""
        done = self._alone(named, patience)
        if done is None:
            return None
        target, plan = done
        left, failed = self._backups.renew()
        if failed is not None:
            self._store.note_failure(failed)
        with self._parts.commit_lock.hold("erase", timeout=patience):
            proof = prove(self._parts, target)
            self._clear(ended=True)
        self._store.refresh()
        head = self._repository.head_commit()
        return EraseResult(plan=plan, proof=proof, head=head, backups_left=tuple(left))

    def _attempt(self, wanted: EraseName | None) -> tuple[Target, ErasePlan] | None:
        """Take the target out of history and the stores; the record stays until all else is done."""
        known, named = self._known() or (None, wanted)
        if named is None:
            self._clear(ended=True)
            return None
        survey, left_out = self._survey(known)
        target = TargetFinder(self._parts, survey, named, known).find()
        if known is None:
            self._require_found(target)
        self._refuse_edited(target)
        removal = replace(target.removal, gone=left_out)
        record = {"reference": named.reference, "is_path": named.is_path}
        with self._swapped(survey, removal, record) as rewriter:
            self._remove_files(target)
        plan = self._plan(target, rewriter)
        purge(self._parts, target)
        return target, plan

    def _known(self) -> tuple[rewrite.HistoryRemoval, EraseName] | None:
        """What an erase that was interrupted is about.

        Raises:
            CorruptRecord: nobody can tell.
            EraseRefused: it was a cut of history that was interrupted.
        """
        if (found := self._recorded()) is None:
            return None
        removal, record = found
        if removal.commits:
            raise errors.EraseRefused("a cut of history was interrupted", hint="the next memfs command here ends it")
        return removal, EraseName(reference=record["reference"], is_path=record["is_path"])

    def _remove_files(self, target: Target) -> None:
        """Remove the working files that hold a version; what a person put in their place stays."""
        for local in self._store.edit_finder.own_paths():
            if self._parts.is_local(local) and target.named.means(local):
                self._parts.tree.remove(local)
        with closing(Tree(self._repository.work_tree)) as tree:
            for path in sorted({*target.removal.paths, *target.copies}):
                name = os.fsdecode(path)
                try:
                    data = tree.read(name, _LARGEST).data
                    if self._repository.blob_id(data) in target.removal.blobs or len(data.strip()) == 0:
                        tree.remove(name, over=sha256(data))
                except (FileNotFoundError, errors.NotRegularFile, errors.ItemTooLarge, errors.PathEscape, FileChanged):
                    continue
            # A killed writer, an eraser among them, leaves contents under names of its own.
            below = {entry.path.rpartition("/")[0] for entry in self._parts.tree.scan(CONTENT, hidden=True)}
            folders = {self._repository.full(folder) for folder in below if folder}
            for folder in folders | {path.rpartition(b"/")[0] for path in {*target.removal.paths, *target.copies}}:
                tree.sweep(os.fsdecode(folder))

    # -- conditions -----------------------------------------------------------------------------------------------
    def _require_found(self, target: Target) -> None:
        on_disk = any(map(target.named.means, self._store.edit_finder.own_paths()))
        if not target.removal.paths and not target.removal.blobs and not on_disk and not target.removal.traces.versions:
            raise errors.ItemNotFound(
                f"nothing is or ever was called {target.named.reference!r}", hint="give the whole id, or a path"
            )

    def _refuse_edited(self, target: Target) -> None:
        """Refuse where a change that a person has not committed would be lost."""
        edited = [os.fsdecode(path) for path in self._edited(target)]
        if edited:
            raise errors.EraseRefused(
                f"changes are not committed: {', '.join(edited)}",
                path=edited[0],
                hint="commit them, or remove what is not to stay, from the index as well",
            )

    def _edited(self, target: Target) -> Iterator[bytes]:
        """Where a person's change of what goes is no version that is known, or a version lies staged elsewhere."""
        entries = entries_of(self._repository.git)
        staged = staged_changes(self._repository.git, self._repository.head_commit())
        found = {one.path for one in entries if target.means(one.path) != (one.blob in target.removal.blobs)}
        wrong = found & staged.keys()
        yield from sorted(wrong)
        index = {one.path: one.blob for one in entries}
        own = (path for path in self._store.edit_finder.own_paths() if not self._parts.is_local(path))
        named = {self._repository.full(path): path for path in own if target.named.means(path)}
        for path in sorted({*filter(target.means, index), *named} - wrong):
            try:
                most = _LARGEST if path in index else READ_LIMIT
                data = io.read_file(self._repository.work_tree / os.fsdecode(path), most)
            except FileNotFoundError:
                continue
            except errors.MemfsError:  # no version of it; one that git knows of is missing all the same
                if path in index:
                    yield path
                continue
            known = {self._repository.head_blob(named[path]) if path in named else index.get(path)}
            if object_id("blob", data) not in known | target.removal.blobs:
                yield path

    def _refuse_secondary(self) -> None:
        """Refuse where the secondary location may hold the item and cannot be looked into."""
        secondary = self._parts.secondary
        if secondary is None:
            return
        if secondary.operations():
            raise errors.EraseRefused(
                "writes wait in the secondary location until the workspace's disk takes them",
                path=str(secondary.place),
                hint="'memfs status' says why they could not come home; erase when they have",
            )
        reason = str(secondary.unreadable or "") or secondary.try_out()
        gone = next((problem.message for problem in secondary.problems() if problem.code == "StorageUnavailable"), "")
        if reason or gone:
            raise errors.EraseRefused(
                f"the secondary location cannot be looked into: {gone or reason}",
                path=str(secondary.place),
                hint="mount that disk, or make it writable; if it is lost, take storage.secondary out of the settings",
            )

    # -- the plan -------------------------------------------------------------------------------------------------
    def _plan(self, target: Target, rewriter: rewrite.Rewriter) -> ErasePlan:
        below, removal = self._repository.below, target.removal
        return ErasePlan(
            reference=target.named.reference,
            paths=tuple(sorted(below(path) or os.fsdecode(path) for path in removal.paths)),
            copies=tuple(os.fsdecode(path) for path in target.copies),
            versions=len(removal.blobs),
            commits=rewriter.commits,
            quotes=target.quotes,
            shared=is_shared(self._repository),
            unreachable=tuple(out_of_reach(self._parts)),
        )


def _named(reference: str, is_path: bool) -> EraseName:
    plain = reference.rstrip("/")
    if is_path and (plain in _NEVER or not plain.startswith(f"{CONTENT}/")):
        raise errors.EraseRefused(
            f"{plain!r} is no memory", path=plain, hint=f"name an item, or a file or folder below {CONTENT}/"
        )
    return EraseName(reference=plain, is_path=is_path)

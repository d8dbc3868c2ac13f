"""Erase an item from files, history and every other place, with a proof; cut old history.

All locks are held meanwhile, and what was interrupted is finished by the next process that opens the workspace.

A person has to ask for a cut, and only the history of a repository that memfs made is cut: what was committed before a
moment goes into a bundle and leaves the repository. The state at the cut stays as the new first commit; what came later
is committed again above it, with the same contents, authors and dates.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memfs import errors
from memfs.admin.backup_file import RepositorySnapshot, prove_history, write_bundle
from memfs.admin.erase_purge import (
    EraseName,
    EraseProof,
    Target,
    TargetFinder,
    journals_of,
    out_of_reach,
    prove,
    purge,
    remotes,
    states_of,
)
from memfs.dataclass import dataclass, replace
from memfs.fs import append_log, io
from memfs.fs.archive import DigestStream, chunks_of
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.journal import Writer
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import place_in
from memfs.git import rewrite
from memfs.git.busy import refuse_busy, refuse_kind
from memfs.git.commit_object import EXPORT, SOURCE, compose, encode_commit, parse_commit, trailer_value
from memfs.git.commits import recover
from memfs.git.layout import ERASE_FOLDER, ERASE_RECORD, HEADS, HEX
from memfs.git.process import entries_of, staged_changes
from memfs.git.remote import LOCK, RemoteHistory
from memfs.git.repository import Repository
from memfs.model import Problem
from memfs.model.item import object_id
from memfs.model.time import format_time
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

if TYPE_CHECKING:
    from memfs.admin.backup import Backups
    from memfs.usage import Usage

LOCK_WAIT = 60.0
_PATIENCE_AT_OPENING = 0.2
_ATTEMPTS = 4

Done = TypeVar("Done")


class HistoryRewrite:
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

    def _alone(self, attempt: Callable[[], Done], patience: float) -> Done:
        """Attempt it while no workspace of the repository writes or syncs; again where the repository changes.

        A process that read a session's events before they were removed would store it after the proof of an erase.

        Args:
            attempt: does what is wanted, or what a dead process had begun to do; a ``MovedRef`` of its says that the
                repository changed meanwhile.
            patience: seconds to wait for each lock.

        Raises:
            LockTimeout: another process held one for longer.
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
                    if path.parent.exists():  # else its branch was dropped meanwhile, and nothing syncs there
                        raise
            locks.enter_context(self._parts.commit_lock.hold(self.what, timeout=patience))
            recover(self._repository)
            for _ in range(_ATTEMPTS):
                try:
                    with ExitStack() as writing:
                        for lock in writers:
                            writing.enter_context(lock.hold(self.what, timeout=patience))
                        return attempt()
                except rewrite.MovedRef:
                    continue
                except errors.MemfsError:
                    with suppress(errors.MemfsError):
                        self._sweep()
                    raise
            self._sweep()
        raise errors.EraseRefused(
            "the repository changes again and again meanwhile",
            hint="try again when no other process uses it; the next memfs command finishes it",
        )

    def _survey(self) -> rewrite.HistorySurvey:
        """Look at everything, after removing what an earlier attempt left."""
        refuse_kind(self._repository)
        self._clear(ended=False)
        refuse_busy(self._repository)
        RemoteHistory(self._repository).note_all()
        try:
            rewrite.fsck(self._repository)
        except errors.GitFailed as error:
            raise errors.EraseRefused(
                f"the repository is damaged: {error.message}", hint="'git fsck --full' names what is missing"
            ) from error
        return rewrite.HistorySurvey(self._repository)

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
            EraseRefused: the new repository is not as it should be, or a lock is held; nothing was begun.
        """
        # Never a folder that an earlier attempt's git could still be writing to.
        rewriter = rewrite.Rewriter(self._repository, survey, removal, self._folder / f"new-{secrets.token_hex(4)}")
        rewriter.build()
        RemoteHistory(self._repository).note_erased(rewriter.first_replaced())
        with rewriter.locked():
            noted = {"folder": self._inode(), **record, **_noted(removal)}
            io.write_file(self._record, json.dumps(noted).encode("ascii"))
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
    if not all(map(HEX.fullmatch, (*record["blobs"], *commits, *([last] if last else ())))):
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
    )


CUT = "cut"
"""The source of a commit that stands for the history before it."""


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
        refused: why it could not be done now, "" if it could.
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


class Eraser(HistoryRewrite):
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
        target = TargetFinder(self._parts, survey, EraseName.of(reference, is_path)).find()
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
            EraseRefused: history cannot be rewritten in its present state; nothing was erased.
            ItemNotFound: nothing ever had that name.
            MemfsError: it was interrupted; where it had begun, the next opening of the workspace ends it.
        """
        self._parts.require_open()
        if self._begun():
            self._carry_out(None, LOCK_WAIT)
        named = EraseName.of(reference, is_path)
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
        self._usage.flush()  # what is counted later would name it again
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
            message = f"an interrupted erase was ended; traces that are left: {traces}"
            left = ", ".join(map(str, self.ended.backups_left))
            hint = f"delete {left}" if left else "nothing is to be done"
            self._store.notes.append(Problem.warning("", "EraseEnded", message, hint))

    def _carry_out(self, named: EraseName | None, patience: float) -> EraseResult | None:
        """Erase what is named, or what a dead process had begun to; None where neither is."""
        done = self._alone(lambda: self._attempt(named), patience)
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
        survey = self._survey()
        target = TargetFinder(self._parts, survey, named, known).find()
        if known is None:
            self._require_found(target)
        self._refuse_edited(target)
        record = {"reference": named.reference, "is_path": named.is_path}
        with self._swapped(survey, target.removal, record) as rewriter:
            self._remove_files(target)
        plan = self._plan(target, rewriter)
        purge(self._parts, target)
        return target, plan

    def _known(self) -> tuple[rewrite.HistoryRemoval, EraseName] | None:
        """What an erase that was interrupted is about.

        Raises:
            CorruptRecord: the record cannot be read.
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
                f"no item, past or present, is called {target.named.reference!r}", hint="give the full id, or a path"
            )

    def _refuse_edited(self, target: Target) -> None:
        """Refuse where a change that a person has not committed would be lost.

        That is so where what is erased is not a known version, or a version is staged elsewhere.
        """
        entries = entries_of(self._repository.git)
        staged = staged_changes(self._repository.git, self._repository.head_commit())
        found = {one.path for one in entries if target.means(one.path) != (one.blob in target.removal.blobs)}
        edited = sorted(path for path in staged if path in found or os.fsdecode(path) in target.quotes)
        index = {one.path: one.blob for one in entries}
        own = (path for path in self._store.edit_finder.own_paths() if not self._parts.is_local(path))
        named = {self._repository.full(path): path for path in own if target.named.means(path)}
        for path in sorted({*filter(target.means, index), *named} - {*edited}):
            try:
                most = _LARGEST if path in index else READ_LIMIT
                data = io.read_file(self._repository.work_tree / os.fsdecode(path), most)
            except FileNotFoundError:
                continue
            except errors.MemfsError:  # no version of it; one that git knows of is missing all the same
                if path in index:
                    edited.append(path)
                continue
            known = {self._repository.head_blob(named[path]) if path in named else index.get(path)}
            if object_id("blob", data) not in known | target.removal.blobs:
                edited.append(path)
        if edited:
            names = [os.fsdecode(path) for path in edited]
            raise errors.EraseRefused(
                f"changes are not committed: {', '.join(names)}",
                path=names[0],
                hint="commit them, or remove what is not to stay, from the index as well",
            )

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
                f"the secondary location cannot be read: {gone or reason}",
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


# -- cutting old history ----------------------------------------------------------------------------------------------
_TAGS = "refs/tags/"
_STAYS = (HEADS, "refs/stash", "refs/notes/")


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPlan:
    """What a cut of history does, or did.

    Attributes:
        before: the moment that was named.
        commit: the commit at which history is cut, "" where nothing can be.
        time: when that was committed.
        cut: how many commits go into the bundle and out of the repository, that one included.
        rewritten: how many later ones get a new id.
        tags: tags of commits that go; they go, too.
        elsewhere: remotes; they keep the old history until it is replaced there.
        refused: why it could not be done now, "" if it could.
        export: the bundle, None of a plan.
        sha256: of its bytes.
        head: HEAD's commit now, None of a plan.
        ended: what an interrupted cut was that has been ended before, "" where there was none.
    """

    before: datetime
    commit: str = ""
    time: datetime | None = None
    cut: int = 0
    rewritten: int = 0
    tags: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    refused: str = ""
    export: Path | None = None
    sha256: str = ""
    head: str | None = None
    ended: str = ""


class HistoryCut(HistoryRewrite):
    """Cuts the history of one repository.

    Attributes:
        ended: what the interrupted cut was that this has ended, "" where there was none.
    """

    what = "cut of history"
    code = "CutUnfinished"
    again = "commits wait until then; the next memfs command tries again"

    def __init__(self, store: Store, parts: Parts) -> None:
        super().__init__(store, parts)
        self._under_way: CutPlan | None = None  # what this one is carrying out, once its record is written
        self.ended = ""

    def plan(self, before: datetime) -> CutPlan:
        """What ``cut`` would do; changes nothing."""
        look = _Look(self._parts, before, rewrite.HistorySurvey(self._repository))
        plan = replace(look.plan, ended=self.ended)
        if plan.commit:
            done = rewrite.Rewriter(self._repository, look.survey, look.removal(""))
            plan = replace(plan, rewritten=done.commits)
        try:
            self._require_own()
            refuse_kind(self._repository)
            refuse_busy(self._repository)
        except errors.EraseRefused as error:
            return replace(plan, refused=str(error))
        return plan

    def cut(self, before: datetime, export: Path) -> CutPlan:
        """Write what was committed before a moment into a bundle, and take it out of the repository.

        Args:
            before: commits older than this go, but for the last of them, whose contents become the first commit.
            export: a new file, outside of the workspace: ``git clone`` and ``git fetch`` read it.

        Returns:
            What was done; with ``commit`` "" nothing was: nothing is older, or lines of history run side by side. One
            that had been interrupted is ended first.

        Raises:
            EraseRefused: history cannot be cut in its present state; nothing was changed.
            MemfsError: it was interrupted; where it had begun, the next opening of the workspace ends it.
        """
        self._require_own()
        refuse_kind(self._repository)
        place = Path(os.path.realpath(export))
        inside = (self._repository.work_tree, self._repository.common_dir)
        reason = "" if place.parent.is_dir() else "there is no such folder"
        if any(place.is_relative_to(os.path.realpath(folder)) for folder in inside):
            reason = "the export is in the workspace"
        elif os.path.lexists(export):
            reason = "the file exists"
        if reason:
            raise errors.EraseRefused(reason, path=str(export), hint="name a new file elsewhere for the export")
        if self._known() is not None:
            self._end(LOCK_WAIT)
        flushed = self._store.flush(adopt=False)
        if flushed.reason:
            raise errors.EraseRefused(flushed.reason, hint="cut when that is over")
        try:
            return replace(self._carry_out((before, export), LOCK_WAIT), ended=self.ended)
        except errors.MemfsError:
            if not self._begun():
                io.unlink(export, missing_ok=True)
            raise

    def take_up(self) -> bool:
        """End an interrupted cut when a workspace is opened; what came of it is among the store's notes.

        Returns:
            Whether there was one, ended or not.
        """
        if self._known() is None:
            return False
        self._end_at_opening()
        return True

    # -- the steps ------------------------------------------------------------------------------------------------
    def _end(self, patience: float) -> None:
        known = self._known()
        self._carry_out(None, patience)
        if known is not None:
            exported = parse_commit(known.first).trailers.get(EXPORT, ("a bundle",))[-1]
            self.ended = f"{len(known.commits)} commits up to {known.last[:10]}, exported to {exported}"
            message = f"an interrupted cut of history was ended: {self.ended}"
            self._store.notes.append(Problem.warning("", "CutEnded", message, ""))

    def _carry_out(self, wanted: tuple[datetime, Path] | None, patience: float) -> CutPlan:
        self._under_way = None
        done = self._alone(lambda: self._attempt(wanted), patience)
        self._store.refresh()
        return done

    def _attempt(self, wanted: tuple[datetime, Path] | None) -> CutPlan:
        done = self._cut(wanted)
        self._clear(ended=True)
        return done

    def _cut(self, wanted: tuple[datetime, Path] | None) -> CutPlan:
        """Cut, or end what a killed process had begun to cut."""
        if wanted is not None and self._under_way is None and self._begun():
            raise errors.EraseRefused(
                "an erase or a cut of history was interrupted", hint="the next memfs command here ends it"
            )
        known = self._known()
        survey = self._survey()
        plan = self._under_way or CutPlan(before=datetime.now(UTC))
        if known is not None:
            removal = known
        elif wanted is not None:
            before, export = wanted
            look = _Look(self._parts, before, survey)
            if not look.plan.commit:
                return look.plan
            plan = replace(look.plan, export=export, sha256=look.export(export))
            removal = look.removal(f"{export.name}, sha256 {plan.sha256}")
        else:  # another process ended it meanwhile
            return plan
        with self._swapped(survey, removal, {}) as done:
            if self._under_way is None:  # a second attempt would count only what the first has left
                self._under_way = plan = replace(plan, rewritten=done.commits)
        return replace(plan, head=self._repository.head_commit())

    def _known(self) -> rewrite.HistoryRemoval | None:
        """What the cut that has begun removes; None where none has. Erase reports what no cut wrote."""
        try:
            found = self._recorded()
        except errors.MemfsError:
            return None
        return found[0] if found and found[0].commits else None

    def _require_own(self) -> None:
        if place_in(self._repository.common_dir) == self._repository.work_tree or is_shared(self._repository):
            raise errors.EraseRefused(
                "memfs did not make this repository: others may rely on its history",
                hint="only the history of a repository that 'memfs init' made is cut",
            )


class _Look:
    """A repository looked at once: where it would be cut, and what that means."""

    def __init__(self, parts: Parts, before: datetime, survey: rewrite.HistorySurvey) -> None:
        self._repository, self.survey = parts.repository, survey
        out = self._repository.git.run("rev-list", "--glob=refs/notes/*", timeout=rewrite.PATIENCE)
        notes = out.decode("ascii", "replace").split()
        self._parsed = {name: parse_commit(data) for name, data in survey.contents(survey.of_kind("commit"))}
        self._parents = {name: found.parents for name, found in self._parsed.items() if name not in notes}
        self._times = {name: int(found.time.timestamp()) for name, found in self._parsed.items()}
        names = survey.names.refs
        tips = {one for ref, one in names.items() if one in self._parents and ref.startswith(_STAYS)}
        point = rewrite.cut_point(self._parents, self._times, tips, int(before.timestamp()))
        self._gone = rewrite.reached(self._parents, [point]) if point is not None else set()
        unreplaced = self._gone - {point}
        self._cut_refs = {ref: one for ref, one in names.items() if survey.tagged(one) in unreplaced}
        self.plan = CutPlan(
            before=before,
            commit=point or "",
            time=datetime.fromtimestamp(self._times[point], UTC) if point is not None else None,
            cut=len(self._gone),
            tags=tuple(ref.removeprefix(_TAGS) for ref in sorted(self._cut_refs) if ref.startswith(_TAGS)),
            elsewhere=tuple(sorted(name for name, _ in remotes(parts))),
        )

    def export(self, target: Path) -> str:
        """Write everything that goes into a bundle, and take it on trial; return the sha256 of its bytes."""
        branch = f"{HEADS}before-{self.plan.before:%Y-%m-%d}"
        refs = {branch: self.plan.commit}
        for ref, found in self._cut_refs.items():
            refs[ref if ref.startswith(_TAGS) else f"refs/cut/{ref.removeprefix('refs/')}"] = found
        history = RepositorySnapshot(head=branch, refs=refs)
        with io.descriptor(io.open_file(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)) as fd:
            write_bundle(self._repository, history, fd, str(target))
            io.fsync(fd, str(target))
            io.sync_folder(target.parent)
            os.lseek(fd, 0, os.SEEK_SET)
            read = DigestStream(chunks_of(fd, os.fstat(fd).st_size, str(target)))
            prove_history(iter(read), history, target.with_name(f".{target.name}.proof.{os.getpid()}.tmp"))
            return read.digest[1]

    def removal(self, exported: str) -> rewrite.HistoryRemoval:
        """What is cut off, and the commit that replaces it: no agent wrote what that one says."""
        point = self._parsed[self.plan.commit]
        committer = self._repository.identity().committer
        earlier = (name for commit in self._gone for name in self._parsed[commit].trailers.get(EXPORT, ()))
        lines = [f"{EXPORT}: {trailer_value(name)}" for name in (*earlier, exported) if name]
        text = f"Cut the history before {format_time(self.plan.before)}\n\nIt led to {self.plan.commit}."
        text = compose("\n".join((text, *([""] if lines else []), *lines)), [Writer(source=CUT)])
        first = encode_commit(point.tree, (), committer, committer, point.time, text)
        return rewrite.HistoryRemoval(commits=frozenset(self._gone), last=self.plan.commit, first=first)

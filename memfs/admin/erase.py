"""Erase an item from files, history and every other place, with a proof.

This is the one operation that rewrites history. All locks are held meanwhile, and an erase that was interrupted is
finished by the next process that opens the workspace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memfs.admin import erase_record
from memfs.admin.erase_proof import Prover
from memfs.admin.erase_purge import holds, out_of_reach, purge, states_of
from memfs.admin.erase_record import ErasePlan, EraseResult
from memfs.admin.erase_target import EraseName, Target, TargetFinder
from memfs.config_names import SETTINGS_FILE
from memfs.errors import (
    CorruptRecord,
    EraseRefused,
    GitBusy,
    GitFailed,
    ItemNotFound,
    ItemTooLarge,
    LockTimeout,
    MemfsError,
    NotRegularFile,
    PathEscape,
    StorageIO,
)
from memfs.fs import append_log, io
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.git.commits import recover
from memfs.git.remote import LOCK
from memfs.git.repository import Facts, Repository, facts_of
from memfs.git.rewrite import Rewritten, rewrite
from memfs.git.rewrite_conditions import is_shared, refuse_damage, refuse_kind, refuse_state
from memfs.git.rewrite_survey import PATIENCE, Survey
from memfs.git.rewrite_swap import MovedRef, Successor, Swap, finish, stock, swap
from memfs.git.rewrite_text import Names, new_names, read_names
from memfs.git.sync_state import RemoteHistory
from memfs.git.transaction import index_of
from memfs.model import Problem
from memfs.model.item import object_id
from memfs.model.problem import WARNING
from memfs.store import Store
from memfs.store.hand_edits import HandEdits
from memfs.store.parts import CONTENT, Parts

if TYPE_CHECKING:
    from memfs.admin.backup import Backups


_LARGEST = 1 << 31


@dataclass(frozen=True, slots=True)
class _Before:
    """The repository as it was before anything was looked at: what came later is neither removed nor overwritten."""

    stock: tuple[str, ...]
    index: Facts
    names: Names


class HistoryErase:
    """Takes targets out of one workspace's files and repository."""

    def __init__(self, parts: Parts, edits: HandEdits) -> None:
        self._parts = parts
        self._edits = edits
        self._repository: Repository = parts.repository

    def plan(self, named: EraseName) -> ErasePlan:
        """What an erase would do; changes nothing."""
        survey = Survey(self._repository)
        target = TargetFinder(self._parts, survey, named).find()
        self._require_found(target)
        done = _rewrite(self._repository, survey, target, object_id)
        plan = self._plan(target, done, read_names(self._repository.layout))
        try:
            refuse_kind(self._repository)
            self._refuse_state(target)
        except EraseRefused as error:
            return replace(plan, refused=str(error))
        return plan

    def attempt(self, named: EraseName, known: Target | None) -> tuple[Target, ErasePlan, int]:
        """Take a target out; return it, what was done, and how many signatures were lost.

        Raises:
            Moved: the repository changed meanwhile.
            EraseRefused, GitBusy: it cannot be rewritten as things stand.
        """
        repository = self._repository
        erase_record.clear(repository, ended=False)
        refuse_kind(repository)
        RemoteHistory(repository).note_all()
        before = _Before(stock(repository), facts_of(index_of(repository.git_dir)), read_names(repository.layout))
        survey = Survey(repository)
        if known is not None and not before.names.ids() & known.gone:
            # No name holds them any more: some may be removed already, and what is above those cannot be rewritten.
            survey.leave_out(known.gone)
        target = TargetFinder(self._parts, survey, named, known).find()
        if known is None:
            self._require_found(target)
        self._refuse_state(target)
        strict = refuse_damage(repository)
        successor = Successor(repository, erase_record.successor_folder(repository))
        successor.begin()
        done = _rewrite(repository, survey, target, successor.make)
        plan = self._succeed(successor, survey, target, done, before)
        successor.check(strict)
        plan = replace(plan, gone=plan.gone.union(known.gone) - plan.known) if known else plan
        shown = self._plan(target, done, plan.names)
        swap(
            repository,
            successor,
            plan,
            begin=lambda: erase_record.write(repository, target, plan.gone),
            remove_files=lambda: self._remove_files(target),
        )
        finish(repository, successor, plan)
        self._renew_graph()
        return target, shown, done.unsigned

    def _succeed(self, successor: Successor, survey: Survey, target: Target, done: Rewritten, before: _Before) -> Swap:
        """Build the second repository."""
        names = before.names
        successor.pack(survey.facts.keys() - done.gone)
        successor.name(new_names(names, done.mapped, target.traces))
        new_index = successor.write_index(self._in_index(target))
        commits = survey.commits.keys()
        tips = {old: done.mapped[old] for old in names.refs.values() if old in done.mapped and old in commits}
        notes = {found for ref, found in names.refs.items() if ref.startswith("refs/notes/")}
        pairs = {old: new for old, new in tips.items() if old not in notes}
        successor.compare(pairs, target.blobs, {*target.paths})
        return Swap(
            names=names,
            index=before.index,
            stock=before.stock,
            mapped=done.mapped,
            gone=done.gone,
            known=frozenset(survey.facts.keys() - done.gone).union(done.mapped.values()),
            new_index=new_index,
            traces=target.traces,
        )

    def _in_index(self, target: Target) -> set[bytes]:
        out = self._repository.git.run("ls-files", "-t", "-s", "-z")
        found = set()
        for row in out.split(b"\0")[:-1]:
            facts, _, path = row.partition(b"\t")
            if target.means(path) or facts.split(b" ")[2].decode() in target.blobs:
                found.add(path)
        return found

    def _refuse_state(self, target: Target) -> None:
        waiting = {
            self._repository.full(change.path)
            for operation in self._parts.journal.operations()
            for change in operation.changes
            if not holds(change, self._parts, target)
        }
        refuse_state(self._repository, waiting, lambda path: target.means(path) and self._may_go(path, target))

    def _may_go(self, path: bytes, target: Target) -> bool:
        """Whether nothing is at a path, or a version that is known: a person's edit of it is not."""
        try:
            return object_id("blob", io.read_file(self._repository.work_tree / os.fsdecode(path))) in target.blobs
        except FileNotFoundError:
            return True
        except MemfsError:
            return False

    def _remove_files(self, target: Target) -> None:
        """Remove the working files that hold a version; what a person put in their place stays."""
        for local in self._edits.own_paths():
            if self._parts.is_local(local) and target.named.means(local):
                self._parts.tree.remove(local)
        tree = Tree(self._repository.work_tree)
        try:
            for path in sorted({*target.paths, *target.copies}):
                name = os.fsdecode(path)
                try:
                    data = tree.read(name, _LARGEST).data
                    if self._repository.blob_id(data) in target.blobs or len(data.strip()) == 0:
                        tree.remove(name, over=sha256(data))
                except (FileNotFoundError, NotRegularFile, ItemTooLarge, PathEscape, FileChanged):
                    continue
            # A killed writer, an eraser among them, leaves contents under names of its own.
            below = {entry.path.rpartition("/")[0] for entry in self._parts.tree.scan(CONTENT, hidden=True)}
            folders = {self._repository.full(folder) for folder in below if folder}
            for folder in folders | {path.rpartition(b"/")[0] for path in {*target.paths, *target.copies}}:
                tree.sweep(os.fsdecode(folder))
        finally:
            tree.close()

    def _renew_graph(self) -> None:
        if self._repository.head_commit() is not None:
            options = ("write", "--reachable", "--changed-paths", "--split", "--no-progress")
            with suppress(GitFailed):  # a cache, and somebody else may be writing it
                self._repository.git.run("commit-graph", *options, timeout=PATIENCE)

    def _require_found(self, target: Target) -> None:
        on_disk = any(map(target.named.means, self._edits.own_paths()))
        if not target.paths and not target.blobs and not on_disk and not target.traces.versions:
            raise ItemNotFound(
                f"nothing is or ever was called {target.named.reference!r}", hint="give the whole id, or a path"
            )

    def _plan(self, target: Target, done: Rewritten, names: Names) -> ErasePlan:
        below, secondary = self._repository.below, self._parts.secondary
        return ErasePlan(
            reference=target.named.reference,
            paths=tuple(sorted(below(path) or os.fsdecode(path) for path in target.paths)),
            copies=tuple(os.fsdecode(path) for path in target.copies),
            versions=len(target.blobs),
            loose=target.loose,
            commits=done.commits,
            refs=sum(found in done.mapped for found in names.refs.values()),
            waiting=len(self._parts.journal.operations()) + len(secondary.operations() if secondary else ()),
            quotes=target.quotes,
            shared=is_shared(self._repository),
            unreachable=tuple(out_of_reach(self._parts)),
        )


def _rewrite(repository: Repository, survey: Survey, target: Target, make: Callable[[str, bytes], str]) -> Rewritten:
    return rewrite(repository, survey, target.blobs, target.cuts, target.traces, make)


@contextmanager
def no_syncs(parts: Parts, why: str, patience: float) -> Iterator[None]:
    """Hold the sync locks of all workspaces of the repository, and the one for the events of sessions.

    A process that read a session's events before they were removed would store it after the proof of an erase.

    Args:
        why: what waiting processes report.
        patience: seconds to wait for each lock.

    Raises:
        LockTimeout: a sync went on for longer.
    """
    states = states_of(parts)
    spools = [state / append_log.FOLDER for state in states]
    locked = [*(state / LOCK for state in states), *(one / append_log.LOCK for one in spools if one.is_dir())]
    with ExitStack() as locks:
        for path in locked:
            try:
                locks.enter_context(FileLock(path).hold(why, timeout=patience))
            except StorageIO:
                if path.parent.exists():  # else its branch was dropped meanwhile, and nobody syncs there
                    raise
        yield


@contextmanager
def no_writes(parts: Parts, why: str, patience: float) -> Iterator[None]:
    """Hold the locks of the stores of all workspaces of the repository; the caller holds ``commit.lock``.

    Raises:
        LockTimeout: a write went on for longer than ``patience`` seconds.
    """
    own = parts.lock
    others = [state / own.path.name for state in states_of(parts) if state != parts.repository.state]
    with ExitStack() as locks:
        for lock in (own, *(FileLock(path) for path in others if os.path.lexists(path))):
            locks.enter_context(lock.hold(why, timeout=patience))
        yield


_ATTEMPTS = 4
_LOCK_WAIT = 60.0
_PATIENCE_AT_OPENING = 0.2
_NEVER = (SETTINGS_FILE, CONTENT, f"{CONTENT}/.gitattributes")
_AGAIN = "what is to go may still be in history; the next memfs command tries again"


class Eraser:
    """Erases from one workspace and its repository.

    Attributes:
        ended: the interrupted erase that was ended when the workspace was opened, None where there was none.
    """

    def __init__(self, store: Store, parts: Parts, backups: Backups) -> None:
        self._store = store
        self._parts = parts
        self._backups = backups
        self._repository = parts.repository
        self._history = HistoryErase(parts, store.edit_finder)
        self.ended: EraseResult | None = None

    @property
    def unfinished(self) -> bool:
        """Whether an erase was interrupted and is to be ended."""
        self._parts.require_open()
        return erase_record.begun(self._repository)

    def plan(self, reference: str, is_path: bool = False) -> ErasePlan:
        """What ``erase`` would do; changes nothing.

        Raises:
            ItemNotFound: nothing ever had that name.
        """
        plan = self._history.plan(_named(reference, is_path))
        unready = self._secondary_unready()
        served, elsewhere = self._backups_by_reach()
        refused = plan.refused or (str(unready) if unready else "")
        return replace(plan, refused=refused, backups=served, backups_elsewhere=elsewhere)

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
        if self.unfinished:
            self._attempts(None)
        named = _named(reference, is_path)
        refuse_kind(self._repository)
        if is_shared(self._repository) and not rewrite_shared:
            raise EraseRefused(
                "memfs did not make this repository: others may rely on its history",
                hint="talk to them, then use --rewrite-shared-history",
            )
        flushed = self._store.flush(adopt=False)
        if flushed.reason:
            raise EraseRefused(flushed.reason, hint="erase when that is over")
        unready = self._secondary_unready()
        if unready is not None:
            raise unready
        done = self._attempts(named)
        assert done is not None  # it was named, so it was done or refused
        return done

    def take_up(self) -> None:
        """End an interrupted erase when a workspace is opened; what came of it is among the store's notes."""
        self._parts.require_open()
        try:
            self.ended = self._attempts(None, _PATIENCE_AT_OPENING)
        except LockTimeout:
            return  # another process is at it
        except (MemfsError, OSError) as error:
            message = f"an erase was interrupted and cannot be ended: {error}"
            hint = (isinstance(error, CorruptRecord) and error.hint) or _AGAIN
            self._store.notes.append(Problem(path="", code="EraseUnfinished", message=message, hint=hint))
            return
        if self.ended is not None:
            traces = len(self.ended.proof.hits) + len(self.ended.left)
            message = f"an interrupted erase was ended; {traces} trace(s) of it are left"
            hint = f"delete {', '.join(map(str, self.ended.left))}" if self.ended.left else "nothing is to be done"
            note = Problem(path="", code="EraseEnded", message=message, hint=hint, severity=WARNING)
            self._store.notes.append(note)

    # -- the steps ------------------------------------------------------------------------------------------------
    def _attempts(self, named: EraseName | None, patience: float = _LOCK_WAIT) -> EraseResult | None:
        """Erase what is named, or what a dead process had begun to; None where neither is."""
        with no_syncs(self._parts, "erase", patience), self._parts.commit_lock.hold("erase", timeout=patience):
            done = self._rewrite(named)
        if done is None:
            return None
        target, erased = done
        replaced, left = self._replace_backups()
        with self._parts.commit_lock.hold("erase", timeout=_LOCK_WAIT):
            proof = Prover(self._parts, target).prove()
            erase_record.clear(self._repository, ended=True)
        self._store.refresh()
        return replace(erased, proof=proof, purged={**erased.purged, "backups": replaced}, left=tuple(left))

    def _rewrite(self, named: EraseName | None) -> tuple[Target, EraseResult] | None:
        """Take the target out of history and the stores; the record stays until all else is done."""
        recover(self._repository)
        for _ in range(_ATTEMPTS):
            known = erase_record.read(self._repository) if self.unfinished else None
            wanted = known.named if known else named
            if wanted is None:
                erase_record.clear(self._repository, ended=True)
                return None
            try:
                with no_writes(self._parts, "erase", _LOCK_WAIT):
                    target, plan, unsigned = self._history.attempt(wanted, known)
                    purged = purge(self._parts, target)
            except MovedRef:
                continue
            except GitBusy as error:
                self._sweep()
                raise EraseRefused(error.message, path=error.path, hint=error.hint) from error
            except MemfsError:
                with suppress(MemfsError):
                    self._sweep()
                raise
            head = self._repository.head_commit()
            return target, EraseResult(plan=plan, unsigned=unsigned, purged=purged, proof=Prover.nothing(), head=head)
        self._sweep()
        raise EraseRefused(
            "the repository changes again and again meanwhile",
            hint="erase when nobody works in it; the next memfs command ends what was begun",
        )

    def _sweep(self) -> None:
        """Take away what was prepared, where nothing was begun."""
        if not self.unfinished:
            erase_record.clear(self._repository, ended=True)

    def _secondary_unready(self) -> EraseRefused | None:
        """Why the secondary location stands in the way: what cannot be looked into may hold the item."""
        secondary = self._parts.secondary
        if secondary is None:
            return None
        if secondary.operations():
            return EraseRefused(
                "writes wait in the secondary location until the workspace's disk takes them",
                path=str(secondary.place),
                hint="'memfs status' says why they could not come home; erase when they have",
            )
        reason = str(secondary.unreadable or "") or secondary.try_out()
        gone = next((problem.message for problem in secondary.problems() if problem.code == "StorageUnavailable"), "")
        if not reason and not gone:
            return None
        return EraseRefused(
            f"the secondary location cannot be looked into: {gone or reason}",
            path=str(secondary.place),
            hint="mount that disk, or make it writable; if it is lost, take storage.secondary out of the settings",
        )

    def _backups_by_reach(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The backups that exist: those in whose folders a new one would be made, and all others."""
        try:
            kept, places = self._backups.kept(), self._backups.places()
        except MemfsError:
            return (), ()
        served = tuple(path for path in kept if path.parent in places)
        return served, tuple(path for path in kept if path.parent not in places)

    def _replace_backups(self) -> tuple[int, list[Path]]:
        """Put a new backup in the place of the old ones; return how many went, and those that could not."""
        try:
            return self._backups.renew(self._store.note_failure)
        except LockTimeout as error:
            self._store.note_failure(error)
            with suppress(MemfsError):  # a place that cannot be read is no reason to hide what was done
                return 0, self._backups.kept()
            return 0, []


def _named(reference: str, is_path: bool) -> EraseName:
    plain = reference.rstrip("/")
    if is_path and (plain in _NEVER or not plain.startswith(f"{CONTENT}/")):
        raise EraseRefused(
            f"{plain!r} is no memory", path=plain, hint=f"name an item, or a file or folder below {CONTENT}/"
        )
    return EraseName(reference=plain, is_path=is_path)

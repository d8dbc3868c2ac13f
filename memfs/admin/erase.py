"""Erase an item from files, history and every other place, with a proof.

All locks are held meanwhile, and an erase that was interrupted is finished by the next process that opens the
workspace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memfs.admin.erase_purge import EraseName, EraseProof, Prover, Target, TargetFinder, out_of_reach, purge
from memfs.admin.history_rewrite import LOCK_WAIT, HistoryRewrite, is_shared, refuse_busy, refuse_kind
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass, replace
from memfs.errors import (
    EraseRefused,
    ItemNotFound,
    ItemTooLarge,
    LockTimeout,
    MemfsError,
    NotRegularFile,
    PathEscape,
)
from memfs.fs import io
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.tree import Tree
from memfs.git.process import entries_of, staged_changes
from memfs.git.rewrite import HistoryRemoval, Rewriter, Survey
from memfs.model import Problem
from memfs.model.item import object_id
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

if TYPE_CHECKING:
    from memfs.admin.backup import Backups


_LARGEST = 1 << 31
_NEVER = (SETTINGS_FILE, CONTENT, f"{CONTENT}/.gitattributes")
_AGAIN = "what is to go may still be in history; the next memfs command tries again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasePlan:
    """What an erase would do.

    Attributes:
        reference: what was named.
        paths: the paths it ever had.
        copies: other paths where the same bytes were; they go, too.
        versions: how many contents it had.
        loose: how many of them no commit holds.
        commits: how many commits are rewritten.
        refs: how many refs move.
        waiting: how many writes would be committed first.
        quotes: files that hold a line of it and stay.
        shared: whether memfs did not make the repository, so that rewriting it must be asked for.
        unreachable: where it may be and memfs cannot go.
        backups: those made before, which a new one replaces.
        backups_elsewhere: those that a person has to delete.
        refused: why it could not be done now, "" when nothing stands in the way.
    """

    reference: str
    paths: tuple[str, ...]
    copies: tuple[str, ...]
    versions: int
    loose: int
    commits: int
    refs: int
    waiting: int
    quotes: tuple[str, ...]
    shared: bool
    unreachable: tuple[str, ...]
    refused: str = ""
    backups: tuple[Path, ...] = ()
    backups_elsewhere: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseResult:
    """What an erase did, and the proof.

    Attributes:
        plan: as it was carried out.
        unsigned: how many commits and tags lost their signature, which would be wrong now.
        purged: how many pieces each other place held.
        proof: what was read afterwards, and every hit in it.
        head: HEAD's commit now.
        backups_left: backups made before that no new one could replace; they may hold it until a person deletes them.
    """

    plan: ErasePlan
    unsigned: int
    purged: Mapping[str, int]
    proof: EraseProof
    head: str | None
    backups_left: tuple[Path, ...] = ()


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
        self._rewrite = HistoryRewrite(parts, "erase", code="EraseUnfinished")
        self.ended: EraseResult | None = None

    def plan(self, reference: str, is_path: bool = False) -> ErasePlan:
        """What ``erase`` would do; changes nothing.

        Raises:
            ItemNotFound: nothing ever had that name.
        """
        survey = Survey(self._repository)
        target = TargetFinder(self._parts, survey, _named(reference, is_path)).find()
        self._require_found(target)
        plan = self._plan(target, Rewriter(self._repository, survey, target.removal), survey)
        served, elsewhere = self._backups_by_reach()
        plan = replace(plan, backups=served, backups_elsewhere=elsewhere)
        try:
            refuse_kind(self._repository)
            refuse_busy(self._repository)
            self._refuse_edited(target)
            self._refuse_secondary()
        except EraseRefused as error:
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
        if self._rewrite.begun:
            self._carry_out(None, LOCK_WAIT)
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
        self._refuse_secondary()
        done = self._carry_out(named, LOCK_WAIT)
        assert done is not None  # it was named, so it was done or refused
        return done

    def take_up(self) -> None:
        """End an interrupted erase when a workspace is opened; what came of it is among the store's notes."""
        self._parts.require_open()
        self.ended = self._rewrite.end_at_opening(self._store, lambda wait: self._carry_out(None, wait), _AGAIN)
        if self.ended is not None:
            traces = len(self.ended.proof.hits) + len(self.ended.backups_left)
            message = f"an interrupted erase was ended; {traces} trace(s) of it are left"
            left = ", ".join(map(str, self.ended.backups_left))
            hint = f"delete {left}" if left else "nothing is to be done"
            self._store.notes.append(Problem.warning("", "EraseEnded", message, hint))

    # -- the steps ------------------------------------------------------------------------------------------------
    def _carry_out(self, named: EraseName | None, patience: float) -> EraseResult | None:
        """Erase what is named, or what a dead process had begun to; None where neither is."""
        with self._rewrite.alone(patience):
            done = self._rewrite.attempts(lambda: self._attempt(named), LOCK_WAIT)
        if done is None:
            return None
        target, plan, unsigned, purged = done
        purged["backups"], left = self._replace_backups()
        with self._parts.commit_lock.hold("erase", timeout=LOCK_WAIT):
            proof = Prover(self._parts, target).prove()
            self._rewrite.clear(ended=True)
        self._store.refresh()
        head = self._repository.head_commit()
        return EraseResult(
            plan=plan, unsigned=unsigned, purged=purged, proof=proof, head=head, backups_left=tuple(left)
        )

    def _attempt(self, named: EraseName | None) -> tuple[Target, ErasePlan, int, dict[str, int]] | None:
        """Take the target out of history and the stores; the record stays until all else is done.

        Returns:
            The target, what was done, how many signatures were lost, and how many pieces each store held.

        Raises:
            MovedRef: the repository changed meanwhile.
            EraseRefused, GitBusy: it cannot be rewritten as things stand.
        """
        known, wanted = self._known() or (None, named)
        if wanted is None:
            self._rewrite.clear(ended=True)
            return None
        survey, left_out = self._rewrite.survey(known)
        target = TargetFinder(self._parts, survey, wanted, known).find()
        if known is None:
            self._require_found(target)
        self._refuse_edited(target)
        removal = replace(target.removal, gone=left_out)
        record = {"reference": wanted.reference, "is_path": wanted.is_path}
        with self._rewrite.swapped(survey, removal, record) as rewriter:
            self._remove_files(target)
        plan = self._plan(target, rewriter, survey)
        return target, plan, rewriter.unsigned, purge(self._parts, target)

    def _known(self) -> tuple[HistoryRemoval, EraseName] | None:
        """What an erase that was interrupted is about.

        Raises:
            CorruptRecord: nobody can tell.
        """
        found = self._rewrite.record()
        if found is None:
            return None
        removal, record = found
        reference, is_path = record.get("reference"), record.get("is_path")
        if not isinstance(reference, str) or not isinstance(is_path, bool):
            raise self._rewrite.damaged()
        return removal, EraseName(reference=reference, is_path=is_path)

    def _remove_files(self, target: Target) -> None:
        """Remove the working files that hold a version; what a person put in their place stays."""
        for local in self._store.edit_finder.own_paths():
            if self._parts.is_local(local) and target.named.means(local):
                self._parts.tree.remove(local)
        tree = Tree(self._repository.work_tree)
        try:
            for path in sorted({*target.removal.paths, *target.copies}):
                name = os.fsdecode(path)
                try:
                    data = tree.read(name, _LARGEST).data
                    if self._repository.blob_id(data) in target.removal.blobs or len(data.strip()) == 0:
                        tree.remove(name, over=sha256(data))
                except (FileNotFoundError, NotRegularFile, ItemTooLarge, PathEscape, FileChanged):
                    continue
            # A killed writer, an eraser among them, leaves contents under names of its own.
            below = {entry.path.rpartition("/")[0] for entry in self._parts.tree.scan(CONTENT, hidden=True)}
            folders = {self._repository.full(folder) for folder in below if folder}
            for folder in folders | {path.rpartition(b"/")[0] for path in {*target.removal.paths, *target.copies}}:
                tree.sweep(os.fsdecode(folder))
        finally:
            tree.close()

    def _replace_backups(self) -> tuple[int, list[Path]]:
        """Put a new backup in the place of the old ones; return how many went, and those that could not."""
        try:
            return self._backups.renew(self._store.note_failure)
        except LockTimeout as error:
            self._store.note_failure(error)
            with suppress(MemfsError):  # a place that cannot be read is no reason to hide what was done
                return 0, self._backups.kept()
            return 0, []

    # -- conditions -----------------------------------------------------------------------------------------------
    def _require_found(self, target: Target) -> None:
        on_disk = any(map(target.named.means, self._store.edit_finder.own_paths()))
        if not target.removal.paths and not target.removal.blobs and not on_disk and not target.removal.traces.versions:
            raise ItemNotFound(
                f"nothing is or ever was called {target.named.reference!r}", hint="give the whole id, or a path"
            )

    def _refuse_edited(self, target: Target) -> None:
        """Refuse where a change that a person has not committed would be lost."""
        edited = [os.fsdecode(path) for path in self._edited(target)]
        if edited:
            raise EraseRefused(
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
            except MemfsError:  # no version of it; one that git knows of is missing all the same
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
            raise EraseRefused(
                "writes wait in the secondary location until the workspace's disk takes them",
                path=str(secondary.place),
                hint="'memfs status' says why they could not come home; erase when they have",
            )
        reason = str(secondary.unreadable or "") or secondary.try_out()
        gone = next((problem.message for problem in secondary.problems() if problem.code == "StorageUnavailable"), "")
        if reason or gone:
            raise EraseRefused(
                f"the secondary location cannot be looked into: {gone or reason}",
                path=str(secondary.place),
                hint="mount that disk, or make it writable; if it is lost, take storage.secondary out of the settings",
            )

    # -- the plan -------------------------------------------------------------------------------------------------
    def _plan(self, target: Target, rewriter: Rewriter, survey: Survey) -> ErasePlan:
        below, secondary, removal = self._repository.below, self._parts.secondary, target.removal
        return ErasePlan(
            reference=target.named.reference,
            paths=tuple(sorted(below(path) or os.fsdecode(path) for path in removal.paths)),
            copies=tuple(os.fsdecode(path) for path in target.copies),
            versions=len(removal.blobs),
            loose=target.loose,
            commits=rewriter.commits,
            refs=sum(found in rewriter.mapped for found in survey.names.refs.values()),
            waiting=len(self._parts.journal.operations()) + len(secondary.operations() if secondary else ()),
            quotes=target.quotes,
            shared=is_shared(self._repository),
            unreachable=tuple(out_of_reach(self._parts)),
        )

    def _backups_by_reach(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The backups that exist: those in whose folders a new one would be made, and all others."""
        try:
            kept, places = self._backups.kept(), self._backups.places()
        except MemfsError:
            return (), ()
        served = tuple(path for path in kept if path.parent in places)
        return served, tuple(path for path in kept if path.parent not in places)


def _named(reference: str, is_path: bool) -> EraseName:
    plain = reference.rstrip("/")
    if is_path and (plain in _NEVER or not plain.startswith(f"{CONTENT}/")):
        raise EraseRefused(
            f"{plain!r} is no memory", path=plain, hint=f"name an item, or a file or folder below {CONTENT}/"
        )
    return EraseName(reference=plain, is_path=is_path)

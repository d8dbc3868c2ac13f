"""Erasing: an item leaves files, history and every other place, with a proof; the one exception to the git manners.

Owns the whole of it: the locks, trying again, ending what was interrupted, purging the other stores, and the proof. How
history is rewritten is ``erase_history``'s.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memfs.errors import CorruptRecord, EraseRefused, GitBusy, LockTimeout, MemfsError
from memfs.history.commits import recover
from memfs.history.rewrite_conditions import is_shared, refuse_kind
from memfs.history.rewrite_swap import Moved
from memfs.model import Problem
from memfs.model.problem import WARNING
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts
from memfs.upkeep import erase_record
from memfs.upkeep.erase_history import HistoryErase
from memfs.upkeep.erase_proof import Prover
from memfs.upkeep.erase_purge import purge
from memfs.upkeep.erase_target import Named, Target
from memfs.upkeep.erase_values import Erased, Plan
from memfs.upkeep.standstill import no_syncs, no_writes

if TYPE_CHECKING:
    from memfs.upkeep.backups import Backups

_ATTEMPTS = 4
_LOCK_WAIT = 60.0
_PATIENCE_AT_OPENING = 0.2
_NEVER = ("memfs.toml", CONTENT, f"{CONTENT}/.gitattributes")
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
        self._history = HistoryErase(parts, store.edits)
        self.ended: Erased | None = None

    @property
    def unfinished(self) -> bool:
        """Whether an erase was interrupted and is to be ended."""
        self._parts.require_open()
        return erase_record.begun(self._repository)

    def plan(self, reference: str, is_path: bool = False) -> Plan:
        """What ``erase`` would do; changes nothing.

        Raises:
            ItemNotFound: nothing ever had that name.
        """
        plan = self._history.plan(_named(reference, is_path))
        unready = self._secondary_unready()
        served, elsewhere = self._backups_by_reach()
        refused = plan.refused or (str(unready) if unready else "")
        return replace(plan, refused=refused, backups=served, backups_elsewhere=elsewhere)

    def erase(self, reference: str, is_path: bool = False, *, rewrite_shared: bool = False) -> Erased:
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
        """End an interrupted erase when a workspace is opened; what came of it stands among the store's notes."""
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
    def _attempts(self, named: Named | None, patience: float = _LOCK_WAIT) -> Erased | None:
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

    def _rewrite(self, named: Named | None) -> tuple[Target, Erased] | None:
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
            except Moved:
                continue
            except GitBusy as error:
                self._sweep()
                raise EraseRefused(error.message, path=error.path, hint=error.hint) from error
            except MemfsError:
                with suppress(MemfsError):
                    self._sweep()
                raise
            head = self._repository.head_commit()
            return target, Erased(plan=plan, unsigned=unsigned, purged=purged, proof=Prover.nothing(), head=head)
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


def _named(reference: str, is_path: bool) -> Named:
    plain = reference.rstrip("/")
    if is_path and (plain in _NEVER or not plain.startswith(f"{CONTENT}/")):
        raise EraseRefused(
            f"{plain!r} is no memory", path=plain, hint=f"name an item, or a file or folder below {CONTENT}/"
        )
    return Named(reference=plain, is_path=is_path)

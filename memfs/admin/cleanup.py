"""Make room without losing anything.

Only what is there twice, is derived, or was left by a killed process is removed or packed; what a person wrote, and
what history does not hold, is never touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from memfs.admin.backup import Backups
from memfs.dataclass import dataclass
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.tree import blob_id
from memfs.git import maintenance
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts
from memfs.store.recovery import all_aside

_COMMITS_BY_ITSELF = ("interval", "each", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupStep:
    """One thing that was, or could be, done.

    Attributes:
        what: a sentence.
        bytes: what it freed; before it is done, the most that it could free.
        error: why it failed, "" when it did not.
    """

    what: str
    bytes: int
    error: str = ""


Act = Callable[["Cleaner", bool], CleanupStep]
"""A step: whether it is to be done, or only said what it could do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaner:
    """Makes room in one workspace; ``more`` gives steps of parts that this layer does not know."""

    store: Store
    parts: Parts
    backups: Backups
    more: Callable[[], Sequence[Act]] = tuple

    def plan(self) -> list[CleanupStep]:
        """What could be done, without doing it; only what would free something."""
        return [planned for step in self._steps() if (planned := self._tried(step, False)).bytes]

    def clean(self) -> list[CleanupStep]:
        """Do it, each step for itself: one that fails is reported and the others go on."""
        done = []
        for step in self._steps():
            planned = self._tried(step, False)
            if planned.error or planned.bytes:
                done.append(planned if planned.error else self._tried(step, True))
        return done

    def _steps(self) -> Sequence[Act]:
        return (*STEPS, *self.more())

    def _tried(self, step: Act, do: bool) -> CleanupStep:
        try:
            return step(self, do)
        except MemfsError as error:
            return CleanupStep(what=(step.__doc__ or "").rstrip("."), bytes=0, error=str(error))


def remove_leftovers(parts: Parts) -> int:
    """Remove the temporary files that killed processes left; return how many."""
    folders = {entry.path.rpartition("/")[0] for entry in parts.tree.scan(CONTENT, hidden=True)}
    with parts.lock.hold("sweep"):
        return sum(parts.tree.sweep(folder) for folder in folders)


def _leftovers(cleaner: Cleaner, do: bool) -> CleanupStep:
    """Remove temporary files that killed processes left."""
    found = [
        entry.size
        for entry in cleaner.parts.tree.scan(CONTENT, hidden=True)
        if is_temporary(entry.path.rpartition("/")[2])
    ]
    what = f"remove {len(found)} temporary file(s) that killed processes left"
    if do:
        what = f"removed {remove_leftovers(cleaner.parts)} temporary file(s) that killed processes left"
        io.sweep(cleaner.parts.repository.state)
    return CleanupStep(what=what, bytes=sum(found))


def _twice(cleaner: Cleaner, do: bool) -> CleanupStep:
    """Remove contents set aside that the last commit holds."""
    sizes = []
    for place, path, data in all_aside(cleaner.parts.repository.state):
        with suppress(MemfsError):
            if cleaner.parts.repository.head_blob(path) == blob_id(data):
                sizes.append(len(data))
                if do:
                    io.unlink(place, missing_ok=True)
    verb = "removed" if do else "remove"
    return CleanupStep(what=f"{verb} {len(sizes)} content(s) set aside that the last commit holds", bytes=sum(sizes))


def _waiting(cleaner: Cleaner, do: bool) -> CleanupStep:
    """Commit what waits, so that the journal becomes short."""
    before = _size(cleaner.parts.journal.path)
    if do:
        flushed = cleaner.store.flush(adopt=False)
        what = f"committed what waited ({len(flushed.commits)} commit(s))"
        freed = max(0, before - _size(cleaner.parts.journal.path))
        return CleanupStep(what=what, bytes=freed, error=flushed.reason)
    allowed = cleaner.parts.policy.commit in _COMMITS_BY_ITSELF and cleaner.store.pending().count
    return CleanupStep(what="commit what waits, so that the journal becomes short", bytes=before if allowed else 0)


def _history(cleaner: Cleaner, do: bool) -> CleanupStep:
    """Pack the history."""
    if do:
        with cleaner.parts.commit_lock.hold("maintenance", timeout=10):
            freed = maintenance.maintain(cleaner.parts.repository)
        return CleanupStep(what="packed the history", bytes=freed)
    # As maintenance by itself: a repository that memfs joined is the person's to pack.
    folder = cleaner.parts.repository.common_dir / "objects"
    names = os.listdir(folder) if folder.is_dir() and cleaner.parts.policy.adopt == "auto" else []
    return CleanupStep(what="pack the history", bytes=sum(io.weigh(folder / name) for name in names if len(name) == 2))


def _index(cleaner: Cleaner, do: bool) -> CleanupStep:
    """Fold the index."""
    index = cleaner.parts.index
    before = io.weigh(index.folder)
    if do:
        cleaner.store.fold()
        return CleanupStep(what="folded the index", bytes=max(0, before - io.weigh(index.folder)))
    return CleanupStep(what="fold the index", bytes=before if index.overlay_size() else 0)


def _backups(cleaner: Cleaner, do: bool) -> CleanupStep:
    """Remove backups beyond the number that is kept."""
    found = cleaner.backups.surplus()
    size, verb = sum(map(_size, found)), "remove"
    if do:
        found, verb = cleaner.backups.prune(), "removed"
    return CleanupStep(what=f"{verb} {len(found)} backup(s) beyond the number kept", bytes=size)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


STEPS: tuple[Act, ...] = (_leftovers, _twice, _waiting, _history, _index, _backups)

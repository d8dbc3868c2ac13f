"""Make room without losing anything.

Only what is there twice, is derived, or was left by a killed process is removed or packed; what a person wrote, and
what history does not hold, is never touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memfs.admin.backup import Backups
from memfs.admin.usage_by_area import weigh
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.tree import blob_id
from memfs.git import maintenance
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts
from memfs.store.recovery import FOLDER, SUFFIX, read_aside

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


Act = tuple["Callable[[Cleaner], CleanupStep]", "Callable[[Cleaner], CleanupStep]"]
"""A look at what a step could do, and the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaner:
    """Makes room in one workspace; ``more`` gives steps of parts that this layer does not know."""

    store: Store
    parts: Parts
    backups: Backups
    more: Callable[[], Sequence[Act]] = tuple

    def plan(self) -> list[CleanupStep]:
        """What could be done, without doing it; only what would free something."""
        return [step for look, _ in (*STEPS, *self.more()) if (step := self._tried(look)) and step.bytes]

    def clean(self) -> list[CleanupStep]:
        """Do it, each step for itself: one that fails is reported and the others go on."""
        done = []
        for look, do in (*STEPS, *self.more()):
            planned = self._tried(look)
            if planned.error or planned.bytes:
                done.append(planned if planned.error else self._tried(do))
        return done

    def _tried(self, act: Callable[[Cleaner], CleanupStep]) -> CleanupStep:
        try:
            return act(self)
        except MemfsError as error:
            return CleanupStep(what=(act.__doc__ or "").rstrip("."), bytes=0, error=str(error))


# -- what killed processes left -----------------------------------------------------------------------------------
def _see_leftovers(cleaner: Cleaner) -> CleanupStep:
    """Remove temporary files that killed processes left."""
    found = [entry.size for entry in cleaner.parts.tree.scan(CONTENT, hidden=True) if _is_leftover(entry.path)]
    return CleanupStep(what=f"remove {len(found)} temporary file(s) that killed processes left", bytes=sum(found))


def _remove_leftovers(cleaner: Cleaner) -> CleanupStep:
    """Remove temporary files that killed processes left."""
    tree, size = cleaner.parts.tree, _see_leftovers(cleaner).bytes
    folders = {entry.path.rpartition("/")[0] for entry in tree.scan(CONTENT, hidden=True) if _is_leftover(entry.path)}
    with cleaner.parts.lock.hold("sweep"):
        removed = sum(tree.sweep(folder) for folder in folders)
        io.sweep(cleaner.parts.repository.state)
    return CleanupStep(what=f"removed {removed} temporary file(s) that killed processes left", bytes=size)


def _is_leftover(path: str) -> bool:
    return is_temporary(path.rpartition("/")[2])


# -- what is there twice ------------------------------------------------------------------------------------------
def _redundant(cleaner: Cleaner) -> list[tuple[Path, int]]:
    """Contents that were set aside and that HEAD holds at their place, byte for byte."""
    folder = cleaner.parts.repository.state / FOLDER
    found = []
    for name in sorted(os.listdir(folder)) if folder.is_dir() else []:
        with suppress(MemfsError, FileNotFoundError):
            if name.endswith(SUFFIX):
                path, data = read_aside(folder / name)
                if cleaner.parts.repository.head_blob(path) == blob_id(data):
                    found.append((folder / name, len(data)))
    return found


def _see_redundant(cleaner: Cleaner) -> CleanupStep:
    """Remove contents set aside that the last commit holds."""
    found = _redundant(cleaner)
    return CleanupStep(
        what=f"remove {len(found)} content(s) set aside that the last commit holds", bytes=sum(row[1] for row in found)
    )


def _remove_redundant(cleaner: Cleaner) -> CleanupStep:
    """Remove contents set aside that the last commit holds."""
    found = _redundant(cleaner)
    for path, _ in found:
        io.unlink(path, missing_ok=True)
    size = sum(row[1] for row in found)
    return CleanupStep(what=f"removed {len(found)} content(s) set aside that the last commit holds", bytes=size)


# -- journal, history, index --------------------------------------------------------------------------------------
def _see_waiting(cleaner: Cleaner) -> CleanupStep:
    """Commit what waits, so that the journal becomes short."""
    allowed = cleaner.parts.policy.commit in _COMMITS_BY_ITSELF and cleaner.store.pending().count
    return CleanupStep(
        what="commit what waits, so that the journal becomes short", bytes=_journal(cleaner) if allowed else 0
    )


def _commit_waiting(cleaner: Cleaner) -> CleanupStep:
    """Commit what waits, so that the journal becomes short."""
    before = _journal(cleaner)
    flushed = cleaner.store.flush(adopt=False)
    freed = max(0, before - _journal(cleaner))
    return CleanupStep(
        what=f"committed what waited ({len(flushed.commits)} commit(s))", bytes=freed, error=flushed.reason
    )


def _journal(cleaner: Cleaner) -> int:
    try:
        return os.stat(cleaner.parts.journal.path).st_size
    except FileNotFoundError:
        return 0


def _see_loose(cleaner: Cleaner) -> CleanupStep:
    """Pack the history."""
    # As maintenance by itself: a repository that memfs joined is the person's to pack.
    ours = cleaner.parts.policy.adopt == "auto"
    return CleanupStep(what="pack the history", bytes=_loose(cleaner) if ours else 0)


def _pack(cleaner: Cleaner) -> CleanupStep:
    """Pack the history."""
    with cleaner.parts.commit_lock.hold("maintenance", timeout=10):
        done = maintenance.maintain(cleaner.parts.repository)
    return CleanupStep(what="packed the history", bytes=max(0, done.bytes_before - done.bytes_after))


def _loose(cleaner: Cleaner) -> int:
    folder = cleaner.parts.repository.common_dir / "objects"
    names = os.listdir(folder) if folder.is_dir() else []
    return sum(weigh(folder / name) for name in names if len(name) == 2)


def _see_index(cleaner: Cleaner) -> CleanupStep:
    """Fold the index."""
    overlay = cleaner.parts.index.overlay_size()
    return CleanupStep(what="fold the index", bytes=weigh(cleaner.parts.index.folder) if overlay else 0)


def _fold(cleaner: Cleaner) -> CleanupStep:
    """Fold the index."""
    before = weigh(cleaner.parts.index.folder)
    cleaner.store.fold()
    return CleanupStep(what="folded the index", bytes=max(0, before - weigh(cleaner.parts.index.folder)))


# -- backups ------------------------------------------------------------------------------------------------------
def _see_surplus(cleaner: Cleaner) -> CleanupStep:
    """Remove backups beyond the number that is kept."""
    found = cleaner.backups.surplus()
    return CleanupStep(what=f"remove {len(found)} backup(s) beyond the number kept", bytes=sum(map(_size, found)))


def _remove_surplus(cleaner: Cleaner) -> CleanupStep:
    """Remove backups beyond the number that is kept."""
    size = _see_surplus(cleaner).bytes
    removed = cleaner.backups.prune()
    return CleanupStep(what=f"removed {len(removed)} backup(s) beyond the number kept", bytes=size)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


STEPS: tuple[Act, ...] = (
    (_see_leftovers, _remove_leftovers),
    (_see_redundant, _remove_redundant),
    (_see_waiting, _commit_waiting),
    (_see_loose, _pack),
    (_see_index, _fold),
    (_see_surplus, _remove_surplus),
)

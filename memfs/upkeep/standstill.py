"""Standstill: nobody syncs, takes in what sessions said, or writes, in any workspace of a repository.

What rewrites history needs it: a sync that goes on meanwhile would fetch the old history again, merge and push it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from memfs.errors import StorageIO
from memfs.files import spoolfile
from memfs.files.lock import FileLock
from memfs.history.remote import LOCK
from memfs.store.parts import Parts
from memfs.upkeep.erase_purge import states_of


@contextmanager
def no_syncs(parts: Parts, why: str, patience: float) -> Iterator[None]:
    """Hold the sync locks of all workspaces of the repository, and the one for what sessions told.

    Who read what a session told, before it was taken out of there, would store it after the proof of an erase.

    Args:
        why: what waiting processes are told.
        patience: seconds to wait for each lock.

    Raises:
        LockTimeout: a sync went on for longer.
    """
    states = states_of(parts)
    spools = [state / spoolfile.FOLDER for state in states]
    locked = [*(state / LOCK for state in states), *(one / spoolfile.LOCK for one in spools if one.is_dir())]
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

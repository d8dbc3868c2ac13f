"""Inject faults in tests: fail or stop at the N-th disk operation, or change bytes the way a failing disk does.

A stop raises ``Stopped``, which no code of memfs catches. Every later operation stops as well, so that no clean-up
runs that a killed process could not have run. A file that ``rot`` changed looks untouched since it was indexed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memfs.dataclass import dataclass, field
from memfs.fs import io
from memfs.model.item import RACY_NS

if TYPE_CHECKING:
    from memfs.workspace import Workspace


class Stopped(BaseException):
    """The process was stopped here."""


@dataclass(slots=True)
class Fault:
    """Counts operations, and acts at the N-th.

    Attributes:
        at: which operation, from 1; 0 only counts.
        error: errno to raise there; None stops the process instead.
        seen: the operations so far, as ``name path``.
    """

    at: int = 0
    error: int | None = None
    seen: list[str] = field(default_factory=list)
    stopped: bool = False

    def __call__(self, name: str, path: str) -> None:
        """The hook itself."""
        if self.stopped:
            raise Stopped
        self.seen.append(f"{name} {path}")
        if len(self.seen) == self.at:
            if self.error is not None:
                raise OSError(self.error, os.strerror(self.error))
            self.stopped = True
            raise Stopped


@contextmanager
def injected(fault: Fault) -> Iterator[Fault]:
    """Run a block with the fault in place."""
    before = io.set_hook(fault)
    try:
        yield fault
    finally:
        io.set_hook(before)


DISK_FULL = errno.ENOSPC
DISK_ERROR = errno.EIO


def flipped(data: bytes, bit: int) -> bytes:
    """The bytes with one bit turned over, counted from the first byte and round the end."""
    changed = bytearray(data)
    place = bit % (len(changed) * 8)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def rot(workspace: Workspace, path: str, bit: int = 0, data: bytes | None = None) -> bytes:
    """Turn a bit of an item's file over (or put other bytes there), leaving no trace in the facts about the file.

    No program can do that: the time of change is the kernel's. So the index is changed, as if the file had had its
    present facts when it was read last.

    Returns:
        What the file holds now.
    """
    workspace.store.refresh()
    full = workspace.root / path
    changed = flipped(full.read_bytes(), bit) if data is None else data
    full.write_bytes(changed)
    vouch(workspace, path)
    return changed


def vouch(workspace: Workspace, path: str) -> None:
    """Let the index know the file by the facts it has now, as of a time at which they can be relied on."""
    index = workspace.parts.index
    before = index.stamps()[path]
    facts = workspace.parts.tree.entry(path)
    assert facts is not None
    checked = max(facts.mtime_ns, facts.ctime_ns) + RACY_NS
    stamp = before._replace(
        size=facts.size, mtime_ns=facts.mtime_ns, ctime_ns=facts.ctime_ns, inode=facts.inode, checked_ns=checked
    )
    index.restamp(path, stamp)

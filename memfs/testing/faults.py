"""Inject faults in tests: fail or stop at the N-th disk operation.

A stop raises ``Stopped``, which no code of memfs catches. Every later operation stops as well, so that no clean-up
runs that a killed process could not have run.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memfs.fs import io


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
READ_ONLY = errno.EROFS
TOO_MANY_FILES = errno.EMFILE

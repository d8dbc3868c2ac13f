"""Tether: what git processes hold, so that those who take up the work of a dead process know that these ended too.

Owns the lock that such a process inherits. A killed memfs takes no git with it: what still runs would put its index in
the place of the next step's, move a branch that was just given back, or make a working tree of one that is gone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memfs.errors import GitBusy
from memfs.files import io
from memfs.files.flock import locked_within

CHILDREN = "children"
CHILD_PATIENCE = 10.0


@contextmanager
def tether(state: Path) -> Iterator[int]:
    """A descriptor for git processes to inherit. The caller holds ``commit.lock``; for the person's index, the store's.

    Args:
        state: the workspace's own folder, for what a step changes; the one above it, for branches and working trees.
    """
    with _opened(state) as fd:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield fd


def wait_for_children(state: Path) -> None:
    """Return when the git processes of an ended memfs process have ended too.

    Raises:
        GitBusy: they run on.
    """
    with _opened(state) as fd:
        if not locked_within(fd, CHILD_PATIENCE):
            raise GitBusy("a git process of an ended memfs process still runs", path=str(state))


@contextmanager
def _opened(state: Path) -> Iterator[int]:
    io.refuse_links(state, state.parent.parent)
    fd = io.make_file(state / CHILDREN, os.O_RDWR)
    _open.add(fd)
    try:
        yield fd
    finally:
        if fd in _open:
            _open.discard(fd)
            os.close(fd)


_open: set[int] = set()


def _forget_in_child() -> None:
    """A child that another thread forks meanwhile is no git: commits would wait for it as long as it lives."""
    for fd in _open:
        os.close(fd)
    _open.clear()


os.register_at_fork(after_in_child=_forget_in_child)

"""Beginnings: the workspace that a tier starts from, quick to have again.

It is made once and copied. Copies are in memory where there is a place for them, since a copy is made for every point
that is tried.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kit.aftermath import SETTINGS, git
from kit.copies import copy_workspace
from kit.script import BEGINNING, FIRST
from memfs import MemoryItem
from memfs.workspace import Workspace, open_workspace

_IN_MEMORY = Path("/dev/shm")


class Beginning:
    """A workspace that holds ``FIRST``, committed under the tag ``beginning``, to be copied.

    Attributes:
        root: where the copy in use is: always the same place, as memfs knows a workspace by its place.
    """

    def __init__(self, folder: Path, arrange: Callable[[Workspace], object] = lambda _: None) -> None:
        self.root = folder / "workspace"
        self._first = folder / "first"
        make(self.root, arrange)
        copy_workspace(self.root, self._first)

    def fresh(self) -> Path:
        """Put the workspace back to what it was, and return its place."""
        shutil.rmtree(self.root, ignore_errors=True)
        copy_workspace(self._first, self.root)
        return self.root


def make(root: Path, arrange: Callable[[Workspace], object] = lambda _: None) -> None:
    """Make such a workspace: a copy of one that was made once, and has been open at its place since.

    Args:
        arrange: what else is to be done with it, before it is closed.
    """
    copy_of(_hold_first, root)
    with open_workspace(root, watch=False, settings=SETTINGS) as workspace:
        arrange(workspace)


def copy_of(arrange: Callable[[Workspace], object], root: Path) -> None:
    """Copy a workspace that was made and arranged once, as a clone that nobody has opened: what waits is not there."""
    copy_workspace(Path(_made_once(arrange).name), root)


@functools.cache
def _made_once(arrange: Callable[[Workspace], object]) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="memfs-", dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None)
    root = Path(folder.name)
    with open_workspace(root, create=True, watch=False, settings=SETTINGS) as workspace:
        arrange(workspace)
        workspace.store.flush()
    shutil.rmtree(root / ".git" / "memfs")  # what memfs knows of a place
    return folder


def _hold_first(workspace: Workspace) -> None:
    for name, (kind, content) in FIRST.items():
        workspace.store.put(MemoryItem(content, kind, id=name))
    workspace.store.flush()
    git(workspace.root, "tag", BEGINNING)


def a_good_neighbour(workspace: Workspace) -> None:
    """One item, of which a word can be asked for."""
    workspace.store.put(MemoryItem("a good neighbour", "knowledge", id="good"))


@contextmanager
def fast_folder(otherwise: Path) -> Iterator[Path]:
    """A folder in memory, or an ordinary one where the system has none."""
    with TemporaryDirectory(prefix="memfs-", dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else otherwise) as folder:
        yield Path(folder)

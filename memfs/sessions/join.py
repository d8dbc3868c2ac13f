"""Let a clone use the private memory of another clone, and bring along what it had of its own.

A join that was killed is finished by the next one, and nothing is lost.
"""

from __future__ import annotations

from pathlib import Path

from memfs import private
from memfs.errors import IdExists
from memfs.model import MemoryItem, Query
from memfs.private import Project
from memfs.sessions.drain import Drain
from memfs.workspace import Workspace, open_workspace

_SECONDS = 60.0


def join(project: Project, folder: Path) -> int:
    """Let a project use the private memory in a folder; killed anywhere, another call goes on, and nothing is lost.

    Returns:
        How many memories of its own the project brought along; that private memory is removed then.

    Raises:
        StorageReadOnly: the project's git folder cannot be written, or there is no private memory in the folder.
        StorageIO, LockTimeout: what it had could not be brought along; it stays where it is.
    """
    before = private.find(project)
    if before is None or before == folder:
        private.join(project, folder)
        return 0
    brought = _copied(before, folder)
    private.join(project, folder)
    brought += _copied(before, folder)  # what hooks reported meanwhile
    private.forget(before)
    return brought


def _copied(before: Path, folder: Path) -> int:
    """Copy what is not there yet, pending events of sessions included."""
    with open_workspace(before, watch=False) as own, open_workspace(folder, watch=False) as other:
        Drain(own).run(seconds=_SECONDS)
        own.store.refresh()
        loaded = (own.store.load(candidate) for candidate in own.store.searcher.every(Query()))
        items = [found.item for found in loaded if found is not None]
        return sum(_put(other, item) for item in items if not other.store.locate(item.id))


def _put(other: Workspace, item: MemoryItem) -> bool:
    try:
        other.store.put(item.replace(path="", sha256=""), expected="", source="join")
    except IdExists:  # somebody brought it at this very moment
        return False
    return True

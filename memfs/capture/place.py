"""Where the events of an agent's session are kept: the workspace around its folder, else this user's own.

Owns finding the workspace and its state folder without opening either, so that a hook that only keeps an event ends at
once, and what the project around a folder is called. What lies in the state folder is the business of others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import MemfsError, RepoUnsupported, WorkspaceNotFound
from memfs.files import io
from memfs.files.whereabouts import WORKSPACE_VARIABLE, find_workspace, is_workspace, user_folder
from memfs.history.layout import Layout, discover, state_folder

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session's memory goes.

    Attributes:
        root: the workspace's folder.
        state: its state folder, outside the working tree, private to this user.
    """

    root: Path
    state: Path


def find_place(cwd: str = "", environ: Mapping[str, str] | None = None, *, make: bool = True) -> Place:
    """The place for an agent that works in a folder (C6, C1).

    It is what ``MEMFS_WORKSPACE`` names, else the workspace of the project that ``CLAUDE_PROJECT_DIR`` names, so that
    an agent that goes into another folder keeps its memory, else the one at or above the folder, else this user's own,
    which is made when it is first needed.

    Args:
        cwd: the folder; "" means the current one. One that is gone is passed over.
        environ: the environment, the process's own by default.
        make: whether the user's own is made where it is not there.

    Raises:
        WorkspaceNotFound: ``MEMFS_WORKSPACE`` names a folder that holds none; or none is there, and none is to be made.
        RepoUnsupported, RepoUntrusted, StorageIO: memfs cannot keep anything there.
    """
    found = known_place(cwd, environ)
    if found is None and not make:
        raise WorkspaceNotFound("there is no workspace", hint="run memfs init")
    return found or make_own()


def known_place(cwd: str = "", environ: Mapping[str, str] | None = None) -> Place | None:
    """The place as ``find_place`` has it, None where it would be this user's own and that is yet to be made.

    Raises:
        WorkspaceNotFound, RepoUnsupported, RepoUntrusted, StorageIO: as ``find_place``.
    """
    known = os.environ if environ is None else environ
    if known.get(WORKSPACE_VARIABLE):
        return _at(find_workspace(environ=known))
    for folder in (known.get(PROJECT_VARIABLE, ""), cwd or "."):
        try:
            root = find_workspace(folder) if folder else None
        except (WorkspaceNotFound, OSError, ValueError):
            continue
        if root is not None:
            return _at(root)
    root = user_root()
    return _at(root) if is_workspace(root) and discover(root) is not None else None


def make_own() -> Place:
    """This user's own place, made: that may take some seconds (C1).

    Raises:
        RepoUnsupported, StorageIO: memfs cannot keep anything there.
    """
    from memfs.workspace import open_workspace  # wanted once in a person's life

    root = user_root()
    io.make_private_folder(root)
    open_workspace(root, create=True, watch=False, own_repository=True).close()
    return _at(root)


def user_root() -> Path:
    """The folder of this user's own workspace, links resolved."""
    return Path(os.path.realpath(user_folder()))


def project_of(cwd: str) -> str:
    """What a folder's project is called: the top of its repository, else the folder itself."""
    with suppress(MemfsError, OSError, ValueError):
        layout = discover(Path(cwd))
        if layout is not None:
            return layout.work_tree.name
    return Path(cwd).name


def _at(root: Path) -> Place:
    layout = discover(root)
    if layout is None:
        raise RepoUnsupported("this workspace is in no git repository", path=str(root), hint="run memfs init there")
    return Place(root, _state(root, layout))


def _state(root: Path, layout: Layout) -> Path:
    if layout.foreign or layout.elsewhere:  # whether that is trusted, takes more than a hook otherwise needs
        from memfs import trust
        from memfs.history.repository import Repository

        found = Repository.find(root, trusted=trust.repository)
        assert found is not None  # it has a layout
        return found.state
    return state_folder(layout)

"""Find where the events of an agent's session are kept, and which memory is read with them.

Nothing is opened to find it, so that a hook which only keeps an event ends at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from memfs import private
from memfs.dataclass import dataclass
from memfs.errors import RepoUnsupported, WorkspaceNotFound
from memfs.fs.workspace_location import find_workspace, named_workspace
from memfs.git.layout import Layout, discover, state_folder
from memfs.private import Project

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
REPOSITORY = "repository"
"""Into the repository's memory, instead of the private one."""


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """Where a session's memory goes, and where it comes from.

    Attributes:
        root: the workspace that it goes to.
        state: that one's state folder, private to this user.
        folder: that from which files are named: the repository's memory, else the project.
        memory: the repository's memory, which is read with it; None where there is none.
    """

    root: Path
    state: Path
    folder: Path
    memory: Path | None = None

    @classmethod
    def within(cls, root: Path, state: Path) -> SessionLocation:
        """The place where a workspace keeps what its own sessions tell."""
        return cls(root, state, root, root)

    @property
    def read(self) -> Path:
        """The workspace that answers: the repository's with the private one beside it, else the private one alone."""
        return self.memory or self.root

    @property
    def private(self) -> bool:
        """Whether what a session tells goes to private memory."""
        return self.memory != self.root


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What an agent works at: its project, and the repository's memory, None where there is none."""

    project: Project
    memory: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder from which files are named: that of the code where memory, on a branch of its own, lies in git."""
        git = self.project.git
        within = self.memory is not None and git is not None and self.memory.is_relative_to(git)
        return self.project.folder if self.memory is None or within else self.memory


def find_place(
    cwd: str = "", environ: Mapping[str, str] | None = None, *, folder: str = "", into: str = ""
) -> SessionLocation:
    """The place for an agent that works in a folder, made where it is not there: that may take some seconds.

    Args:
        cwd: the folder; "" means the current one.
        environ: the environment, the process's own by default.
        folder: one that goes before all of that, as after ``-C``.
        into: ``repository`` for the repository's memory, where there is one; else private memory.

    Raises:
        WorkspaceNotFound: ``MEMFS_WORKSPACE`` names a folder that holds no workspace.
        RepoUnsupported, RepoUntrusted, StorageIO: memfs cannot keep anything there.
    """
    found = whereabouts(cwd, environ, folder=folder)
    place = known_place(found, into)
    return make_place(found) if place is None or place.private else place


def whereabouts(cwd: str = "", environ: Mapping[str, str] | None = None, *, folder: str = "") -> Whereabouts:
    """What an agent works at.

    The project is that of the folder that was named, else the one that ``CLAUDE_PROJECT_DIR`` names, so that an agent
    that goes into another folder keeps its memory, else the one around the agent's folder. The repository's memory is
    what ``MEMFS_WORKSPACE`` names, else the workspace around it in the same repository.

    Raises:
        WorkspaceNotFound: as ``find_place``.
    """
    known = os.environ if environ is None else environ
    named = (folder, known.get(PROJECT_VARIABLE, ""), cwd)
    start = next((one for one in named if one and _is_folder(one)), ".")
    project = private.project_at(start)
    if not folder and named_workspace(known):
        return Whereabouts(project, find_workspace(environ=known))
    memory = _around(start) if project.git is not None else None
    if memory is not None and private.project_at(memory).place != project.place:
        memory = None  # that of another project, which this one lies in
    return Whereabouts(project, memory)


def known_place(found: Whereabouts, into: str = "") -> SessionLocation | None:
    """The place for what an agent works at, None where that is yet to be made.

    Raises:
        StorageReadOnly: private memory is open to others.
        RepoUnsupported, RepoUntrusted, StorageIO: as ``find_place``.
    """
    if into == REPOSITORY and found.memory is not None:
        return SessionLocation.within(found.memory, state_of(found.memory))
    root = private.find(found.project)
    layout = discover(root) if root is not None else None
    if root is None or layout is None or layout.work_tree != root:  # half made, in a folder that lies in another's
        return None
    return SessionLocation(root, _state(root, layout), found.folder, found.memory)


def make_place(found: Whereabouts) -> SessionLocation:
    """The place in private memory, made where it is not there, and brought up to date where the project has moved.

    Raises:
        RepoUnsupported, StorageIO: memfs cannot keep anything there.
    """
    root = private.claim(found.project)
    place = known_place(found)
    if place is None:
        from memfs.workspace import open_workspace  # wanted once a project

        open_workspace(root, create=True, watch=False, own_repository=True).close()
        place = SessionLocation(root, state_of(root), found.folder, found.memory)
    return place


def state_of(root: Path) -> Path:
    """The state folder of a workspace.

    Raises:
        RepoUnsupported, RepoUntrusted, StorageIO: memfs cannot keep anything there.
    """
    layout = discover(root)
    if layout is None:
        raise RepoUnsupported("this workspace is in no git repository", path=str(root), hint="run memfs init there")
    return _state(root, layout)


def _around(folder: str) -> Path | None:
    try:
        return find_workspace(folder)
    except (WorkspaceNotFound, OSError, ValueError):
        return None


def _is_folder(name: str) -> bool:
    try:
        return os.path.isdir(name)
    except ValueError:  # no folder can have such a name
        return False


def _state(root: Path, layout: Layout) -> Path:
    if layout.foreign or layout.elsewhere:  # whether that is trusted, takes more than a hook otherwise needs
        from memfs import trust
        from memfs.git.repository import Repository

        found = Repository.find(root, trusted=trust.repository)
        assert found is not None  # it has a layout
        return found.state
    return state_folder(layout)

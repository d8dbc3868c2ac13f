"""Opening: which workspace a facade works in, and how long that stays open.

Owns the choice: a path, ``":memory:"``, the workspace at hand, the user's own. What a facade does with a workspace,
it does not know.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from memfs.config import WORKSPACE_VARIABLE, find_workspace
from memfs.errors import MemfsError, WorkspaceClosed, WorkspaceNotFound
from memfs.facades import kept
from memfs.files import io
from memfs.files.whereabouts import user_folder
from memfs.model.memory_config import MemoryConfig
from memfs.upkeep.contextfile import checked_values
from memfs.workspace import Workspace, open_workspace

MEMORY = ":memory:"
"""The path of a workspace that exists only while it is open."""
_Some = TypeVar("_Some", bound="Facade")


# -- which workspace ----------------------------------------------------------------------------------------------
def open_user_workspace(watch: bool | None = None) -> Workspace:
    """Open this user's own workspace, made where it is not there yet: private, with a repository of its own.

    Raises:
        StorageIO, WorkspaceNotFound: it cannot be made, or belongs to somebody else.
    """
    folder = Path(os.path.realpath(user_folder()))
    io.make_private_folder(folder)
    return open_workspace(folder, create=True, watch=watch, own_repository=True)


def _root(path: str | os.PathLike[str] | None) -> Path:
    """The folder of the workspace that a path means, made where it is not there."""
    if path is not None:
        asked = Path(path).expanduser()
        with contextlib.suppress(WorkspaceNotFound):
            return find_workspace(asked)
        with contextlib.closing(open_workspace(asked, create=True, watch=False)) as made:
            return made.root
    try:
        return find_workspace()
    except WorkspaceNotFound:
        if os.environ.get(WORKSPACE_VARIABLE):  # somebody named one: another would be a surprise
            raise
    with contextlib.closing(open_user_workspace(watch=False)) as own:
        return own.root


# -- facades -----------------------------------------------------------------------------------------------------
def _written(config: MemoryConfig | Mapping[str, Any] | None) -> str:
    """What wins over a memory context, as JSON."""
    values = asdict(config) if isinstance(config, MemoryConfig) else dict(config or {})
    checked_values(values)  # what is wrong is told when the facade is made
    return json.dumps(values, sort_keys=True, default=asdict)


class Facade:
    """What all facades have in common: the workspace they work in, opened when it is first used.

    Attributes:
        teaches: whether what is learned in a workspace that it opened is written, as its seed says, whatever the
            settings.
    """

    teaches: ClassVar[bool] = False

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        db_path: str | os.PathLike[str] | None = None,
        workspace: Workspace | None = None,
        config: MemoryConfig | Mapping[str, Any] | None = None,
    ) -> None:
        """Choose the workspace (C1).

        Args:
            path: a folder: the workspace there or above it, else one that is made there; ``":memory:"``: one that
                passes, removed on close; None: what ``MEMFS_WORKSPACE`` names, else the workspace at or above the
                current folder, else this user's own.
            db_path: another name of ``path``.
            workspace: an open workspace to work in; it stays open when the facade is closed.
            config: what wins over the workspace's memory context.

        Raises:
            MemfsError: the arguments contradict one another.
            SettingInvalid, SchemaInvalid: ``config`` has an unknown name or a wrong value.
            WorkspaceNotFound: ``MEMFS_WORKSPACE`` names none, or none can be made at ``path``.
        """
        if path is not None and db_path is not None and os.fspath(path) != os.fspath(db_path):
            raise MemfsError("path and db_path name two places", field="db_path", hint="give one of them")
        if workspace is not None and (path is not None or db_path is not None or config):
            raise MemfsError("an open workspace has its path and its config", field="workspace", hint="give it alone")
        self._given, self._closed = workspace, False
        self._made_ns = time.time_ns()
        self._place: kept.Place | None = None
        if workspace is not None:
            return
        asked = path if path is not None else db_path
        if asked is not None and not os.fspath(asked).strip():
            raise MemfsError(
                "an empty path names no place", field="path", hint="leave it out for the workspace at hand"
            )
        memory = _written(config)
        if asked is not None and os.fspath(asked) == MEMORY:
            self._place = kept.take_passing(memory, self)
            weakref.finalize(self, kept.end, self._place, os.getpid())
        else:
            self._place = (_root(asked), memory)

    def __repr__(self) -> str:
        """Which workspace it works in, or that it was closed."""
        given = self._given
        place = "closed" if self._closed else given.root if given is not None else self._place and self._place[0]
        return f"<{type(self).__name__} {place}>"

    @property
    def workspace(self) -> Workspace:
        """The open workspace.

        Raises:
            WorkspaceClosed: the facade was closed.
            BranchQuarantined: agents neither read nor write on the branch that is checked out there.
        """
        opened = self._opened()
        opened.repository.require_readable()
        return opened

    def working_in(self: _Some, workspace: Workspace) -> _Some:
        """The same facade, from now on in this open workspace, which stays open when the facade is closed."""
        self._given = workspace
        return self

    def _opened(self) -> Workspace:
        if self._closed:
            raise WorkspaceClosed(f"this {type(self).__name__}")
        if self._given is not None:
            return self._given
        assert self._place is not None  # chosen when the facade was made
        opened = kept.held.get(self._place)
        if opened is None or self not in opened.users:  # the first use, or the first in a forked child
            opened = kept.take(self._place, self)
        if self.teaches:
            opened.workspace.learner.program = True
        return opened.workspace

    def close(self) -> None:
        """End the facade's use of its workspace, which is closed when no other facade uses it. May be repeated."""
        self._closed = True
        if self._place is not None:
            kept.give_back(self._place, self)

    def finish(self) -> None:
        """Close, where that is the end of an agent's session: what waits for it is committed (C6).

        The next session or ``memfs commit`` commits what git refuses now. May be repeated.
        """
        opened = self._given or self._in_use()
        try:
            if opened is not None and not self._closed:
                opened.end_session()
        finally:
            self.close()

    def _in_use(self) -> Workspace | None:
        """The shared workspace, where this facade has used it."""
        opened = kept.held.get(self._place) if self._place is not None else None
        return opened.workspace if opened is not None and self in opened.users else None

    def __enter__(self: _Some) -> _Some:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

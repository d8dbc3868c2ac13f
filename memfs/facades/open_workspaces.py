"""Open the workspace that a facade works in: a path, ``":memory:"``, the one at hand, or the user's own.

A process opens each workspace once, and closes it when its last facade is done. A forked child opens its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict, TypeVar

from memfs.config import checked_values
from memfs.dataclass import dataclass, field
from memfs.errors import MemfsError, StorageIO, WorkspaceClosed, WorkspaceNotFound
from memfs.fs import io
from memfs.fs.workspace_location import find_workspace, named_workspace, user_folder
from memfs.model import MemoryItem, Origin
from memfs.model.learning import MemoryConfig
from memfs.search.generations import index_folder
from memfs.store.access_log import served_to
from memfs.store.plan import signed_by
from memfs.workspace import Workspace, open_workspace

_PASSING: Mapping[str, Any] = {"index.engine": "memory", "history.commit": "manual", "watch.enabled": False}


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """One open workspace of this process, the facades that use it, and whether it goes with them."""

    workspace: Workspace
    passing: bool
    users: weakref.WeakSet[object] = field(default_factory=weakref.WeakSet)


Place = tuple[Path, str]
"""A workspace's folder, and what wins over its memory context, as JSON."""
PathName = str | os.PathLike[str] | None
"""A path, or None for the workspace at hand."""


class Where(TypedDict, total=False):
    """Further ways to say where a facade works, see ``Facade``."""

    db_path: PathName
    workspace: Workspace | None


_guard = threading.RLock()
held: dict[Place, OpenWorkspace] = {}
"""What is open now, by place."""


# What a parent process has open: taking it apart in a child would end the parent's helpers and locks.
_abandoned: list[OpenWorkspace] = []


def _reset_after_fork() -> None:
    """A forked child has none of its parent's open workspaces: it opens its own."""
    global _guard
    _guard = threading.RLock()
    _abandoned.extend(held.values())
    held.clear()


os.register_at_fork(after_in_child=_reset_after_fork)


def take_passing(memory: str, user: object) -> Place:
    """Make and open a workspace that passes; returns its place."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="memfs-passing-"))
    except OSError as error:
        raise StorageIO(f"there is no place for what passes: {error}", hint="set TMPDIR to a folder") from error
    try:
        opened = open_workspace(folder, create=True, watch=False, settings=dict(_PASSING), memory=json.loads(memory))
    except BaseException:
        _remove(folder, index_folder(folder))
        raise
    place = (opened.root, memory)
    held[place] = OpenWorkspace(opened, passing=True)
    held[place].users.add(user)
    return place


def end(place: Place, process: int = 0) -> None:
    """Close one workspace. Without a lock: the collector may call it anywhere, once it is unused."""
    if process and process != os.getpid():  # a finalizer that came along into a child
        return
    opened = held.pop(place, None)
    if opened is None:
        return
    root = opened.workspace.root
    index = index_folder(root) if opened.passing and root.exists() else None
    try:
        opened.workspace.close()
    finally:
        if opened.passing:
            _remove(root, index)


def _remove(*folders: Path | None) -> None:
    for folder in filter(None, folders):
        with contextlib.suppress(StorageIO, OSError):  # what is left is in a temporary folder
            io.remove_all(folder)


def close_all() -> None:
    """Close every workspace that facades of this process opened; each is opened again when it is next used."""
    with _guard, contextlib.ExitStack() as every:  # one that cannot be closed keeps no other open
        for place in list(held):
            every.callback(end, place)


atexit.register(close_all)


MEMORY = ":memory:"
"""The path of a workspace that exists only while it is open."""
Result = TypeVar("Result")


# -- which workspace ----------------------------------------------------------------------------------------------
def open_user_workspace(watch: bool | None = None, settings: dict[str, Any] | None = None) -> Workspace:
    """Open this user's own workspace, made where it is not there yet: private, with its own repository.

    Raises:
        StorageIO, WorkspaceNotFound: it cannot be made, or belongs to somebody else.
    """
    folder = Path(os.path.realpath(user_folder()))
    io.make_private_folder(folder)
    return open_workspace(folder, create=True, watch=watch, own_repository=True, settings=settings)


def _root(path: PathName) -> Path:
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
        if named_workspace():  # somebody named one: another would be a surprise
            raise
    with contextlib.closing(open_user_workspace(watch=False)) as own:
        return own.root


async def aside(work: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
    """What work gives back, done on a thread: it reads files, and may wait for a disk or for sources of others."""
    from asyncio import to_thread  # costs start-up time, and callers without a loop do not need it

    return await to_thread(work, *arguments, **named)


# -- facades -----------------------------------------------------------------------------------------------------
class Closable:
    """Ends with the block of a ``with`` or ``async with``."""

    def close(self) -> None:
        """End the use of what is open. May be repeated."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await aside(self.close)


class Facade(Closable):
    """What all facades have in common: the workspace they work in, opened when it is first used.

    Attributes:
        teaches: whether what is learned in a workspace that it opened is written, as its seed says, whatever the
            settings.
    """

    teaches: ClassVar[bool] = False

    def __init__(
        self,
        path: PathName = None,
        *,
        db_path: PathName = None,
        workspace: Workspace | None = None,
        config: MemoryConfig | Mapping[str, Any] | None = None,
    ) -> None:
        """Choose the workspace.

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
        self._place: Place | None = None
        if workspace is not None:
            return
        asked = path if path is not None else db_path
        if asked is not None and not os.fspath(asked).strip():
            raise MemfsError(
                "an empty path names no place", field="path", hint="leave it out for the workspace at hand"
            )
        values = asdict(config) if isinstance(config, MemoryConfig) else dict(config or {})
        checked_values(values)  # what is wrong is reported when the facade is made
        memory = json.dumps(values, sort_keys=True, default=asdict)
        if asked is not None and os.fspath(asked) == MEMORY:
            self._place = take_passing(memory, self)
            weakref.finalize(self, end, self._place, os.getpid())
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
        """
        if self._closed:
            raise WorkspaceClosed(f"this {type(self).__name__}")
        if self._given is not None:
            return self._given
        assert self._place is not None  # chosen when the facade was made
        opened = held.get(self._place)
        if opened is None or self not in opened.users:  # the first use, or the first in a forked child
            root, memory = self._place
            with _guard:
                if self._place not in held:  # opened once a process
                    made = open_workspace(root, memory=json.loads(memory))
                    held[self._place] = OpenWorkspace(made, passing=False)
                opened = held[self._place]
                opened.users.add(self)
        if self.teaches:
            opened.workspace.learner.program = True
        return opened.workspace

    def working_in(self, workspace: Workspace) -> Self:
        """The same facade, from now on in this open workspace, which stays open when the facade is closed."""
        self._given = workspace
        return self

    def close(self) -> None:
        """End the facade's use of its workspace, which is closed when no other facade uses it. May be repeated."""
        self._closed = True
        with _guard:
            opened = held.get(self._place) if self._place is not None else None
            if self._place is not None and opened is not None:
                opened.users.discard(self)
                if not opened.users:
                    end(self._place)

    def finish(self) -> None:
        """Close, where that is the end of an agent's session: what waits for it is committed.

        The next session or ``memfs commit`` commits what git refuses now. May be repeated.
        """
        opened, shared = self._given, held.get(self._place) if self._place is not None else None
        if opened is None and shared is not None and self in shared.users:
            opened = shared.workspace
        try:
            if opened is not None and not self._closed:
                opened.end_session()
        finally:
            self.close()


class SignedFacade(Facade):
    """A facade that writes in somebody's name, and notes what it hands out to them."""

    def __init__(
        self,
        path: PathName = None,
        *,
        origin: Origin | None = None,
        source: str = "",
        allow_secret: str = "",
        workspace: Workspace | None = None,
    ) -> None:
        """Choose the workspace, as every facade does.

        Args:
            origin: who writes, for the items' origin and the commits.
            source: which door it is, for the commits.
            allow_secret: why what looks like a secret may stay; recorded in the items that need it.

        Raises:
            WorkspaceNotFound: see ``path``.
        """
        super().__init__(path, workspace=workspace)
        self._origin, self._source, self._allow_secret = origin or Origin(), source, allow_secret

    def now(self) -> datetime:
        """What time it is."""
        return self.workspace.parts.clock()

    def served(self, ids: Iterable[str], way: str = "read", question: str = "") -> None:
        """Note which items were handed out."""
        with served_to(self._source, self._origin.agent, self._origin.session):
            self.workspace.usage.served.note(way, ids, self.now(), question=question)

    def write(
        self, changes: Sequence[tuple[MemoryItem | str, str | None]], message: str, *, one: str = "", reason: str = ""
    ) -> None:
        """Store items and remove ids, all or nothing; the digest beside each is that of what it replaces.

        Args:
            message: of the commit; ``one`` where there is one item, "" for the usual one.
            reason: why one id is removed.
        """
        store = self.workspace.store
        with signed_by(self._origin):
            if len(changes) > 1:
                with store.batch(message, source=self._source) as batch:
                    for item, expected in changes:
                        if isinstance(item, str):
                            batch.delete(item, expected)
                        else:
                            batch.put(item, expected, allow_secret=self._allow_secret)
                return
            for item, expected in changes:
                if isinstance(item, str):
                    store.delete(item, expected=expected, reason=reason, source=self._source)
                else:
                    store.put(item, expected, message=one, source=self._source, allow_secret=self._allow_secret)

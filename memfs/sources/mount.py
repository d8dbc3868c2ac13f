"""Mount: one other workspace, opened for reading, and how its items look from here.

Owns what may be mounted, and the names and the trust under which its items are handed on: an id such as ``team:ID``,
and at most ``reviewed``, since nobody there speaks for this user, but for private memory. Which mounts there are is
``memfs.sources.mounts``' business.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from memfs import private, trust
from memfs.config import MEMORY_FOLDER
from memfs.errors import RepoUnsupported, RepoUntrusted, StorageIO, WorkspaceNotFound
from memfs.files.codec import Codec
from memfs.files.tree import Tree
from memfs.history.layout import discover, own_users
from memfs.history.quarantine import of_checkout, require_readable
from memfs.index.joining import Asked, Counted
from memfs.index.layers import SearchIndex
from memfs.index.place import index_folder
from memfs.model import Candidate, Freshness, Link, MemoryItem, Problem, Query, Trust
from memfs.model.ids import in_mount, of_mount, without_mount
from memfs.model.problem import WARNING
from memfs.settings import Settings, WatchSettings
from memfs.store.mounted import MountedStore, reader_of
from memfs.store.naming import not_found
from memfs.store.outcome import Refreshed
from memfs.store.seeking import Seeking
from memfs.store.values import Loaded
from memfs.upkeep.format import check_format
from memfs.upkeep.kindfile import load_kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from memfs.history.layout import Layout
    from memfs.model.triggerrow import Matched, Similar
    from memfs.pipeline.triggers import Triggers

Place = tuple[int, int, int, int]
"""Device and inode of a workspace's folder and of its ``ContextMemory``."""


class Mount:
    """Another workspace as it is seen from this one. May be used from several threads.

    It offers what ``memfs.store.readable.Readable`` asks for, with the mount's name before every id.

    Attributes:
        name: as the setting has it.
        path: where that leads from the workspace that mounts it.
        place: tells it from other folders.
        store: reads its files; ids are there as the files have them.
        own: whether it is this user's private memory of the same project: it speaks for the user.
        same_repository: whether it tells of the files of the workspace that mounts it.
        failed_at: when it last failed to answer, by ``time.monotonic``.
    """

    def __init__(
        self,
        name: str,
        path: str,
        place: Place,
        store: MountedStore,
        *,
        own: bool = False,
        same_repository: bool = False,
        ageing: bool = True,
        layout: Layout | None = None,
    ) -> None:
        self.name, self.path, self.place, self.store, self.own = name, path, place, store, own
        self.same_repository = same_repository
        self._ageing, self._layout = ageing, layout
        self.seeking = MountSeeking(name, store.seeking)
        self.failed_at = -math.inf
        self._watched = False

    def readable(self) -> bool:
        """Whether it may be read: the branch that is checked out there may have been quarantined meanwhile."""
        return self._layout is None or of_checkout(self._layout) is None

    # -- reading ----------------------------------------------------------------------------------------------------
    def get(self, item_id: str) -> MemoryItem | None:
        """The item with that id, which begins with the mount's name; None when there is none.

        Raises:
            ContentError: its file is invalid at present.
        """
        found = self.store.get(without_mount(item_id)) if of_mount(item_id) == self.name else None
        return self.outward(found) if found is not None else None

    def find(self, reference: str) -> MemoryItem:
        """The item a person means: by id, or by the beginning of an id that only one item has.

        Raises:
            ItemNotFound: naming the nearest id.
            ContentError: its file is invalid at present.
        """
        found = self.get(reference)
        if found is not None:
            return found
        ids = [in_mount(self.name, item_id) for item_id in self.store.following.ids()]
        starting = [item_id for item_id in ids if item_id.casefold().startswith(reference.casefold())]
        if len(starting) == 1 and (only := self.get(starting[0])) is not None:
            return only
        raise not_found(reference, starting, ids)

    def load(self, candidate: Candidate) -> Loaded | None:
        """The item behind a candidate of this mount; None when its file is no longer what was found."""
        found = self.store.load(self._inward(candidate))
        return replace(found, item=self.outward(found.item)) if found is not None else None

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now, after the mount's name."""
        return [in_mount(self.name, path) for path in self.store.unread(query)]

    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:
        """Bring the index in step with the given files of this mount, or with every file."""
        if paths is None:
            return self.store.refresh()
        mine = [without_mount(path) for path in paths if of_mount(path) == self.name]
        return self.store.refresh(mine) if mine else Refreshed()

    def freshness(self) -> Freshness:
        """Nothing is known of its history."""
        return Freshness(head=None, dirty=None, indexed="")

    def problems(self) -> list[Problem]:
        """What is wrong with its files, after the mount's name."""
        return [
            replace(found, path=in_mount(self.name, found.path) if found.path else "", severity=WARNING)
            for found in self.store.problems()
        ]

    def outward(self, item: MemoryItem) -> MemoryItem:
        """An item as it is handed on."""
        return item.replace(
            id=in_mount(self.name, item.id),
            path=os.path.join(self.path, item.path),
            trust=Trust.REVIEWED.value if item.trust == Trust.HUMAN and not self.own else item.trust,
            supersedes=tuple(in_mount(self.name, other) for other in item.supersedes),
            links=tuple(Link(to=in_mount(self.name, link.to), relation=link.relation) for link in item.links),
        )

    def _inward(self, candidate: Candidate) -> Candidate:
        return replace(candidate, id=without_mount(candidate.id), path=without_mount(candidate.path))

    # -- what warns -------------------------------------------------------------------------------------------------
    @cached_property
    def triggers(self) -> Triggers:
        """Knows which of its episodes and rules a situation brings to mind; ids as the files have them."""
        from memfs.pipeline.triggers import Triggers  # a process that only recalls is spared it

        first: Triggers = self.__dict__.setdefault("triggers", Triggers(self.store, self.store, self._ageing))
        return first

    def behind(self, match: Similar | Matched) -> MemoryItem | None:
        """The item behind a match, as it is handed on; None where its file is no longer what was found."""
        found = self.triggers.load(match)
        return self.outward(found) if found is not None else None

    # -- standing ---------------------------------------------------------------------------------------------------
    def still_there(self) -> bool:
        """Whether its folder is what was opened."""
        try:
            return identity_of(self.store.tree.root) == self.place
        except (WorkspaceNotFound, OSError):
            return False

    def note_failure(self, error: Exception) -> None:
        """Report that it could not answer."""
        self.failed_at = time.monotonic()
        self.store.note_failure(error)

    def watch(self, settings: WatchSettings) -> None:
        """Watch its files from the next question on, instead of comparing all of them before each."""
        if not self._watched:
            from memfs.watch import Watcher  # a process that answers once does not need it

            self._watched = True
            self.store.watch_with(lambda: Watcher(self.store, self.store.tree.root, settings))

    def close(self) -> None:
        """Release everything."""
        with ExitStack() as ending:
            ending.callback(self.store.close)
            if "triggers" in self.__dict__:
                self.triggers.close()


class MountSeeking:
    """What the index of one mount finds, with the mount's name before ids, paths and sessions."""

    def __init__(self, name: str, seeking: Seeking) -> None:
        self._name = name
        self._seeking = seeking

    def snapshot(self) -> AbstractContextManager[None]:
        """See ``Seeking.snapshot``."""
        return self._seeking.snapshot()

    def candidates(self, query: Query) -> list[Candidate]:
        """See ``Seeking.candidates``."""
        return self._outward(self._seeking.candidates(query))

    def weighed(self, query: Query, asked: Asked) -> list[Candidate]:
        """See ``Seeking.weighed``."""
        return self._outward(self._seeking.weighed(query, asked))

    def every(self, query: Query) -> Iterator[Candidate]:
        """See ``Seeking.every``."""
        return iter(self._outward(self._seeking.every(query)))

    def counted(self) -> Counted:
        """See ``Seeking.counted``."""
        return self._seeking.counted()

    def talks(self) -> bool:
        """See ``Seeking.talks``."""
        return self._seeking.talks()

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """See ``Seeking.beside``; of the places only those in sessions of this mount."""
        before = in_talk(self._name, "")
        mine = [(session.removeprefix(before), at) for session, at in places if session.startswith(before)]
        return self._outward(self._seeking.beside(mine, query)) if mine else []

    def _outward(self, found: Iterable[Candidate]) -> list[Candidate]:
        return [
            replace(
                one,
                id=in_mount(self._name, one.id),
                path=in_mount(self._name, one.path),
                session=in_talk(self._name, one.session) if one.session else "",
            )
            for one in found
        ]


def in_talk(name: str, session: str) -> str:
    """What a session of a mount is called among those of all workspaces: no file has such a name for one."""
    return f"\0{name}\0{session}"


# -- opening ------------------------------------------------------------------------------------------------------
def folder_of(root: Path, written: str) -> Path:
    """The folder that a setting names: relative to the workspace, ``~`` and links resolved.

    Raises:
        WorkspaceNotFound: no folder can have such a name.
    """
    try:
        return (root / Path(written).expanduser()).resolve()
    except (ValueError, RuntimeError, OSError) as error:  # a NUL, an unknown user's home, links in a circle
        raise WorkspaceNotFound(f"it names no folder: {error}", path=written, hint="correct the path") from error


def identity_of(folder: Path) -> Place:
    """What tells a workspace from others.

    Raises:
        WorkspaceNotFound: no workspace is there.
    """
    try:
        outer, inner = os.stat(folder), os.stat(folder / MEMORY_FOLDER, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        missing = f"there is no {MEMORY_FOLDER}/ in it" if os.path.isdir(folder) else "there is no such folder"
        hint = f"name the folder that holds {MEMORY_FOLDER}/"
        raise WorkspaceNotFound(missing, path=str(folder), hint=hint) from None
    return outer.st_dev, outer.st_ino, inner.st_dev, inner.st_ino


def open_mount(
    name: str, path: str, folder: Path, settings: Settings, clock: Callable[[], datetime], own_repository: Path
) -> Mount:
    """Open a workspace for reading; none of its own settings counts.

    Args:
        settings, clock: those of the workspace that mounts it.
        own_repository: the common git folder of that workspace.

    Raises:
        WorkspaceNotFound: there is none.
        RepoUntrusted: it belongs to another user.
        BranchQuarantined: so is the branch that is checked out there.
        FormatUnsupported: a newer memfs wrote it.
        ContentError, SettingInvalid: its ``kinds.yaml`` is invalid.
        StorageIO: it cannot be read.
    """
    place = identity_of(folder)
    layout = _layout(folder)
    _require_owner(folder, layout)
    if layout is not None:
        require_readable(layout)
    tree = Tree(folder)
    try:
        if not os.access(folder / MEMORY_FOLDER, os.R_OK | os.X_OK):
            raise StorageIO(f"{MEMORY_FOLDER}/ cannot be read", path=str(folder), hint="make it readable for this user")
        check_format(tree)
        kinds, schemas = load_kinds(tree)
        invisible, engine = settings.security.allow_invisible, settings.index.engine
        index = SearchIndex(index_folder(folder, reader_of(engine, invisible)), engine)
        store = MountedStore(tree, Codec(schemas, kinds, invisible), kinds, index, clock)
        own = name == private.NAME and private.holds(folder)
        same = own or (layout is not None and layout.common_dir == own_repository)
        path, ageing = os.path.expanduser(path), settings.memory.decay
        return Mount(name, path, place, store, own=own, same_repository=same, ageing=ageing, layout=layout)
    except BaseException:
        tree.close()
        raise


def _layout(folder: Path) -> Layout | None:
    with suppress(RepoUnsupported):  # its history is not read: any sort of repository will do
        return discover(folder)
    return None


def _require_owner(folder: Path, layout: Layout | None) -> None:
    """Refuse a workspace of another user, unless this user trusts that user there."""
    allowed = own_users() | (trust.repository(layout.work_tree)[0] if layout is not None else frozenset())
    owners = {os.stat(folder).st_uid, os.lstat(folder / MEMORY_FOLDER).st_uid}
    strangers = (owners | (layout.foreign_owners if layout is not None else frozenset())) - allowed
    if strangers and not trust.is_trusted(folder):
        raise RepoUntrusted(
            "it belongs to another user",
            path=str(folder),
            hint=f"if you trust that user: {trust.command(folder)}",
        )

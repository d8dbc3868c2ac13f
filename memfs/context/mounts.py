"""Read other workspaces that ``[mounts]`` names, and search them together with this one.

A mount is only read: none of its settings count, and its own mounts are not followed. One that is missing, invalid or
not trusted is reported and left out; the others still answer.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from memfs import private, trust
from memfs.admin.store_builder import check_format
from memfs.catalog.facts import Catalog, ItemCatalog
from memfs.config import load_kinds
from memfs.dataclass import KW_ONLY, dataclass, field, replace
from memfs.errors import (
    WARNING,
    ItemNotFound,
    MemfsError,
    RepoUnsupported,
    RepoUntrusted,
    SettingInvalid,
    StorageIO,
    WorkspaceNotFound,
)
from memfs.format.codec import Codec
from memfs.fs.lock import reset_on_fork, shared_property
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import MEMORY_FOLDER
from memfs.git.layout import discover, own_users
from memfs.model import Candidate, Freshness, Link, MemoryItem, Problem, Query, Trust
from memfs.model.ids import in_mount, of_mount, without_mount
from memfs.model.kinds import nearest
from memfs.search.generations import index_folder, shared_folder
from memfs.search.search_index import SearchIndex, asked_of
from memfs.search.terms import Asked
from memfs.settings import Settings, WatchSettings
from memfs.startup import TYPE_CHECKING, TypeVar
from memfs.store import Store
from memfs.store.index_sync import IndexSync, SyncResult
from memfs.store.parts import FileWatcher, LoadedItem, Parts
from memfs.store.reader import FolderReader, meant, reader_of

if TYPE_CHECKING:
    from memfs.git.layout import Layout
    from memfs.learning.triggers import Triggers
    from memfs.model.episode import TriggerRow
    from memfs.recall.recaller import Recaller


Place = tuple[int, int, int, int]
"""Device and inode of a workspace's folder and of its ``ContextMemory``."""


@dataclass(eq=False, repr=False)
class Mount:
    """Another workspace as it is seen from this one. May be used from several threads.

    What it hands on has the mount's name before every id, path and session.

    Attributes:
        name: as the setting has it.
        path: where that leads from the workspace that mounts it.
        place: distinguishes it from other folders.
        store: reads its files; ids are there as the files have them.
        own: whether it is this user's private memory of the same project: it speaks for the user.
        same_repository: whether it describes the files of the workspace that mounts it.
        ageing: whether what is old counts less.
        layout: of the repository that it is in; None where it is in none.
        failed_at: when it last failed to answer, by ``time.monotonic``.
    """

    name: str
    path: str
    place: Place
    store: FolderReader
    _: KW_ONLY
    own: bool = False
    same_repository: bool = False
    ageing: bool = True
    layout: Layout | None = None
    failed_at: float = field(default=-math.inf, init=False)
    _watched: bool = field(default=False, init=False)

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
        ids = self.store.snapshot.ids
        return meant(reference, self.get, lambda: [in_mount(self.name, item_id) for item_id in ids()])

    def load(self, candidate: Candidate) -> LoadedItem | None:
        """The item behind a candidate of this mount; None when its file is no longer what was found."""
        inward = candidate._replace(id=without_mount(candidate.id), path=without_mount(candidate.path))
        found = self.store.load(inward)
        return found._replace(item=self.outward(found.item)) if found is not None else None

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now, after the mount's name."""
        return [in_mount(self.name, path) for path in self.store.unread(query)]

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:
        """Bring the index in step with the given files of this mount, or with every file."""
        if paths is None:
            return self.store.refresh()
        mine = [without_mount(path) for path in paths if of_mount(path) == self.name]
        return self.store.refresh(mine) if mine else SyncResult()

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

    def named(self, candidate: Candidate) -> Candidate:
        """A candidate as it is handed on."""
        session = session_in_mount(self.name, candidate.session) if candidate.session else ""
        path = in_mount(self.name, candidate.path)
        return candidate._replace(id=in_mount(self.name, candidate.id), path=path, session=session)

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at those of the places that are in sessions of this mount, if they pass the query's filters."""
        before = session_in_mount(self.name, "")
        mine = [(session.removeprefix(before), at) for session, at in places if session.startswith(before)]
        return [self.named(one) for one in self.store.beside(mine, query)] if mine else []

    # -- what warns -------------------------------------------------------------------------------------------------
    @shared_property
    def triggers(self) -> Triggers:
        """Knows which of its episodes and rules a situation brings to mind; ids as the files have them."""
        from memfs.learning.triggers import Triggers

        return Triggers(self.store, self.store.clock, self.ageing)

    def behind(self, row: TriggerRow) -> MemoryItem | None:
        """The item behind a row, as it is handed on; None where its file is no longer what was found."""
        found = self.triggers.load(row)
        return self.outward(found) if found is not None else None

    # -- standing ---------------------------------------------------------------------------------------------------
    def note_failure(self, error: Exception) -> None:
        """Report that it could not answer."""
        self.failed_at = time.monotonic()
        self.store.note_failure(error)

    def watch(self, settings: WatchSettings, make: Callable[[Path], FileWatcher] | None = None) -> None:
        """Watch its files from the next question on, instead of comparing all of them before each.

        Args:
            make: makes a watcher of a folder; None for the usual one.
        """
        if not self._watched:
            self._watched = True
            root = self.store.tree.root
            if make is not None:
                self.store.watch_with(partial(make, root))
                return
            from memfs.watch import Watcher  # a process that answers once does not need it

            self.store.watch_with(lambda: Watcher(self.store, root, settings))

    def close(self) -> None:
        """Release everything."""
        self.store.close()


def session_in_mount(name: str, session: str) -> str:
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
    """What distinguishes a workspace from others.

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
    """Open a workspace for reading; its own settings do not count.

    Args:
        settings, clock: those of the workspace that mounts it.
        own_repository: the common git folder of that workspace.

    Raises:
        WorkspaceNotFound: there is none.
        RepoUntrusted: it belongs to another user.
        FormatUnsupported: a newer memfs wrote it.
        ContentError, SettingInvalid: its ``kinds.yaml`` is invalid.
        StorageIO: it cannot be read.
    """
    place, layout = identity_of(folder), None
    with suppress(RepoUnsupported):  # its history is not read: any sort of repository will do
        layout = discover(folder)
    _require_owner(folder, layout)
    tree = Tree(folder)
    try:
        if not os.access(folder / MEMORY_FOLDER, os.R_OK | os.X_OK):
            raise StorageIO(f"{MEMORY_FOLDER}/ cannot be read", path=str(folder), hint="make it readable for this user")
        check_format(tree)
        kinds, schemas = load_kinds(tree)
        invisible, engine = settings.security.allow_invisible, settings.index.engine
        index = SearchIndex(index_folder(folder, reader_of(engine, invisible)), engine)
        codec = Codec(schemas, kinds, invisible)
        own = name == private.NAME and private.holds(folder)
        texts = settings.index.texts
        shared = shared_folder(layout.common_dir) if own and layout is not None and texts else None
        items = ItemCatalog(Catalog(shared or index.folder, texts), codec)
        store = FolderReader(tree, items, IndexSync(tree, items, index, None, None), clock)
        same = own or (layout is not None and layout.common_dir == own_repository)
        path, ageing = os.path.expanduser(path), settings.memory.decay
        return Mount(name, path, place, store, own=own, same_repository=same, ageing=ageing, layout=layout)
    except BaseException:
        tree.close()
        raise


def _require_owner(folder: Path, layout: Layout | None) -> None:
    """Refuse a workspace of another user, unless this user trusts that user there."""
    allowed = own_users() | (trust.repository(layout.work_tree)[0] if layout is not None else frozenset())
    owners = {os.stat(folder).st_uid, os.lstat(folder / MEMORY_FOLDER).st_uid}
    strangers = (owners | (layout.foreign_owners if layout is not None else frozenset())) - allowed
    if strangers and not trust.is_trusted(folder):
        raise RepoUntrusted(
            "it belongs to another user", path=str(folder), hint=f"if you trust that user: {trust.command(folder)}"
        )


_BEHIND = 1.0 - 1e-9

Given = TypeVar("Given")


def answers(mounts: Iterable[Mount], ask: Callable[[Mount], Given]) -> dict[str, Given]:
    """What each mount answers, by its name; one that fails is left out and named as a problem."""
    found = {}
    for mount in mounts:
        try:
            found[mount.name] = ask(mount)
        except (MemfsError, OSError) as error:
            mount.note_failure(error)
    return found


def gathered(mounts: Iterable[Mount], ask: Callable[[Mount], Sequence[Given]]) -> list[Given]:
    """As ``answers``, of mounts that each answer with several, all in one list."""
    return [one for found in answers(mounts, ask).values() for one in found]


class JointReader:
    """Reads a workspace and its mounts as one (``memfs.store.reader.Readable``)."""

    def __init__(self, own: Store, mounts: Mounts) -> None:
        self._own, self._mounts = own, mounts

    @contextmanager
    def held(self) -> Iterator[None]:
        """All that this thread asks within sees one state of every workspace."""
        with ExitStack() as held:
            held.enter_context(self._own.held())
            self._mounts.each(lambda mount: held.enter_context(mount.store.held()))
            yield

    def candidates(self, query: Query) -> list[Candidate]:
        """The best of all, on one scale, best first; the newest first where nothing is asked in words."""
        mounts = self._asked(query)
        theirs = answers(mounts, lambda mount: mount.store.counted())
        asked = asked_of(query, [self._own.counted(), *theirs.values()])
        more = gathered(mounts, lambda mount: self._weighed(mount, query, asked))
        found = [*self._own.weighed(query, asked), *more]
        # keeps the order of equals: the workspace's own first
        found.sort(key=lambda one: (one.similarity, one.timestamp), reverse=True)
        return found[: query.limit]

    def asked_of(self, query: Query) -> Asked:
        """What the words of a query are worth, and how they are spread over all workspaces."""
        theirs = answers(self._asked(query), lambda mount: mount.store.snapshot.index)
        return asked_of(query, [self._own.snapshot.index, *theirs.values()])

    def _weighed(self, mount: Mount, query: Query, asked: Asked) -> list[Candidate]:
        """What a mount has, without what private memory shares with the workspace: the same item under the same id."""
        found = (one for one in mount.store.weighed(query, asked) if not (mount.own and self._own.locate(one.id)))
        return [mount.named(one)._replace(similarity=one.similarity * _BEHIND) for one in found]

    def has_conversations(self) -> bool:
        """Whether any item has a place in a talk."""
        return self._own.has_conversations() or any(one.store.has_conversations() for one in self._mounts.opened())

    def beside(self, places: Collection[tuple[str, int]], query: Query) -> list[Candidate]:
        """The items at these places of talks that pass the query's filters."""
        own = [place for place in places if not place[0].startswith("\0")]
        more = gathered(self._asked(query), lambda mount: mount.beside(places, query))
        return [*self._own.beside(own, query), *more]

    def load_each(self, candidates: Sequence[Candidate]) -> Iterator[LoadedItem | None]:
        """The items behind candidates, each from the workspace it was found in."""
        own = self._own.load_each([one for one in candidates if not of_mount(one.id)])
        mounts = {mount.name: mount for mount in self._mounts.opened()}
        for one in candidates:
            if name := of_mount(one.id):
                yield mounts[name].load(one) if name in mounts else None
            else:
                yield next(own)

    def unread(self, query: Query) -> list[str]:
        """The item files a query could concern that cannot be read as they are now, and for each mount that cannot be
        read its name and a ":"."""
        others = self._asked(query)
        absent = () if query.path else [in_mount(name, "") for name in self._mounts.absent()]
        return [*self._own.unread(query), *absent, *(path for mount in others for path in mount.unread(query))]

    def refresh(self, paths: Iterable[str] | None = None) -> SyncResult:
        """Bring the indexes in step with the given files, or with every file."""
        named = None if paths is None else list(paths)
        self._mounts.each(lambda mount: mount.refresh(named))
        return self._own.refresh(None if named is None else [path for path in named if not of_mount(path)])

    def freshness(self) -> Freshness:
        """The proof of what the workspace's own part of an answer rests on."""
        return self._own.freshness()

    def _asked(self, query: Query) -> Sequence[Mount]:
        """Those that a query is for: a path is one of the workspace's own."""
        return () if query.path else self._mounts.opened()


_MOMENT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MountState:
    """The state of one mount.

    Attributes:
        name, path: as the setting has them.
        folder: where that leads; None where it names no folder.
        items: how many valid items there are; None where it cannot be read.
        unread: how many of its files are invalid at present.
        problem: why it cannot be read, None where it can.
    """

    name: str
    path: str
    folder: Path | None
    items: int | None = None
    unread: int = 0
    problem: Problem | None = None


class Mounts:
    """The workspaces that ``[mounts]`` names. May be used from several threads; nothing is opened before it is used.

    Attributes:
        names: what ``[mounts]`` calls them; one without a path is none.
    """

    def __init__(
        self, root: Path, store: Store, parts: Parts, recall: Callable[[], Recaller], settings: Settings
    ) -> None:
        """All of the workspace that mounts the others; ``recall`` gives what answers questions there."""
        self._root, self._store, self._parts = root, store, parts
        self._recall, self._settings = recall, settings
        self._paths: Mapping[str, str] = {name: path for name, path in settings.mounts.items() if path.strip()}
        self._open: dict[str, Mount] = {}
        self._retired: dict[str, Mount] = {}
        self._refused: dict[str, Problem] = {}
        self._gone_at: dict[str, float] = {}
        self._guard = threading.RLock()
        reset_on_fork(self)
        self.names: tuple[str, ...] = tuple(self._paths)
        self._make_watcher: Callable[[Path], FileWatcher] | None = None

    def __bool__(self) -> bool:
        """Whether any is named, be it readable or not."""
        return bool(self._paths)

    def after_fork(self) -> None:
        """What could not be read before concerns no answer of this process."""
        self._gone_at = {}

    # -- asking -----------------------------------------------------------------------------------------------------
    @shared_property
    def recall(self) -> Recaller:
        """Answers questions from this workspace and its mounts together, on one scale; where none is named, from this
        workspace alone.

        The hits of a mount have ids such as ``team:ID``, and at most the trust ``reviewed``. Of two that are equally
        good the workspace's own comes first.
        """
        own = self._recall()
        return own.over(JointReader(self._store, self)) if self else own

    def find(self, reference: str) -> MemoryItem:
        """The item a person means by ``NAME:ID``, or by the beginning of an id that only one item has.

        Raises:
            ItemNotFound: there is no such mount, it cannot be read at present, or it has no such item.
            ContentError: the item's file is invalid at present.
        """
        name, _, _ = reference.partition(":")
        mount = next((one for one in self.opened() if one.name == name), None)
        if mount is not None:
            return mount.find(reference)
        problem = self._refused.get(name)
        if problem is not None:
            raise ItemNotFound(f"{reference!r} cannot be read: {problem.message}", hint=problem.hint)
        known = f"the mounts are {', '.join(self.names)}" if self.names else "[mounts] in memfs.toml names others"
        raise ItemNotFound(f"no workspace is mounted as {name!r}", hint=nearest(name, self.names) or known)

    def get(self, item_id: str) -> MemoryItem | None:
        """The item with an id such as ``team:ID``; None where there is none, or it cannot be read at present."""
        name = of_mount(item_id)
        return self.each(lambda mount: mount.get(item_id) if mount.name == name else None).get(name)

    def each(self, ask: Callable[[Mount], Given]) -> dict[str, Given]:
        """What each mount that can be read answers, by its name; one that fails is left out and named as a problem."""
        return answers(self.opened(), ask)

    @contextmanager
    def scan_once(self) -> Iterator[None]:
        """Within, this thread looks once at the files of the workspace, and of each mount."""
        with ExitStack() as held:
            held.enter_context(self._store.scan_once())
            self.each(lambda mount: held.enter_context(mount.store.scan_once()))
            yield

    def private(self) -> Mount | None:
        """This user's private memory of the project, None where there is none or it cannot be read at present."""
        self._parts.require_open()
        return next((mount for mount in self.opened() if mount.own), None) if self else None

    # -- standing ---------------------------------------------------------------------------------------------------
    def opened(self) -> list[Mount]:
        """The mounts that can be read now, by name. One that was not there is tried again."""
        self._parts.require_open()
        with self._guard:
            for name in self._paths:
                self._see_to(name)
            watched = self._store.watching != "off"
            for mount in self._open.values():
                if watched:
                    mount.watch(self._settings.watch, self._make_watcher)
            return [self._open[name] for name in self._paths if name in self._open]

    def states(self) -> list[MountState]:
        """The state of each mount, looked at now."""
        counts = self.each(lambda mount: (mount.store.count(), len(mount.store.index_sync.rejected_items())))
        found = []
        for name, path in self._paths.items():
            items, unread = counts.get(name, (None, 0))
            problem = self._refused.get(name)
            if problem is None and items is None and name in self._open:
                problem = next(iter(self._open[name].problems()), None)
            folder = None
            with suppress(WorkspaceNotFound):
                folder = folder_of(self._root, path)
            found.append(MountState(name=name, path=path, folder=folder, items=items, unread=unread, problem=problem))
        return found

    def absent(self) -> list[str]:
        """The names of those that could not be read when they were last looked for, or failed a moment ago: an answer
        that is made just now may lack them.
        """
        self._parts.require_open()
        with self._guard:
            past = time.monotonic() - _MOMENT_SECONDS
            failed = {name for name, at in self._gone_at.items() if at > past}
            failed.update(name for name, mount in self._open.items() if mount.failed_at > past)
            return [name for name in self._paths if name in self._refused or name in failed]

    def refused(self) -> list[Problem]:
        """Why mounts cannot be read, looked for now."""
        self.opened()
        with self._guard:
            return list(self._refused.values())

    def problems(self) -> list[Problem]:
        """Why mounts cannot be read, and what is wrong with the files of those that can."""
        self.opened()
        with self._guard:
            inside = [problem for mount in self._open.values() for problem in mount.problems()]
            return [*self._refused.values(), *inside]

    def watch_with(self, make: Callable[[Path], FileWatcher]) -> None:
        """Where the workspace is watched, watch each mount with what ``make`` makes of its folder."""
        self._parts.require_open()
        self._make_watcher = make

    def release(self) -> None:
        """See ``FolderReader.release``, for each."""
        self._parts.require_open()
        for mount in self._open.values():
            mount.store.release()

    def close(self) -> None:
        """Close what was opened. May be repeated."""
        with self._guard, ExitStack() as ending:
            for mount in (*self._open.values(), *self._retired.values()):
                ending.callback(mount.close)
            self._open, self._retired = {}, {}
            joint = self.__dict__.get("recall")
            if joint is not None and self:
                ending.callback(joint.close)

    def _see_to(self, name: str) -> None:
        """Open what is not open, close what is no longer what was opened."""
        mount = self._open.get(name)
        try:
            if mount is not None and self._is_current(name, mount):
                return
            if mount is not None:  # threads may be reading there still: only the one before it is closed
                mount.store.change_detector.close()
                before = self._retired.pop(name, None)
                self._retired[name] = self._open.pop(name)
                if before is not None:
                    before.close()
            path, common = self._paths[name], self._parts.repository.common_dir
            folder = folder_of(self._root, path)
            self._require_other(name, folder)
            self._open[name] = open_mount(name, path, folder, self._settings, self._parts.clock, common)
            self._refused.pop(name, None)
        except (MemfsError, OSError) as error:
            self._gone_at[name] = time.monotonic()
            self._refused[name] = _problem(name, error, self._paths[name])

    def _is_current(self, name: str, mount: Mount) -> bool:
        """Whether its folder is what was opened, and the setting leads there: a link on the way may have been turned
        elsewhere.
        """
        root = mount.store.tree.root
        with suppress(WorkspaceNotFound, OSError):
            return identity_of(root) == mount.place and folder_of(self._root, self._paths[name]) == root
        return False

    def _require_other(self, name: str, folder: Path) -> None:
        """Refuse this workspace itself, and what is mounted under another name already."""
        place = identity_of(folder)
        if place == identity_of(self._root):
            raise SettingInvalid("a workspace cannot mount itself", field=f"mounts.{name}", hint="name another folder")
        twin = next((one.name for one in self._open.values() if one.place == place), None)
        if twin is not None:
            hint = f"remove mounts.{name} or mounts.{twin}"
            raise SettingInvalid(f"this folder is mounted as {twin!r} already", field=f"mounts.{name}", hint=hint)


def _problem(name: str, error: MemfsError | OSError, path: str) -> Problem:
    if isinstance(error, MemfsError):
        found = Problem.of(error, path)
    else:
        reason, hint = error.strerror or str(error), "make it readable for this user"
        found = Problem(path=path, code=StorageIO.__name__, message=reason, hint=hint)
    return replace(found, message=f"the mount {name!r} is left out: {found.message}", severity=WARNING)

"""Mounts: other workspaces whose memories are asked, too (P7).

Owns which of the named folders are open at present, and why the others are not: one that is gone, invalid or not to be
trusted takes nothing from the rest. What is read there is only read (``memfs.store.mounted``); nothing of its settings
counts, and its own mounts are not followed, so that mounts cannot lead round in a circle.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from memfs.errors import ItemNotFound, MemfsError, SettingInvalid, StorageIO, WorkspaceNotFound
from memfs.files.forked import renewed_in_child
from memfs.model import MemoryItem, Problem
from memfs.model.ids import of_mount
from memfs.model.kinds import nearest
from memfs.model.problem import WARNING
from memfs.pipeline.retrieval import Recaller
from memfs.settings import Settings
from memfs.sources.joint_store import JointStore
from memfs.sources.mount import Mount, folder_of, identity_of, open_mount
from memfs.store import Store
from memfs.store.parts import Parts

Given = TypeVar("Given")

_MOMENT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MountState:
    """How one mount stands.

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

    def __init__(self, root: Path, store: Store, parts: Parts, recall: Recaller, settings: Settings) -> None:
        """All of the workspace that mounts the others."""
        self._root = root
        self._store = store
        self._parts = parts
        self._recall = recall
        self._settings = settings
        self._paths: Mapping[str, str] = {name: path for name, path in settings.mounts.items() if path.strip()}
        self._open: dict[str, Mount] = {}
        self._retired: dict[str, Mount] = {}
        self._refused: dict[str, Problem] = {}
        self._gone_at: dict[str, float] = {}
        self._guard = threading.RLock()
        renewed_in_child(self)
        self.names: tuple[str, ...] = tuple(self._paths)

    def __bool__(self) -> bool:
        """Whether any is named, be it readable or not."""
        return bool(self._paths)

    # -- asking -----------------------------------------------------------------------------------------------------
    @cached_property
    def recall(self) -> Recaller:
        """Answers questions from this workspace and its mounts together, on one scale; where none is named, from this
        workspace alone.

        The hits of a mount have ids such as ``team:ID``, and at most the trust ``reviewed``. Of two that are equally
        good the workspace's own comes first.
        """
        made = self._recall.over(JointStore(self._store, self.opened, self.absent)) if self else self._recall
        first: Recaller = self.__dict__.setdefault("recall", made)
        return first

    def find(self, reference: str) -> MemoryItem:
        """The item a person means by ``NAME:ID``, or by the beginning of an id that only one item has.

        Raises:
            ItemNotFound: there is no such mount, it cannot be read at present, or it has no such item.
            ContentError: the item's file is invalid at present.
        """
        self._parts.require_open()
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
        self._parts.require_open()
        name = of_mount(item_id)
        found = self.each(lambda mount: mount.get(item_id) if mount.name == name else None)
        return found.get(name)

    def each(self, ask: Callable[[Mount], Given]) -> dict[str, Given]:
        """What each mount that can be read answers, by its name; one that fails is left out and named as a problem."""
        self._parts.require_open()
        answers = {}
        for mount in self.opened():
            try:
                answers[mount.name] = ask(mount)
            except (MemfsError, OSError) as error:
                mount.note_failure(error)
        return answers

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
                    mount.watch(self._settings.watch)
            return [self._open[name] for name in self._paths if name in self._open]

    def states(self) -> list[MountState]:
        """How each mount stands, looked at now."""
        self._parts.require_open()
        counts = self.each(lambda mount: (mount.store.count(), len(mount.store.following.rejected_items())))
        found = []
        for name, path in self._paths.items():
            items, unread = counts.get(name, (None, 0))
            problem = self._refused.get(name) or (self._failure(name) if items is None else None)
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
        self._parts.require_open()
        self.opened()
        with self._guard:
            return list(self._refused.values())

    def problems(self) -> list[Problem]:
        """Why mounts cannot be read, and what is wrong with the files of those that can."""
        self._parts.require_open()
        self.opened()
        with self._guard:
            inside = [problem for mount in self._open.values() for problem in mount.problems()]
            return [*self._refused.values(), *inside]

    def close(self) -> None:
        """Close what was opened. May be repeated."""
        with self._guard, ExitStack() as ending:
            for mount in (*self._open.values(), *self._retired.values()):
                ending.callback(mount.close)
            self._open, self._retired = {}, {}
            joint = self.__dict__.get("recall")
            if joint is not None and joint is not self._recall:
                ending.callback(joint.close)

    def _see_to(self, name: str) -> None:
        """Open what is not open, close what is no longer what was opened."""
        mount = self._open.get(name)
        try:
            if mount is not None and mount.still_there() and mount.readable() and self._leads_to(name, mount):
                return
            if mount is not None:
                self._retire(name)
            folder = folder_of(self._root, self._paths[name])
            self._require_other(name, folder)
            self._open[name] = self._opened(name, folder)
            self._refused.pop(name, None)
        except (MemfsError, OSError) as error:
            self._gone_at[name] = time.monotonic()
            self._refused[name] = _problem(name, error, self._paths[name])

    def _leads_to(self, name: str, mount: Mount) -> bool:
        """Whether the setting still leads to what was opened: a link on the way may have been turned elsewhere."""
        with suppress(WorkspaceNotFound):
            return folder_of(self._root, self._paths[name]) == mount.store.tree.root
        return False

    def _retire(self, name: str) -> None:
        """Use a mount no more. Threads may be reading there still: only the one before it is closed."""
        self._open[name].store.stop_watching()
        before = self._retired.pop(name, None)
        self._retired[name] = self._open.pop(name)
        if before is not None:
            before.close()

    def _opened(self, name: str, folder: Path) -> Mount:
        parts = self._parts
        return open_mount(name, self._paths[name], folder, self._settings, parts.clock, parts.repository.common_dir)

    def _require_other(self, name: str, folder: Path) -> None:
        """Refuse this workspace itself, and what is mounted under another name already."""
        place = identity_of(folder)
        if place == identity_of(self._root):
            raise SettingInvalid("a workspace cannot mount itself", field=f"mounts.{name}", hint="name another folder")
        twin = next((one.name for one in self._open.values() if one.place == place), None)
        if twin is not None:
            hint = f"remove mounts.{name} or mounts.{twin}"
            raise SettingInvalid(f"this folder is mounted as {twin!r} already", field=f"mounts.{name}", hint=hint)

    def _failure(self, name: str) -> Problem | None:
        problems: Iterable[Problem] = self._open[name].problems() if name in self._open else ()
        return next(iter(problems), None)


def _problem(name: str, error: MemfsError | OSError, path: str) -> Problem:
    if isinstance(error, MemfsError):
        found = Problem.of(error, path)
    else:
        reason, hint = error.strerror or str(error), "make it readable for this user"
        found = Problem(path=path, code=StorageIO.__name__, message=reason, hint=hint)
    return replace(found, message=f"the mount {name!r} is left out: {found.message}", severity=WARNING)

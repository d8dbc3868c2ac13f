"""Kept: the open workspaces of this process that facades share.

Owns how often a workspace is opened, who uses it, and when it is closed. Which one a facade wants, it does not know.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from memfs.errors import StorageIO
from memfs.index.place import index_folder
from memfs.workspace import Workspace, open_workspace

_PASSING: Mapping[str, Any] = {"index.engine": "memory", "history.commit": "manual", "watch.enabled": False}


@dataclass(frozen=True, slots=True)
class Opened:
    """One open workspace of this process, the facades that use it, and whether it goes with them."""

    workspace: Workspace
    passing: bool
    users: weakref.WeakSet[object] = field(default_factory=weakref.WeakSet)


Place = tuple[Path, str]
"""A workspace's folder, and what wins over its memory context, as JSON."""

_guard = threading.RLock()
held: dict[Place, Opened] = {}
"""What is open now, by place."""


# What a parent process has open: taking it apart in a child would end the parent's helpers and locks.
_abandoned: list[Opened] = []


def _began_anew() -> None:
    """A forked child has none of its parent's open workspaces: it opens its own."""
    global _guard
    _guard = threading.RLock()
    _abandoned.extend(held.values())
    held.clear()
    _work_out_anew()


def _work_out_anew() -> None:
    """Let a forked child work out lazy values, each of which another thread may have been at.

    Python 3.11 holds a lock for every ``cached_property`` of a class, which no thread of the child would ever release.
    """
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("memfs.")]
    for part in [part for module in modules for part in vars(module).values() if isinstance(part, type)]:
        for lazy in vars(part).values():
            if isinstance(lazy, cached_property) and hasattr(lazy, "lock"):
                lazy.lock = threading.RLock()


os.register_at_fork(after_in_child=_began_anew)


def take(place: Place, user: object) -> Opened:
    """The open workspace at a place, opened once a process."""
    root, memory = place
    with _guard:
        if place not in held:
            held[place] = Opened(open_workspace(root, memory=json.loads(memory)), passing=False)
        held[place].users.add(user)
        return held[place]


def take_passing(memory: str, user: object) -> Place:
    """Make and open a workspace that passes; returns its place."""
    folder = Path(_scratch())
    try:
        opened = open_workspace(folder, create=True, watch=False, settings=dict(_PASSING), memory=json.loads(memory))
    except BaseException:
        _remove(folder, index_folder(folder))
        raise
    place = (opened.root, memory)
    held[place] = Opened(opened, passing=True)
    held[place].users.add(user)
    return place


def give_back(place: Place, user: object) -> None:
    """One user less; with the last one the workspace is closed."""
    with _guard:
        opened = held.get(place)
        if opened is not None:
            opened.users.discard(user)
            if not opened.users:
                end(place)


def end(place: Place, process: int = 0) -> None:
    """Close one workspace. Without a lock: the collector may call it anywhere, once nobody uses it any more."""
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
    from memfs.upkeep.backup_proof import remove_folder  # most workspaces stay

    for folder in filter(None, folders):
        with contextlib.suppress(StorageIO, OSError):  # what is left lies where things pass
            remove_folder(folder)


def close_all() -> None:
    """Close every workspace that facades of this process opened; each is opened anew when it is used again."""
    with _guard, contextlib.ExitStack() as every:  # one that cannot be closed keeps no other open
        for place in list(held):
            every.callback(end, place)


atexit.register(close_all)


def _scratch() -> str:
    try:
        return tempfile.mkdtemp(prefix="memfs-passing-")
    except OSError as error:
        raise StorageIO(f"there is no place for what passes: {error}", hint="set TMPDIR to a folder") from error

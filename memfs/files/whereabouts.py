"""Whereabouts: in which folder a workspace lies.

Owns the search for it and the place of the user's own. Imports little: a hook of an agent's program that only keeps an
event for later looks here. What is in a workspace, it does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from memfs.errors import StorageIO, WorkspaceNotFound
from memfs.home import base_folder

MEMORY_FOLDER = "ContextMemory"
WORKSPACE_VARIABLE = "MEMFS_WORKSPACE"
_LOOKED_AT = 100


def find_workspace(start: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The workspace's folder: at or above ``start``, else ``MEMFS_WORKSPACE``, else the current folder.

    Raises:
        WorkspaceNotFound: no such folder, or none at or above it holds ``ContextMemory/``.
    """
    named = (os.environ if environ is None else environ).get(WORKSPACE_VARIABLE, "")
    asked = Path(start) if start is not None else Path(named).expanduser() if named else Path()
    if not os.path.isdir(asked):
        hint = f"{WORKSPACE_VARIABLE} names it" if start is None and named else "name one that exists"
        raise WorkspaceNotFound(f"there is no folder {str(asked)!r}", hint=hint)
    folder = asked.resolve()
    for candidate in (folder, *folder.parents):
        if os.path.isdir(candidate / MEMORY_FOLDER):
            return candidate
    hint = f"make a workspace with 'memfs init', or name one with -C or {WORKSPACE_VARIABLE}{_own()}"
    if below := _below(folder):
        import shlex  # a hook that only keeps an event does without it

        hint = f"there is one below it: name it with -C {shlex.quote(below)} or {WORKSPACE_VARIABLE}"
    raise WorkspaceNotFound(f"no {MEMORY_FOLDER}/ in {str(folder)!r} or any folder above it", hint=hint)


def _below(folder: Path) -> str:
    """The name of a folder within this one that is a workspace, as in a repository with code beside the memory."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, _LOOKED_AT):
            if os.path.isdir(os.path.join(entry.path, MEMORY_FOLDER)):
                return entry.name
    return ""


def _own() -> str:
    """Where the user's own is, as it can be typed: hooks keep there what belongs to no project."""
    with suppress(StorageIO, OSError):  # nobody may be known by this process's number
        folder = user_folder()
        if (folder / MEMORY_FOLDER).is_dir():
            import shlex  # a hook that only keeps an event does without it

            return f"; yours for all that has none: memfs -C {shlex.quote(str(folder))} ..."
    return ""


def user_folder() -> Path:
    """Where the workspace of this user lies, for whatever belongs to no other: in the user's data folder."""
    return base_folder("XDG_DATA_HOME", ".local/share", "Library/Application Support") / "memfs"

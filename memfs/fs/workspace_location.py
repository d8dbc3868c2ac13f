"""Finds the folder of a workspace and the folders of this user, and checks paths below a workspace.

Imports little, so that a hook that only records an event starts fast.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from memfs.config_names import CONFIGURATION, SETTINGS_FILE, WORKSPACE_VARIABLE
from memfs.errors import PathEscape, StorageIO, WorkspaceNotFound
from memfs.fs.own_branch import memory_of
from memfs.pattern import regex

MEMORY_FOLDER = "ContextMemory"
_LOOKED_AT = 100
_DOCUMENTS = (".yaml", ".yml", ".json")


def named_workspace(environ: Mapping[str, str] | None = None) -> str:
    """What ``MEMFS_WORKSPACE`` names, "" where it is not set.

    Args:
        environ: the environment, the process's own by default.
    """
    return (os.environ if environ is None else environ).get(WORKSPACE_VARIABLE, "")


def find_workspace(start: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The workspace's folder: at or above ``start``, else ``MEMFS_WORKSPACE``, else the current folder.

    Raises:
        WorkspaceNotFound: no such folder, or none at or above it is a workspace (``is_workspace``).
    """
    named = named_workspace(environ)
    asked = Path(start) if start is not None else Path(named).expanduser() if named else Path()
    if not os.path.isdir(asked):
        hint = f"{WORKSPACE_VARIABLE} names it" if start is None and named else "name one that exists"
        raise WorkspaceNotFound(f"there is no folder {str(asked)!r}", hint=hint)
    folder = asked.resolve()
    for candidate in (folder, *folder.parents):
        if found := workspace_at(candidate):
            return found
    raise _not_found(folder)


def workspace_at(folder: Path) -> Path | None:
    """The workspace that a folder stands for: itself, or its repository's memory on a branch of its own; None for none.

    A folder with settings of its own is its own workspace, such as a working tree in which that branch, or a pull
    request against it, is checked out.
    """
    memory = memory_of(folder) if os.path.lexists(folder / ".git") else None
    if memory is not None and not os.path.isfile(folder / SETTINGS_FILE):
        return memory
    return folder if is_workspace(folder) else None


def is_workspace(folder: Path) -> bool:
    """Whether a folder is a workspace: it has ``memfs.toml``, or a ``ContextMemory/`` with a memory in it.

    An empty ``ContextMemory/``, or one that holds only hidden files and configuration, was left behind; one that is a
    link is not one.
    """
    return os.path.isfile(folder / SETTINGS_FILE) or _has_memory(folder / MEMORY_FOLDER)


def _has_memory(content: Path) -> bool:
    """Whether any document but configuration lies there; ends at the first that is found."""
    if os.path.islink(content):
        return False
    for place, folders, names in os.walk(content):
        if any(name.endswith(_DOCUMENTS) and not name.startswith(".") for name in names):
            return True
        folders[:] = [name for name in folders if not name.startswith(".")]
        if place == str(content):
            folders[:] = [name for name in folders if name != posixpath.basename(CONFIGURATION)]
    return False


def _not_found(folder: Path) -> WorkspaceNotFound:
    import shlex  # a hook that only keeps an event does without it

    hint = f"make a workspace with 'memfs init', or name one with -C or {WORKSPACE_VARIABLE}{_own()}"
    if below := _below(folder):
        hint = f"there is one below it: name it with -C {shlex.quote(below)} or {WORKSPACE_VARIABLE}"
    for candidate in (folder, *folder.parents):
        if os.path.isdir(candidate / MEMORY_FOLDER):
            begin = f"memfs init {shlex.quote(str(candidate))}"
            return WorkspaceNotFound(
                f"no workspace: {MEMORY_FOLDER}/ in {str(candidate)!r} holds no memory, nor is there {SETTINGS_FILE}",
                hint=f"'{begin}' makes one of it; if it was left behind, remove the folder",
            )
    return WorkspaceNotFound(f"no {MEMORY_FOLDER}/ in {str(folder)!r} or any folder above it", hint=hint)


def _below(folder: Path) -> str:
    """The name of a folder within this one that is a workspace, as in a repository with code beside the memory."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, _LOOKED_AT):
            if entry.is_dir() and is_workspace(Path(entry.path)):
                return entry.name
    return ""


def _own() -> str:
    """Where the user's own is, as it can be typed: hooks keep there what belongs to no project."""
    with suppress(StorageIO, OSError):  # nobody may be known by this process's number
        folder = user_folder()
        if is_workspace(folder):
            import shlex  # a hook that only keeps an event does without it

            return f"; yours for all that has none: memfs -C {shlex.quote(str(folder))} ..."
    return ""


def user_folder() -> Path:
    """Where the workspace of this user lies, for whatever belongs to no other: in the user's data folder."""
    return base_folder("XDG_DATA_HOME", ".local/share", "Library/Application Support") / "memfs"


_FOLDER = "ContextMemory/"
_NEVER = frozenset({"", ".", ".."})
# what a file system that folds case, shortens names or skips invisible characters may take for ".git"
_GIT = regex(r"(?:\.git|git~[0-9]+)[. ]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_SKIPPED = regex("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def is_own(path: object) -> bool:
    """Whether memfs may write to a path below the workspace."""
    if not isinstance(path, str) or not (path == SETTINGS_FILE or path.startswith(_FOLDER)):
        return False
    parts = path.split("/")
    return _NEVER.isdisjoint(parts) and "\0" not in path and not names_git(path) and _can_be_a_name(path)


def check_path(path: str) -> None:
    """Refuse a path that names nothing below a folder, before the disk is asked.

    Raises:
        PathEscape: it leads out of the folder or to git's own files, or no file can have that name.
    """
    if not _NEVER.isdisjoint(path.split("/")) or "\0" in path:
        raise PathEscape("not a path inside the workspace", path=path, hint="use a relative path without '..'")
    if names_git(path):
        raise PathEscape("git keeps its own files there", path=path, hint="use another name")
    if not path.isascii() and not _can_be_a_name(path):
        raise PathEscape("no file can have such a name", path=ascii(path)[1:-1], hint="use a valid path")


def names_git(path: str) -> bool:
    """Whether a part of a path is, to some file system, the folder in which git keeps a repository."""
    if "git" not in path and "git" not in path.lower() and path.isascii():
        return False
    return any(_GIT.fullmatch(_SKIPPED.sub("", part)) for part in path.split("/"))


def _can_be_a_name(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def home() -> Path:
    """This user's home folder: what ``HOME`` names, or what the system knows where that is not an absolute path.

    Raises:
        StorageIO: there is none: no ``HOME``, and the system does not know the user, as in some containers.
    """
    try:
        found = Path.home()
        if not found.is_absolute():
            import pwd  # few processes have such a HOME

            found = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (RuntimeError, KeyError):
        raise StorageIO("this user has no home folder", hint="set HOME to a folder of this user's") from None
    return found


def base_folder(variable: str, below_home: str, on_macs: str = "") -> Path:
    """What a variable of the XDG base directory specification names; without one, a folder below home.

    A relative path is ignored, as the specification says: it would be another folder wherever one works.

    Args:
        below_home: the folder that the specification gives where the variable is not set.
        on_macs: the folder on macOS, "" for the same one.

    Raises:
        StorageIO: it is needed, and there is no home.
    """
    named = os.environ.get(variable, "")
    if os.path.isabs(named):
        return Path(named)
    return home() / (on_macs if on_macs and sys.platform == "darwin" else below_home)

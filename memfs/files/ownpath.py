"""Which paths of a workspace memfs writes to, whatever asks for it.

Owns the outermost fence: a record, a revision or a caller may name any path, and only ``memfs.toml`` and what lies
below ``ContextMemory/`` is ever written; nothing there may be git's own. Which files are items is not known here.
"""

from __future__ import annotations

import os
import re

from memfs.errors import PathEscape

_FOLDER = "ContextMemory/"
_FILE = "memfs.toml"
_NEVER = frozenset({"", ".", ".."})
# what a file system that folds case, shortens names or skips invisible characters may take for ".git"
_GIT = re.compile(r"(?:\.git|git~[0-9]+)[. ]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_SKIPPED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def is_own(path: object) -> bool:
    """Whether memfs may write to a path below the workspace."""
    if not isinstance(path, str) or not (path == _FILE or path.startswith(_FOLDER)):
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

"""Places: what a path on the command line means in the workspace.

Owns the order in which a written path is tried: below the current folder, from the workspace's own folder, below
``ContextMemory/``. Whether an item is there is the store's business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memfs.errors import PathEscape
from memfs.store.parts import CONTENT, ITEM_SUFFIXES

if TYPE_CHECKING:
    from pathlib import Path

    from memfs.workspace import Workspace

_ROOT_FILE = "memfs.toml"


def reference(workspace: Workspace, written: str) -> str:
    """What a person means by an id or a path: an id stays as it is, a path becomes one from the workspace's folder.

    Raises:
        PathEscape: the path leads out of the workspace.
    """
    if not is_path(written) and (workspace.store.locate(written) or not _stands_here(workspace, written)):
        return written
    return place(workspace, written)


def place(workspace: Workspace, written: str) -> str:
    """The path from the workspace's folder that a written path means, whether a file or a folder.

    Raises:
        PathEscape: the path leads out of the workspace.
    """
    candidates = list(dict.fromkeys(_candidates(workspace.root, written)))
    if not candidates:
        raise PathEscape(
            "the path leads out of the memory of this workspace",
            path=written,
            hint=f"name a file below {workspace.root / CONTENT}, or another workspace with -C",
        )
    for path in candidates:
        if os.path.lexists(workspace.root / path):
            return path
    for path in candidates[:-1]:
        if workspace.history.has_seen(path):
            return path
    return candidates[-1]


def is_path(written: str) -> bool:
    """Whether a text is written as a path, not as an id."""
    return "/" in written or written.endswith(ITEM_SUFFIXES) or written in (".", "..", CONTENT, _ROOT_FILE)


def _stands_here(workspace: Workspace, written: str) -> bool:
    """Whether the current folder, below ``ContextMemory/``, holds a file or folder of this name."""
    below = _below(workspace.root, os.path.join(os.getcwd(), written)) if written else None
    return bool(below) and os.path.lexists(workspace.root / str(below))


def _candidates(root: Path, written: str) -> Iterator[str]:
    """Where the path may lead, in the order to be tried; only what belongs to the memory."""
    plain = written.replace("\\", "/")
    whole = os.path.normpath(plain).partition("/")[0] in (CONTENT, _ROOT_FILE)
    bases = (os.getcwd(), str(root), *(() if whole else (str(root / CONTENT),)))
    for base in bases[:1] if os.path.isabs(plain) else bases:
        found = _below(root, os.path.join(base, plain))
        if found is not None:
            yield found


def _below(root: Path, path: str) -> str | None:
    """A path from the workspace's folder, None where it belongs to no memory; the folder itself means all of it."""
    tidy = os.path.normpath(path)
    # links on the way are followed, the last name is not: the store refuses a link that stands for an item
    real = os.path.join(os.path.realpath(os.path.dirname(tidy)), os.path.basename(tidy))
    inner = os.path.relpath(real, root).replace(os.sep, "/")
    if inner == ".":
        return CONTENT
    return inner if inner in (CONTENT, _ROOT_FILE) or inner.startswith(CONTENT + "/") else None

"""memfs: memory for AI agents that lives as plain files in git.

The public names are loaded when first used, so that ``import memfs`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memfs.version import __version__

if TYPE_CHECKING:
    from memfs.errors import MemfsError as MemfsError
    from memfs.model import Hit as Hit
    from memfs.model import MemoryItem as Memory
    from memfs.model import MemoryItem as MemoryItem
    from memfs.model import MemoryType as MemoryType
    from memfs.model import Origin as Origin
    from memfs.model import Query as Query
    from memfs.workspace import Workspace as Workspace
    from memfs.workspace import open_workspace as open_workspace

_HOMES = {
    "Hit": "memfs.model",
    "Memory": "memfs.model",
    "MemoryItem": "memfs.model",
    "MemoryType": "memfs.model",
    "Origin": "memfs.model",
    "Query": "memfs.model",
    "Workspace": "memfs.workspace",
    "open_workspace": "memfs.workspace",
}
_OTHER_NAMES = {"Memory": "MemoryItem"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), _OTHER_NAMES.get(name, name))
    errors = import_module("memfs.errors")
    if name in _error_names():
        return getattr(errors, name)
    raise AttributeError(f"module 'memfs' has no attribute {name!r}")


def _error_names() -> list[str]:
    errors = import_module("memfs.errors")
    return [
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    ]


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_error_names(), "__version__"])


__all__ = [
    "Hit",
    "MemfsError",
    "Memory",
    "MemoryItem",
    "MemoryType",
    "Origin",
    "Query",
    "Workspace",
    "__version__",
    "open_workspace",
]

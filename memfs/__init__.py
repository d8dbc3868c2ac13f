"""memfs: memory for AI agents that lives as plain files in git.

Open a workspace, and ask it::

    import memfs

    with memfs.open_workspace("project", create=True) as ws:
        note = ws.remember("Staging is rebuilt on Sundays", tags=["staging"])
        for hit in ws.recall("when is staging rebuilt", limit=3):
            print(hit.item.id, hit.item.content)
        ws.update(note.id, content="Staging is rebuilt on Mondays")
        ws.forget(note.id, reason="staging is gone")
        ws.commit()

``Workspace`` has the verbs, its parts (``store``, ``history``, ``teams``, ``states`` ...) the rest. The values are
``MemoryItem`` with ``Origin`` and ``MemoryType``, ``Query`` and ``Hit``. Every error is a ``MemfsError`` and is in
``memfs.errors``. ``register_strategy``, ``register_reviewer`` and ``register_embedder`` add parts of your own, and
``MemoryPlugin`` is what a source of your own looks like. ``memfs.seeds`` has further vocabularies for the same memory.
The errors and the names of ``memfs.seeds`` can be imported from ``memfs``, too.

Everything is loaded when it is first used, so that ``import memfs`` stays quick.
"""

from __future__ import annotations

__version__ = "0.1.0"
TYPE_CHECKING = False  # what ``typing`` has costs more time than a command that a resident answers
if TYPE_CHECKING:
    from typing import Any

    from memfs import errors as errors
    from memfs import seeds as seeds
    from memfs.context.deliver import MemoryPlugin as MemoryPlugin
    from memfs.errors import *  # noqa: F403
    from memfs.errors import MemfsError as MemfsError
    from memfs.model import Hit as Hit
    from memfs.model import MemoryItem as MemoryItem
    from memfs.model import MemoryType as MemoryType
    from memfs.model import Origin as Origin
    from memfs.model import Query as Query
    from memfs.recall.ranking import register_strategy as register_strategy
    from memfs.recall.reviewers import Score as Score
    from memfs.recall.reviewers import register_reviewer as register_reviewer
    from memfs.search.embedder import Embedder as Embedder
    from memfs.search.embedder import register_embedder as register_embedder
    from memfs.seeds import *  # noqa: F403
    from memfs.workspace import Workspace as Workspace
    from memfs.workspace import open_workspace as open_workspace

_HOMES = {
    "Embedder": "memfs.search.embedder",
    "Hit": "memfs.model",
    "MemfsError": "memfs.errors",
    "MemoryItem": "memfs.model",
    "MemoryPlugin": "memfs.context.deliver",
    "MemoryType": "memfs.model",
    "Origin": "memfs.model",
    "Query": "memfs.model",
    "Score": "memfs.recall.reviewers",
    "Workspace": "memfs.workspace",
    "open_workspace": "memfs.workspace",
    "register_embedder": "memfs.search.embedder",
    "register_reviewer": "memfs.recall.reviewers",
    "register_strategy": "memfs.recall.ranking",
}
__all__ = sorted((*_HOMES, "__version__", "errors", "seeds"))


def __getattr__(name: str) -> Any:
    from memfs.startup import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("errors", "seeds"):
        return import_module(f"memfs.{name}")
    error = getattr(import_module("memfs.errors"), name, None)
    if isinstance(error, type):
        return error
    if not name.islower() or "_" in name:  # else ``from memfs import trust`` asks here before it imports the module
        seeds = import_module("memfs.seeds")
        if name in seeds.__all__:
            return getattr(seeds, name)
    raise AttributeError(f"module 'memfs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

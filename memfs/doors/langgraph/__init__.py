"""What a LangGraph graph remembers, kept as files in git: a store (``MemfsStore``) and a checkpointer (``MemfsSaver``).

Each is loaded when it is first used, so that either works without the other, and importing this package imports no
framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memfs.doors.extra import loaded

if TYPE_CHECKING:
    from memfs.doors.langgraph.saver import MemfsSaver
    from memfs.doors.langgraph.store import MemfsStore

_HOMES = {
    "MemfsSaver": "memfs.doors.langgraph.saver",
    "MemfsStore": "memfs.doors.langgraph.store",
}
_FRAMEWORK = frozenset({"langchain_core", "langgraph", "ormsgpack"})


def __getattr__(name: str) -> Any:
    """One of the public classes.

    Raises:
        ExtraMissing: LangGraph is not installed; the hint says what to install.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'memfs.doors.langgraph' has no attribute {name!r}")
    return loaded(_HOMES[name], name, "langgraph", _FRAMEWORK)


def __dir__() -> list[str]:
    return __all__


__all__ = ["MemfsSaver", "MemfsStore"]

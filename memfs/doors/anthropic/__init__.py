"""Claude's memory tool, kept as files in git.

The Anthropic SDK is imported only when a class is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memfs.doors.extra import loaded

if TYPE_CHECKING:
    from memfs.doors.anthropic.memory_tool import AsyncMemfsMemoryTool, MemfsMemoryTool

_HOME = "memfs.doors.anthropic.memory_tool"


def __getattr__(name: str) -> Any:
    """One of the public classes.

    Raises:
        ExtraMissing: the SDK is not installed; the hint says what to install.
    """
    if name not in __all__:
        raise AttributeError(f"module 'memfs.doors.anthropic' has no attribute {name!r}")
    return loaded(_HOME, name, "anthropic", ("anthropic",))


def __dir__() -> list[str]:
    return __all__


__all__ = ["AsyncMemfsMemoryTool", "MemfsMemoryTool"]

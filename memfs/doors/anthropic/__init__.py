"""Claude's memory tool, kept as files in git.

Needs ``pip install 'gitmemfs[anthropic]'``.
"""

from memfs.doors.extra import missing

try:
    from memfs.doors.anthropic.memory_tool import AsyncMemfsMemoryTool, MemfsMemoryTool
except ImportError as error:
    raise missing("Claude's memory tool", "anthropic", ("anthropic",), error) from error

__all__ = ["AsyncMemfsMemoryTool", "MemfsMemoryTool"]

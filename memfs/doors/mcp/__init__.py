"""Serve a workspace to clients of the Model Context Protocol.

Needs ``pip install 'gitmemfs[mcp]'``.
"""

from memfs.errors import ExtraMissing

try:
    import mcp  # noqa: F401  the extra is there
    import mcp_types  # noqa: F401  which only the SDK's second version has
except ImportError as error:
    raise ExtraMissing.of("the MCP server", "mcp", ("mcp", "mcp_types"), error) from error

from memfs.doors.mcp.server import MemoryServer, build_server
from memfs.doors.mcp.tools import ToolSet

__all__ = ["MemoryServer", "ToolSet", "build_server"]

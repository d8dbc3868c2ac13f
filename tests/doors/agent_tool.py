"""Tools of the MCP server, called as the server calls them, without a protocol between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.doors.mcp.server import WorkspaceSession
from memfs.doors.mcp.tools import TOOLS, checked
from memfs.model import Origin
from memfs.store.access_log import served_to
from memfs.workspace import Workspace

CODER = Origin(agent="coder", session="s42", role="assistant")


def tool(workspace: Workspace, name: str, caller: Origin = CODER, **given: Any) -> Mapping[str, Any]:
    """What a tool gives an agent back, as JSON."""
    row = TOOLS[name]
    session = WorkspaceSession(None, lambda: workspace, caller.session)
    with served_to(agent=caller.agent, session=caller.session):
        return row.run(session, caller, checked(row.arguments, given)).data

"""Calling: a call of a tool, from its arguments to its answer.

Owns that every call ends in an answer: what went wrong is told in words that help, without what lies outside the
workspace, and a fault of memfs ends the call and no more. This is the outermost place that knows of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from memfs.adapters.mcp.answer import told
from memfs.adapters.mcp.arguments import checked
from memfs.adapters.mcp.desk import Desk
from memfs.adapters.mcp.tools import TOOLS
from memfs.adapters.mcp.toolset import ASKING, ToolSet
from memfs.errors import MemfsError, SettingInvalid
from memfs.model.kinds import nearest
from memfs.served.recipient import served_to

if TYPE_CHECKING:
    from memfs.facades.caller import Caller

Result = TypeVar("Result")
log = logging.getLogger("memfs")
_FAULT = (
    "memfs failed, and nothing is known to have changed: the server's log says why; memory_status tells how it stands"
)


def offered(desk: Desk, tools: ToolSet) -> list[str]:
    """The tools that are offered: without those that ask, where agents may not ask."""
    try:
        may_ask = desk.memory.workspace.settings.memory.on_demand
    except MemfsError:  # each call will say what is wrong with the workspace
        may_ask = True
    return [name for name in tools.names if may_ask or name not in ASKING]


async def call_tool(desk: Desk, tools: ToolSet, caller: Caller, name: str, given: Mapping[str, Any]) -> CallToolResult:
    """What a tool answers.

    Raises:
        MCPError: there is no such tool.
    """
    if name not in tools.names:
        hint = nearest(name, tools.names) or f"the tools are {', '.join(tools.names)}"
        raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {ascii(name)[:80]}: {hint}")
    try:
        return await desk.aside(_called, desk, caller, name, given)
    except MemfsError as error:
        return _failed(told(error, desk.root))
    except Exception:  # a fault of ours: the client keeps its connection, and learns no more than that
        log.exception("the tool %s failed", name)
        return _failed(_FAULT)


async def answered(desk: Desk, work: Callable[..., Result], *arguments: Any) -> Result:
    """What other requests are answered with.

    Raises:
        MCPError: it went wrong; in the words of a tool's answer.
    """
    try:
        return await desk.aside(work, *arguments)
    except MemfsError as error:
        raise MCPError(code=INVALID_PARAMS, message=told(error, desk.root)) from error
    except Exception as error:  # as above
        log.exception("a request failed")
        raise MCPError(code=INTERNAL_ERROR, message=_FAULT) from error


def _called(desk: Desk, caller: Caller, name: str, given: Mapping[str, Any]) -> CallToolResult:
    row = TOOLS[name]
    arguments = checked(row.arguments, given)
    if name in ASKING and not desk.memory.workspace.settings.memory.on_demand:
        raise SettingInvalid("agents may not ask", field="memory.on_demand", hint="memory_get reads one by its id")
    with served_to(agent=caller.agent, session=caller.session):
        answer = row.run(desk, caller, arguments)
    return CallToolResult(content=[TextContent(type="text", text=answer.text)], structured_content=dict(answer.data))


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)

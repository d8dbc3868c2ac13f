"""Memory tool: the classes that the Anthropic SDK's tool runner takes.

Owns the SDK's base classes, its values of commands and its errors. What a command does and says is the business of
``commands``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from memfs.adapters.anthropic.commands import Commands, Refused
from memfs.facades.pages import Pages
from memfs.model import Origin
from memfs.workspace import Workspace

if TYPE_CHECKING:
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

_SOURCE = "anthropic"
_TOOL = "memory"


class MemfsMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool over a workspace: what the model keeps under ``/memories`` are items of kind ``note`` (B5).

    They are versioned, found by every other way of asking, and those that people or other tools made are shown to the
    model. Answers and refusals are word for word those of the SDK's tool for a local folder.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        folder: str = "",
        agent: str = "",
        session: str = "",
        workspace: Workspace | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """Choose the workspace, as every facade does.

        Args:
            path: a folder: the workspace there or above it, else one that is made there; None: the workspace at hand.
            folder: what the model sees as ``/memories``, so that several users or agents have one each; "" is all.
            agent, session: who writes, for the items' origin and the commits; without a name, the door's own.
            workspace: an open workspace to work in; it stays open.
            cache_control: as the SDK has it.

        Raises:
            WorkspaceNotFound: none is there, and none can be made.
            PathEscape, IdInvalid: ``folder`` is no path.
        """
        super().__init__(cache_control=cache_control)
        origin = Origin(agent=agent or _SOURCE, session=session, role="assistant", tool=_TOOL)
        self._pages = Pages(path, folder=folder, origin=origin, source=_SOURCE, workspace=workspace)
        self._commands = Commands(self._pages)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """The lines of a file, or what lies in a folder.

        Raises:
            ToolError: it cannot be shown; the text says why.
        """
        lines = getattr(command, "view_range", None)
        if lines is not None and not (isinstance(lines, list) and all(type(line) is int for line in lines)):
            raise ToolError("Invalid `view_range` parameter: it should be a list of two line numbers.")
        return _told(lambda: self._commands.view(_text(command, "path"), lines))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a file.

        Raises:
            ToolError: it is there already, or cannot be stored; nothing changed.
        """
        return _told(lambda: self._commands.create(_text(command, "path"), _text(command, "file_text")))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace the one place where a text stands. What others write meanwhile is not lost.

        Raises:
            ToolError: there is no such file or not one such place; nothing changed.
        """
        new = _text(command, "new_str", "")
        return _told(lambda: self._commands.str_replace(_text(command, "path"), _text(command, "old_str"), new))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines. What others write meanwhile is not lost.

        Raises:
            ToolError: there is no such file or line; nothing changed.
        """
        line: object = getattr(command, "insert_line", None)
        if type(line) is not int:
            raise ToolError("Invalid `insert_line` parameter: it should be a line number.")
        return _told(lambda: self._commands.insert(_text(command, "path"), line, _text(command, "insert_text")))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Remove a file or folder; git keeps it.

        Raises:
            ToolError: there is none; nothing changed.
        """
        return _told(lambda: self._commands.delete(_text(command, "path")))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or folder.

        Raises:
            ToolError: there is none, or something is there already; nothing changed.
        """
        return _told(lambda: self._commands.rename(_text(command, "old_path"), _text(command, "new_path")))

    def clear_all_memory(self) -> str:
        """Remove every file, in one commit; git keeps them. For the program: the model cannot ask for it.

        Raises:
            ToolError: nothing changed.
        """
        return _told(self._commands.clear)

    def close(self) -> None:
        """End the session, which commits what waits for that, and the use of the workspace. May be repeated."""
        self._pages.finish()

    def __enter__(self) -> MemfsMemoryTool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncMemfsMemoryTool(BetaAsyncAbstractMemoryTool):
    """``MemfsMemoryTool`` for the SDK's asynchronous client: the work is done on a thread (B5)."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        folder: str = "",
        agent: str = "",
        session: str = "",
        workspace: Workspace | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """As ``MemfsMemoryTool``."""
        super().__init__(cache_control=cache_control)
        self._tool = MemfsMemoryTool(path, folder=folder, agent=agent, session=session, workspace=workspace)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """As ``MemfsMemoryTool.view``."""
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """As ``MemfsMemoryTool.create``."""
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """As ``MemfsMemoryTool.str_replace``."""
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """As ``MemfsMemoryTool.insert``."""
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """As ``MemfsMemoryTool.delete``."""
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """As ``MemfsMemoryTool.rename``."""
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """As ``MemfsMemoryTool.clear_all_memory``."""
        return await asyncio.to_thread(self._tool.clear_all_memory)

    async def close(self) -> None:
        """As ``MemfsMemoryTool.close``."""
        await asyncio.to_thread(self._tool.close)

    async def __aenter__(self) -> AsyncMemfsMemoryTool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _told(work: Callable[[], str]) -> str:
    """The text of a command; a refusal as the SDK's runner wants it."""
    try:
        return work()
    except Refused as refused:
        raise ToolError(str(refused)) from refused


def _text(command: Any, name: str, usual: str | None = None) -> str:
    """A parameter of a command: models leave some out, and the SDK checks none of them."""
    value = getattr(command, name, usual)
    if not isinstance(value, str):
        raise ToolError(f"Missing required parameter `{name}`: it should be text.")
    return value

"""The workspace behind one server, opened with the first call that needs it.

Calls are done on threads, so that none holds up the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from memfs.dataclass import dataclass
from memfs.errors import MemfsError, WorkspaceNotFound
from memfs.store.access_log import served_to

if TYPE_CHECKING:
    from memfs.facades.agent_tools import AgentMemory
    from memfs.facades.context_memory import ContextMemory
    from memfs.workspace import Workspace

Result = TypeVar("Result")

_AT_ONCE = 4
log = logging.getLogger("memfs")


@dataclass(eq=False, repr=False)
class Desk:
    """Where the calls of one server are done.

    Attributes:
        path, opener: as ``build_server``.
        read_only: nothing is written on behalf of a call.
    """

    path: str | os.PathLike[str] | None
    opener: Callable[[], Workspace] | None
    read_only: bool = False

    def __post_init__(self) -> None:
        self._opened: Workspace | None = None
        self._memory: AgentMemory | None = None
        self._states: dict[str, ContextMemory] = {}
        self._guard = threading.Lock()
        self._closed = False
        self._working: dict[str, None] = {}
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="memfs-mcp")

    @property
    def memory(self) -> AgentMemory:
        """The memory, opened here where it was not yet: on a thread of ``aside``.

        Raises:
            MemfsError: it cannot be opened; the next call tries again.
        """
        from memfs.facades.agent_tools import AgentMemory

        with self._guard:
            if self._closed:
                raise WorkspaceNotFound("this server is closing", hint="connect anew")
            if self._memory is None:
                if self.opener is not None:
                    self._opened = self._opened or self.opener()
                made = AgentMemory(workspace=self._opened) if self._opened else AgentMemory(self.path)
                _ = made.workspace  # where it cannot be opened, nothing is kept of the try
                self._memory = made
            if not self._memory.workspace.root.is_dir():  # what is still known of it must not pass for its state
                raise WorkspaceNotFound("the workspace's folder is gone", hint="bring it back, or end this server")
            return self._memory

    def states(self, session: str) -> ContextMemory:
        """The state of a multi-agent system, as a session knows it: what that changes follows from what it has seen.

        Raises:
            MemfsError: as ``memory``.
        """
        from memfs.facades.context_memory import ContextMemory  # as above

        workspace = self.memory.workspace
        with self._guard:
            return self._states.setdefault(session, ContextMemory(workspace=workspace))

    @property
    def root(self) -> str:
        """The workspace's folder, "" where it is not open."""
        return str(self._memory.workspace.root) if self._memory is not None and not self._closed else ""

    async def aside(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """What work gives back, done on a thread: it reads files, and may wait for a disk.

        Raises:
            WorkspaceNotFound: the server is closing.
        """
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, partial(_served, work, *arguments))
        except RuntimeError as error:  # the threads were told to end
            raise WorkspaceNotFound("this server is closing", hint="connect anew") from error
        return await waiting

    def worked(self, session: str) -> None:
        """Note that a session has working memory, which is seen to when the server closes."""
        self._working[session] = None

    def end(self, session: str) -> None:
        """End one session: keep what matters of its working memory, and commit what waits for its end."""
        memory = self._memory
        self._states.pop(session, None)
        if memory is None or self._closed:
            return
        if session in self._working:
            del self._working[session]
            self._consolidate(memory, session)
        memory.workspace.end_session()

    def close(self) -> None:
        """Finish what was begun, end the sessions, commit what waits, and close the workspace, if it was opened.

        May be repeated.
        """
        self._threads.shutdown(wait=True, cancel_futures=True)
        with self._guard:
            memory, opened = self._memory, self._opened
            self._closed, self._memory, self._opened = True, None, None
        if memory is not None:
            for session in self._working:
                self._consolidate(memory, session)
            memory.finish()
        if opened is not None:
            opened.close()

    def _consolidate(self, memory: AgentMemory, session: str) -> None:
        try:
            memory.end_session(session)
        except MemfsError as error:  # the working memory stays, and fades
            log.warning("the working memory of %s was not consolidated: %s", session, error)


def _served(work: Callable[..., Result], *arguments: Any) -> Result:
    """Do work whose answer goes out through this door."""
    with served_to("mcp"):
        return work(*arguments)

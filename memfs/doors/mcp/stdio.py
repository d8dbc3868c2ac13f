"""Serve the client that started this process, over its standard streams.

Nothing but protocol reaches standard output. When the client goes or a signal comes, calls under way are finished, then
the workspace is closed, which commits what waits.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from mcp.server.stdio import stdio_server

from memfs.doors.mcp.server import MemoryServer

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(server: MemoryServer) -> None:
    """Serve the client at standard input and output until it goes or a signal ends this process.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C; everything is closed.
    """
    endings: queue.SimpleQueue[int] = queue.SimpleQueue()
    with _signals(endings.put):
        # a thread that nobody waits for: it may be waiting for a line when the signal comes
        threading.Thread(target=_talk, args=(server, endings.put), name="mcp", daemon=True).start()
        asked_by = endings.get()
        server.close()
    if asked_by == signal.SIGINT:
        raise KeyboardInterrupt


def _talk(server: MemoryServer, ended: Callable[[int], None]) -> None:
    async def talk() -> None:
        async with stdio_server() as (reading, writing):
            await server.protocol.run(reading, writing, server.protocol.create_initialization_options())

    try:
        asyncio.run(talk())
    finally:
        ended(0)


@contextmanager
def _signals(take: Callable[[int], None]) -> Iterator[None]:
    """Hand over the signal that asks this process to end, until all is closed; a second one ends it at once."""

    def restore() -> None:
        for one, handler in before.items():
            signal.signal(one, handler)

    def asked(number: int, _: FrameType | None) -> None:
        restore()
        take(number)

    before = {one: signal.signal(one, asked) for one in _ENDING}
    try:
        yield
    finally:
        restore()

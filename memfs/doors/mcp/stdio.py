"""Serve the client that started this process, over its standard streams.

Each message is a line, and nothing but protocol reaches standard output. When the client goes or a signal comes,
requests under way are answered, then the workspace is closed, which commits what waits.
"""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import TypeAdapter, ValidationError

from memfs.dataclass import dataclass
from memfs.doors.mcp.http import MOST_BYTES
from memfs.doors.mcp.server import MemoryServer
from memfs.fs import io

Incoming = SessionMessage | Exception
_CHUNK = 1 << 16
_GRACE_SECONDS = 10.0
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_NO_MESSAGE = "this line is not a JSON-RPC message: a request has a method, and an id that is a whole number or a text"
_NEVER_ANSWERED = "subscriptions/listen"  # it is answered by what follows, for as long as the client stays


def serve(server: MemoryServer) -> None:
    """Serve the client at standard input and output until it goes or a signal ends this process.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C; everything is closed.
    """
    with _signals() as ending:
        try:
            with _own_streams() as (reading, writing):
                asyncio.run(_Line(server, reading, writing, ending).talk())
        finally:
            server.close()
    if ending.asked_by is signal.SIGINT:
        raise KeyboardInterrupt


# -- the signal --------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _ServerEnd:
    """What asks this process to end: ``asked_by`` is the signal, once one came, and ``tell`` ends the talk."""

    asked_by: signal.Signals | None = None
    tell: Callable[[], object] = lambda: None

    def note(self, number: int) -> None:
        """Take note of the signal, and end the talk."""
        self.asked_by = signal.Signals(number)
        self.tell()


@contextmanager
def _signals() -> Iterator[_ServerEnd]:
    """Take the signal that asks this process to end, until all is closed; a second one ends it at once.

    One that comes while it closes lets it finish: a client sends it to a server that outlives it by two seconds.
    """
    ending = _ServerEnd()

    def take(number: int, _: FrameType | None) -> None:
        restore()
        ending.note(number)

    def restore() -> None:
        for one, handler in before.items():
            signal.signal(one, handler)

    before = {one: signal.getsignal(one) for one in _ENDING}
    for one in _ENDING:
        signal.signal(one, take)
    try:
        yield ending
    finally:
        restore()


# -- the streams -------------------------------------------------------------------------------------------------
@contextmanager
def _own_streams() -> Iterator[tuple[int, int]]:
    """Descriptors of the client's two streams, which whatever else runs here cannot read or write meanwhile."""
    reading, writing = io.duplicate(0, "standard input"), io.duplicate(1, "standard output")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nowhere, 0)
        os.dup2(2, 1)
        yield reading, writing
    finally:
        os.close(nowhere)
        os.dup2(reading, 0)
        os.dup2(writing, 1)  # the duplicates stay: a thread may still wait at one


def _lines(descriptor: int) -> Iterator[bytes]:
    """What comes, line by line, to the end; a line that is too long is cut, and then is no message."""
    waiting, skipping = bytearray(), False
    while chunk := _read(descriptor):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            if not skipping:
                yield bytes(waiting + part)
            waiting.clear()
            skipping = False
        if skipping:
            continue
        waiting += rest
        if len(waiting) > MOST_BYTES:
            yield bytes(waiting)
            waiting.clear()
            skipping = True
    if waiting:
        yield bytes(waiting)


def _read(descriptor: int) -> bytes:
    """What comes next, nothing at the end; a stream that cannot be read has ended."""
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""


def _write_all(descriptor: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(descriptor, left) :]


# -- the talk ----------------------------------------------------------------------------------------------------
class _Line:
    """The line to one client. Two threads that nobody waits for read and write; all else is done in the event loop."""

    def __init__(self, server: MemoryServer, reading: int, writing: int, ending: _ServerEnd) -> None:
        self._protocol, self._reading, self._writing, self._ending = server.protocol, reading, writing, ending
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unanswered: set[int | str] = set()
        self._quiet, self._over = asyncio.Event(), asyncio.Event()
        self._gone = False

    async def talk(self) -> None:
        """Carry messages until the client goes or a signal comes."""
        loop = asyncio.get_running_loop()
        self._ending.tell = partial(_call, loop, self._over.set)
        to_server, from_client = anyio.create_memory_object_stream[Incoming](0)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        options = self._protocol.create_initialization_options()
        serving = asyncio.create_task(self._protocol.run(from_client, to_client, options))
        serving.add_done_callback(lambda _: self._over.set())
        sending = asyncio.create_task(self._send(from_server))
        writer = threading.Thread(target=self._write, args=(loop,), name="mcp-writer", daemon=True)
        writer.start()
        threading.Thread(target=self._hear, args=(loop, to_server), name="mcp-reader", daemon=True).start()
        self._quiet.set()
        if self._ending.asked_by is None:
            await self._over.wait()
        if not self._gone:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), _GRACE_SECONDS)
        to_server.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(serving), _GRACE_SECONDS)
        await _end(serving, sending)
        self._answers.put(None)
        await asyncio.to_thread(writer.join, _GRACE_SECONDS)

    def _hear(self, loop: asyncio.AbstractEventLoop, server: MemoryObjectSendStream[Incoming]) -> None:
        """Hand over each message of the client's; what is none is answered at once."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, CancelledError, RuntimeError):  # it is over
            for line in _lines(self._reading):
                message = _message(line) if line.strip() else None
                if isinstance(message, JSONRPCError):
                    self._answer(message)
                elif message is not None:
                    asyncio.run_coroutine_threadsafe(self._ask(message, server), loop).result()
        _call(loop, self._over.set)

    async def _ask(self, message: Any, server: MemoryObjectSendStream[Incoming]) -> None:
        self._note(message)
        await server.send(SessionMessage(message))

    async def _send(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with messages:
            async for sent in messages:
                self._answer(sent.message)
                self._note(sent.message)

    def _answer(self, message: Any) -> None:
        line = message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        self._answers.put(line.encode("utf-8", "replace"))

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        """Write each answer; ends the talk when the client takes no more."""
        try:
            while (line := self._answers.get()) is not None:
                _write_all(self._writing, line)
        except OSError:  # the client has gone; nobody is left to answer
            self._gone = True
            _call(loop, self._over.set)

    def _note(self, message: Any) -> None:
        """Keep in mind which requests wait for their answer."""
        if isinstance(message, JSONRPCRequest):
            if message.method != _NEVER_ANSWERED:
                self._unanswered.add(message.id)
        elif isinstance(message, JSONRPCNotification):
            if message.method == "notifications/cancelled":
                named = (message.params or {}).get("requestId")
                if isinstance(named, int | str):  # else it names no request, and the protocol's own part says so
                    self._unanswered.discard(named)
        else:
            self._unanswered.discard(message.id)
        if self._unanswered:
            self._quiet.clear()
        else:
            self._quiet.set()


def _call(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the talk is over: what is left is to close
        loop.call_soon_threadsafe(work)


def _message(line: bytes) -> Any:
    """The message that a line is, or the error to answer it with."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _not_understood(line)
    if isinstance(message, JSONRPCNotification) and "id" in _JSON.validate_json(line):
        return _not_understood(line)  # a request, which waits for its answer
    return message


def _not_understood(line: bytes) -> JSONRPCError:
    """The answer to what is no message; with the request's id, where it has one that can be given back."""
    named: int | str | None = None
    if len(line) > MOST_BYTES:
        error = ErrorData(code=INVALID_REQUEST, message=f"a message has at most {MOST_BYTES} bytes")
    else:
        try:
            told = _JSON.validate_json(line)
        except ValueError:
            error = ErrorData(code=PARSE_ERROR, message="this line is not JSON")
        else:
            error = ErrorData(code=INVALID_REQUEST, message=_NO_MESSAGE)
            given = told.get("id") if isinstance(told, dict) and "method" in told else None
            named = given if type(given) in (int, str) else None
    return JSONRPCError(jsonrpc="2.0", id=named, error=error)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs and wait for it; what it failed with is raised."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task

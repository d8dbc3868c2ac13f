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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, TypeVar

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

from memfs.doors.mcp.http import MOST_BYTES
from memfs.doors.mcp.server import MemoryServer
from memfs.fs import io

Result = TypeVar("Result")
Incoming = SessionMessage | Exception
_CHUNK = 1 << 16
_GRACE_SECONDS = 10.0
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_NO_MESSAGE = "this line is no JSON-RPC message: a request has a method, and an id that is a whole number or a text"
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
    """What asks this process to end: ``asked_by`` is the signal, once one came."""

    asked_by: signal.Signals | None = None
    _tell: Callable[[], object] | None = None

    def note(self, number: int) -> None:
        """Take note of the signal, and end the talk."""
        self.asked_by = signal.Signals(number)
        if self._tell is not None:
            with suppress(RuntimeError):  # the talk is over: what is left is to close
                self._tell()

    def awaited(self) -> asyncio.Future[Any]:
        """A future of the talk's, done as soon as the signal came."""
        loop = asyncio.get_running_loop()
        came: asyncio.Future[Any] = loop.create_future()
        self._tell = partial(loop.call_soon_threadsafe, _settle, came, None)
        if self.asked_by is not None:
            self._tell()
        return came


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


class _Aside:
    """Makes blocking calls one after another, on a thread that a process which ends does not wait for."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """What the function returns.

        Raises:
            OSError: the function did.
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            try:
                settle = partial(_settle, outcome, function(*arguments))
            except OSError as error:
                settle = partial(_fail, outcome, error)
            with suppress(RuntimeError):  # the loop ended meanwhile
                loop.call_soon_threadsafe(settle)

        self._calls.put(run)
        return await outcome

    def _run(self) -> None:
        while True:
            self._calls.get()()


def _settle(outcome: asyncio.Future[Result], result: Result) -> None:
    if not outcome.done():
        outcome.set_result(result)


def _fail(outcome: asyncio.Future[Any], error: OSError) -> None:
    if not outcome.done():
        outcome.set_exception(error)


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
@dataclass(slots=True)
class _Line:
    """The line to one client."""

    server: MemoryServer
    reading: int
    writing: int
    ending: _ServerEnd
    unanswered: set[int | str] = field(default_factory=set)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no request waits for its answer."""

    async def talk(self) -> None:
        """Carry messages until the client goes or a signal comes."""
        to_server, from_client = anyio.create_memory_object_stream[Incoming](0)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        self.quiet.set()
        protocol = self.server.protocol
        serving = asyncio.create_task(protocol.run(from_client, to_client, protocol.create_initialization_options()))
        sending = asyncio.create_task(self._send(from_server))
        hearing = asyncio.create_task(self._hear(to_server, to_client.clone()))
        waited: set[asyncio.Future[Any]] = {serving, sending, hearing, self.ending.awaited()}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.quiet.wait(), _GRACE_SECONDS)
        await _end(hearing)
        to_server.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(serving), _GRACE_SECONDS)
        await _end(serving, sending)

    async def _hear(
        self, server: MemoryObjectSendStream[Incoming], client: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        """Hand over each message of the client's; what is none is answered at once."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody is left to take it
            async with client:
                async for line in self._lines():
                    await self._take(line, server, client)

    async def _take(
        self, line: bytes, server: MemoryObjectSendStream[Incoming], client: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await client.send(_not_understood(line))
            return
        if isinstance(message, JSONRPCNotification) and "id" in _JSON.validate_json(line):
            await client.send(_not_understood(line))  # a request, which waits for its answer
            return
        self._note(message)
        await server.send(SessionMessage(message))

    async def _lines(self) -> AsyncIterator[bytes]:
        """The client's lines; one that is too long is cut, and then is no message."""
        aside, waiting, skipping = _Aside("mcp-reader"), bytearray(), False
        while chunk := await aside.call(_read, self.reading):
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

    async def _send(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write each message of the server's; ends when the client takes no more."""
        aside = _Aside("mcp-writer")
        async with messages:
            async for sent in messages:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
                try:
                    await aside.call(_write_all, self.writing, line.encode("utf-8", "replace"))
                except OSError:  # the client has gone; nobody is left to answer
                    return
                self._note(sent.message)

    def _note(self, message: Any) -> None:
        """Keep in mind which requests wait for their answer."""
        if isinstance(message, JSONRPCRequest):
            if message.method != _NEVER_ANSWERED:
                self.unanswered.add(message.id)
        elif isinstance(message, JSONRPCNotification):
            if message.method == "notifications/cancelled":
                named = (message.params or {}).get("requestId")
                if isinstance(named, int | str):  # else it names no request, and the protocol's own part says so
                    self.unanswered.discard(named)
        else:
            self.unanswered.discard(message.id)
        if self.unanswered:
            self.quiet.clear()
        else:
            self.quiet.set()


def _not_understood(line: bytes) -> SessionMessage:
    """The answer to what is no message; with the request's id, where it has one that can be given back."""
    named: int | str | None = None
    if len(line) > MOST_BYTES:
        error = ErrorData(code=INVALID_REQUEST, message=f"a message has at most {MOST_BYTES} bytes")
    else:
        try:
            told = _JSON.validate_json(line)
        except ValueError:
            error = ErrorData(code=PARSE_ERROR, message="this line is no JSON")
        else:
            error = ErrorData(code=INVALID_REQUEST, message=_NO_MESSAGE)
            given = told.get("id") if isinstance(told, dict) and "method" in told else None
            named = given if type(given) in (int, str) else None
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=named, error=error))


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs and wait for it; what it failed with is raised."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task

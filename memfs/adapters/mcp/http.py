"""HTTP: the transport for clients that connect over the network of this machine.

Owns the socket, which only this machine can reach, and the server around it; who may be served is ``guard``'s
decision. Knows nothing of what messages ask for.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from memfs.adapters.mcp.guard import MOST_BYTES, PATH, App, Guard, Receive, Scope, Send, guarded
from memfs.adapters.mcp.server import MemoryServer
from memfs.errors import SettingInvalid, StorageIO

PORT = 8377
"""Where a server listens unless told otherwise."""
_FAMILIES = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}
_MOST_SESSIONS = 256  # clients that end without saying so are let go of after half an hour
_MOST_CONNECTIONS = 256
_MOST_UNKNOWN = 128
_GRACE_SECONDS = 5
_HEAD_SECONDS = 10.0
_IDLE_SECONDS = 600  # a client that thinks between two calls finds its connection as it left it


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that waits for clients.

    Attributes:
        host, port: where it is reached.
    """

    host: str
    port: int
    socket: socket.socket = field(repr=False)

    @property
    def url(self) -> str:
        """The address that a client is given."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}{PATH}"


@contextmanager
def listen(host: str = "127.0.0.1", port: int | None = None) -> Iterator[Listening]:
    """Listen on this machine (B5).

    Args:
        host: an address only this machine can reach.
        port: None means ``PORT``; 0 takes a free one.

    Raises:
        SettingInvalid: other machines could reach that address.
        StorageIO: the port is taken, or the machine has no such address.
    """
    family = _FAMILIES.get(host)
    if family is None:
        raise SettingInvalid(
            f"{ascii(host)[:60]} is no address that only this machine can reach",
            field="host",
            hint="listen at 127.0.0.1 or ::1, and let others in through a tunnel, such as ssh -L",
        )
    address = "127.0.0.1" if host == "localhost" else host
    wanted = PORT if port is None else port
    with socket.socket(family, socket.SOCK_STREAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((address, wanted))
            made.listen(_MOST_CONNECTIONS)
        except OSError as error:
            raise _not_listening(error, address, wanted) from error
        yield Listening(address, made.getsockname()[1], made)


def _not_listening(error: OSError, address: str, port: int) -> StorageIO:
    told = f"cannot listen at {address}, port {port}: {error.strerror or error}"
    taken = error.errno == errno.EADDRINUSE
    return StorageIO(told, hint="another program has it; --port 0 takes a free one" if taken else None)


def serve(server: MemoryServer, listening: Listening, token: str) -> None:
    """Serve clients that hold the token, until a signal ends this process (B5).

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C; everything is closed.
    """
    running = uvicorn.Server(_configured(server, listening, token))
    try:
        with _outliving(signal.SIGTERM):
            running.run(sockets=[listening.socket])
    finally:
        server.close()


def _configured(server: MemoryServer, listening: Listening, token: str) -> uvicorn.Config:
    for name in ("uvicorn.error", "mcp"):  # what strangers send is no news for whoever looks at the terminal
        logging.getLogger(name).setLevel(logging.ERROR)
    # it reports a client that hangs up as a fault; those of ours are told by the log of memfs
    logging.getLogger("mcp.server.streamable_http").setLevel(logging.CRITICAL)
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH, max_request_body_size=MOST_BYTES, max_sessions=_MOST_SESSIONS
    )
    return uvicorn.Config(
        guarded(_ending_sessions(app, server), Guard(listening.port, token)),
        http=_Punctual,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def _ending_sessions(app: App, server: MemoryServer) -> App:
    """An application that says when a client has ended its connection, after the answer."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        statuses: list[int] = []

        async def sending(message: MutableMapping[str, Any]) -> None:
            statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])
            await send(message)

        if scope.get("method") != "DELETE":
            await app(scope, receive, send)
            return
        await app(scope, receive, sending)
        named = dict(scope["headers"]).get(b"mcp-session-id", b"").decode("latin-1")
        if statuses == [200]:
            await server.ended(named)

    return answer


class _Punctual(H11Protocol):
    """Hangs up on whoever does not say in time what they want: else anybody could hold all places by saying nothing.

    Of those who have said nothing yet there are never so many that no place is left: the one that has been silent
    longest makes room. Who was answered has shown the token, as a refusal ends the connection, and may be silent for
    longer.
    """

    _late: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as theirs
        super().connection_made(transport)
        self._since = self.loop.time()
        self._mind()
        self._make_room()

    def handle_events(self) -> None:
        super().handle_events()
        self._mind()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._mind()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._mind(gone=True)

    def _make_room(self) -> None:
        unknown = [one for one in self.connections if isinstance(one, _Punctual) and one._is_unknown()]
        if len(unknown) > _MOST_UNKNOWN:
            min(unknown, key=lambda one: one._since).transport.close()

    def _is_unknown(self) -> bool:
        return not self.transport.is_closing() and self.cycle is None

    def _mind(self, *, gone: bool = False) -> None:
        """Let the time run while no request is under way."""
        waits = not gone and (self.cycle is None or self.cycle.response_complete)
        if waits and self._late is None:
            seconds = _HEAD_SECONDS if self.cycle is None else _IDLE_SECONDS
            self._late = self.loop.call_later(seconds, self.transport.close)
        elif not waits and self._late is not None:
            self._late.cancel()
            self._late = None


@contextmanager
def _outliving(number: signal.Signals) -> Iterator[None]:
    """Let the signal end the server alone: it is raised again afterwards, and would end us before we have closed."""

    def ignore(_: int, __: FrameType | None) -> None:
        return None

    before = signal.signal(number, ignore)
    try:
        yield
    finally:
        signal.signal(number, before)

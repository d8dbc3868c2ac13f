"""Serve clients that connect over HTTP on this machine.

The socket can be reached from this machine only, and a client must show the token. Connections that stay silent are
closed.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import logging
import os
import re
import secrets
import signal
import socket
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from memfs.config_names import MCP_TOKEN
from memfs.dataclass import dataclass, field
from memfs.doors.mcp.server import MemoryServer
from memfs.errors import SettingInvalid, StorageIO
from memfs.fs import io

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
MOST_BYTES = 8 * 1024 * 1024
_METHODS = ("POST", "GET", "DELETE")
_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered: a status, a sentence, and headers that go with it."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class AccessGuard:
    """What a request must show to be let through.

    Attributes:
        port: where the server listens; a host or origin with another port is a stranger.
        token: what the ``Authorization`` header must hold after ``Bearer``.
    """

    port: int
    token: str = field(repr=False)

    def refusal(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
        """Why a request is refused, None where it may pass. Looks at nothing but its head."""
        found = [(name.lower(), value) for name, value in headers]
        told = {name: [value for other, value in found if other == name] for name, _ in found}
        return (
            self._stranger(told)
            or self._without_token(told.get(b"authorization", []))
            or _elsewhere(method, path)
            or (_unfit_body(told) if method == "POST" else None)
        )

    def _stranger(self, told: dict[bytes, list[bytes]]) -> Refusal | None:
        hosts = {f"{name}:{self.port}".encode() for name in _NAMES}
        if self.port == 80:
            hosts |= {name.encode() for name in _NAMES}
        named = told.get(b"host", [])
        if len(named) != 1 or named[0].lower() not in hosts:
            return Refusal(403, "this server is not at the host that the request names")
        if any(origin.lower() not in {b"http://" + host for host in hosts} for origin in told.get(b"origin", [])):
            return Refusal(403, "web pages of other places are not answered")
        return None

    def _without_token(self, written: list[bytes]) -> Refusal | None:
        scheme, _, given = written[0].partition(b" ") if len(written) == 1 else (b"", b"", b"")
        known = hmac.compare_digest(given.strip(), self.token.encode())
        if known and scheme.lower() == b"bearer":
            return None
        return Refusal(401, "the token is missing or wrong", ((b"www-authenticate", b"Bearer"),))


def _elsewhere(method: str, path: str) -> Refusal | None:
    if path != PATH:
        return Refusal(404, f"there is nothing here; the server is at {PATH}")
    if method not in _METHODS:
        return Refusal(405, "this method is not served", ((b"allow", ", ".join(_METHODS).encode()),))
    return None


def _unfit_body(told: dict[bytes, list[bytes]]) -> Refusal | None:
    kinds = [value.partition(b";")[0].strip().lower() for value in told.get(b"content-type", [])]
    if kinds != [b"application/json"]:
        return Refusal(415, "the body must be application/json")
    if any(not size.isdigit() or int(size) > MOST_BYTES for size in told.get(b"content-length", [])):
        return Refusal(413, f"the body is larger than {MOST_BYTES} bytes")
    return None


def guarded(app: App, guard: AccessGuard) -> App:
    """An application that lets through only what the guard lets through."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not served")
        refusal = guard.refusal(scope["method"], scope["path"], scope["headers"])
        if refusal is None:
            await app(scope, receive, send)
        else:
            await _refuse(refusal, send)

    return answer


async def _refuse(refusal: Refusal, send: Send) -> None:
    """Answer without reading what the client still wants to send; the connection ends with it."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": refusal.reason}}
    body = json.dumps(error).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
class HttpListener:
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
def listen(host: str = "127.0.0.1", port: int | None = None) -> Iterator[HttpListener]:
    """Listen on this machine.

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
        yield HttpListener(address, made.getsockname()[1], made)


def _not_listening(error: OSError, address: str, port: int) -> StorageIO:
    told = f"cannot listen at {address}, port {port}: {error.strerror or error}"
    taken = error.errno == errno.EADDRINUSE
    return StorageIO(told, hint="another program has it; --port 0 takes a free one" if taken else None)


def serve(server: MemoryServer, listening: HttpListener, token: str) -> None:
    """Serve clients that hold the token, until a signal ends this process.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C; everything is closed.
    """
    running = uvicorn.Server(_configured(server, listening, token))
    try:
        with _outliving(signal.SIGTERM):
            running.run(sockets=[listening.socket])
    finally:
        server.close()


def _configured(server: MemoryServer, listening: HttpListener, token: str) -> uvicorn.Config:
    for name in ("uvicorn.error", "mcp"):  # what strangers send is no news for anyone looking at the terminal
        logging.getLogger(name).setLevel(logging.ERROR)
    # it reports a client that hangs up as a fault; those of ours are in the log of memfs
    logging.getLogger("mcp.server.streamable_http").setLevel(logging.CRITICAL)
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH, max_request_body_size=MOST_BYTES, max_sessions=_MOST_SESSIONS
    )
    return uvicorn.Config(
        guarded(_ending_sessions(app, server), AccessGuard(listening.port, token)),
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
    """Hangs up on clients that do not say in time what they want: else silence could hold all places.

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


_FIT = re.compile(r"[\x21-\x7e]{16,512}")
_MOST = 4096


@dataclass(frozen=True, slots=True)
class Token:
    """The token, and where it comes from in words; ``fresh`` when nobody knows it yet."""

    text: str = field(repr=False)
    origin: str
    fresh: bool = False


def token_from(file: str | None, environ: Mapping[str, str]) -> Token:
    """The token of this server: from the file, else from ``MEMFS_MCP_TOKEN``, else a new one.

    Args:
        file: its path; where nothing is there a new token is written into it, readable by this user alone.
        environ: the environment.

    Raises:
        SettingInvalid: what was given is no token, or others can read the file.
        StorageIO: the file cannot be read or written.
    """
    if file is not None:
        return Token(_kept(Path(file)), f"in {file}")
    if environ.get(MCP_TOKEN):
        return Token(_checked(environ[MCP_TOKEN], MCP_TOKEN), f"from {MCP_TOKEN}")
    return Token(secrets.token_hex(24), "made for this start", fresh=True)


def _kept(path: Path) -> str:
    """The token in a file, which is made where it is not there; two who make it at once get the same."""
    if not os.path.lexists(path):
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        io.write_file(beside, secrets.token_hex(24).encode() + b"\n")
        try:
            with suppress(FileExistsError):  # another was quicker
                io.link(str(beside), str(path))
        finally:
            io.unlink(beside)
        io.sync_folder(path.parent)
    return _checked(_read(path), str(path))


def _read(path: Path) -> str:
    """What a file holds that only its owner can read.

    Raises:
        SettingInvalid: others can read or change it.
        StorageIO, NotRegularFile: it cannot be read.
    """
    with io.descriptor(io.open_file(os.path.realpath(path), os.O_RDONLY)) as descriptor:
        facts = os.fstat(descriptor)
        if facts.st_uid not in (os.getuid(), 0) or stat.S_IMODE(facts.st_mode) & 0o077:
            raise SettingInvalid(
                "others can read the token", path=str(path), field="token-file", hint=f"chmod 600 {path}"
            )
        return io.read_regular(descriptor, str(path), _MOST).decode("ascii", "replace")


def _checked(written: str, origin: str) -> str:
    token = written.strip()
    if _FIT.fullmatch(token) is None:
        raise SettingInvalid(
            f"{origin} holds no token",
            field="token",
            hint="a token is one line of 16 to 512 visible ASCII characters without spaces",
        )
    return token

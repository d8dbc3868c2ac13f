"""Guard: who may talk to a server that listens on this machine.

Owns the checks that every request passes before anything reads its body: which host it names, which web page sent it,
whether it holds the token, and whether it is a request of the protocol at all. A web page cannot reach the memory by
giving a name of its own this machine's address (DNS rebinding), nor can another user of the machine. Knows nothing of
what a request asks for.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

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
class Guard:
    """What a request must show to be let through.

    Attributes:
        port: where the server listens; a host or origin with another port is a stranger.
        token: what the ``Authorization`` header must hold after ``Bearer``.
    """

    port: int
    token: str = field(repr=False)

    def refusal(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
        """Why a request is refused, None where it may pass (B5). Looks at nothing but its head."""
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


def guarded(app: App, guard: Guard) -> App:
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

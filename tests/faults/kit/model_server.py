"""A real HTTP server on the loopback that answers like an OpenAI-compatible service, as a test says.

It can also misbehave on purpose: hold an answer back, send it byte by byte, or drop the connection.
"""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

_DRIP_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Request:
    """One request: path, headers (names in lower case) and the JSON of its body."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What to send back.

    Attributes:
        body: bytes as they are; anything else as JSON.
        hold: send nothing until the server is closed.
        drip: ``headers`` or ``body``: send that part byte by byte without end, until the client goes away.
        drop: close the connection instead of answering.
    """

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False
    drip: str = ""
    drop: bool = False


def chat_reply(content: Any, **message: Any) -> ModelReply:
    """A chat answer whose one choice says this: a text as it is, anything else as JSON."""
    text = content if isinstance(content, (str, type(None))) else json.dumps(content)
    finish = message.pop("finish_reason", "stop")
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    return ModelReply(body={"object": "chat.completion", "choices": [choice]})


def embeddings_reply(vectors: Sequence[Sequence[float]]) -> ModelReply:
    """An embeddings answer with these vectors, in order."""
    rows = [{"object": "embedding", "index": place, "embedding": list(one)} for place, one in enumerate(vectors)]
    return ModelReply(body={"object": "list", "data": rows})


class ModelServer:
    """``with ModelServer(chat_reply({"score": 7})) as server:`` serves at ``server.url`` until the block ends.

    Attributes:
        asked: every request so far, in order.
    """

    def __init__(self, *answers: ModelReply | Callable[[Request], ModelReply]) -> None:
        """``answers``: one for each request in order, the last of them for all that follow."""
        self.answers = list(answers)
        self.asked: list[Request] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True)

    @property
    def url(self) -> str:
        """The address that the protocol's paths are appended to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, asked: Request) -> ModelReply:
        """Note the request, and choose what it gets."""
        with self._lock:
            self.asked.append(asked)
            chosen = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return chosen if isinstance(chosen, ModelReply) else chosen(asked)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: ModelServer

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # the one above looks up the host's name, which can take seconds
        self.server_name, self.server_port = "localhost", self.socket.getsockname()[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away are what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    timeout = 5
    server: _Server

    def do_POST(self) -> None:
        """Read the request and send what the owner chose."""
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner = self.server.owner
        answer = owner.answer(Request(self.path, headers, json.loads(data)))
        if answer.hold:
            owner.closing.wait()
        if answer.hold or answer.drop:
            self.close_connection = True
            return
        self._send(answer)

    def _send(self, answer: ModelReply) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        if answer.drip == "headers":
            self.flush_headers()
            self._drip(b"x")
            return
        self.send_header("Content-Length", str(1 << 30 if answer.drip else len(body)))
        self.end_headers()
        self.wfile.write(body)
        if answer.drip:
            self._drip(b" ")

    def _drip(self, piece: bytes) -> None:
        self.close_connection = True
        while not self.server.owner.closing.wait(_DRIP_SECONDS):
            self.wfile.write(piece)
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Say nothing."""

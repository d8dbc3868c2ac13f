"""The MCP server over standard input and output, as its own process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters

from memfs.doors.cli.app import run
from memfs.doors.mcp import MemoryServer
from memfs.model import Query
from memfs.sessions.spool import find_place
from memfs.workspace import open_workspace

Git = Callable[..., str]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}
SECONDS = 60


def request(number: int, method: str, **params: Any) -> str:
    """One line that asks something."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def call(number: int, tool: str, **arguments: Any) -> str:
    """One line that calls a tool."""
    return request(number, "tools/call", name=tool, arguments=arguments)


def greeting() -> str:
    """What a client says first."""
    return request(0, "initialize", **HELLO) + '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace."""
    open_workspace(tmp_path / "w", create=True, watch=False).close()
    return tmp_path / "w"


@pytest.fixture
def start(root: Path, forked_python: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a server in the workspace; it does not outlive the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*options: str, program: str = str(forked_python), **more: Any) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        started.append(subprocess.Popen([program, "-m", "memfs", "mcp", *options], **{"cwd": root, **pipes}))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def say(server: subprocess.Popen[bytes], *lines: str) -> None:
    """Send lines to a server."""
    assert server.stdin is not None
    server.stdin.write("".join(lines).encode())
    server.stdin.flush()


def receive(server: subprocess.Popen[bytes], *numbers: int) -> list[dict[str, Any]]:
    """The answers to the requests of these numbers, in whatever order they come."""
    assert server.stdout is not None
    found: dict[int, dict[str, Any]] = {}
    while not found.keys() >= set(numbers):
        answer = json.loads(server.stdout.readline())
        found[answer["id"]] = answer
    return [found[number] for number in numbers]


def stored(server: subprocess.Popen[bytes], *numbers: int) -> bool:
    """Whether these requests were answered with a success."""
    return not any(answer["result"]["isError"] for answer in receive(server, *numbers))


# -- a client that comes and goes --------------------------------------------------------------------------------
def test_the_sdk_client_stores_and_finds(
    root: Path, git: Git, forked_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The official client starts the server, uses it, and leaves a commit and no process behind (B5)."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", SECONDS)  # it kills who takes longer to close
    environment = {key: value for key, value in os.environ.items() if key.startswith(("HOME", "GIT_", "XDG_"))}
    environment["MEMFS_WORKSPACE"] = str(root)
    server = StdioServerParameters(command=str(forked_python), args=["-m", "memfs", "mcp"], cwd=root, env=environment)

    async def talk() -> tuple[Any, Any, Any]:
        async with Client(server, mode="legacy") as client:
            tools = await client.list_tools()
            kept = await client.call_tool("memory_store", {"content": "Releases are cut on Thursdays."})
            found = await client.call_tool("memory_search", {"query": "when are releases cut"})
            return tools, kept, found

    tools, kept, found = asyncio.run(talk())
    assert 5 <= len(tools.tools) <= 12
    assert not kept.is_error
    assert "Thursdays" in found.content[0].text
    assert "Thursdays" in git(root, "log", "-p", "--all")


WATCHING = """
import os, sys
root, log = os.environ["WATCHED"], os.open(os.environ["WATCHED_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
def note(event, given):
    if event in ("open", "sqlite3.connect", "os.mkdir") and str(given[0]).startswith(root):
        os.write(log, f"{given[0]}\\n".encode())
    elif event == "subprocess.Popen":
        os.write(log, b"a program\\n")
sys.addaudithook(note)
"""


def test_connecting_opens_no_file_of_the_workspace(root: Path, start: Any, tmp_path: Path) -> None:
    """The process answers ``initialize`` before it opens settings, history or index (B5)."""
    (tmp_path / "watching").mkdir()
    (tmp_path / "watching" / "sitecustomize.py").write_text(WATCHING)
    log = tmp_path / "opened"
    paths = os.pathsep.join(filter(None, (str(tmp_path / "watching"), os.environ.get("PYTHONPATH"))))
    server = start(
        program=sys.executable, env=os.environ | {"PYTHONPATH": paths, "WATCHED": str(root), "WATCHED_LOG": str(log)}
    )
    say(server, greeting(), request(1, "ping"))
    assert receive(server, 0, 1)[0]["result"]["serverInfo"]["name"] == "memfs"
    assert log.read_text() == ""
    say(server, call(2, "memory_status"))
    assert stored(server, 2)
    assert str(root / "memfs.toml") in log.read_text().splitlines()


def test_everything_asked_at_once_is_answered(start: Callable[..., Any], git: Git, root: Path) -> None:
    """What a client asks at once is all answered; when it closes its end, the server commits and ends (B5)."""
    server = start()
    say(server, greeting(), *(call(n, "memory_store", content=f"Fact number {n} of many.") for n in range(1, 9)))
    assert stored(server, *range(1, 9))
    _, err = server.communicate(timeout=SECONDS)
    assert (server.returncode, err) == (0, b"")
    assert len(list((root / "ContextMemory/memories/semantic").rglob("fact-number-*.yaml"))) == 8
    assert "fact-number" not in git(root, "status", "--porcelain")


def test_what_is_not_a_message_harms_nothing(start: Callable[..., Any]) -> None:
    """Garbage, a message without end, half a character: the next request is served (B5)."""
    server = start()
    garbage = b'{"jsonrpc":\n[]\nnull\n\n  \n\xff\xfe\x00\n{"jsonrpc":"1.0","id":7,"method":"ping"}\n'
    long = b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"y" * (9 * 1024 * 1024) + b'"}}\n'
    assert server.stdin is not None
    say(server, greeting())
    server.stdin.write(garbage + long)
    say(server, request(5, "ping"))
    assert "result" in receive(server, 5)[0]
    _, err = server.communicate(timeout=SECONDS)
    assert (server.returncode, err) == (0, b"")


def test_a_cancellation_that_names_no_request_harms_nothing(start: Callable[..., Any]) -> None:
    """Whatever a client cancels, the next request is served (faults 13)."""
    server = start()
    named: tuple[Any, ...] = ([1], {"a": 1}, None, True, 1.5, "x", 99)
    odd = [
        json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": one}})
        for one in named
    ]
    say(server, greeting(), "\n".join(odd) + "\n", request(5, "ping"))
    assert "result" in receive(server, 5)[0]


def test_nothing_but_protocol_reaches_standard_output(root: Path) -> None:
    """What a part of the server prints, or a program it starts, does not break the client's stream (B5)."""
    code = (
        "import os, subprocess, sys, threading\n"
        "import memfs.doors.mcp.server as mcp\n"
        "def shout():\n"
        "    print('printed'); os.write(1, b'written\\n'); subprocess.run(['echo', 'echoed'])\n"
        "    print('read', repr(sys.stdin.read()))\n"
        "plain = mcp.MemoryServer._list_tools\n"
        "def loud(*given):\n"
        "    threading.Thread(target=shout).start()\n"
        "    return plain(*given)\n"
        "mcp.MemoryServer._list_tools = loud\n"
        "from memfs.doors.cli.app import run\n"
        "sys.exit(run(['mcp']))\n"
    )
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    server = subprocess.Popen([sys.executable, "-u", "-c", code], cwd=root, **pipes)
    say(server, greeting(), request(1, "tools/list"))
    receive(server, 1)
    assert server.stderr is not None
    lines = [server.stderr.readline() for _ in range(4)]
    assert sorted(lines) == [b"echoed\n", b"printed\n", b"read ''\n", b"written\n"]
    say(server, request(2, "ping"))
    assert "result" in receive(server, 2)[0]
    server.communicate(timeout=SECONDS)


# -- how it ends -------------------------------------------------------------------------------------------------
def test_a_signal_ends_it_and_commits(start: Callable[..., Any], root: Path, git: Git) -> None:
    """Asked to end while its client stays connected, it commits what waits and goes (B5)."""
    server = start()
    say(server, greeting(), call(1, "memory_store", content="Signals end it."))
    assert stored(server, 1)
    server.send_signal(signal.SIGTERM)
    assert server.wait(SECONDS) == 0
    assert "Signals end it." in git(root, "log", "-p", "--all")


def test_a_signal_while_it_closes_lets_it_finish(root: Path, git: Git, forked_python: Path) -> None:
    """Asked to end while it closes, as clients ask who takes long for that, it commits what waits all the same (B5)."""
    code = (
        "import os, signal, sys\n"
        "from memfs.doors.mcp.server import MemoryServer\n"
        "plain = MemoryServer.close\n"
        "def close(server):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    plain(server)\n"
        "MemoryServer.close = close\n"
        "from memfs.doors.cli.app import run\n"
        "sys.exit(run(['mcp']))\n"
    )
    requests = greeting() + call(1, "memory_store", content="Closing takes long.")
    words = [str(forked_python), "-c", code]
    done = subprocess.run(words, input=requests.encode(), cwd=root, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Closing takes long." in git(root, "log", "-p", "--all")


def test_a_client_that_takes_nothing_does_not_hold_it(start: Callable[..., Any]) -> None:
    """With its output full and its input open, a signal still ends it, and no process is left behind (B5)."""
    server = start()
    flood = greeting() + "".join(request(number, "tools/list") for number in range(1, 200))
    writer = threading.Thread(target=say, args=(server, flood), daemon=True)
    writer.start()
    assert select.select([server.stdout], [], [], SECONDS)[0]  # it answers, and there is no room for all of that
    server.send_signal(signal.SIGTERM)
    assert server.wait(SECONDS) == 0


def test_killed_after_an_answer_it_has_lost_nothing(start: Callable[..., Any], root: Path) -> None:
    """What memory_store has acknowledged is there after kill -9, and the next server finds it (B5, faults 1)."""
    server = start()
    say(server, greeting())
    for number in range(1, 6):
        say(server, call(number, "memory_store", content=f"Kill proof fact {number}."))
        assert stored(server, number)
    server.kill()
    server.wait()
    with contextlib.closing(open_workspace(root, watch=False)) as again:
        kept = {item.content for item in again.store.select(Query(limit=20, types=frozenset({"semantic"})))}
    assert kept == {f"Kill proof fact {number}." for number in range(1, 6)}


def test_two_servers_and_the_command_line_share_a_workspace(
    start: Callable[..., Any], root: Path, forked: Path
) -> None:
    """Two clients store at once while a person does; each finds what the others said, and nothing is lost (B5)."""
    servers = [start(), start()]
    for server in servers:
        say(server, greeting())
    for which, server in enumerate(servers):
        say(server, *(call(n, "memory_store", content=f"Server {which} says thing {n}.") for n in range(1, 6)))
    remember = [str(forked), "remember", "A person says something."]
    assert subprocess.run(remember, cwd=root, capture_output=True).returncode == 0
    for server in servers:
        assert stored(server, *range(1, 6))
    for server in servers:
        say(server, call(9, "memory_list", limit=50))
        reply = json.dumps(receive(server, 9))
        expected = [f"Server {which} says thing {n}." for which in (0, 1) for n in range(1, 6)]
        assert [text for text in (*expected, "A person says something.") if text not in reply] == []


# -- which workspace, which tools --------------------------------------------------------------------------------
def test_a_workspace_that_was_named_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No client is given another memory than the one somebody named (faults 13)."""
    assert run(["-C", str(tmp_path), "mcp"]) == 1
    assert "memfs init" in capsys.readouterr().err
    monkeypatch.setenv("MEMFS_WORKSPACE", str(tmp_path / "none"))
    assert run(["mcp"]) == 1
    printed = capsys.readouterr()
    assert "MEMFS_WORKSPACE names it" in printed.err
    assert printed.out == ""


def test_without_a_workspace_the_users_own_is_served(
    start: Callable[..., Any], tmp_path: Path, own_world: Path
) -> None:
    """An agent that works outside any workspace has a memory too (B5)."""
    server = start(cwd=tmp_path)
    say(server, greeting(), call(1, "memory_store", content="I am at home."))
    assert stored(server, 1)
    assert list((own_world / ".local/share/memfs/ContextMemory/memories/semantic").rglob("i-am-at-home-*.yaml"))


def test_without_a_workspace_private_memory_of_the_project_is_served(start: Callable[..., Any], tmp_path: Path) -> None:
    """Where hooks keep a project's sessions and it has no other memory, agents ask and teach that one (C6, D1)."""
    project = tmp_path / "plain"
    project.mkdir()
    place = find_place(str(project), {})
    server = start(cwd=project)
    say(server, greeting(), call(1, "memory_store", content="Tests need a tmpfs."))
    assert stored(server, 1)
    assert list((place.root / "ContextMemory/memories/semantic").rglob("tests-need-a-tmpfs-*.yaml"))
    assert list(project.iterdir()) == []


def test_only_the_tools_asked_for_are_offered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that only reads has no tool that writes, whatever else is asked for (B5)."""
    served: list[MemoryServer] = []
    monkeypatch.setattr("memfs.doors.mcp.server.serve", served.append)
    assert run(["-C", str(root), "mcp", "--read-only", "--tools", "search,store"]) == 0

    async def offered() -> list[str]:
        async with Client(served[0].protocol) as client:
            with pytest.raises(MCPError, match="there is no tool 'memory_store'"):
                await client.call_tool("memory_store", {"content": "Not to be kept."})
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(offered()) == ["memory_search"]
    served[0].close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tools", "remember"], "there is no tool"),
        (["--tools", "store", "--read-only"], "no tool is left"),
    ],
)
def test_wrong_options_are_refused_at_once(options: list[str], message: str, root: Path, capsys: Any) -> None:
    """What cannot be served is said before anything is (B5)."""
    assert run(["-C", str(root), "mcp", *options]) in (1, 2)
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""

"""The Anthropic memory tool over a workspace: versioned, shared, safe, and driven by the SDK's own runner."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.lib.tools import ToolError

from kit.faults import DISK_FULL
from memfs import MemoryItem, open_workspace
from memfs.doors.anthropic import AsyncMemfsMemoryTool, MemfsMemoryTool
from memfs.errors import ExtraMissing
from memfs.fs import io
from memfs.model import Query, RecordedConflict
from memfs.workspace import Workspace

Call = Callable[..., Any]
NOTE = "/memories/notes/db.md"


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """A new workspace."""
    return opened()


@pytest.fixture
def tool(workspace: Workspace) -> Iterator[MemfsMemoryTool]:
    """The tool over it."""
    with MemfsMemoryTool(workspace=workspace, agent="claude", session="s1") as made:
        yield made


@pytest.fixture
def call(tool: MemfsMemoryTool) -> Call:
    """Give the tool a command: ``call("view", path="/memories")``."""
    return lambda name, **rest: tool.call({"command": name, **rest})


def refusal(call: Call, name: str, **rest: Any) -> str:
    """What a command is refused with."""
    with pytest.raises(ToolError) as refused:
        call(name, **rest)
    return str(refused.value.content)


def test_the_tool_is_what_the_sdk_declares(tool: MemfsMemoryTool) -> None:
    """B5: the runner announces it to the model as the memory tool."""
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    cached = MemfsMemoryTool(workspace=tool._facade.workspace, cache_control={"type": "ephemeral"})
    assert cached.to_dict()["cache_control"] == {"type": "ephemeral"}


def test_without_the_sdk_the_door_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """B5: a door that lacks its extra names it."""
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.setitem(sys.modules, "anthropic.lib.tools", None)
    monkeypatch.delitem(sys.modules, "memfs.doors.anthropic")
    with pytest.raises(ExtraMissing, match="gitmemfs\\[anthropic\\]"):
        import_module("memfs.doors.anthropic")


def test_a_full_disk_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    """Faults: where the disk takes no more, the model gets an error, and the file is as it was."""
    with MemfsMemoryTool(tmp_path) as tool:
        tool.call({"command": "create", "path": "/memories/a.md", "file_text": "one\n"})

        def full(operation: str, _: str) -> None:
            if operation == "write":
                raise OSError(DISK_FULL, "No space left on device")

        edit = {"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "two"}
        before = io.set_hook(full)
        try:
            with pytest.raises(ToolError, match=r"/memories/a\.md: write failed: No space left"):
                tool.call(edit)
        finally:
            io.set_hook(before)
        assert getattr(tool._find("a.md"), "content", None) == "one\n"
        assert "snippet" in str(tool.call(edit))


def test_a_file_is_a_note_that_every_other_door_finds(call: Call, workspace: Workspace) -> None:
    """B5: what the model writes is an item with its path, its origin and an agent's trust, and recall finds it."""
    call("create", path=NOTE, file_text="The database listens on port 6543.\n")
    hit = workspace.recaller.search("which port does the database listen on").hits[0].item
    assert (hit.type, hit.title, hit.trust) == ("note", "notes/db.md", "agent")
    assert (hit.content, hit.origin.agent, hit.origin.session, hit.origin.tool) == (
        "The database listens on port 6543.\n",
        "claude",
        "s1",
        "memory",
    )


def test_notes_of_people_are_files_for_the_model(call: Call, workspace: Workspace) -> None:
    """B5: a note that a person wrote is under its title, or its id where that is not a path, and can be edited."""
    workspace.store.put(MemoryItem("Ask Ada.\n", "note", title="team/who.md", id="by-hand"))
    workspace.store.put(MemoryItem("No path.", "note", title="../up", id="odd-title"))
    listing = call("view", path="/memories")
    assert "9B\t/memories/team/who.md" in listing
    assert "8B\t/memories/odd-title" in listing
    call("str_replace", path="/memories/team/who.md", old_str="Ada", new_str="Grace")
    edited = workspace.store.get("by-hand")
    assert edited is not None
    assert (edited.content, edited.trust) == ("Ask Grace.\n", "agent")
    assert refusal(call, "create", path="/memories/team/who.md", file_text="x") == (
        "File /memories/team/who.md already exists"
    )
    call("rename", old_path="/memories/team", new_path="/memories/people")
    assert call("view", path="/memories/people/who.md").endswith("     1\tAsk Grace.\n     2\t")


def test_a_title_changed_by_hand_moves_the_file(call: Call, workspace: Workspace) -> None:
    """B5: the title is the path; the old path is free again, and both files are kept apart."""
    call("create", path="/memories/a.md", file_text="first")
    item = workspace.store.get(workspace.recaller.search("first").hits[0].item.id)
    assert item is not None
    workspace.store.put(item.replace(title="moved.md"))
    call("create", path="/memories/a.md", file_text="second")
    assert call("view", path="/memories/a.md").endswith("\tsecond")
    assert call("view", path="/memories/moved.md").endswith("\tfirst")
    call("delete", path="/memories/a.md")
    call("rename", old_path="/memories/moved.md", new_path="/memories/a.md")
    assert call("view", path="/memories/a.md").endswith("\tfirst")


EXACT = [
    "",
    "\n",
    "a",
    "a\r\nb\r\n",
    " lead\n\ttab \n\n\n",
    "---\nkey: value\n...\n",
    "# x: y\n'\"\\",
    "ä\u00a0😀\u200b\n",
]


@pytest.mark.parametrize(
    "text", [*EXACT, "\x1b[31mred\x07\x7f\n", "- a\n- b: {c}\n", "null", "| >\n  x", "x\u2028y\x85z"]
)
def test_every_text_is_kept_to_the_byte(text: str, tool: MemfsMemoryTool, call: Call) -> None:
    """B5: line ends, blanks and control characters stay as they are."""
    call("create", path="/memories/a", file_text=text)
    assert getattr(tool._find("a"), "content", None) == text
    call("rename", old_path="/memories/a", new_path="/memories/b")
    assert getattr(tool._find("b"), "content", None) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\0b", "not valid Unicode: a NUL character"),
        ("a\ud800b", "not valid Unicode: lone surrogate U+D800"),
        ("a\u202eb", "hidden characters U+202E"),
        ("x" * 1_100_000, "limit 1048576"),
    ],
)
def test_what_no_file_may_hold_is_refused_in_words(text: str, message: str, call: Call) -> None:
    """B5: the model learns what is wrong with its text; nothing is stored."""
    assert message in refusal(call, "create", path="/memories/a", file_text=text)
    assert call("view", path="/memories").count("\n") == 1


def test_secrets_are_refused_by_the_name_of_the_rule(call: Call, tmp_path: Path) -> None:
    """S1: a key is neither stored nor repeated to the model, whatever command brings it."""
    key = "AKIA" + "Q7RXW2BZ4LMN5TVK"
    call("create", path="/memories/a.md", file_text="region: eu\n")
    for name, rest in (
        ("create", {"path": "/memories/b.md", "file_text": f"key {key}"}),
        ("str_replace", {"path": "/memories/a.md", "old_str": "eu", "new_str": key}),
        ("insert", {"path": "/memories/a.md", "insert_line": 1, "insert_text": key}),
    ):
        message = refusal(call, name, **rest)
        assert "aws" in message.lower()
        assert key not in message
    assert not any(key.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


HOSTILE = [
    ("/etc/passwd", "Path must start with /memories, got: /etc/passwd"),
    ("/memoriesevil/a", "Path must start with /memories, got: /memoriesevil/a"),
    ("", "Path must start with /memories, got: "),
    ("/memories/../../etc/passwd", "Path /memories/../../etc/passwd would escape /memories directory"),
    ("/memories/a/../../b", "Path /memories/a/../../b would escape /memories directory"),
    ("/../memories/a", "Path must start with /memories, got: /../memories/a"),
    ("/memories/" + "x" * 301, "characters is too long"),
    ("/memories/" + "ä" * 150, "is too long"),
    ("/memories/" + "x" * 100_000, "Path /memories/xxxxx"),
    ("/memories/a\nb", "holds a control character"),
    ("/memories/a\0b", "holds a control character"),
    ("/memories/a\ud800", "holds a control character"),
]


@pytest.mark.parametrize(("path", "message"), HOSTILE)
def test_no_argument_leads_out(path: str, message: str, call: Call, workspace: Workspace) -> None:
    """Faults row 13: every path of every command is checked; nothing outside is read or made."""
    call("create", path="/memories/there.md", file_text="x")
    before = sorted(workspace.root.parent.rglob("*"))
    assert message in refusal(call, "view", path=path)
    assert message in refusal(call, "create", path=path, file_text="x")
    assert message in refusal(call, "str_replace", path=path, old_str="x", new_str="y")
    assert message in refusal(call, "insert", path=path, insert_line=0, insert_text="y")
    assert message in refusal(call, "delete", path=path)
    assert message in refusal(call, "rename", old_path=path, new_path="/memories/new.md")
    assert message in refusal(call, "rename", old_path="/memories/there.md", new_path=path)
    assert sorted(workspace.root.parent.rglob("*")) == before


def test_encoded_paths_and_links_are_plain_names(call: Call, workspace: Workspace, tmp_path: Path) -> None:
    """Faults row 13: what looks encoded is a name like any other, and a planted link is no way out."""
    call("create", path="/memories/%2e%2e/%2fetc.md", file_text="x")
    assert "/memories/%2e%2e/%2fetc.md" in call("view", path="/memories")
    secret = tmp_path / "secret.yaml"
    secret.write_text("title: leak.md\ncontent: outside\n")
    folder = next((workspace.root / "ContextMemory/memories/note").iterdir())
    (folder / "leak.yaml").symlink_to(secret)
    assert "leak" not in call("view", path="/memories")
    assert "does not exist" in refusal(call, "view", path="/memories/leak.md")


@pytest.mark.parametrize(
    ("name", "rest", "message"),
    [
        ("create", {"path": "/memories/a"}, "Missing required parameter `file_text`"),
        ("create", {"file_text": "a"}, "Missing required parameter `path`"),
        ("view", {"path": 5}, "Missing required parameter `path`"),
        ("view", {"path": "/memories", "view_range": ["a", "b"]}, "Invalid `view_range` parameter"),
        ("insert", {"path": "/memories/a", "insert_text": "x"}, "Invalid `insert_line` parameter"),
        ("insert", {"path": "/memories/a", "insert_line": "x", "insert_text": "x"}, "Invalid `insert_line` parameter"),
        ("rename", {"old_path": "/memories/a"}, "Missing required parameter `new_path`"),
    ],
)
def test_parameters_that_are_missing_or_odd_are_named(
    name: str, rest: dict[str, Any], message: str, call: Call
) -> None:
    """B5: models leave parameters out; the error names which."""
    assert message in refusal(call, name, **rest)


def test_as_many_lines_as_the_sdk_shows_and_no_more(call: Call) -> None:
    """B5: a file of more than 999,999 lines is not shown."""
    call("create", path="/memories/long", file_text="\n" * 999_999 + "end")
    assert refusal(call, "view", path="/memories/long") == (
        "File /memories/long exceeds maximum line limit of 999,999 lines."
    )
    many = refusal(call, "str_replace", path="/memories/long", old_str="\n", new_str="")
    assert many.endswith("999, 1000, .... Please ensure it is unique")


def test_who_is_quicker_keeps_the_destination(
    call: Call, tool: MemfsMemoryTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: another makes the destination while a file moves there: both files stay, and the error says why."""
    call("create", path="/memories/a.md", file_text="mine")
    move = MemfsMemoryTool._move

    def late(self: MemfsMemoryTool, *given: Any) -> None:
        theirs = MemfsMemoryTool(workspace=tool._facade.workspace)
        theirs.call({"command": "create", "path": "/memories/b.md", "file_text": "theirs"})
        move(self, *given)

    monkeypatch.setattr(MemfsMemoryTool, "_move", late)
    message = refusal(call, "rename", old_path="/memories/a.md", new_path="/memories/b.md")
    assert message == "The destination /memories/b.md already exists"
    assert call("view", path="/memories/a.md").endswith("\tmine")
    assert call("view", path="/memories/b.md").endswith("\ttheirs")


def test_folders_are_apart(workspace: Workspace) -> None:
    """B5: with ``folder`` each user has a tree of their own, and clearing one leaves the other."""
    one, two = (MemfsMemoryTool(folder=name, workspace=workspace) for name in ("users/ada", "users/bob"))
    one.call({"command": "create", "path": "/memories/a.md", "file_text": "of Ada"})
    two.call({"command": "create", "path": "/memories/a.md", "file_text": "of Bob"})
    two.call({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/../memories/b/c.md"})
    assert one.clear_all_memory() == "All memory cleared"
    whole = MemfsMemoryTool(workspace=workspace).call({"command": "view", "path": "/memories/users"})
    assert [row.partition("\t")[2] for row in str(whole).splitlines()[2:]] == [
        "/memories/users/bob/",
        "/memories/users/bob/b/",
    ]
    mine = two.call({"command": "view", "path": "/memories"})
    assert [row.partition("\t")[2] for row in str(mine).splitlines()[2:]] == ["/memories/b/", "/memories/b/c.md"]


def test_an_invalid_file_is_reported_and_not_overwritten(call: Call, workspace: Workspace) -> None:
    """S5: a person's broken edit is named to the model, and stays as the person left it."""
    call("create", path="/memories/a.md", file_text="good")
    file = next((workspace.root / "ContextMemory/memories/note").rglob("*.yaml"))
    file.write_text("title: a.md\ncontent: [unclosed\n")
    assert "/memories/a.md: " in refusal(call, "view", path="/memories/a.md")
    assert "/memories/a.md: " in refusal(call, "str_replace", path="/memories/a.md", old_str="good", new_str="x")
    assert file.read_text() == "title: a.md\ncontent: [unclosed\n"


def test_a_persons_edit_is_what_the_model_sees(call: Call, workspace: Workspace) -> None:
    """A person may correct the file in between; the model goes on from that."""
    call("create", path="/memories/a.md", file_text="port 1\n")
    file = next((workspace.root / "ContextMemory/memories/note").rglob("*.yaml"))
    file.write_text(file.read_text().replace("port 1", "port 2"))
    assert "did not appear verbatim" in refusal(call, "str_replace", path="/memories/a.md", old_str="1", new_str="3")
    call("str_replace", path="/memories/a.md", old_str="port 2", new_str="port 3")
    assert call("view", path="/memories/a.md").endswith("     1\tport 3\n     2\t")


def test_history_keeps_what_was_changed_moved_and_deleted(tmp_path: Path, git: Callable[..., str]) -> None:
    """B5: each edit is in git with the agent and the door; a folder goes in one commit."""
    with MemfsMemoryTool(tmp_path, agent="claude", session="s7") as tool:
        workspace = tool._facade.workspace
        for name in ("a", "b"):
            tool.call({"command": "create", "path": f"/memories/d/{name}", "file_text": f"text {name}"})
        workspace.store.flush()
        tool.call({"command": "str_replace", "path": "/memories/d/a", "old_str": "text", "new_str": "words"})
        workspace.store.flush()
        before = [page.id for page in tool._below("d")]
        tool.call({"command": "rename", "old_path": "/memories/d", "new_path": "/memories/e"})
        after = [workspace.store.get(page.id) for page in tool._below("e")]
        assert [item.metadata["moved_from"] for item in after if item is not None] == before
        tool.call({"command": "delete", "path": "/memories/e"})
    log = git(tmp_path, "log", "--format=%an|%s|%(trailers:key=Memfs-Session,key=Memfs-Source,separator=%x20)")
    lines = log.splitlines()
    assert lines[0].split("|")[1:] == ["Remove e", "Memfs-Session: s7 Memfs-Source: anthropic"]
    assert [line.split("|")[1] for line in lines[:3]] == ["Remove e", "Move d to e", "Change d/a"]
    assert lines[2].startswith("claude|")
    assert "words a" in git(tmp_path, "log", "-p")


RACE = """
import sys
from anthropic.lib.tools import ToolError
from memfs.doors.anthropic import MemfsMemoryTool
folder, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
tool = MemfsMemoryTool(folder)
made = 0
for number in range(count):
    tool.call({"command": "insert", "path": "/memories/log.md", "insert_line": 0, "insert_text": f"{me} {number}"})
    try:
        tool.call({"command": "create", "path": f"/memories/one/{number}", "file_text": me})
        made += 1
    except ToolError as error:
        assert str(error.content) == f"File /memories/one/{number} already exists"
print(made)
tool.close()
"""


def test_two_processes_lose_no_edit(tmp_path: Path, scale: Callable[[int, int], int], forked_python: Path) -> None:
    """B5: edits of one file by two processes at once are all there; of two that create a file one gets an error."""
    with MemfsMemoryTool(tmp_path) as tool:
        tool.call({"command": "create", "path": "/memories/log.md", "file_text": ""})
    count = scale(4, 40)
    start = [str(forked_python), "-c", RACE, str(tmp_path)]
    running = [subprocess.Popen([*start, me, str(count)], stdout=subprocess.PIPE, text=True) for me in ("one", "two")]
    outputs = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sum(map(int, outputs)) == count
    with open_workspace(tmp_path, watch=False) as workspace:
        pages = {item.title: item.content for item in workspace.list(types=["note"])}
        lines = pages["log.md"].split()
        assert sorted(pages.get(f"one/{number}", "") for number in range(count)) <= ["two"] * count
    assert sorted(zip(lines[::2], map(int, lines[1::2]), strict=True)) == sorted(
        (me, number) for me in ("one", "two") for number in range(count)
    )


KILLED = """
import os, signal, sys
from memfs.doors.anthropic import MemfsMemoryTool
tool = MemfsMemoryTool(sys.argv[1])
print(tool.call({"command": "create", "path": "/memories/a.md", "file_text": "kept\\n"}), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_acknowledged_to_the_model_survives_a_kill(tmp_path: Path, forked_python: Path) -> None:
    """Faults: kill -9 right after the answer; the file is there, and in git after the next write."""
    open_workspace(tmp_path, create=True, watch=False).close()
    done = subprocess.run([str(forked_python), "-c", KILLED, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "File created successfully at: /memories/a.md\n")
    with MemfsMemoryTool(tmp_path) as tool:
        assert tool.call({"command": "view", "path": "/memories/a.md"}) == (
            "Here's the content of /memories/a.md with line numbers:\n     1\tkept\n     2\t"
        )


def test_the_async_tool_does_the_same(workspace: Workspace) -> None:
    """B5: every command awaits, errors included."""

    async def run() -> list[object]:
        async with AsyncMemfsMemoryTool(workspace=workspace, folder="x") as tool:
            assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
            answers: list[object] = [
                await tool.call({"command": "create", "path": "/memories/a", "file_text": "one\n"}),
                await tool.call({"command": "str_replace", "path": "/memories/a", "old_str": "one", "new_str": "two"}),
                await tool.call({"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "top"}),
                await tool.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}),
                await tool.call({"command": "view", "path": "/memories/b"}),
                await tool.call({"command": "delete", "path": "/memories/b"}),
                await tool.clear_all_memory(),
            ]
            with pytest.raises(ToolError, match="The path /memories/b does not exist"):
                await tool.call({"command": "view", "path": "/memories/b"})
            return answers

    assert asyncio.run(run())[-3:] == [
        "Here's the content of /memories/b with line numbers:\n     1\ttop\n     2\ttwo\n     3\t",
        "Successfully deleted /memories/b",
        "All memory cleared",
    ]


SCRIPT: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/tastes.md", "file_text": "Ada likes tea.\n"},
    {"command": "view", "path": "/memories/none.md"},
]


class Model(BaseHTTPRequestHandler):
    """A model that asks for one command after the other, and remembers what it was answered."""

    answered: list[Any]

    def do_POST(self) -> None:
        """One turn."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        latest = asked["messages"][-1]["content"]
        self.answered.extend(latest if isinstance(latest, list) else ())
        turn = len(self.answered)
        content: dict[str, Any] = {"type": "text", "text": "Done."}
        if turn < len(SCRIPT):
            content = {"type": "tool_use", "id": f"call{turn}", "name": "memory", "input": SCRIPT[turn]}
        body = json.dumps(
            {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [content]}
            | {"stop_reason": "tool_use" if turn < len(SCRIPT) else "end_turn", "stop_sequence": None}
            | {"usage": {"input_tokens": 1, "output_tokens": 1}}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def test_the_sdks_runner_drives_it_over_http(tool: MemfsMemoryTool) -> None:
    """B5: a client of the SDK, a server that plays the model: results and refusals reach the model as they should."""
    answered: list[Any] = []
    server = HTTPServer(("127.0.0.1", 0), type("Played", (Model,), {"answered": answered}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        with anthropic.Anthropic(api_key="none", base_url=address, max_retries=0) as client:
            last = client.beta.messages.tool_runner(
                model="m",
                max_tokens=10,
                max_iterations=6,
                messages=[{"role": "user", "content": "Remember: I like tea."}],
                tools=[tool],
            ).until_done()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert last.content[0].type == "text"
    head = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert [(one.get("is_error", False), one["content"]) for one in answered] == [
        (False, f"{head}\n4K\t/memories"),
        (False, "File created successfully at: /memories/tastes.md"),
        (True, "The path /memories/none.md does not exist. Please provide a valid path."),
    ]


def test_a_page_that_a_merge_left_open_says_so(workspace: Workspace, call: Call) -> None:
    """What is shown of an undecided page names the value that was not kept, below the page's lines (B3)."""
    call("create", path=NOTE, file_text="Port 8080")
    (item,) = workspace.store.select(Query())
    conflict = RecordedConflict(field="content", kept="Port 8080", lost="Port 9090", by="bo")
    workspace.store.put(item.replace(conflicts=(conflict,)))
    assert call("view", path=NOTE).endswith(
        '1\tPort 8080\n\nOf this file, content is undecided: a merge left another value, "Port 9090" by bo.'
    )
    call("str_replace", path=NOTE, old_str="8080", new_str="7070")
    assert "undecided" not in call("view", path=NOTE)

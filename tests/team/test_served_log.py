"""The record of what was handed out: complete, private, bounded, and never in the way of an answer."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memfs.doors.anthropic import MemfsMemoryTool
from memfs.doors.langgraph.store import MemfsStore
from memfs.errors import LockTimeout
from memfs.facades.memory_context import MemoryContext, MultiLayeredMemorySystem
from memfs.fs import append_log, io
from memfs.model import MemoryItem, Origin, Query
from memfs.model.episode import StateSnapshot
from memfs.store.access_log import FOLDER, ServedLog, not_handed_out, served_to
from memfs.workspace import Workspace
from tests.doors.agent_tool import tool

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """Three apples and a preference."""
    found = opened()
    for name in ("a", "b", "c"):
        found.store.put(MemoryItem(f"an apple called {name}", id=name))
    found.store.put(MemoryItem("Answer briefly", "preference", id="brief"))
    found.store.flush()
    return found


@pytest.fixture
def log(tmp_path: Path) -> ServedLog:
    """A record of its own."""
    return ServedLog(tmp_path / "git" / "memfs" / "key" / FOLDER)


@pytest.fixture(autouse=True)
def _git_folder(tmp_path: Path) -> None:
    (tmp_path / "git").mkdir()


# -- what is noted ------------------------------------------------------------------------------------------------
def test_a_recall_is_on_record(workspace: Workspace) -> None:
    """Each time items are handed out, it is known when, which, and to whom (B2)."""
    before = datetime.now(UTC)
    with served_to("a door", "scout", "s-1"):
        hits = workspace.recaller.search(Query(text="apple", limit=2)).hits
    (row,) = workspace.usage.served.find()
    assert row.ids == tuple(hit.item.id for hit in hits)
    assert (row.way, row.door, row.agent, row.session) == ("recall", "a door", "scout", "s-1")
    assert before <= row.time <= datetime.now(UTC)


def test_every_way_out_is_on_record(workspace: Workspace) -> None:
    """Recall, automatic delivery, an agent's tools, pages and entries are all distinguished (B2)."""
    scout = Origin(agent="scout")
    tool(workspace, "memory_search", scout, query="apple", limit=1)
    tool(workspace, "memory_context", scout)
    tool(workspace, "memory_get", scout, id="b")
    asyncio.run(workspace.recaller.search_async("apple"))
    pages = MemfsMemoryTool(workspace=workspace, agent="scribe", session="s-2")
    pages.call({"command": "create", "path": "/memories/plan.md", "file_text": "first the roof"})
    pages.call({"command": "view", "path": "/memories/plan.md"})
    entries = MemfsStore(workspace=workspace, agent="graph")
    entries.put(("users",), "ada", {"likes": "pears"})
    entries.get(("users",), "ada")
    entries.search(("users",), query="pears")
    rows = workspace.usage.served.find()
    found = [(row.way, row.door, row.agent) for row in reversed(rows)]
    assert found == [
        ("recall", "python", "scout"),
        ("automatic", "python", "scout"),
        ("read", "python", "scout"),
        ("recall", "python", ""),
        ("read", "anthropic", "scribe"),
        ("read", "langgraph", "graph"),
        ("recall", "langgraph", "graph"),
    ]
    assert [row.ids for row in reversed(rows)][1] == ("brief",)


def test_what_is_got_by_name_or_layer_is_on_record(workspace: Workspace) -> None:
    """The facades that hand out items without a question note them, too; what is not there is not noted (B2)."""
    layered = MultiLayeredMemorySystem(workspace=workspace)
    layered.retrieve("a")
    layered.retrieve("nothing")
    layered.get_items_by_layer("semantic")
    MemoryContext(workspace=workspace).get("b")
    rows = workspace.usage.served.find()[::-1]
    assert [(row.way, set(row.ids) & {"a", "b", "c"}) for row in rows] == [
        ("read", {"a"}),
        ("read", {"a", "b", "c"}),
        ("read", {"b"}),
    ]


def test_only_what_an_agent_is_given_is_on_record(workspace: Workspace) -> None:
    """What was found and had no room was not handed out (B2)."""
    for name in "defgh":
        workspace.store.put(MemoryItem(f"an apple called {name}, which is a long story about trees " * 5, id=name))
    given = workspace.sources.delivery.recall("apple", limit=8, max_tokens=500)
    (row,) = workspace.usage.served.find()
    assert 0 < len(given.ids) < 8
    assert row.ids == given.ids
    with not_handed_out():
        workspace.recaller.search("apple")
    assert len(workspace.usage.served.find()) == 1


def test_a_background_answer_goes_to_the_one_who_asked(workspace: Workspace) -> None:
    """A question that a thread answers is on record for the one who put it (B2)."""
    with served_to("a door", "scout", "s-1"):
        waiting = workspace.recaller.submit("apple")
    waiting.result()
    (row,) = workspace.usage.served.find()
    assert (row.door, row.agent) == ("a door", "scout")


def test_before_a_step_the_agent_of_the_situation_is_on_record(workspace: Workspace) -> None:
    """Automatic delivery names the agent and session that the situation names (B2)."""
    workspace.sources.delivery.automatic(StateSnapshot(agent="scout", session="s-3"))
    (row,) = workspace.usage.served.find(session="s-3")
    assert (row.way, row.agent, row.ids) == ("automatic", "scout", ("brief",))


def test_questions_stay_out_unless_the_settings_say_so(opened: Callable[..., Workspace], workspace: Workspace) -> None:
    """What was asked is nobody's business, unless a person wants it kept (B2)."""
    workspace.recaller.search("apple of my eye")
    workspace.usage.flush()
    files = list((workspace.repository.state / FOLDER).iterdir())
    assert b"my eye" not in b"".join(path.read_bytes() for path in files)
    recording = opened(workspace.root, served__questions=True)
    recording.recaller.search("apple of my eye")
    assert [row.question for row in recording.usage.served.find()] == ["apple of my eye", ""]


def test_a_repository_cannot_have_questions_kept(workspace: Workspace, opened: Callable[..., Workspace]) -> None:
    """A repository's own settings do not have questions written down where it is not trusted (faults row 41)."""
    (workspace.root / "memfs.toml").write_text("[served]\nquestions = true\n")
    assert opened(workspace.root).settings.served.questions is False


def test_it_can_be_switched_off(workspace: Workspace, opened: Callable[..., Workspace]) -> None:
    """Without ``served.log`` nothing is written down, and no folder is made (B2)."""
    quiet = opened(workspace.root, served__log=False)
    quiet.recaller.search("apple")
    quiet.usage.flush()
    assert not (quiet.repository.state / FOLDER).exists()


def test_a_server_names_its_door_and_its_client(workspace: Workspace) -> None:
    """What goes out by MCP is on record for the client and its session (B2, B5)."""
    mcp = pytest.importorskip("mcp")
    from memfs.doors.mcp import build_server

    async def ask() -> None:
        server = build_server(opener=lambda: workspace)
        async with mcp.Client(server.protocol) as client:
            await client.call_tool("memory_search", {"query": "apple"})
            await client.call_tool("memory_get", {"id": "b"})

    asyncio.run(ask())
    rows = workspace.usage.served.find()
    assert [(row.way, row.door) for row in rows] == [("read", "mcp"), ("recall", "mcp")]
    assert all(row.agent and row.session for row in rows)


# -- bounded and private ------------------------------------------------------------------------------------------
def test_only_this_user_may_read_it(log: ServedLog, tmp_path: Path) -> None:
    """The record is readable by its user alone (B2)."""
    log.note("recall", ["a"], NOON)
    folder = tmp_path / "git/memfs/key" / FOLDER
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_it_stays_within_its_size_and_age(tmp_path: Path) -> None:
    """Old lines go, and so do the oldest where there are too many (B2)."""
    folder = tmp_path / "git/memfs/key" / FOLDER
    log = ServedLog(folder, days=8, megabytes=2)
    for number in range(700):
        log.note("recall", [f"{number}-{'x' * 100}-{each}" for each in range(60)], NOON + timedelta(seconds=number))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3.2 * (1 << 20)
    rows = log.find(now=NOON)
    assert rows[0].ids[0].startswith("699-")
    assert not log.find([rows[-1].ids[0].replace(rows[-1].ids[0].split("-")[0], "0")], now=NOON)
    log.note("recall", ["late"], NOON + timedelta(days=2))
    log.note("recall", ["later"], NOON + timedelta(days=10, seconds=1))
    log.note("recall", ["last"], NOON + timedelta(days=10, seconds=2))
    assert [row.ids for row in log.find(now=NOON + timedelta(days=10, seconds=3))] == [("last",), ("later",)]
    assert len(list(folder.iterdir())) <= 3
    log.note("recall", ["alone"], NOON + timedelta(days=30))
    log.note("recall", ["now"], NOON + timedelta(days=39))
    log.note("recall", ["then"], NOON + timedelta(days=41))
    assert b"last" not in b"".join(path.read_bytes() for path in folder.iterdir()), "too old, though there is room"


def test_invalid_lines_are_passed_over(log: ServedLog, tmp_path: Path) -> None:
    """A line that was cut short, or that somebody wrote into the file, damages no other (B2)."""
    log.note("recall", ["a"], NOON)
    path = tmp_path / "git/memfs/key" / FOLDER / "log.jsonl"
    with path.open("ab") as file:
        file.write(b'\n{"at": "2026-03-01T12:00:00+00:00", "items": [["x"')
        file.write(b'\n[]\n{"at": 1, "items": []}\nnull\n{"at": "soon", "items": [["a", "b"]]}')
        file.write(b'\n{"at": "2026-03-01T12:00:00+00:00", "way": "helped", "items": []}\n\xff\xfe\n' + b"[" * 9000)
    log.note("recall", ["b"], NOON + timedelta(seconds=1))
    assert [row.ids for row in log.find(now=NOON)] == [("b",), ("a",)]


def test_find_filters(log: ServedLog) -> None:
    """By item in any letter case, by agent, by session and by time (B2)."""
    with served_to("cli", "scout", "s-1"):
        log.note("recall", ["Apple", "pear"], NOON)
    log.note("triggered", ["pear"], NOON + timedelta(hours=1), agent="coder", session="s-2")
    find = lambda *ids, **named: [row.way for row in log.find(ids, now=NOON, **named)]  # noqa: E731
    assert find("apple") == ["recall"]
    assert find("pear") == ["triggered", "recall"]
    assert find(agent="coder") == find(session="s-2") == find(since=NOON + timedelta(minutes=1)) == ["triggered"]
    assert find("plum") == []


# -- never in the way ---------------------------------------------------------------------------------------------
def test_an_answer_comes_though_nothing_can_be_noted(workspace: Workspace) -> None:
    """A full disk, or something else in the record's place, costs lines and never an answer (B2)."""

    def full(name: str, path: str) -> None:
        if FOLDER in path:
            raise OSError(errno.ENOSPC, "no space")

    def ask() -> None:
        assert len(workspace.recaller.search("apple").hits) == 3
        workspace.usage.flush()

    before = io.set_hook(full)
    try:
        ask()
    finally:
        io.set_hook(before)
    assert "served items were not recorded" in workspace.usage.served.problem
    (workspace.repository.state / FOLDER).mkdir(exist_ok=True)
    place = workspace.repository.state / FOLDER / "log.jsonl"
    os.mkfifo(place)
    ask()
    place.unlink()
    place.symlink_to(workspace.root / "victim")
    ask()
    assert not (workspace.root / "victim").exists()


def test_a_line_that_was_added_is_not_called_lost_because_older_ones_stay(
    log: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others add to the record, what is too old goes with a later line."""

    def busy(*_: object, **__: object) -> None:
        raise LockTimeout("another process holds this file")

    monkeypatch.setattr(append_log, "rewrite", busy)
    for days in (0, 200):
        log.note("recall", ["a"], NOON + timedelta(days=days))
    assert not log.problem
    monkeypatch.setattr(log, "_room", 1)
    log.note("recall", ["b"], NOON + timedelta(days=200))
    assert not log.problem


def test_a_repository_that_was_moved_away_is_not_made_again_for_the_record(log: ServedLog, tmp_path: Path) -> None:
    """Where the repository is gone, nothing is made in its place (B2)."""
    (tmp_path / "git").rmdir()
    log.note("recall", ["a"], NOON)
    assert not (tmp_path / "git").exists()
    assert "gone" in log.problem


def test_it_costs_next_to_nothing(log: ServedLog) -> None:
    """Noting ten items opens one file, writes one line, and waits for no disk (B2)."""
    ids = [f"item-{number}" for number in range(10)]
    log.note("recall", ids, NOON)
    done: list[str] = []
    io.set_hook(lambda name, path: done.append(name))
    log.note("recall", ids, NOON)
    io.set_hook(None)
    assert done == ["open", "stat", "write"]


_WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from memfs.store import access_log as module
from memfs.store.access_log import ServedLog
from tests.doors.agent_tool import tool
module._WAIT = 60.0  # on a busy machine the other may be stopped for longer with the file in its hands
log = ServedLog(Path(sys.argv[1]), megabytes=50)
for number in range(400):
    log.note("recall", [f"{sys.argv[2]}-{number}-{'x' * 60}-{each}" for each in range(60)], datetime.now(UTC))
print(log.problem)
"""


def test_processes_share_it(tmp_path: Path) -> None:
    """Two processes that write at once lose no line (B2)."""
    folder = tmp_path / "git/memfs/key" / FOLDER
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(folder), name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    assert [writer.communicate()[0].strip() for writer in writers] == ["", ""]
    rows = ServedLog(folder).find()
    assert len({row.ids[0] for row in rows}) == len(rows) == 800


# -- forgetting ---------------------------------------------------------------------------------------------------
def test_an_erase_takes_the_record_along(workspace: Workspace) -> None:
    """Neither an erased item's id nor a question that quotes it is in any file, half-written ones included (B6)."""
    workspace.recaller.search(Query(text="apple", limit=3))
    folder = workspace.repository.state / FOLDER
    log = ServedLog(folder, questions=True)
    log.note("recall", ["b"], datetime.now(UTC), question="is it an apple called a")
    (folder / ".log.jsonl.1.tmp").write_bytes((folder / "log.jsonl").read_bytes())
    workspace.eraser.erase("a")
    assert workspace.usage.served.find() == []
    assert list(folder.iterdir()) == []
    log.note("recall", ["b", "c"], datetime.now(UTC))
    assert [row.ids for row in log.find()] == [("b", "c")]


def test_a_record_of_an_earlier_version_is_read(log: ServedLog, tmp_path: Path) -> None:
    """Once the version of each item was beside its id."""
    log.note("recall", ["a"], NOON)
    with (tmp_path / "git/memfs/key" / FOLDER / "log.jsonl").open("ab") as file:
        file.write(b'\n{"at": "2026-03-01T12:00:01+00:00", "way": "read", "head": "c0", "items": [["b", "b10b"]]}\n')
    assert [row.ids for row in log.find(now=NOON)] == [("b",), ("a",)]

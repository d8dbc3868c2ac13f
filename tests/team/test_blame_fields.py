"""Blame by field: which commit, agent, session and tool taught what, however the item got here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs.errors import ContentError, HistoryUnavailable
from memfs.model import Link, MemoryItem, Origin
from memfs.store.plan import signed_by
from memfs.team.blame import LearnedFrom
from memfs.workspace import Workspace

ADA, SCOUT = Origin(agent="planner", session="s-1"), Origin(agent="scout", session="s-2", tool="browser")
FOLDER = "ContextMemory/memories/semantic"


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """A workspace in which nothing was said yet."""
    return opened()


def put(workspace: Workspace, by: Origin = ADA, *, waits: bool = False, source: str = "", **fields: Any) -> str:
    """Store or change the item x in somebody's name; return HEAD's commit."""
    there = workspace.store.get("x")
    item = there.replace(**fields) if there else MemoryItem(**{"content": "text"} | fields, id="x", origin=by)
    with signed_by(by):
        workspace.store.put(item, source=source)
    if not waits:
        workspace.store.flush()
    return workspace.repository.head_commit() or ""


def blame(workspace: Workspace, field: str = "", revision: str = "HEAD") -> dict[str, LearnedFrom]:
    """What x says by field and value."""
    return {f"{one.field}={one.value}": one for one in workspace.teams.blame.fields("x", field, revision)}


def test_each_field_names_its_commit_agent_session_door_and_tool(workspace: Workspace) -> None:
    """By field, dotted; of a list each element counts by itself (B2)."""
    first = put(workspace, title="A title", tags=("old",), metadata={"of": {"a": 1, "b": 2}})
    second = put(
        workspace,
        SCOUT,
        source="mcp",
        tags=("old", "new"),
        metadata={"of": {"a": 1, "b": 3}},
        links=(Link(to="y"),),
        origin=SCOUT,
    )
    found = blame(workspace)
    assert {name: one.commit for name, one in found.items() if not name.startswith(("updated", "created"))} == {
        "type=semantic": first,
        "title=A title": first,
        "content=text": first,
        "tags=old": first,
        "tags=new": second,
        "origin.agent=scout": second,
        "origin.session=s-2": second,
        "origin.tool=browser": second,
        "trust=human": first,
        "links={'to': 'y', 'relation': 'relates'}": second,
        "metadata.of.a=1": first,
        "metadata.of.b=3": second,
    }
    new = found["tags=new"]
    assert (new.agent, new.session, new.source, new.tool, new.author) == ("scout", "s-2", "mcp", "browser", "scout")
    assert new.subject == "Update: A title"
    assert new.time == workspace.history.log("x")[0].time
    assert list(blame(workspace, "metadata.of")) == ["metadata.of.a=1", "metadata.of.b=3"]


def test_through_merges_to_the_branch_that_taught_it(workspace: Workspace, git: Any) -> None:
    """A merge is nobody's teaching: each side's field names the commit of its branch (B2, B3)."""
    base = put(workspace, title="A title", importance=1.0, content="text")
    git(workspace.root, "switch", "-qc", "other")
    theirs = put(workspace, SCOUT, title="Their title")
    git(workspace.root, "switch", "-q", "main")
    ours = put(workspace, tags=("ours",))
    path = workspace.root / workspace.store.locate("x")
    mine = path.read_text()
    git(workspace.root, "merge", "-q", "--no-commit", "other", check=False)
    path.write_text(mine.replace("title: A title", "title: Their title") + "status: pending\n")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "Merge other")
    workspace.store.refresh()
    found = blame(workspace)
    merge = workspace.repository.head_commit()
    assert {
        name: found[name].commit for name in ("title=Their title", "tags=ours", "content=text", "status=pending")
    } == {
        "title=Their title": theirs,
        "tags=ours": ours,
        "content=text": base,
        "status=pending": merge,
    }
    assert found["title=Their title"].agent == "scout"


def test_through_a_change_of_type_and_a_move_by_hand(workspace: Workspace, git: Any) -> None:
    """The line goes on where the file came from, in whichever folder (B2)."""
    first = put(workspace, title="A title")
    moved = put(workspace, memory_type="procedural")
    root = workspace.root
    path = workspace.store.locate("x")
    (root / "ContextMemory/memories/procedural/own").mkdir()
    (root / path).rename(root / "ContextMemory/memories/procedural/own/x.yaml")
    workspace.store.refresh()
    workspace.store.flush(adopt=True)
    found = blame(workspace)
    assert (found["title=A title"].commit, found["type=procedural"].commit) == (first, moved)
    assert found["title=A title"].path.startswith(FOLDER)


def test_past_a_version_that_could_not_be_read(workspace: Workspace, git: Any) -> None:
    """Committed conflict markers between two good versions teach nothing (B2, faults row 43)."""
    first = put(workspace, title="A title")
    path = workspace.root / workspace.store.locate("x")
    good = path.read_text()
    path.write_text(f"<<<<<<< ours\n{good}=======\n>>>>>>> theirs\n")
    git(workspace.root, "commit", "-qam", "Oops")
    path.write_text(good + "status: pending\n")
    git(workspace.root, "commit", "-qam", "Mend")
    workspace.store.refresh()
    found = blame(workspace)
    assert found["title=A title"].commit == first
    assert found["status=pending"].subject == "Mend"
    with pytest.raises(ContentError):
        blame(workspace, revision="HEAD~1")


def test_at_a_revision_or_a_date(workspace: Workspace) -> None:
    """The version of any revision, also of an item that is gone (B1, B2)."""
    first = put(workspace, title="One")
    second = put(workspace, title="Two")
    workspace.store.delete("x")
    workspace.store.flush()
    assert blame(workspace, revision=first)["title=One"].commit == first
    assert blame(workspace, revision="HEAD~1")["title=Two"].commit == second
    with pytest.raises(HistoryUnavailable):
        blame(workspace)
    with pytest.raises(HistoryUnavailable):
        blame(workspace, revision="HEAD")


def test_in_a_commit_of_several_the_item_says_whose_it_is(workspace: Workspace) -> None:
    """A batch names several writers; each item is of one of them (B2)."""
    with workspace.store.batch("Import", source="import") as batch:
        batch.put(MemoryItem("text", id="x", origin=SCOUT))
        batch.put(MemoryItem("text", id="y", origin=ADA))
    workspace.store.flush()
    one = blame(workspace)["content=text"]
    assert (one.agent, one.session, one.source, one.tool) == ("scout", "s-2", "import", "browser")


def test_a_writer_who_is_named_by_nobody_stays_unnamed(workspace: Workspace) -> None:
    """A tool is named for what its own agent wrote; the item's agent did not write what a batch of others did (B2)."""
    put(workspace, SCOUT)
    put(workspace, ADA, tags=("edited",))
    with workspace.store.batch("Tag all", source="import") as batch:
        batch.put(workspace.store.read(workspace.store.locate("x")).replace(tags=("edited", "all")))
        batch.put(MemoryItem("text", id="y", origin=ADA))
        batch.put(MemoryItem("text", id="z", origin=Origin(agent="coder")))
    workspace.store.flush()
    found = blame(workspace)
    assert {name: (found[name].agent, found[name].tool) for name in ("content=text", "tags=edited", "tags=all")} == {
        "content=text": ("scout", "browser"),
        "tags=edited": ("planner", ""),
        "tags=all": ("", ""),
    }


def test_documents_have_fields_too(workspace: Workspace) -> None:
    """A state document is blamed by its path; a file without fields is refused with the way out (B2)."""
    states = workspace.states
    states.iterations.start()
    with signed_by(SCOUT):
        states.recorder.hypothesis({"id": "h", "state": "an idea", "wins": 1})
    workspace.store.flush()
    path = "ContextMemory/iterations/iteration_001/hypotheses/h.json"
    found = {one.field: one for one in workspace.teams.blame.fields(path)}
    assert (found["wins"].value, found["wins"].agent) == (1, "scout")
    with pytest.raises(ContentError) as refused:
        workspace.teams.blame.fields("memfs.toml")
    assert "git blame" in str(refused.value.hint)


def test_unknown_items_and_fields_are_reported(workspace: Workspace) -> None:
    """A field that is not there names those that are (B2)."""
    put(workspace, title="A title")
    with pytest.raises(ContentError) as refused:
        blame(workspace, "titel")
    assert "title" in str(refused.value.hint)
    with pytest.raises(HistoryUnavailable):
        workspace.teams.blame.fields("nobody")


def test_what_is_in_no_commit_is_nobodys(workspace: Workspace) -> None:
    """A write that waits and an edit by hand are not shown; an item that was never committed says what commits it."""
    first = put(workspace, title="A title")
    put(workspace, SCOUT, waits=True, tags=("waits",))
    path = workspace.root / workspace.store.locate("x")
    path.write_text(path.read_text() + "status: pending\n")
    assert {one.commit for one in blame(workspace).values()} == {first}
    workspace.store.put(MemoryItem("text", id="new"))
    with pytest.raises(HistoryUnavailable) as refused:
        workspace.teams.blame.fields("new")
    assert "memfs commit" in str(refused.value.hint)

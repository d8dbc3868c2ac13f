"""Whose words: what an agent puts in place of a person's text is the agent's, in trust, in history and in an undo."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memfs.facades.memory_context import MemoryContext
from memfs.format.codec import Codec
from memfs.format.field_merge import FieldMerge
from memfs.format.file_merge import FileMerger, vouched
from memfs.format.schema import Schemas
from memfs.model import MemoryItem, Origin
from memfs.model.kinds import KindTable
from memfs.store.plan import signed_by
from memfs.team.undo import RevertSelection
from memfs.workspace import Workspace

MOLE, CODER = Origin(agent="mole", session="bad-1"), Origin(agent="coder", session="good-1")
PATH = "ContextMemory/memories/semantic/2026-03/x.yaml"


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """A workspace with an item that a person wrote, and one of an agent."""
    made = opened()
    made.store.put(MemoryItem("never on Fridays", id="deploy", title="Deploying"))
    made.store.put(MemoryItem("the port is 8080", id="port", origin=MOLE, trust="agent"))
    made.store.flush()
    return made


def held(workspace: Workspace, name: str) -> MemoryItem:
    """An item that is there."""
    item = workspace.store.get(name)
    assert item is not None
    return item


# -- writes -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("changes", [{"content": "on Fridays, too"}, {"title": "Deploy at will"}])
def test_words_that_an_agent_replaces_are_vouched_for_by_nobody(workspace: Workspace, changes: Any) -> None:
    """An agent signs the write, or is named by the item in place of the person: its trust is an agent's (row 18)."""
    before = held(workspace, "deploy")
    with signed_by(MOLE):
        assert workspace.store.put(before.replace(**changes)).trust == "agent"
    workspace.store.put(before)
    assert workspace.store.put(before.replace(origin=MOLE, **changes)).trust == "agent"


def test_an_agent_raises_no_trust_and_lowers_none_by_a_tag(workspace: Workspace) -> None:
    """What it signs has the trust that it had, as long as its words are the same (row 18)."""
    with signed_by(CODER):
        assert workspace.store.put(held(workspace, "port").replace(trust="human")).trust == "agent"
        assert workspace.store.put(held(workspace, "deploy").replace(tags=("a",), importance=6.0)).trust == "human"


def test_a_person_may_vouch_for_new_words_of_an_agent(workspace: Workspace) -> None:
    """What is set on purpose is kept: other words, their writer, and who looked through them."""
    vouched = held(workspace, "deploy").replace(content="by the agent", origin=CODER, trust="reviewed")
    assert workspace.store.put(vouched).trust == "reviewed"


def test_a_program_that_changes_words_vouches_only_where_it_says_so(workspace: Workspace) -> None:
    """``MemoryContext.update`` takes no person's trust along to other words (row 18)."""
    with MemoryContext(workspace=workspace) as memory:
        memory.update("deploy", content="on Fridays, too")
        assert held(workspace, "deploy").trust == "agent"
        memory.update("deploy", content="as agreed", trust="reviewed")
        assert held(workspace, "deploy").trust == "reviewed"


@pytest.mark.parametrize("changes", [{"tags": ("x",)}, {"trust": "reviewed"}, None], ids=["tag", "review", "removal"])
def test_changing_an_agents_item_is_not_in_that_agents_name(workspace: Workspace, git: Any, changes: Any) -> None:
    """A tag, a review or a removal is committed as the person's, not in the name of the item's author (B2)."""
    if changes is None:
        workspace.store.delete("port")
    else:
        workspace.store.put(held(workspace, "port").replace(**changes))
    workspace.store.flush()
    assert "Memfs-Agent" not in git(workspace.root, "log", "-1", "--format=%B")
    assert git(workspace.root, "log", "-1", "--format=%an").strip() != "mole"


def test_a_new_origin_names_who_wrote(workspace: Workspace, git: Any) -> None:
    """A new origin is committed in its name, though the words are the same (B2)."""
    workspace.store.put(held(workspace, "deploy").replace(origin=CODER))
    workspace.store.flush()
    assert "Memfs-Agent: coder" in git(workspace.root, "log", "-1", "--format=%B")


# -- joining ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs", "trust"),
    [
        ("content: a\ntrust: reviewed\n", "content: b\ntrust: agent\n", "agent"),
        ("content: a\ntrust: reviewed\n", "content: a\ntrust: agent\ntags: [t]\n", "reviewed"),
        ("content: b\n", "content: a\ntrust: agent\ntags: [t]\n", "human"),
        ("content: a\ntitle: mine\n", "content: b\ntrust: agent\n", "agent"),
    ],
    ids=["reviewed before", "only tagged", "a person's", "of both"],
)
def test_a_joined_item_is_trusted_as_its_words_are(ours: str, theirs: str, trust: str, swapped: bool) -> None:
    """A review on one branch does not cover what was written on the other meanwhile (K4, row 18)."""
    base = b"content: a\ntrust: agent\n"
    sides = (theirs.encode(), ours.encode()) if swapped else (ours.encode(), theirs.encode())
    codec = Codec(Schemas(), KindTable())
    joined = FileMerger(codec).merge(PATH, base, *sides)
    assert joined.data is not None
    item = codec.read(joined.data, PATH, datetime(2026, 3, 1, tzinfo=UTC))
    assert item.trust == trust
    lost = [one.field for one in item.conflicts]
    assert lost == (["trust"] if trust == "agent" else [])


@pytest.mark.parametrize(("name", "words"), [("title", "Deploy at will"), ("data", {"condition": "always"})])
def test_a_title_and_data_are_words_too(name: str, words: Any) -> None:
    """Whatever a merge takes of them from an agent, the trust that comes along is the agent's (row 18)."""
    ours = {"content": "never on Fridays", "trust": "human"}
    theirs = {**ours, name: words, "trust": "agent"}
    assert vouched(FieldMerge(values={**theirs, "trust": "human"}), ours, theirs).values["trust"] == "agent"


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("before", "mine", "theirs", "by"),
    [
        ("", "content: b\nupdated: 2026-03-02\n", "content: c\nupdated: 2026-03-01\n{}", Origin()),
        ("agent", "content: b\nupdated: 2026-03-01\n", "content: c\nupdated: 2026-03-02\n{}", CODER),
        ("", "content: a\ntags: [t]\n", "content: c\n{}", CODER),
    ],
    ids=["a person's last", "an agent's last", "only tagged"],
)
def test_a_joined_item_names_the_author_of_its_words(
    before: str, mine: str, theirs: str, by: Origin, swapped: bool
) -> None:
    """Where two wrote the same field, no agent gets a person's words, and an agent's words keep its name."""
    older = "origin: {agent: coder, session: s0}\ntrust: agent\n" if before else ""
    newer = "origin: {agent: coder, session: good-1}\ntrust: agent\n"
    sides = [mine.encode(), theirs.format(newer).encode()]
    codec = Codec(Schemas(), KindTable())
    joined = FileMerger(codec).merge(PATH, f"content: a\n{older}".encode(), *(sides[::-1] if swapped else sides))
    assert joined.data is not None
    item = codec.read(joined.data, PATH, datetime(2026, 3, 1, tzinfo=UTC))
    assert item.origin == by
    assert not [one.field for one in item.conflicts if one.field.startswith("origin")]


# -- undoing ------------------------------------------------------------------------------------------------------
def test_an_undo_gives_no_persons_trust_to_what_another_agent_wrote(workspace: Workspace) -> None:
    """The title comes back, the other agent's text stays, and is still an agent's (B2, row 18)."""
    for by, changes in ((MOLE, {"title": "Deploy at will"}), (CODER, {"content": "on Mondays"})):
        with signed_by(by):
            workspace.store.put(held(workspace, "deploy").replace(**changes))
        workspace.store.flush()
    done = workspace.teams.undo.run(RevertSelection(agent="mole", session="bad-1"))
    item = held(workspace, "deploy")
    assert (item.title, item.content, item.trust) == ("Deploying", "on Mondays", "agent")
    assert done.conflicts == ()


def test_an_undo_brings_back_a_persons_trust_with_his_words(workspace: Workspace) -> None:
    """What somebody changed beside the words stays; the words are the person's again, and so is the trust (B2)."""
    with signed_by(MOLE):
        workspace.store.put(held(workspace, "deploy").replace(content="on Fridays"))
    workspace.store.put(held(workspace, "deploy").replace(tags=("ops",)))
    workspace.teams.undo.run(RevertSelection(session="bad-1"))
    item = held(workspace, "deploy")
    assert (item.content, item.trust, item.tags) == ("never on Fridays", "human", ("ops",))


def test_feedback_and_links_do_not_keep_what_is_taken_back(workspace: Workspace) -> None:
    """An item goes though others said it was bad; one that somebody reviewed or changed stays, and is named (B2)."""
    workspace.store.put(MemoryItem("open it to all", id="wall", origin=MOLE, trust="agent"))
    workspace.feedback.give("port", positive=False)
    workspace.store.put(held(workspace, "wall").replace(trust="reviewed"))
    done = workspace.teams.undo.run(RevertSelection(agent="mole"))
    assert workspace.store.get("port") is None
    assert held(workspace, "wall").content == "open it to all"
    assert [(one.id, one.undone) for one in done.conflicts] == [("wall", "removed")]


def test_what_an_undo_kept_is_not_taken_by_the_next(workspace: Workspace) -> None:
    """An item that came back with an edit of somebody else stays, though its origin is the agent (B2)."""
    workspace.store.put(held(workspace, "port").replace(status="checked"))
    with signed_by(MOLE):
        workspace.store.delete("port")
    for _ in range(2):
        workspace.teams.undo.run(RevertSelection(agent="mole"))
        assert held(workspace, "port").status == "checked"


def test_what_a_person_committed_at_once_is_taken_back(workspace: Workspace, git: Any) -> None:
    """Many items that one commit by hand brought go together (B2)."""
    folder = workspace.root / PATH.rpartition("/")[0]
    folder.mkdir(parents=True)
    for number in range(5):
        (folder / f"h{number}.yaml").write_text(f"content: by hand {number}\norigin:\n  agent: mole\ntrust: agent\n")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "by hand")
    done = workspace.teams.undo.run(RevertSelection(agent="mole"))
    assert sorted(one.id for one in done.files) == ["h0", "h1", "h2", "h3", "h4", "port"]

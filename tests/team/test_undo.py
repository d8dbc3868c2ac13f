"""Undo: exactly what one wrote goes, as one commit; what others wrote later stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.faults import Fault, Stopped, injected
from memfs.errors import Conflict, GitBusy, HistoryUnavailable, MemfsError, QueryInvalid
from memfs.model import MemoryItem, Origin
from memfs.model.item import RecordedConflict
from memfs.store.plan import signed_by
from memfs.team.undo import RevertSelection, Undone
from memfs.workspace import Workspace

GOOD, BAD = Origin(agent="planner", session="good-1"), Origin(agent="mole", session="bad-1")
Write = Callable[..., MemoryItem]


@pytest.fixture
def workspace(opened: Callable[..., Workspace]) -> Workspace:
    """A workspace in which nothing was said yet."""
    return opened()


@pytest.fixture
def write(workspace: Workspace) -> Write:
    """Store or change an item in somebody's name, as a commit of its own."""

    def call(item_id: str, by: Origin = GOOD, *, waits: bool = False, **changes: Any) -> MemoryItem:
        there = workspace.store.get(item_id)
        item = (
            there.replace(**changes)
            if there
            else MemoryItem(**{"content": item_id, "origin": by} | changes, id=item_id)
        )
        with signed_by(by):
            stored = workspace.store.put(item)
        if not waits:
            workspace.store.flush()
        return stored

    return call


def undo(workspace: Workspace, **chosen: Any) -> Undone:
    """Undo by the names of a selection."""
    run = {name: chosen.pop(name) for name in ("message", "dry_run", "by") if name in chosen}
    return workspace.teams.undo.run(RevertSelection(**chosen), **run)


def tree(workspace: Workspace) -> dict[str, str]:
    """Every file of the memory at HEAD."""
    return workspace.repository.tree("HEAD")


# -- a poisoned session -------------------------------------------------------------------------------------------
def test_a_session_is_taken_back_and_later_edits_stay(workspace: Workspace, write: Write, git: Any) -> None:
    """What a session wrote goes as one commit; what others wrote since into the same items stays (B2)."""
    write("deploy", content="We deploy on Tuesdays", tags=("ops",))
    write("pg", content="Use PostgreSQL")
    write("deploy", BAD, content="We deploy at night", tags=("ops", "yolo"), metadata={"by": "mole"})
    write("wiki", BAD, content="Passwords belong in the wiki")
    write("deploy", tags=("ops", "yolo", "team"), importance=3.0)
    before = git(workspace.root, "rev-list", "--count", "HEAD").strip()
    done = undo(workspace, session="bad-1")
    assert {(one.id, one.action) for one in done.files} == {("deploy", "changed"), ("wiki", "removed")}
    assert (done.conflicts, done.left, done.already) == ((), (), ())
    deploy = workspace.store.get("deploy")
    assert deploy is not None
    assert (deploy.content, set(deploy.tags), deploy.importance) == ("We deploy on Tuesdays", {"ops", "team"}, 3.0)
    assert (deploy.metadata, deploy.origin) == ({}, GOOD)
    assert workspace.store.get("wiki") is None
    assert not workspace.recaller.search("passwords").hits
    assert int(git(workspace.root, "rev-list", "--count", "HEAD")) == int(before) + 1
    assert done.commit == git(workspace.root, "rev-parse", "HEAD").strip()
    assert git(workspace.root, "status", "--porcelain") == ""
    log = workspace.history.log(limit=1)[0]
    assert log.subject == "Undo session bad-1"
    assert log.trailers["Memfs-Undoes"] == tuple(step.commit for step in done.steps)


def test_without_later_edits_the_memory_is_what_it_was(workspace: Workspace, write: Write) -> None:
    """Byte for byte, comments and all: what was changed, made, removed and moved (B2)."""
    for name in ("a", "b", "c", "d"):
        write(name, content=f"{name} of old")
    path = workspace.root / workspace.store.locate("a")
    path.write_text(f"# a person's remark\n{path.read_text()}")
    workspace.store.flush(adopt=True)
    before = tree(workspace)
    write("a", BAD, content="a of the mole")
    write("a", BAD, content="a of the mole again", tags=("x",))
    write("n", BAD, content="new")
    with signed_by(BAD):
        workspace.store.delete("b")
    write("c", BAD, memory_type="procedural")
    workspace.store.flush()
    assert tree(workspace) != before
    done = undo(workspace, session="bad-1")
    assert tree(workspace) == before
    assert {(one.id, one.action) for one in done.files} == {
        ("a", "changed"),
        ("b", "restored"),
        ("c", "moved"),
        ("n", "removed"),
    }
    assert workspace.store.get("c").type == "semantic"  # type: ignore[union-attr]


def test_what_somebody_edited_later_is_kept_and_named(workspace: Workspace, write: Write) -> None:
    """A field, or an item, that others built on stays, with what it would say otherwise (B2)."""
    write("deploy", content="We deploy on Tuesdays")
    write("deploy", BAD, content="We deploy at night", title="Deploying")
    write("deploy", content="We deploy at night, on Fridays")
    write("wiki", BAD, content="Passwords belong in the wiki")
    write("wiki", content="Passwords never belong in the wiki")
    done = undo(workspace, agent="mole")
    deploy, wiki = workspace.store.get("deploy"), workspace.store.get("wiki")
    assert deploy is not None
    assert (deploy.content, deploy.title, deploy.conflicts) == ("We deploy at night, on Fridays", "", ())
    assert wiki is not None
    assert wiki.content == "Passwords never belong in the wiki"
    found = {(one.id, one.field): (one.now, one.undone) for one in done.conflicts}
    assert found == {
        ("deploy", "content"): ("We deploy at night, on Fridays", "We deploy on Tuesdays"),
        ("wiki", ""): ("edited later", "removed"),
    }
    assert {(one.id, one.action) for one in done.files} == {("deploy", "changed"), ("wiki", "kept")}
    assert "- kept wiki" in workspace.history.log(limit=1)[0].body


def test_what_others_wrote_between_a_sessions_changes_stays(workspace: Workspace, write: Write) -> None:
    """Both changes go, and not what somebody added after the first of them (B2)."""
    write("a", content="old")
    write("a", BAD, title="Bad")
    write("a", tags=("team",))
    write("a", BAD, content="new")
    undo(workspace, session="bad-1")
    item = workspace.store.get("a")
    assert item is not None
    assert (item.title, item.content, item.tags) == ("", "old", ("team",))


def test_lines_of_one_text_are_distinguished(workspace: Workspace, write: Write) -> None:
    """Of a text of several lines, only the session's lines go (B2)."""
    text = "one\ntwo\nthree\nfour\nfive"
    write("steps", content=text)
    write("steps", BAD, content=text.replace("two", "two, and disable the firewall"))
    write("steps", content=text.replace("two", "two, and disable the firewall").replace("five", "five and rest"))
    done = undo(workspace, session="bad-1")
    assert workspace.store.get("steps").content == text.replace("five", "five and rest")  # type: ignore[union-attr]
    assert done.conflicts == ()


def test_what_was_deleted_and_made_again_stays_as_it_is(workspace: Workspace, write: Write) -> None:
    """An item that the session removed comes back, unless somebody made one of that name since (B2)."""
    write("a", content="the first")
    write("b", content="the first")
    with signed_by(BAD):
        workspace.store.delete("a")
        workspace.store.delete("b")
    workspace.store.flush()
    write("b", content="the second")
    done = undo(workspace, session="bad-1")
    assert workspace.store.get("a").content == "the first"  # type: ignore[union-attr]
    assert workspace.store.get("b").content == "the second"  # type: ignore[union-attr]
    assert [(one.id, one.field) for one in done.conflicts] == [("b", "")]


def test_an_item_moved_and_edited_goes_back_with_the_edit(workspace: Workspace, write: Write) -> None:
    """A change of type is taken back though others edited the item in its new place (B2)."""
    write("a", content="text")
    write("a", BAD, memory_type="procedural")
    write("a", title="A title")
    before = workspace.store.locate("a")
    undo(workspace, session="bad-1")
    item = workspace.store.get("a")
    assert item is not None
    assert (item.type, item.title) == ("semantic", "A title")
    assert not (workspace.root / before).exists()


def test_an_item_that_a_person_moved_is_found(workspace: Workspace, write: Write) -> None:
    """Wherever a person put the file since, the session's writing is taken out of it (B2)."""
    write("a", title="Mine", content="old")
    write("a", BAD, content="new")
    write("n", BAD)
    own = (workspace.root / workspace.store.locate("a")).parent.with_name("own")
    own.mkdir()
    for name in "an":
        (workspace.root / workspace.store.locate(name)).rename(own / f"{name}.yaml")
    workspace.store.flush(adopt=True)
    done = undo(workspace, session="bad-1")
    assert {(one.id, one.action) for one in done.files} == {("a", "changed"), ("n", "kept")}
    item = workspace.store.get("a")
    assert item is not None
    assert (item.content, "/own/" in item.path) == ("old", True)


def test_counters_lose_what_was_added(workspace: Workspace) -> None:
    """A counter that others raised since keeps their share; so do documents of agents in general (B2)."""
    states = workspace.states
    states.iterations.start()
    record = lambda by, **values: _hypothesis(workspace, by, **values)  # noqa: E731
    record(GOOD, state="a state", wins=1)
    record(BAD, wins=4, metadata={"note": "from the mole"})
    record(GOOD, wins=6)
    done = undo(workspace, session="bad-1")
    path = workspace.root / "ContextMemory/iterations/iteration_001/hypotheses/h.json"
    assert (values := json.loads(path.read_bytes()))["wins"] == 3
    assert "note" not in values.get("metadata", {})
    assert done.conflicts == ()
    again = undo(workspace, session="bad-1")
    assert (again.files, len(again.already)) == ((), 1)
    assert json.loads(path.read_bytes())["wins"] == 3


def _hypothesis(workspace: Workspace, by: Origin, **values: Any) -> None:
    with signed_by(by):
        workspace.states.recorder.hypothesis({"id": "h", **values})
    workspace.store.flush()


# -- whose --------------------------------------------------------------------------------------------------------
def test_agent_session_and_time_narrow_each_other(workspace: Workspace, write: Write) -> None:
    """An agent's writing in one session, and since a time (B2)."""
    write("a", Origin(agent="mole", session="s-1"))
    write("b", Origin(agent="mole", session="s-2"))
    write("c", Origin(agent="other", session="s-2"))
    plan = lambda **chosen: {one.id for one in undo(workspace, dry_run=True, **chosen).files}  # noqa: E731
    assert plan(agent="mole") == {"a", "b"}
    assert plan(session="s-2") == {"b", "c"}
    assert plan(agent="mole", session="s-2") == {"b"}
    moment = workspace.parts.clock()
    assert plan(agent="mole", since=moment + timedelta(days=366)) == set()


@pytest.mark.parametrize(
    "session", ["bad.*", "--all", "-", "a b", "ünï", "$(touch x)", "bad-1 ", "x" * 300, "AKIAIOSFODNN7EXAMPLE"]
)
def test_a_session_is_its_name_and_nothing_else(workspace: Workspace, write: Write, session: str) -> None:
    """A name is not a pattern, an option or a command, and may look like anything (faults rows 17 and 41)."""
    write("near", Origin(session="bad-12"))
    try:
        write("a", Origin(session=session))
    except MemfsError:  # what no item may hold, none has
        return
    done = undo(workspace, session=session)
    assert [one.id for one in done.files] == ["a"]
    assert workspace.store.get("near") is not None


def test_of_several_writers_in_one_commit_each_item_says_whose_it_is(workspace: Workspace) -> None:
    """A batch of two sessions is taken back for one of them alone (B2)."""
    with workspace.store.batch("Import two sessions") as batch:
        batch.put(MemoryItem("mine", id="mine", origin=GOOD))
        batch.put(MemoryItem("theirs", id="theirs", origin=BAD))
    workspace.store.flush()
    assert [one.id for one in undo(workspace, session="bad-1").files] == ["theirs"]
    assert workspace.store.get("mine") is not None


def test_what_a_person_committed_for_an_agent_is_found(workspace: Workspace, git: Any) -> None:
    """Items that a person committed by hand, or squashed into one commit, are taken back, too (B2)."""
    root = workspace.root
    with signed_by(BAD):
        workspace.store.put(MemoryItem("one", id="one", origin=BAD))
    workspace.store.flush()
    with signed_by(GOOD):
        workspace.store.put(MemoryItem("two", id="two", origin=GOOD))
    workspace.store.flush()
    git(root, "reset", "--soft", "HEAD~2")
    squashed = "Merge the work (#7)\n\n* Remember one\n\nMemfs-Agent: mole\nMemfs-Session: bad-1\n\n* Remember two\n\n"
    git(root, "commit", "-qm", squashed + "Memfs-Agent: planner\nMemfs-Session: good-1\n")
    folder = root / "ContextMemory/memories/semantic"
    (folder / "three.yaml").write_text("content: three\norigin:\n  session: bad-1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "By hand")
    (folder / "four.yaml").write_text("content: four\norigin:\n  session: bad-1\n")
    workspace.store.refresh()
    done = undo(workspace, session="bad-1")
    assert {one.id for one in done.files} == {"one", "three"}
    assert [one.path for one in done.left] == ["ContextMemory/memories/semantic/four.yaml"]


def test_what_an_agent_changed_and_a_person_committed_is_taken_back(workspace: Workspace, git: Any) -> None:
    """A commit that git made names no agent: of it counts what made the item the agent's, and no later edit (B2)."""
    file = workspace.root / "ContextMemory/memories/semantic/pg.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    for text in (
        "content: Use PostgreSQL\n",
        "content: Use files\norigin:\n  session: bad-1\ntrust: agent\n",
        "content: Use files\ntags: [mine]\norigin:\n  session: bad-1\ntrust: agent\n",
    ):
        file.write_text(text)
        git(workspace.root, "add", "-A")
        git(workspace.root, "commit", "-qm", "By hand")
    workspace.store.refresh()

    done = undo(workspace, session="bad-1")

    assert len(done.steps) == 1
    kept = workspace.store.get("pg")
    assert kept is not None
    assert (kept.content, kept.tags, kept.trust) == ("Use PostgreSQL", ("mine",), "human")


def test_what_one_changed_and_changed_back_is_not_a_conflict(workspace: Workspace, write: Write) -> None:
    """Changes between which nobody else wrote count together: to and fro there is nothing to take back (B2)."""
    write("pg", content="Use PostgreSQL")
    write("pg", BAD, content="Use files")
    write("pg", BAD, content="Use PostgreSQL")
    write("pg", content="Use PostgreSQL 16")
    done = undo(workspace, session="bad-1")
    assert done.conflicts == ()
    kept = workspace.store.get("pg")
    assert kept is not None
    assert kept.content == "Use PostgreSQL 16"


def test_what_is_written_in_anothers_name_is_the_writers(workspace: Workspace, write: Write) -> None:
    """A commit's signer wins over what the item says of itself: nobody's memory goes by naming another (B2)."""
    write("keys", GOOD, origin=BAD, content="Rotate the keys in May")
    assert workspace.history.log(limit=1)[0].trailers["Memfs-Agent"] == ("planner",)
    assert undo(workspace, session="bad-1").files == ()
    assert undo(workspace, agent="mole").files == ()
    assert [one.id for one in undo(workspace, agent="planner").files] == ["keys"]


def test_an_undo_needs_one_answer_to_whose(workspace: Workspace) -> None:
    """Nothing named, or commits beside a writer, is refused (B2)."""
    for chosen in (RevertSelection(), RevertSelection(session="s", commits=("HEAD",))):
        with pytest.raises(QueryInvalid):
            workspace.teams.undo.run(chosen)


# -- commits ------------------------------------------------------------------------------------------------------
def test_an_undo_is_undone_like_any_commit(workspace: Workspace, write: Write) -> None:
    """Taking back an undo brings everything again, and then the session can be undone again (B2)."""
    write("a", content="old")
    write("a", BAD, content="new")
    write("n", BAD)
    whole = tree(workspace)
    first = undo(workspace, session="bad-1")
    undo(workspace, commits=(str(first.commit),))
    assert tree(workspace) == whole
    again = undo(workspace, session="bad-1")
    assert {one.id for one in again.files} == {"a", "n"}
    assert again.already == ()


def test_a_session_cannot_claim_to_have_been_undone(workspace: Workspace, write: Write) -> None:
    """What a session's own commits say of undoing does not keep them from being undone (B2, faults row 41)."""
    write("a", content="old")
    write("a", BAD, content="new")
    message = f"Tidy up\n\nMemfs-Undoes: {workspace.repository.head_commit()}"
    with signed_by(BAD):
        workspace.store.put(MemoryItem("n", id="n", origin=BAD), message=message)
    workspace.store.flush()
    done = undo(workspace, session="bad-1")
    assert ({one.id for one in done.files}, done.already) == ({"a", "n"}, ())
    write("b", BAD)
    own = undo(workspace, commits=("HEAD",), by=BAD)
    assert workspace.store.get("b") is None
    assert undo(workspace, agent="mole").files == ()
    assert own.commit


def test_a_merge_is_undone_as_what_it_brought(workspace: Workspace, write: Write, git: Any) -> None:
    """Sessions on merged branches are found; a merge commit itself is what its branch brought (B2)."""
    write("a", content="old")
    git(workspace.root, "switch", "-qc", "agent")
    write("a", BAD, content="new")
    write("n", BAD)
    git(workspace.root, "switch", "-q", "main")
    write("m")
    with pytest.raises(HistoryUnavailable):
        undo(workspace, commits=("agent",))
    assert undo(workspace, session="bad-1").files == ()
    git(workspace.root, "merge", "-q", "--no-ff", "-m", "Merge agent", "agent")
    workspace.store.refresh()
    git(workspace.root, "commit", "-q", "--amend", "-m", "Merge agent\n\nMemfs-Agent: merger\nMemfs-Session: merging-1")
    assert undo(workspace, session="merging-1").files == ()  # what it brought, others wrote
    merged = tree(workspace)
    assert {one.id for one in undo(workspace, session="bad-1", dry_run=True).files} == {"a", "n"}
    done = undo(workspace, commits=("HEAD",))
    assert {one.id for one in done.files} == {"a", "n"}
    assert set(merged) - set(tree(workspace)) == {"ContextMemory/" + one for one in _below(merged, "n.yaml")}
    assert workspace.store.get("a").content == "old"  # type: ignore[union-attr]


def _below(found: dict[str, str], name: str) -> list[str]:
    return [path.removeprefix("ContextMemory/") for path in found if path.endswith(f"/{name}")]


@pytest.mark.parametrize("later", ["planner", "mole"])
def test_conflicts_recorded_against_the_session_go_with_it(
    workspace: Workspace, write: Write, git: Any, later: str
) -> None:
    """What a merge recorded of both sides is settled for the other: as the value that was not kept (B2, B3)."""
    write("a", content="We deploy on Tuesdays")
    base = workspace.store.get("a")
    assert base is not None
    theirs = base.replace(content="We deploy at night", origin=BAD, title="A title")
    ours = base.replace(content="We deploy on Mondays", tags=("ops",))
    kept, lost = (ours, theirs) if later == "planner" else (theirs, ours)
    git(workspace.root, "switch", "-qc", "agent")
    write("a", BAD, content=theirs.content, origin=BAD, title="A title")
    git(workspace.root, "switch", "-q", "main")
    write("a", content=ours.content, tags=("ops",))
    git(workspace.root, "merge", "-q", "--no-commit", "-s", "ours", "agent")
    merged = base.replace(
        content=kept.content,
        title="A title",
        tags=("ops",),
        origin=kept.origin,
        conflicts=(RecordedConflict(field="content", kept=kept.content, lost=lost.content),),
    )
    path = workspace.root / base.path
    path.write_bytes(workspace.parts.codec.write(merged, base.path).data)
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "Merge agent")
    workspace.store.refresh()
    undo(workspace, session="bad-1")
    item = workspace.store.get("a")
    assert item is not None
    assert (item.content, item.title, item.tags) == ("We deploy on Mondays", "", ("ops",))
    assert (item.conflicts, item.origin) == ((), GOOD)


@pytest.mark.parametrize(("kept", "part"), [("Y", True), ("x\nY\nz\n", False)])
def test_conflicts_over_what_the_session_did_not_write_wait_on(
    workspace: Workspace, write: Write, kept: str, part: bool
) -> None:
    """A session that only tagged an item takes no decision of others along with it (B2, B3)."""
    conflict = RecordedConflict(field="content", kept=kept, lost=kept.replace("Y", "why"), part=part)
    write("a", content="x\nY\nz\n", conflicts=(conflict,))
    write("a", BAD, tags=("mole",))
    undo(workspace, session="bad-1")
    item = workspace.store.get("a")
    assert item is not None
    assert (item.tags, item.content, item.conflicts) == ((), "x\nY\nz\n", (conflict,))


def test_a_removal_that_gave_way_is_undone_with_its_record(workspace: Workspace, write: Write, git: Any) -> None:
    """What the session removed, and a merge kept as others had edited it, waits for nobody's decision (B2, B3)."""
    base = write("a", content="old")
    git(workspace.root, "switch", "-qc", "agent")
    with signed_by(BAD):
        workspace.store.delete("a")
    workspace.store.flush()
    git(workspace.root, "switch", "-q", "main")
    write("a", content="mine")
    git(workspace.root, "merge", "-q", "--no-commit", "-s", "ours", "agent")
    path = workspace.root / base.path
    path.write_text(path.read_text() + 'conflicts:\n- field: ""\n  kept: edited\n  lost: deleted\n')
    git(workspace.root, "commit", "-qam", "Merge agent")
    workspace.store.refresh()
    assert workspace.store.get("a").conflicts  # type: ignore[union-attr]
    undo(workspace, session="bad-1")
    item = workspace.store.get("a")
    assert item is not None
    assert (item.content, item.conflicts) == ("mine", ())


def test_what_a_record_knows_by_its_digest_alone_goes_with_it(workspace: Workspace, write: Write, git: Any) -> None:
    """A value of the session that is too long for its record is known by the version that had it (B2, B3)."""
    base = write("a", content="old")
    git(workspace.root, "switch", "-qc", "agent")
    lost = write("a", BAD, content="new")
    git(workspace.root, "switch", "-q", "main")
    write("a", content="mine")
    git(workspace.root, "merge", "-q", "--no-commit", "-s", "ours", "agent")
    path = workspace.root / base.path
    path.write_text(path.read_text() + f"conflicts:\n- field: content\n  lost_sha256: {lost.sha256}\n")
    git(workspace.root, "commit", "-qam", "Merge agent")
    workspace.store.refresh()
    undo(workspace, session="bad-1")
    item = workspace.store.get("a")
    assert item is not None
    assert (item.content, item.conflicts) == ("mine", ())


def test_a_file_that_cannot_be_read_by_now_is_left(workspace: Workspace, write: Write, git: Any) -> None:
    """What somebody broke since is not touched, and named; the rest is undone (B2, row 43)."""
    broken = write("a", content="old").path
    write("a", BAD, content="new")
    write("n", BAD)
    path = workspace.root / broken
    path.write_text(path.read_text().replace("content: new", "content: [mine"))
    git(workspace.root, "commit", "-qam", "Oops")
    workspace.store.refresh()
    before = path.read_bytes()
    done = undo(workspace, session="bad-1")
    assert [one.path for one in done.left] == [broken]
    assert (path.read_bytes(), workspace.store.get("n")) == (before, None)


def test_a_writer_who_is_named_amid_a_message_is_found(workspace: Workspace, write: Write, git: Any) -> None:
    """Squashed commits with a sign-off below have the session's trailers in the middle of the text (B2)."""
    item = write("a", content="old")
    path = workspace.root / item.path
    path.write_text(path.read_text().replace("content: old", "content: new"))
    git(workspace.root, "commit", "-qam", "Squashed\n\nMemfs-Session: bad-1\n\nMore words.\n\nSigned-off-by: A <a@x>")
    workspace.store.refresh()
    undo(workspace, session="bad-1")
    assert workspace.store.get("a").content == "old"  # type: ignore[union-attr]


# -- what waits, and people ---------------------------------------------------------------------------------------
def test_what_waits_is_committed_first(workspace: Workspace, write: Write) -> None:
    """A session's writes in no commit yet are undone, too, and history has both; a dry run counts them (B2)."""
    write("a", content="old")
    write("a", BAD, waits=True, content="new")
    write("n", BAD, waits=True)
    state = (tree(workspace), workspace.store.pending().count)
    planned = undo(workspace, session="bad-1", dry_run=True)
    assert (planned.files, planned.waiting) == ((), "writes that wait for their commit are left out: 2")
    assert (tree(workspace), workspace.store.pending().count) == state
    done = undo(workspace, session="bad-1")
    assert {(one.id, one.action) for one in done.files} == {("a", "changed"), ("n", "removed")}
    assert workspace.store.pending().count == 0
    assert len(workspace.history.log("n")) == 2


def test_what_waits_for_another_branch_is_not_part_of_this_one(workspace: Workspace, write: Write, git: Any) -> None:
    """A session's write that waits for the branch on which it was made is not reported on another (B2, row 36)."""
    write("a")
    write("n", BAD, waits=True)
    assert undo(workspace, session="bad-1", dry_run=True).waiting
    git(workspace.root, "switch", "-qc", "other")
    assert not undo(workspace, session="bad-1", dry_run=True).waiting


def test_what_waits_while_git_is_busy_is_not_half_undone(workspace: Workspace, write: Write) -> None:
    """While a person merges, what waits is not undone: the reason is reported, and nothing changes (faults row 34)."""
    write("a", content="old")
    (workspace.repository.git_dir / "MERGE_HEAD").write_text(f"{workspace.repository.head_commit()}\n")
    with signed_by(BAD):
        workspace.store.put(MemoryItem("n", id="n", origin=BAD))
    with pytest.raises(GitBusy):
        undo(workspace, session="bad-1")
    assert workspace.store.get("n") is not None


def test_an_edit_that_is_not_committed_is_not_overwritten(workspace: Workspace, write: Write) -> None:
    """A person's edit in a file to be changed stops the undo, and nothing changes (B2, K5)."""
    write("a", content="old")
    write("a", BAD, content="new")
    write("n", BAD)
    path = workspace.root / workspace.store.locate("a")
    path.write_text(path.read_text() + "title: mine\n")
    before = (tree(workspace), path.read_bytes())
    with pytest.raises(Conflict, match="not committed"):
        undo(workspace, session="bad-1")
    assert (tree(workspace), path.read_bytes()) == before
    assert workspace.store.get("n") is not None
    workspace.store.flush(adopt=True)
    assert undo(workspace, session="bad-1").commit
    assert workspace.store.get("a").title == "mine"  # type: ignore[union-attr]


def test_an_edit_in_a_file_that_stays_as_it_is_stops_nothing(workspace: Workspace, write: Write) -> None:
    """What is not committed counts as a later edit, which keeps its file, and the rest is undone (B2, K5)."""
    write("a", BAD)
    write("n", BAD)
    path = workspace.root / workspace.store.locate("a")
    path.write_text(path.read_text() + "title: mine\n")
    done = undo(workspace, session="bad-1")
    assert {(one.id, one.action) for one in done.files} == {("a", "kept"), ("n", "removed")}
    assert path.read_text().endswith("title: mine\n")


def test_it_is_signed_by_the_one_who_undoes(workspace: Workspace, write: Write) -> None:
    """A person's undo names no agent; an agent's names it (B2)."""
    write("a", BAD)
    undo(workspace, session="bad-1", message="Clean up after the mole")
    last = workspace.history.log(limit=1)[0]
    assert (last.subject, last.author, last.trailers["Memfs-Source"]) == (
        "Clean up after the mole",
        "Ada Person",
        ("undo",),
    )
    assert "Memfs-Agent" not in last.trailers
    write("b", BAD)
    undo(workspace, session="bad-1", by=Origin(agent="warden", session="w-1"))
    last = workspace.history.log(limit=1)[0]
    assert (last.author, last.trailers["Memfs-Session"]) == ("warden", ("w-1",))


def test_killed_anywhere_it_was_done_or_never_begun(
    workspace: Workspace, write: Write, opened: Callable[..., Workspace], tmp_path: Path
) -> None:
    """A process that is killed in the middle leaves all of the undo, or nothing of it (B2, B7)."""
    write("a", content="old")
    write("a", BAD, content="new")
    write("n", BAD)
    workspace.close()
    whole, seen = workspace.root, set()
    shutil.copytree(whole, tmp_path / "counted", symlinks=True)
    counted = opened(tmp_path / "counted")
    with injected(Fault()) as fault:
        undo(counted, session="bad-1")
    for at in range(1, len(fault.seen) + 1, len(fault.seen) // 5):
        root = tmp_path / f"copy-{at}"
        shutil.copytree(whole, root, symlinks=True)
        killed = opened(root)
        with injected(Fault(at=at)), suppress(Stopped):
            undo(killed, session="bad-1")
        again = opened(root)
        a, n = again.store.get("a"), again.store.get("n")
        assert a is not None
        seen.add((a.content, n is None))
        undo(again, session="bad-1")
        assert (again.store.get("a").content, again.store.get("n")) == ("old", None)  # type: ignore[union-attr]
    assert seen == {("new", False), ("old", True)}


def test_the_first_commit_of_all_leaves_the_workspace_when_it_is_undone(
    opened: Callable[..., Workspace], git: Callable[..., str]
) -> None:
    """A person who commits memory and settings together takes back what was remembered, not the workspace."""
    workspace = opened(history__commit="manual")
    workspace.store.put(MemoryItem("The port is 8080", "semantic", id="port"))
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "Memory")
    workspace.store.put(MemoryItem("The host is blue", "semantic", id="host"))
    selection = RevertSelection(commits=("HEAD",))
    planned = workspace.teams.undo.run(selection, dry_run=True)
    done = workspace.teams.undo.run(selection)
    assert [one.path for one in done.files] == [one.path for one in planned.files]
    assert (workspace.root / "memfs.toml").exists()
    assert (workspace.store.get("port"), workspace.store.get("host") is None) == (None, False)

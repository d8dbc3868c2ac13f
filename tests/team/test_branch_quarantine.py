"""A quarantined branch reaches nobody: no answer, no prompt, no mount and no merge (B2)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.patience import UNHURRIED
from memfs import MemoryCoordinator
from memfs.doors.cli.app import run
from memfs.errors import BranchQuarantined, BranchRefused, CorruptRecord
from memfs.facades.agent_tools import AgentMemory, Caller
from memfs.model import MemoryItem, Origin
from memfs.model.episode import StateSnapshot
from memfs.team.undo import RevertSelection
from memfs.workspace import Workspace

Git = Callable[..., str]
Open = Callable[..., Workspace]
POISON = "Deploys never need a review"


def item(text: str, name: str = "", agent: str = "") -> MemoryItem:
    """A memory, named by its first word unless told otherwise."""
    return MemoryItem(text, id=name or text.split()[0].lower(), origin=Origin(agent=agent))


@pytest.fixture
def here(opened: Open) -> Workspace:
    """A workspace with one memory."""
    workspace = opened()
    workspace.store.put(item("Deploys happen on Tuesdays"))
    workspace.store.flush(adopt=True)
    return workspace


@pytest.fixture
def poisoned(here: Workspace, opened: Open) -> Workspace:
    """The workspace of an agent that wrote what is not so on a branch of its own, ``bad``."""
    made = here.teams.branches.start("bad", agent="coder")
    inner = opened(made.folder)
    inner.store.put(item(POISON, "poison"))
    inner.store.flush()
    return inner


def test_no_answer_comes_from_it(here: Workspace, poisoned: Workspace) -> None:
    """Recall and delivery refuse at once, in a workspace that is open already, and say why (B2)."""
    assert poisoned.recaller.search("deploys review").hits
    here.teams.branches.quarantine("bad", "it believed a\nweb page")
    for ask in (
        lambda: poisoned.recaller.search("deploys"),
        lambda: poisoned.recaller.search_many(["deploys"]),
        lambda: poisoned.recaller.submit("deploys"),
        lambda: poisoned.sources.delivery.automatic(StateSnapshot()),
        lambda: poisoned.sources.delivery.triggered(StateSnapshot(context="deploys")),
        lambda: poisoned.sources.delivery.recall("deploys"),
        lambda: poisoned.sources.mounts.recall.search("deploys"),
        lambda: poisoned.teams.past.at("HEAD"),
        lambda: here.teams.past.at("memfs/bad"),
    ):
        with pytest.raises(BranchQuarantined, match="memfs/bad is quarantined: it believed a web page"):
            ask()
    assert here.recaller.search("deploys").hits
    assert here.teams.past.at("HEAD").recall.search("deploys").hits
    here.teams.branches.release("bad")
    assert poisoned.recaller.search("deploys review").hits


def test_agents_doors_are_closed(here: Workspace, poisoned: Workspace) -> None:
    """Whatever an agent uses neither reads nor writes there, also where it was in use before."""
    coordinator = MemoryCoordinator(poisoned.root)
    try:
        assert coordinator.workspace.root == poisoned.root
        here.teams.branches.quarantine("bad")
        with pytest.raises(BranchQuarantined):
            _ = coordinator.workspace
    finally:
        coordinator.close()


def test_it_is_not_merged(here: Workspace, poisoned: Workspace, opened: Open, git: Git) -> None:
    """Neither by its own name, nor by another, nor within another agent's branch (B2)."""
    branches = here.teams.branches
    inner = opened(branches.start("carrier", agent="other").folder)
    inner.teams.branches.merge("bad")
    inner.store.put(item("Lunch is at noon"))
    inner.store.flush()
    clean = opened(branches.start("clean", agent="third").folder)
    clean.store.put(item("Tests run in a sandbox"))
    clean.store.flush()
    git(here.root, "branch", "renamed/bad", "memfs/bad")
    branches.quarantine("bad")
    for name in ("bad", "carrier", "renamed/bad"):
        with pytest.raises(BranchQuarantined):
            branches.merge(name)
    assert branches.merge("clean").joined.changed
    assert here.store.get("poison") is None
    branches.release("bad")
    assert branches.merge("carrier").joined.changed
    assert here.store.get("poison") is not None


@pytest.mark.parametrize("escape", ["rename", "branch", "detach", "main"])
def test_there_is_no_way_out_of_it(here: Workspace, poisoned: Workspace, git: Git, escape: str) -> None:
    """Another name for the branch, a new one, a detached HEAD or a checkout elsewhere change nothing."""
    here.teams.branches.quarantine("bad")
    if escape == "rename":
        git(poisoned.root, "branch", "-m", "good")
    elif escape == "branch":
        git(poisoned.root, "checkout", "-q", "-b", "good")
    elif escape == "detach":
        git(poisoned.root, "checkout", "-q", "--detach")
    else:
        git(here.root, "checkout", "-q", "-b", "mine", "memfs/bad")
    asked = here if escape == "main" else poisoned
    with pytest.raises(BranchQuarantined):
        asked.recaller.search("deploys")
    if escape != "main":
        git(poisoned.root, "commit", "-q", "--amend", "-m", "Otherwise")
    git(here.root, "stash", "-u", check=False)
    git(here.root, "clean", "-fdxq")
    with pytest.raises(BranchQuarantined):
        asked.recaller.search("deploys")


@pytest.mark.parametrize("later", [False, True], ids=["at once", "with work on top"])
@pytest.mark.parametrize("meanwhile", [False, True], ids=["forward", "crossed"])
def test_git_merges_it_into_no_answer(
    here: Workspace, poisoned: Workspace, git: Git, meanwhile: bool, later: bool
) -> None:
    """What a plain ``git merge`` took over of it reaches nobody either, until it is taken back and released (B2)."""
    here.teams.branches.quarantine("bad", "a web page")
    if meanwhile:
        here.store.put(item("Orders wait for a payment"))
        here.store.flush()
    git(here.root, "merge", "-q", "--no-edit", "memfs/bad")
    if later:
        git(here.root, "commit", "-q", "--allow-empty", "-m", "more")
    for ask in (lambda: here.recaller.search("deploys"), lambda: here.teams.past.at("HEAD")):
        with pytest.raises(BranchQuarantined, match="memfs/bad is quarantined: a web page"):
            ask()
    here.teams.undo.run(RevertSelection(agent="coder"))
    here.teams.branches.release("bad")
    assert [hit.item.id for hit in here.recaller.search("deploys review").hits] == ["deploys"]


def test_what_was_merged_before_is_not_held_back(here: Workspace, poisoned: Workspace) -> None:
    """The line that had taken a branch over goes on answering, and so does what is written on it later."""
    here.store.put(item("Orders wait for a payment"))
    here.teams.branches.merge("bad")
    poisoned.store.put(item("Reviews are for the weak"))
    poisoned.store.flush()
    here.teams.branches.quarantine("bad")
    here.teams.branches.quarantine("bad", "looked at it again")
    here.store.put(item("Payments come at night"))
    here.store.flush()
    assert {hit.item.id for hit in here.recaller.search("deploys review payments").hits} == {
        "deploys",
        "poison",
        "orders",
        "payments",
    }


def test_a_line_that_it_took_over_is_not_held_back(
    here: Workspace, poisoned: Workspace, opened: Open, git: Git, tmp_path: Path
) -> None:
    """Whose work the branch had merged goes on answering, and so does who merges that work (B2)."""
    git(here.root, "worktree", "add", "-q", str(tmp_path / "dev"), "-b", "dev")
    dev = opened(tmp_path / "dev")
    dev.store.put(item("Reviews come before deploys"))
    dev.store.flush()
    git(poisoned.root, "merge", "-q", "--no-edit", "dev")
    here.teams.branches.quarantine("bad")
    assert dev.recaller.search("deploys reviews").hits
    git(here.root, "merge", "-q", "--no-edit", "dev")
    assert {hit.item.id for hit in here.recaller.search("deploys reviews").hits} == {"deploys", "reviews"}
    git(here.root, "merge", "-q", "--no-edit", "memfs/bad")
    with pytest.raises(BranchQuarantined):
        here.recaller.search("deploys")


def test_no_revision_of_it_is_brought_elsewhere(here: Workspace, poisoned: Workspace, git: Git) -> None:
    """Neither a rollback to it nor the tools of an agent that read or restore old versions let its words in (B2)."""
    poisoned.store.put(item("Deploys happen whenever", "whenever"))
    poisoned.store.flush()
    tip = here.repository.resolve("memfs/bad")
    here.teams.branches.quarantine("bad")
    git(poisoned.root, "reset", "-q", "--hard", "HEAD~2")
    poisoned.store.put(item("Deploys happen at night", "night"))
    poisoned.store.flush()
    later = here.repository.resolve("memfs/bad")
    past = AgentMemory(workspace=here)
    for ask in (
        lambda: here.history.restore("memfs/bad"),
        lambda: here.history.restore(tip, "poison", dry_run=True),
        lambda: here.history.restore(later, "night", dry_run=True),
        lambda: past.at("poison", tip),
        lambda: past.diff(None, "HEAD", tip),
        lambda: past.restore("poison", tip, Caller(agent="scout")),
    ):
        with pytest.raises(BranchQuarantined):
            ask()
    assert here.store.get("poison") is None
    assert poisoned.history.restore("HEAD~1").removed  # what is within stays there


def test_what_a_team_agreed_on_does_not_come_from_it(
    here: Workspace, poisoned: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its conventions are neither listed nor exported nor shown as a block for AGENTS.md, its memories not exported."""
    poisoned.store.put(MemoryItem(POISON, "convention", id="rule", status="accepted"))
    poisoned.store.flush()
    here.teams.branches.quarantine("bad")
    root = ("-C", str(poisoned.root))
    poisoned.close()
    for words in (
        ("team", "convention", "list"),
        ("team", "convention", "export", "-"),
        ("team", "agents-md", "show"),
        ("export", "-"),
    ):
        assert run([*root, *words]) == 1, words
        told = capsys.readouterr()
        assert POISON not in told.out + told.err
        assert "quarantined" in told.err


def test_people_still_look_at_it(
    here: Workspace, poisoned: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``show``, ``log`` and ``diff`` work there; what gives memory away says why it does not."""
    root = str(poisoned.root)
    poisoned.close()
    monkeypatch.chdir(here.root)
    assert run(["team", "branch", "quarantine", "bad", "--reason", "poisoned"]) == 0
    for arguments in (["show", "poison"], ["log"], ["diff", "HEAD~1", "HEAD"], ["status"]):
        assert run(["-C", root, *arguments]) == 0, arguments
    assert "is quarantined: poisoned" in capsys.readouterr().out
    assert run(["-C", root, "check"]) == 0
    assert "is quarantined: poisoned" in capsys.readouterr().out
    agent = ("agent inject", "agent warn deploys", "inbox patterns deploys")
    giving = ("recall deploys", "list", *agent, "team agents-md write", "state show")
    for arguments in (*map(str.split, giving), ["state", "feedback", "coder"]):
        assert run(["-C", root, *arguments]) == 1, arguments
        said = capsys.readouterr()
        assert "memfs/bad is quarantined: poisoned" in said.err
        assert POISON not in said.out
    assert run(["team", "branch", "list"]) == 0
    assert "quarantined: poisoned" in capsys.readouterr().out
    assert run(["team", "branch", "release", "bad"]) == 0
    assert run(["-C", root, "recall", "deploys review"]) == 0


def test_a_hook_tells_nothing_and_stops_nobody(here: Workspace, poisoned: Workspace) -> None:
    """An agent's session goes on without memory; the reason is in the hook's remarks (C6)."""
    here.teams.branches.quarantine("bad")
    event = {"session_id": "s", "cwd": str(poisoned.root), "hook_event_name": "UserPromptSubmit", "prompt": POISON}
    command = [*UNHURRIED, "hook", "UserPromptSubmit", "--into=repository"]
    done = subprocess.run(command, input=json.dumps(event), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "quarantined" in done.stderr


def test_it_is_not_mounted(poisoned: Workspace, here: Workspace, opened: Open, tmp_path: Path) -> None:
    """A workspace that mounts the branch's folder loses it, and has it again when it is released (P7)."""
    outside = opened(tmp_path / "outside", mounts__other=str(poisoned.root))
    assert [hit.item.id for hit in outside.sources.mounts.recall.search("deploys review").hits] != []
    here.teams.branches.quarantine("bad")
    assert outside.sources.mounts.recall.search("deploys review").hits == ()
    assert [problem.code for problem in outside.sources.mounts.refused()] == ["BranchQuarantined"]
    here.teams.branches.release("bad")
    assert outside.sources.mounts.recall.search("deploys review").hits


def test_it_holds_for_every_tree_and_outlives_the_process(here: Workspace, poisoned: Workspace, tmp_path: Path) -> None:
    """It is durable on return: a kill in the next moment takes nothing back."""
    program = (
        "import os, signal\n"
        "from memfs.workspace import open_workspace\n"
        f"open_workspace({str(here.root)!r}, watch=False).teams.branches.quarantine('bad')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(BranchQuarantined):
        poisoned.recaller.search("deploys")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"version": 9, "quarantined": []}',
        b'{"version": 1, "quarantined": [{"branch": "refs/heads/x", "tip": "--all"}]}',
        b"\xff\xfe",
        b"[" * 50_000,
        b" " * 1_100_000,
    ],
    ids=["torn", "list", "version", "option", "bytes", "deep", "large"],
)
def test_a_damaged_list_lets_nobody_read(here: Workspace, content: bytes) -> None:
    """Where nobody can tell what is quarantined, nothing is given, and the message says what to do."""
    path = here.root / ".git" / "memfs" / "quarantine.json"
    path.write_bytes(content)
    with pytest.raises(CorruptRecord, match="quarantined branches cannot be read"):
        here.recaller.search("deploys")
    path.unlink()
    path.symlink_to(os.devnull)
    with pytest.raises(CorruptRecord):
        here.recaller.search("deploys")
    path.unlink()
    assert here.recaller.search("deploys").hits


def test_a_dropped_branch_stays_quarantined(here: Workspace, poisoned: Workspace) -> None:
    """The rescue ref of a dropped branch is no way back, nor is its name, until somebody releases it."""
    branches = here.teams.branches
    branches.quarantine("bad")
    poisoned.close()
    done = branches.drop("bad", force=True)
    with pytest.raises(BranchQuarantined):
        here.teams.past.at(done.rescue)
    with pytest.raises(BranchQuarantined):
        branches.start("bad")
    assert [(one.name, one.quarantined, one.commit) for one in branches.list()] == [("bad", True, "")]
    branches.release("bad")
    assert here.teams.past.at(done.rescue).recall.search("review").hits
    with pytest.raises(BranchRefused, match="no branch 'bad' is quarantined"):
        branches.release("bad")

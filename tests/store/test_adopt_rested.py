"""Edits by hand become commits of the person's own with the next write, no matter who makes it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.doors.cli.app import run
from memfs.model import MemoryItem
from memfs.model.item import Origin
from memfs.store.hand_edits import EditSet, HandEdits
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
Subjects = Callable[[], list[tuple[str, str]]]

RESTED = 3600
BASE = "ContextMemory/memories/semantic/2026-01"


def edit(root: Path, name: str, text: str, *, ago: float = RESTED) -> str:
    """Save a file as a person did so many seconds ago; its path."""
    path = f"{BASE}/{name}.yaml"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text if text.endswith("\n") else f"content: {text}\n")
    when = time.time() - ago
    os.utime(root / path, (when, when))
    let_rest(root)
    return path


def let_rest(root: Path) -> None:
    """Let so much time have passed since the last look that an edit could have rested."""
    for note in (root / ".git/memfs").glob("*/looked"):
        os.utime(note, (time.time() - RESTED,) * 2)


def item(name: str, text: str = "text of an agent") -> MemoryItem:
    return MemoryItem(text, "semantic", id=name)


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One in a repository that memfs made, which commits each write by itself."""
    made = opened(**{"history.commit": "each", "history.adopt_after_seconds": 600})
    made.store.put(item("first"))
    return made


@pytest.fixture
def subjects(workspace: Workspace, git: Git) -> Subjects:
    """Author and paths of each commit since the first item, oldest first."""
    start = git(workspace.root, "rev-parse", "HEAD").strip()

    def found() -> list[tuple[str, str]]:
        out = git(workspace.root, "log", "--reverse", "--format=%x01%an", "--name-only", f"{start}..HEAD")
        rows = [row.split("\n") for row in out.split("\x01")[1:]]
        return [(row[0], " ".join(Path(path).stem for path in row[1:] if path)) for row in rows]

    return found


Writer = Callable[[Workspace], object]


def _batch(workspace: Workspace) -> None:
    with workspace.store.batch("Two at once") as batch:
        batch.put(item("written"))
        batch.put(item("written-too"))


WRITERS: dict[str, Writer] = {
    "put": lambda workspace: workspace.store.put(item("written")),
    "batch": _batch,
    "delete": lambda workspace: workspace.store.delete("first"),
    "feedback": lambda workspace: workspace.feedback.give("first", True),
    "context": lambda workspace: workspace.contexts.set({"key": "value"}),
    "state": lambda workspace: workspace.states.iterations.start(1),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_write_commits_rested_edits_first(workspace: Workspace, subjects: Subjects, writer: str) -> None:
    """A rested edit, a new file and the write are separate commits, the person's before the writer's (K4, D2)."""
    edit(workspace.root, "by-hand", "a line of the person's")
    WRITERS[writer](workspace)
    made = subjects()
    assert made[0] == ("Ada Person", "by-hand")
    assert len(made) >= 2
    assert all("by-hand" not in paths for _, paths in made[1:])


def test_an_agents_write_and_a_persons_edit_have_their_own_authors(workspace: Workspace, subjects: Subjects) -> None:
    """The author of the edit is the person, though the writer is an agent (K4)."""
    edit(workspace.root, "by-hand", "a line of the person's")
    workspace.store.put(MemoryItem("text", "semantic", id="by-agent", origin=Origin(agent="scout")))
    assert subjects() == [("Ada Person", "by-hand"), ("scout", "by-agent")]


def test_a_removed_file_is_an_edit(workspace: Workspace, subjects: Subjects, git: Git) -> None:
    """What a person removed is removed in a commit of theirs (K4)."""
    path = workspace.store.put(item("second")).path
    (workspace.root / path).unlink()
    for folder in (workspace.root / path).parents:
        os.utime(folder, (time.time() - RESTED,) * 2)
    let_rest(workspace.root)
    workspace.store.put(item("third"))
    assert subjects()[1:] == [("Ada Person", "second"), ("Ada Person", "third")]
    assert git(workspace.root, "ls-files", path) == ""


def test_reading_commits_nothing(opened: Opened, git: Git, capsys: pytest.CaptureFixture[str]) -> None:
    """recall, list, show and status leave a rested edit as it is (D1)."""
    workspace = opened()
    root = workspace.root
    workspace.store.put(item("first"))
    workspace.store.flush()
    workspace.close()
    edit(root, "by-hand", "a line of the person's")
    before = git(root, "rev-parse", "HEAD")
    for verb in (["recall", "line"], ["list"], ["show", "by-hand"], ["status"], ["log"], ["check"]):
        run(["-C", str(root), *verb])
    assert git(root, "rev-parse", "HEAD") == before
    assert "by-hand" in capsys.readouterr().out


@pytest.mark.parametrize("policy", [{"history.adopt": "leave"}, {"history.commit": "manual"}])
def test_where_the_policy_leaves_edits_nobody_commits_them(opened: Opened, git: Git, policy: dict[str, str]) -> None:
    """Under ``history.adopt = "leave"`` and ``history.commit = "manual"`` an edit waits for the person (D1)."""
    workspace = opened(**{"history.commit": "each", **policy})
    path = edit(workspace.root, "by-hand", "a line of the person's")
    workspace.store.put(item("written"))
    workspace.close()
    assert git(workspace.root, "ls-files", path) == ""
    assert "by-hand" not in git(workspace.root, "log", "--name-only")


def test_what_is_not_ready_is_left_alone(workspace: Workspace, subjects: Subjects, git: Git) -> None:
    """Staged paths, an old state looked at, invalid files, conflict markers and fresh edits are not committed (K4)."""
    old = workspace.store.put(item("old-state", "as it was"))
    workspace.store.put(item("old-state", "as it is"))
    git(workspace.root, "checkout", "-q", "HEAD~1", "--", old.path)
    os.utime(workspace.root / old.path, (time.time() - RESTED,) * 2)
    staged = edit(workspace.root, "staged", "somebody is about to commit this")
    git(workspace.root, "add", staged)
    edit(workspace.root, "invalid", "content: [no text]\n")
    edit(workspace.root, "markers", "<<<<<<< ours\ncontent: a\n=======\ncontent: b\n>>>>>>> theirs\n")
    edit(workspace.root, "fresh", "still typing", ago=1)
    edit(workspace.root, "ready", "rested")
    workspace.store.put(item("written"))
    assert subjects()[2:] == [("Ada Person", "ready"), ("Ada Person", "written")]
    assert "staged" in git(workspace.root, "diff", "--cached", "--name-only")
    assert "as it was" in (workspace.root / old.path).read_text()


def test_nothing_is_committed_in_the_middle_of_a_merge(workspace: Workspace, git: Git) -> None:
    """While git is busy a write succeeds and the edit stays; the next write after it commits both (K4)."""
    head = git(workspace.root, "rev-parse", "HEAD").strip()
    (workspace.root / ".git/MERGE_HEAD").write_text(head + "\n")
    path = edit(workspace.root, "by-hand", "a line of the person's")
    workspace.store.put(item("meanwhile"))
    assert git(workspace.root, "rev-parse", "HEAD").strip() == head
    (workspace.root / ".git/MERGE_HEAD").unlink()
    let_rest(workspace.root)
    workspace.store.put(item("afterwards"))
    assert git(workspace.root, "ls-files", path).strip() == path
    assert workspace.store.pending().count == 0


def test_a_burst_of_writes_looks_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing was edited, the next look is due when an edit could have rested, in any process (D6)."""
    looks = 0
    find = HandEdits.find

    def counted(self: HandEdits, include_staged: bool, quiet_seconds: float = 0) -> EditSet:
        nonlocal looks
        looks += 1
        return find(self, include_staged, quiet_seconds)

    monkeypatch.setattr(HandEdits, "find", counted)
    note = workspace.repository.state / "looked"
    note.unlink(missing_ok=True)
    for number in range(5):
        workspace.store.put(item(f"number-{number}"))
    assert looks == 1
    let_rest(workspace.root)
    workspace.store.put(item("later"))
    assert looks == 2


def test_a_fresh_edit_is_looked_for_when_it_can_have_rested(workspace: Workspace, subjects: Subjects) -> None:
    """Beside a person who is typing nobody looks in vain, and the edit waits no longer than it must (D6)."""
    path = edit(workspace.root, "by-hand", "a line of the person's", ago=10)
    workspace.store.put(item("one"))
    note = workspace.repository.state / "looked"
    moment = note.stat().st_mtime_ns
    assert moment == (workspace.root / path).stat().st_mtime_ns
    workspace.store.put(item("two"))
    assert note.stat().st_mtime_ns == moment
    edit(workspace.root, "by-hand", "a line of the person's")
    workspace.store.put(item("three"))
    assert [paths for _, paths in subjects()] == ["one", "two", "by-hand", "three"]


# -- processes --------------------------------------------------------------------------------------------------------
def test_two_processes_commit_an_edit_once(workspace: Workspace, git: Git, forked: Path) -> None:
    """Processes that write at the same moment commit an edit exactly once, and lose nothing of their own (K4)."""
    root = workspace.root
    paths = [edit(root, f"by-hand-{number}", "a line of the person's") for number in range(5)]
    words = [str(forked), "-C", str(root), "--set", "history.commit=each", "remember"]
    started = [subprocess.Popen([*words, f"Process {number} was here", "--id", f"p{number}"]) for number in range(3)]
    assert [process.wait() for process in started] == [0] * 3
    workspace.store.put(item("last"))
    for path in paths:
        assert git(root, "log", "--format=%an", "--", path).splitlines() == ["Ada Person"]
    assert {f"p{number}" for number in range(3)} <= {Path(name).stem for name in git(root, "ls-files").splitlines()}


_KILLED = """
import os, sys
from memfs.model import MemoryItem
from memfs.git import commits
from memfs.workspace import open_workspace
workspace = open_workspace(sys.argv[1], watch=False, settings={"history.commit": "each", "index.engine": "memory"})
if sys.argv[2] == "before":
    commits.commit = lambda *_, **__: os.kill(os.getpid(), 9)
else:
    made = commits.commit
    commits.commit = lambda *given, **named: (made(*given, **named), os.kill(os.getpid(), 9))
workspace.store.put(MemoryItem("text", "semantic", id="never"))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_writer_leaves_the_edit_to_the_next(workspace: Workspace, git: Git, when: str, forked: Path) -> None:
    """Killed before or after the person's commit was made, the edit is committed once, as theirs (K4)."""
    path = edit(workspace.root, "by-hand", "a line of the person's")
    done = subprocess.run([str(forked), "-c", _KILLED, str(workspace.root), when], check=False)
    assert done.returncode == -9
    workspace.store.put(item("next"))
    assert git(workspace.root, "log", "--format=%an", "--", path).splitlines() == ["Ada Person"]
    assert git(workspace.root, "status", "--porcelain") == ""
    assert workspace.store.get("never") is None


def test_the_command_line_commits_an_edit_with_its_next_write(tmp_path: Path, git: Git) -> None:
    """``memfs remember`` commits what a person edited and let rest, where memfs made the repository (D2)."""
    root = tmp_path / "notes"
    assert run(["init", str(root)]) == 0
    assert run(["-C", str(root), "remember", "Deploys go out on Tuesdays", "--id", "deploys"]) == 0
    path = edit(root, "by-hand", "a line of the person's")
    assert run(["-C", str(root), "recall", "line"]) == 0
    assert git(root, "ls-files", path) == ""
    assert run(["-C", str(root), "remember", "Backups run at night", "--id", "backups"]) == 0
    listed = git(root, "log", "--format=%x01%s", "--name-only", "-2").split("\x01")[1:]
    assert ["backups.yaml" in listed[0], "by-hand.yaml" in listed[1]] == [True, True]
    assert git(root, "status", "--porcelain") == ""

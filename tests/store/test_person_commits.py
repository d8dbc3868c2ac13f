"""Where the person commits memory with git, memfs notices, and commits only when asked (D1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.errors import DeinitRefused
from memfs.model import MemoryItem
from memfs.workspace import Workspace, open_workspace

Git = Callable[..., str]
Open = Callable[..., Workspace]


@pytest.fixture
def project(tmp_path: Path, git: Git, opened: Open) -> Workspace:
    """A workspace in a repository that was there before, with something staged."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "code.py").write_text("print()\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    open_workspace(root, create=True, watch=False).close()
    git(root, "add", "memfs.toml", "ContextMemory")
    git(root, "commit", "-qm", "Memory")
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    return opened(root)


def put(workspace: Workspace, text: str, name: str = "port") -> str:
    """Store an item of that id, replacing the one before; its path."""
    return workspace.store.put(MemoryItem(text, "semantic", id=name)).path


def commit(workspace: Workspace, git: Git, *paths: str) -> None:
    """Commit these files as a person does who looks at nothing else."""
    git(workspace.root, "add", *paths)
    git(workspace.root, "commit", "-qm", "By hand", "--", *paths)


def at_head(workspace: Workspace, git: Git, path: str) -> str:
    """What HEAD has there."""
    return git(workspace.root, "show", f"HEAD:{path}")


def test_the_policy_is_chosen_and_nothing_is_committed(project: Workspace, git: Git) -> None:
    """A write in a repository that was there before waits, also when the process ends, and shows in git status (D1)."""
    assert open_workspace(project.root, watch=False).settings.history.commit == "manual"
    before = git(project.root, "rev-parse", "HEAD")
    path = put(project, "The port is 8080")
    project.store.delete("port")
    path = put(project, "The port is 8080")
    project.close()
    assert git(project.root, "rev-parse", "HEAD") == before
    assert git(project.root, "status", "--porcelain", "-uall") == f"A  staged.py\n?? {path}\n"


@pytest.mark.parametrize("how", ["commit", "commit -a", "amend", "rebase"])
def test_what_a_person_committed_waits_no_more(project: Workspace, opened: Open, git: Git, how: str) -> None:
    """However they commit the file, nothing waits, nothing is an edit, and memfs commits nothing again (D1)."""
    root = project.root
    path = put(project, "The port is 8080")
    if how == "commit -a":
        git(root, "add", path)
        git(root, "commit", "-qam", "All of it")
    elif how == "amend":
        git(root, "add", path)
        git(root, "commit", "-q", "--amend", "-m", "With memory")
    elif how == "rebase":
        git(root, "commit", "-qm", "Staged before")
        git(root, "checkout", "-q", "-b", "topic")
        commit(project, git, path)
        git(root, "checkout", "-q", "main")
        (root / "more.py").write_text("more\n")
        commit(project, git, "more.py")
        git(root, "checkout", "-q", "topic")
        git(root, "rebase", "-q", "main")
    else:
        commit(project, git, path)
    head = git(root, "rev-parse", "HEAD")
    for workspace in (project, opened(root)):
        assert workspace.store.pending().count == 0
        assert workspace.store.hand_edits() == []
        assert workspace.store.flush(adopt=True).commits == ()
        assert workspace.recovered.list() == []
    assert git(root, "rev-parse", "HEAD") == head


def test_versions_before_the_committed_one_are_not_committed_over_it(project: Workspace, git: Git) -> None:
    """Of several writes of one item the last is committed by hand; the others can be brought back (D1)."""
    put(project, "The port is 1")
    path = put(project, "The port is 2")
    commit(project, git, path)
    assert project.store.flush(adopt=True).commits == ()
    assert "The port is 2" in at_head(project, git, path)
    assert [row.path for row in project.recovered.list()] == [path]
    assert project.checker.check() == []


def test_a_later_write_waits_after_an_earlier_one_was_committed(project: Workspace, git: Git) -> None:
    """A person commits, memfs writes again: only the second write waits."""
    path = put(project, "The port is 1")
    commit(project, git, path)
    put(project, "The port is 2")
    assert project.store.pending().count == 1
    assert len(project.store.flush(adopt=False).commits) == 1
    assert "The port is 2" in at_head(project, git, path)


def test_a_persons_own_version_is_never_reverted(project: Workspace, git: Git) -> None:
    """A person who edits and commits what memfs wrote has the last word; the written bytes can be brought back (D1)."""
    path = put(project, "The port is 1")
    (project.root / path).write_text("content: The port is mine\n")
    commit(project, git, path)
    (project.root / path).write_text("content: The port is still mine\n")
    done = project.store.flush(adopt=False)
    assert (done.commits, [note.code for note in done.notes]) == ((), ["KeptPersonsChange"])
    assert "The port is mine" in at_head(project, git, path)
    assert project.store.hand_edits() == [path]
    assert [row.path for row in project.recovered.list()] == [path]


def test_of_a_batch_the_part_that_is_not_committed_waits(project: Workspace, git: Git) -> None:
    """A partial commit takes one file of a batch; the other goes into a commit of its own when asked (D1)."""
    with project.store.batch("Two at once") as batch:
        batch.put(MemoryItem("One", "semantic", id="one"))
        batch.put(MemoryItem("Two", "semantic", id="two"))
    one, two = (project.store.locate(name) for name in ("one", "two"))
    commit(project, git, one)
    assert project.store.pending().paths == (two,)
    project.store.flush(adopt=False)
    assert git(project.root, "show", "--format=", "--name-only", "HEAD").split() == [two]
    assert git(project.root, "status", "--porcelain") == "A  staged.py\n"


def test_what_is_forgotten_before_a_commit_never_gets_into_one(project: Workspace, git: Git) -> None:
    """An item that was stored and forgotten between two commits leaves no trace in history (D1)."""
    put(project, "The port is a rumour")
    project.store.delete("port")
    kept = put(project, "The host is known", "host")
    project.store.flush(adopt=True)
    assert project.store.pending().count == 0
    assert "rumour" not in git(project.root, "log", "-p", "--all")
    assert kept in git(project.root, "show", "--format=", "--name-only", "HEAD")
    assert [row.path for row in project.recovered.list()] == [kept.replace("host", "port")]


def test_a_write_goes_along_to_another_branch(project: Workspace, git: Git) -> None:
    """Like any change of a file that is not committed yet, and only the branch that is checked out moves (D1)."""
    path, main = put(project, "The port is 8080"), git(project.root, "rev-parse", "main")
    git(project.root, "checkout", "-q", "-b", "topic")
    assert len(project.store.flush(adopt=False).commits) == 1
    assert "8080" in git(project.root, "show", f"topic:{path}")
    assert git(project.root, "rev-parse", "main") == main


@pytest.mark.parametrize("way", ["another branch", "an earlier commit"])
def test_what_any_commit_holds_is_not_set_aside(project: Workspace, git: Git, way: str) -> None:
    """A switch of branches and ``git rm`` displace nothing that is in history: nothing is there to lose."""
    main, path = project.root, put(project, "The port is 8080")
    git(main, "checkout", "-q", "-b", "topic")
    commit(project, git, path)
    if way == "another branch":
        git(main, "checkout", "-q", "main")
    else:
        git(main, "rm", "-q", path)
        git(main, "commit", "-qm", "Remove it", "--", path)
    assert project.checker.check() == []
    assert project.store.pending().count == 0
    assert project.recovered.list() == []


def test_what_was_set_aside_is_not_a_loss_once_a_branch_has_it(project: Workspace, git: Git) -> None:
    """Bytes that a person displaced and commits later are warned of until then, and cleanup removes the copy."""
    path = put(project, "The port is 8080")
    ours = (project.root / path).read_bytes()
    (project.root / path).unlink()
    git(project.root, "commit", "-qm", "Move HEAD")
    assert [problem.code for problem in project.checker.check()] == ["Recoverable"]
    git(project.root, "checkout", "-q", "-b", "topic")
    (project.root / path).write_bytes(ours)
    commit(project, git, path)
    git(project.root, "checkout", "-q", "main")
    assert "Recoverable" not in [problem.code for problem in project.checker.check()]
    assert len(project.recovered.list()) == 1
    project.cleaner.clean()
    assert project.recovered.list() == []


def test_a_removal_that_a_person_committed_waits_no_more(project: Workspace, git: Git) -> None:
    """``forget`` and then ``git commit -a``."""
    path = put(project, "The port is 8080")
    commit(project, git, path)
    project.store.delete("port")
    assert project.store.pending().count == 1
    git(project.root, "commit", "-qam", "Forget it")
    assert project.store.pending().count == 0
    assert project.store.flush(adopt=True).commits == ()


def test_nothing_is_let_go_of_in_the_middle_of_a_merge(project: Workspace, git: Git) -> None:
    """While a person is at work, HEAD is not final."""
    path = put(project, "The port is 8080")
    commit(project, git, path)
    put(project, "The port is 9090")
    (project.root / ".git/MERGE_HEAD").write_text(git(project.root, "rev-parse", "HEAD"))
    git(project.root, "checkout", "--", path)
    assert project.store.pending().count == 1
    (project.root / ".git/MERGE_HEAD").unlink()
    assert project.store.pending().count == 0


def test_a_batch_that_says_so_is_committed(project: Workspace, git: Git) -> None:
    """``Store.batch(commit=True)`` is a commit that was asked for, beside what is staged (D1)."""
    with project.store.batch("Agreed in March", commit=True) as batch:
        batch.put(MemoryItem("One", "semantic", id="one"))
    assert git(project.root, "log", "-1", "--format=%s").strip() == "Agreed in March"
    assert git(project.root, "status", "--porcelain") == "A  staged.py\n"


def test_a_critical_update_commits_itself_alone(project: Workspace, git: Git) -> None:
    """A critical update and a checkpoint are committed at once; other memories wait for the person (D1, S3)."""
    path = put(project, "The port is 8080")
    before = git(project.root, "rev-parse", "HEAD").strip()
    project.states.recorder.state_update({"timestamp": "2026-03-01T12:00:00Z", "update_type": "critical"})
    made = project.states.checkpoints.create()
    committed = git(project.root, "log", f"{before}..", "--format=", "--name-only").split()
    assert f"ContextMemory/checkpoints/{made.id}/manifest.json" in committed
    assert project.store.pending().paths == (path,)
    assert git(project.root, "status", "--porcelain", "-uall") == f"A  staged.py\n?? {path}\n"


def test_rollback_leaves_the_files_to_the_person(project: Workspace, git: Git) -> None:
    """What is brought back is in the files, and git shows it as a change (D1)."""
    path = put(project, "The port is 1")
    commit(project, git, path)
    put(project, "The port is 2")
    commit(project, git, path)
    head = git(project.root, "rev-parse", "HEAD")
    assert project.history.restore("HEAD~1", "port").commit is None
    assert git(project.root, "rev-parse", "HEAD") == head
    assert git(project.root, "status", "--porcelain") == f" M {path}\nA  staged.py\n"
    assert "The port is 1" in (project.root / path).read_text()


def test_a_restore_sets_aside_what_no_commit_held(project: Workspace, git: Git) -> None:
    """A memory that was never committed is not in the revision that comes back: it can be brought back at once, and
    nobody leaves memfs without reading of it.
    """
    put(project, "The vault opens at nine", "vault")
    assert project.history.restore("HEAD").removed
    (kept,) = project.recovered.list()
    with pytest.raises(DeinitRefused, match=r"that only memfs still holds: 1.*memfs restore --displaced") as refused:
        project.teams.deinit(project.recovered, project.sources.agents_block, purge=False).files()
    assert "memfs commit" not in str(refused.value)
    project.recovered.restore(kept.name)
    found = project.store.get("vault")
    assert found is not None
    assert found.content == "The vault opens at nine"

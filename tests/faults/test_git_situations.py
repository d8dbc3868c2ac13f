"""Git under a person's hands: memfs follows and never gets in the way (faults rows 33-42)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem, Query
from memfs.errors import Conflict, HistoryUnavailable
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]


def remember(workspace: Workspace, name: str, text: str = "x") -> str:
    """Store an item and return its path."""
    return workspace.store.put(MemoryItem(text, "knowledge", id=name)).path


def found(workspace: Workspace, words: str) -> list[str]:
    """Contents of the hits for some words."""
    return [hit.item.content for hit in workspace.recaller.search(words).hits]


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def subject(git: Git, root: Path) -> str:
    """The newest commit's subject."""
    return git(root, "log", "-1", "--format=%s").strip()


def test_34_a_rebase_in_progress_defers_commits_until_it_ends(opened: Opened, git: Git) -> None:
    """Writes are acknowledged and found; their commit waits, says why, and follows within seconds."""
    workspace = opened(history__commit="interval", history__interval_seconds=0.1)
    root = workspace.root
    (root / "code.txt").write_text("1\n")
    git(root, "add", "code.txt")
    git(root, "commit", "-m", "one")
    (root / "code.txt").write_text("2\n")
    git(root, "commit", "-am", "two")
    git(root, "rebase", "-i", "HEAD~1", GIT_SEQUENCE_EDITOR="sed -i s/^pick/edit/")
    before = git(root, "rev-parse", "HEAD")
    remember(workspace, "during", "written during a rebase")
    assert found(workspace, "rebase") == ["written during a rebase"]
    time.sleep(0.5)
    pending = workspace.store.pending()
    assert pending.count == 1
    assert "rebase" in pending.reason
    assert git(root, "rev-parse", "HEAD") == before
    git(root, "rebase", "--continue", GIT_EDITOR="true")
    assert until(lambda: workspace.store.pending().count == 0)
    assert subject(git, root) == "Remember: written during a rebase"
    assert git(root, "branch", "--show-current").strip() == "main"


def test_34_a_merge_conflict_is_never_committed_into(opened: Opened, git: Git) -> None:
    """During a conflicted merge our commit waits, and the person's merge commit holds only what they merged."""
    workspace = opened()
    root = workspace.root
    for branch, text in (("main", "a\n"), ("theirs", "b\n")):
        if branch == "theirs":
            git(root, "checkout", "-q", "-b", "theirs", "HEAD~1")
        (root / "code.txt").write_text(text)
        git(root, "add", "code.txt")
        git(root, "commit", "-m", branch)
    git(root, "merge", "main", check=False)
    remember(workspace, "during")
    flushed = workspace.store.flush()
    assert (flushed.commits, flushed.waiting) == ((), 1)
    assert "merge" in flushed.reason
    (root / "code.txt").write_text("merged\n")
    git(root, "add", "code.txt")
    git(root, "commit", "-m", "merged")
    assert "during" not in git(root, "show", "--stat", "HEAD")
    assert len(workspace.store.flush().commits) == 1


def test_34b_a_slow_hook_of_the_person_succeeds_and_ours_follows(opened: Opened, git: Git) -> None:
    """While their ``git commit`` runs a slow hook, HEAD does not move under it (faults row 34b)."""
    workspace = opened(history__commit="interval", history__interval_seconds=0.05)
    root = workspace.root
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nsleep 2\n")
    hook.chmod(0o755)
    (root / "code.txt").write_text("1\n")
    git(root, "add", "code.txt")
    person = subprocess.Popen(["git", "commit", "-qm", "slow"], cwd=root, stderr=subprocess.PIPE, text=True)
    time.sleep(0.3)
    for number in range(5):
        remember(workspace, f"n{number}")
        time.sleep(0.1)
    _, complaint = person.communicate()
    assert person.returncode == 0, complaint
    assert until(lambda: workspace.store.pending().count == 0)
    assert git(root, "log", "--format=%s", "--grep=slow").strip() == "slow"
    assert git(root, "status", "--porcelain") == ""


def test_35_detached_head_defers_unless_allowed(opened: Opened, git: Git) -> None:
    """By default commits wait for a branch; with the setting they go where HEAD is."""
    workspace = opened()
    root = workspace.root
    git(root, "checkout", "-q", "--detach")
    remember(workspace, "lonely")
    assert "detached" in workspace.store.flush().reason
    allowed = opened(root, history__allow_detached=True)
    assert len(allowed.store.flush().commits) == 1
    assert subject(git, root) == "Remember: x"


def test_35_linked_worktrees_commit_to_their_own_branches(opened: Opened, git: Git, tmp_path: Path) -> None:
    """Two worktrees of one repository, each with its own journal and branch."""
    main = opened()
    git(main.root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = opened(tmp_path / "side")
    remember(main, "on-main")
    path = remember(side, "on-side")
    assert len(main.store.flush().commits) == 1
    assert len(side.store.flush().commits) == 1
    assert path in git(side.root, "ls-tree", "-r", "--name-only", "side")
    assert path not in git(side.root, "ls-tree", "-r", "--name-only", "main")
    for workspace in (main, side):
        assert git(workspace.root, "status", "--porcelain") == ""


def test_35_a_submodule_is_its_own_repository(opened: Opened, git: Git, tmp_path: Path) -> None:
    """A workspace in a submodule commits there, and only there."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        git(folder, "init", "-q")
        (folder / "x").write_text("x")
        git(folder, "add", "x")
        git(folder, "commit", "-qm", "x")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "memory")
    git(outer, "commit", "-qm", "add memory")
    git(outer / "memory", "checkout", "-q", "-B", "main")
    before = git(outer, "rev-parse", "HEAD")
    workspace = opened(outer / "memory")
    remember(workspace, "a")
    workspace.store.flush()
    assert subject(git, outer / "memory") == "Remember: x"
    assert git(outer, "rev-parse", "HEAD") == before
    assert git(outer / "memory", "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "command", [["reset", "-q", "--hard", "HEAD~1"], ["checkout", "-q", "HEAD~1", "--", "ContextMemory"]]
)
def test_37_an_old_state_checked_out_is_followed_and_left_alone(opened: Opened, git: Git, command: list[str]) -> None:
    """Recall shows the old content, and nothing is written back over it."""
    workspace = opened()
    path = remember(workspace, "deploy", "deploy on friday")
    workspace.store.flush()
    remember(workspace, "deploy", "deploy on monday")
    workspace.store.flush()
    assert found(workspace, "deploy") == ["deploy on monday"]
    git(workspace.root, *command)
    assert found(workspace, "deploy") == ["deploy on friday"]
    workspace.store.flush(adopt=True)
    time.sleep(0.1)
    assert "friday" in (workspace.root / path).read_text()
    assert found(opened(workspace.root), "deploy") == ["deploy on friday"]


def test_37_a_git_revert_by_hand_is_followed(opened: Opened, git: Git) -> None:
    """``git revert`` of a memory commit takes the memory out of recall (K4)."""
    workspace = opened()
    remember(workspace, "a", "apple")
    workspace.store.flush()
    git(workspace.root, "revert", "--no-edit", "HEAD")
    assert found(workspace, "apple") == []


@pytest.mark.parametrize("command", [["stash", "-u", "-q"], ["clean", "-fdq"]])
def test_38_what_was_cleaned_away_is_recoverable_and_not_resurrected(
    opened: Opened, git: Git, command: list[str]
) -> None:
    """Uncommitted items that a person cleans away stay away, and ``recovered`` brings them back on request."""
    workspace = opened()
    path = remember(workspace, "draft", "an uncommitted thought")
    git(workspace.root, *command)
    assert found(workspace, "thought") == []
    fresh = opened(workspace.root)
    fresh.store.flush()
    assert not (workspace.root / path).exists()
    assert found(fresh, "thought") == []
    (row,) = fresh.recovered.list()
    assert row.path == path
    assert fresh.recovered.restore("draft") == path
    assert found(fresh, "thought") == ["an uncommitted thought"]
    assert fresh.recovered.list() == []


def test_39_a_foreign_lock_is_reported_and_never_removed(opened: Opened, git: Git) -> None:
    """A stale index.lock of somebody else blocks commits, is named with its age, and stays (faults row 39)."""
    workspace = opened()
    lock = workspace.root / ".git/index.lock"
    lock.write_text("")
    os.utime(lock, (time.time() - 3600, time.time() - 3600))
    remember(workspace, "a")
    flushed = workspace.store.flush()
    assert flushed.waiting == 1
    assert "index.lock" in flushed.reason
    assert lock.exists()
    lock.unlink()
    assert len(workspace.store.flush().commits) == 1


def test_40_inside_a_git_hook_the_hooks_index_is_untouched(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """GIT_DIR and GIT_INDEX_FILE of a hook change nothing for memfs (faults row 40)."""
    workspace = opened()
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "hook-index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    remember(workspace, "a")
    inside = opened(workspace.root)
    assert len(inside.store.flush().commits) == 1
    assert not (tmp_path / "hook-index").exists()
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name)
    assert subject(git, workspace.root) == "Remember: x"
    assert git(workspace.root, "status", "--porcelain") == ""
    assert git(other, "status", "--porcelain") == ""


def test_42_after_amend_and_gc_pending_writes_go_to_the_new_tip(opened: Opened, git: Git) -> None:
    """Rewritten history is read afresh; what a lost revision held is reported as unavailable, data is intact."""
    workspace = opened()
    root = workspace.root
    remember(workspace, "a")
    (lost,) = workspace.store.flush().commits
    remember(workspace, "b")
    git(root, "commit", "-q", "--amend", "-m", "amended")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")
    assert len(workspace.store.flush().commits) == 1
    assert git(root, "log", "--format=%s", "-2").split("\n")[:2] == ["Remember: x", "amended"]
    with pytest.raises(HistoryUnavailable):
        opened(root).history.restore(lost)
    assert found(workspace, "x") == ["x", "x"]


def test_another_branch_gets_what_was_written_on_it(opened: Opened, git: Git) -> None:
    """Waiting writes go to the branch they were made on, and leave the tree of the branch that lacks them."""
    workspace = opened(history__commit="session")
    root = workspace.root
    git(root, "branch", "other")
    path = remember(workspace, "for-main", "only on main")
    git(root, "checkout", "-q", "other")
    assert len(workspace.store.flush().commits) == 1
    assert path in git(root, "ls-tree", "-r", "--name-only", "main")
    assert not (root / path).exists()
    assert found(workspace, "only") == []
    git(root, "checkout", "-q", "main")
    assert found(workspace, "only") == ["only on main"]
    assert git(root, "status", "--porcelain") == ""


def test_a_deleted_branch_sends_its_writes_to_the_current_one(opened: Opened, git: Git) -> None:
    """If the recorded branch is gone, nothing is lost."""
    workspace = opened()
    root = workspace.root
    git(root, "checkout", "-q", "-b", "short")
    path = remember(workspace, "a")
    git(root, "checkout", "-q", "main")
    git(root, "branch", "-qD", "short")
    assert len(workspace.store.flush().commits) == 1
    assert path in git(root, "ls-tree", "-r", "--name-only", "main")


def test_a_pull_is_followed(opened: Opened, git: Git, tmp_path: Path) -> None:
    """What a colleague pushed is recalled after ``git pull`` (K5)."""
    workspace = opened()
    git(tmp_path, "clone", "-q", str(workspace.root), str(tmp_path / "clone"))
    colleague = opened(tmp_path / "clone")
    remember(colleague, "theirs", "a colleague knows kubernetes")
    colleague.store.flush()
    git(workspace.root, "pull", "-q", str(colleague.root), "main")
    assert found(workspace, "kubernetes") == ["a colleague knows kubernetes"]
    assert git(workspace.root, "status", "--porcelain") == ""


def test_rollback_brings_back_an_item_a_folder_or_all(opened: Opened, git: Git) -> None:
    """Each rollback is one new commit; nothing is reset (K4)."""
    workspace = opened(history__commit="session")
    remember(workspace, "a", "a1")
    remember(workspace, "b", "b1")
    (first,) = workspace.store.flush().commits
    remember(workspace, "a", "a2")
    workspace.store.delete("b")
    remember(workspace, "c", "c1")
    workspace.store.flush()
    assert workspace.history.restore(first, "a").restored[0].endswith("/a.yaml")
    assert found(workspace, "a1") == ["a1"]
    planned = workspace.history.restore(first, dry_run=True)
    assert (len(planned.restored), len(planned.removed), planned.commit) == (1, 1, None)
    assert workspace.history.restore(first).commit
    assert {item.id for item in workspace.store.select(Query())} == {"a", "b"}
    assert workspace.store.get("c") is None
    assert workspace.store.get("b") is not None
    assert git(workspace.root, "status", "--porcelain") == ""
    assert git(workspace.root, "merge-base", "--is-ancestor", first, "HEAD") == ""


def test_rollback_over_an_uncommitted_edit_is_a_conflict(opened: Opened) -> None:
    """A person's unsaved work is never overwritten."""
    workspace = opened()
    path = remember(workspace, "a", "a1")
    (first,) = workspace.store.flush().commits
    remember(workspace, "a", "a2")
    workspace.store.flush()
    (workspace.root / path).write_text("content: mine\n")
    with pytest.raises(Conflict, match="not committed"):
        workspace.history.restore(first, "a")
    assert (workspace.root / path).read_text() == "content: mine\n"


def test_the_history_of_a_forgotten_item_is_still_there(opened: Opened) -> None:
    """log, content and rollback know an item by id after it is gone."""
    workspace = opened(history__commit="session")
    remember(workspace, "a", "a1")
    (first,) = workspace.store.flush().commits
    workspace.store.delete("a", reason="no longer true")
    workspace.store.flush()
    subjects = [revision.subject for revision in workspace.history.log("a")]
    assert subjects == ["Forget: a1 (no longer true)", "Remember: a1"]
    assert b"a1" in workspace.history.content(first, "a")
    workspace.history.restore(first, "a")
    assert found(workspace, "a1") == ["a1"]
    blamed = {one.subject.split(" as of ")[0] for one in workspace.teams.blame.fields("a")}
    assert blamed <= {"Remember: a1", "Restore a"}

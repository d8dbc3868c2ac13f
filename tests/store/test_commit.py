"""What waits becomes git history, in the person's repository, without disturbing the person."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from kit.patience import until
from memfs import MemoryItem, Origin
from memfs.workspace import Workspace, open_workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]


def remember(workspace: Workspace, name: str, text: str = "x", agent: str = "", session: str = "") -> str:
    """Store an item and return its path."""
    origin = Origin(agent=agent, session=session)
    return workspace.store.put(MemoryItem(text, "knowledge", id=name, origin=origin)).path


def test_a_flush_commits_what_waits_and_leaves_status_clean(opened: Opened, git: Git) -> None:
    """One window, one writer: one commit, with the person as author and nothing left to do."""
    workspace = opened()
    remember(workspace, "a")
    remember(workspace, "b")
    flushed = workspace.store.flush()
    assert (len(flushed.commits), flushed.waiting, flushed.reason) == (1, 0, "")
    assert git(workspace.root, "status", "--porcelain") == ""
    assert "Remember: x and 1 more" in git(workspace.root, "log", "-1")
    assert "Ada Person" in git(workspace.root, "log", "-1", "--format=%an")
    assert workspace.store.flush().commits == ()


def test_no_commit_holds_two_writers_or_a_path_twice(opened: Opened, git: Git) -> None:
    """Blame and undo by origin rest on this (design section 5)."""
    workspace = opened()
    remember(workspace, "a", "1", agent="scout", session="s1")
    remember(workspace, "b", "1", agent="scout", session="s1")
    remember(workspace, "c", "1", agent="writer", session="s2")
    remember(workspace, "c", "2", agent="writer", session="s2")
    assert len(workspace.store.flush().commits) == 3
    log = git(
        workspace.root,
        "log",
        "-3",
        "--format=%an|%(trailers:key=Memfs-Agent,valueonly,separator=)|%(trailers:key=Memfs-Session,valueonly,separator=)",
    )
    assert log.splitlines() == ["writer|writer|s2", "writer|writer|s2", "scout|scout|s1"]


def test_a_batch_is_exactly_one_commit_of_its_own(opened: Opened, git: Git) -> None:
    """Its message is the caller's; its neighbours are not mixed in."""
    workspace = opened()
    remember(workspace, "before")
    with workspace.store.batch("Import the glossary") as batch:
        for name in ("x", "y"):
            batch.put(MemoryItem(name, "knowledge", id=name, origin=Origin(agent=name)))
    remember(workspace, "after")
    assert len(workspace.store.flush().commits) == 3
    shown = git(workspace.root, "show", "--stat", "--format=%B", "HEAD~1")
    assert "Import the glossary" in shown
    assert "Memfs-Agent: x" in shown
    assert "Memfs-Agent: y" in shown
    assert "2 files changed" in shown


def test_the_commit_holds_the_journals_bytes_not_a_later_edit(opened: Opened, git: Git) -> None:
    """A file edited since shows as the person's unstaged change."""
    workspace = opened()
    path = remember(workspace, "a", "mine")
    (workspace.root / path).write_text("content: theirs\n")
    workspace.store.flush(adopt=False)
    assert "content: mine" in git(workspace.root, "show", f"HEAD:{path}")
    assert git(workspace.root, "status", "--porcelain").strip() == f"M {path}"


def test_hand_edits_are_committed_as_the_persons_own(opened: Opened, git: Git) -> None:
    """An edit, a new file and a removal by hand become one commit by the person."""
    workspace = opened()
    path, gone = remember(workspace, "a", "one"), remember(workspace, "b", "two")
    workspace.store.flush()
    (workspace.root / path).write_text("content: edited\n")
    (workspace.root / gone).unlink()
    made = workspace.root / "ContextMemory/memories/semantic/new.yaml"
    made.parent.mkdir(parents=True)
    made.write_text("content: by hand\n")
    flushed = workspace.store.flush(adopt=True)
    assert len(flushed.commits) == 1
    assert len(flushed.adopted) == 3
    assert git(workspace.root, "status", "--porcelain") == ""
    assert "Memfs-Agent" not in git(workspace.root, "log", "-1")
    assert "by hand" in git(workspace.root, "log", "-1", "--format=%s")


def test_an_invalid_hand_edit_is_not_committed(opened: Opened, git: Git) -> None:
    """A broken file stays the person's unstaged change until it is right."""
    workspace = opened()
    path = remember(workspace, "a")
    workspace.store.flush()
    (workspace.root / path).write_text("content: [\n")
    assert workspace.store.flush(adopt=True).commits == ()
    assert git(workspace.root, "status", "--porcelain").strip() == f"M {path}"


def test_a_staged_path_is_the_persons_unless_they_say_otherwise(opened: Opened, git: Git) -> None:
    """What somebody is staging is left alone and named (faults row 33)."""
    workspace = opened()
    path = remember(workspace, "a", "one")
    remember(workspace, "b", "two")
    workspace.store.flush()
    (workspace.root / path).write_text("content: staged\n")
    git(workspace.root, "add", path)
    before = git(workspace.root, "diff", "--cached")
    flushed = workspace.store.flush(adopt=True)
    assert (flushed.commits, flushed.skipped) == ((), (path,))
    assert git(workspace.root, "diff", "--cached") == before
    assert workspace.store.flush(adopt=True, include_staged=True).adopted == (path,)
    assert git(workspace.root, "status", "--porcelain") == ""


def test_an_interval_commits_by_itself(opened: Opened, git: Git) -> None:
    """Under ``interval`` the window closes without anybody asking."""
    workspace = opened(history__commit="interval", history__interval_seconds=0.05)
    remember(workspace, "a")
    assert until(lambda: workspace.store.pending().count == 0)
    assert "Remember: x" in git(workspace.root, "log", "-1", "--format=%s")


@pytest.mark.parametrize(
    ("policy", "committed"),
    [("interval", True), ("each", True), ("batch", True), ("session", False), ("manual", False)],
)
def test_closing_commits_where_the_policy_says_so(opened: Opened, git: Git, policy: str, committed: bool) -> None:
    """Under ``session`` and ``manual`` the journal keeps what waits; the next process still has it."""
    first = opened()
    with open_workspace(
        first.root, watch=False, settings={"history.commit": policy, "index.engine": "memory"}
    ) as workspace:
        remember(workspace, "a")
    subject = git(first.root, "log", "-1", "--format=%s")
    assert (subject.strip() == "Remember: x") is committed
    assert first.store.pending().count == (0 if committed else 1)


def test_the_next_flush_commits_what_a_dead_process_left(opened: Opened, git: Git) -> None:
    """The journal belongs to the workspace, not to the process that wrote it."""
    first = opened()
    remember(first, "a")
    second = opened(first.root)
    assert len(second.store.flush().commits) == 1
    assert first.store.pending().count == 0


def test_a_workspace_in_a_code_repository_touches_nothing_else(opened: Opened, git: Git, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Only our own paths are committed; the person's staged and unstaged code stays as it is."""
    code = tmp_path / "code"
    code.mkdir()
    git(code, "init")
    (code / "main.py").write_text("print(1)\n")
    git(code, "add", ".")
    git(code, "commit", "-m", "code")
    (code / "main.py").write_text("print(2)\n")
    (code / "staged.py").write_text("x\n")
    git(code, "add", "staged.py")
    workspace = opened(code / "sub" / "memory")
    path = remember(workspace, "a")
    workspace.store.flush()
    assert sorted(git(code, "status", "--porcelain").splitlines()) == [" M main.py", "A  staged.py"]
    files = git(code, "show", "--format=", "--name-only", "HEAD").split()
    assert files == [f"sub/memory/{path}"]
    assert workspace.settings.get("history.commit") == "manual"


def test_a_long_lived_writer_packs_the_repository_it_made(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When many commits have gathered, they are packed behind the scenes, and history reads as before."""
    monkeypatch.setattr("memfs.git.commits.LOOSE_DUE", 1)
    monkeypatch.setattr("memfs.git.commits._SAMPLED", tuple(f"{number:02x}" for number in range(256)))
    workspace = opened(history__commit="interval", history__interval_seconds=0.05)
    for number in range(3):
        remember(workspace, f"n{number}")
    packs = workspace.root / ".git/objects/pack"

    def packed() -> bool:
        remember(workspace, f"more{time.monotonic_ns()}")
        time.sleep(0.05)
        return any(packs.glob("*.pack"))

    assert until(packed)
    workspace.store.flush()
    git(workspace.root, "fsck", "--full", "--strict")


def test_a_removal_over_a_waiting_write_is_committed_with_the_rest(opened: Opened, git: Git) -> None:
    """Removing a file whose new version waits is committed by the same flush; the state machine found
    it left over until the next.
    """
    workspace = opened()
    workspace.store.put(MemoryItem("v1", "knowledge", id="d"))
    workspace.store.flush()
    item = workspace.store.put(MemoryItem("v2", "knowledge", id="d"))
    (workspace.root / item.path).unlink()
    flushed = workspace.store.flush(adopt=True)
    assert (flushed.waiting, flushed.adopted) == (0, (item.path,))
    assert git(workspace.root, "status", "--porcelain") == ""
    assert [row.path for row in workspace.recovered.list()] == [item.path]


def test_36_a_long_queue_lands_in_portions(opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a busy person each portion that lands stays landed; the rest waits, and nothing is committed twice."""
    from memfs.errors import GitBusy
    from memfs.git import commits

    workspace = opened()
    before = len(git(workspace.root, "rev-list", "HEAD").split())
    for number in range(100):
        workspace.store.put(MemoryItem("x", "knowledge", id=f"a{number}", origin=Origin(agent=f"agent{number % 7}")))
    real, calls = commits.commit, []

    def busy_at_the_third(repository, groups, ref, since="", asked=False):  # type: ignore[no-untyped-def]
        calls.append(len(groups))
        if len(calls) == 3:
            raise GitBusy("the branch moved again and again")
        return real(repository, groups, ref, since, asked=asked)

    monkeypatch.setattr(commits, "commit", busy_at_the_third)
    flushed = workspace.store.flush(adopt=False)
    assert (calls, flushed.waiting, len(flushed.commits)) == ([40, 40, 20], 20, 80)
    assert "moved again" in flushed.reason
    flushed = workspace.store.flush(adopt=False)
    assert (flushed.waiting, flushed.reason, len(flushed.commits)) == (0, "", 20)
    assert len(git(workspace.root, "rev-list", "HEAD").split()) == before + 100
    assert git(workspace.root, "status", "--porcelain") == ""

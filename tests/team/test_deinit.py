"""Leaving is as easy as coming: ``memfs deinit`` takes out what memfs put in, and loses nothing silently (D2)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from codebeside import Git, RunMemfs, begin_code

from memfs import private
from memfs.doors.cli.app import run
from memfs.fs import io
from memfs.sessions.spool import SessionEvent, Spool, find_place
from memfs.team import deinit, own_branch
from memfs.workspace import open_workspace

ITEM = "ContextMemory/memories/semantic/2026-01/by-hand.yaml"


@pytest.fixture
def code(tmp_path: Path, git: Git) -> Path:
    """A repository with code, a remote, a branch, a staged change and an untracked file."""
    root = begin_code(tmp_path / "code", git)
    git(root, "branch", "topic")
    git(root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    (root / "main.py").write_text("x = 2\n")
    git(root, "add", "main.py")
    (root / "notes.txt").write_text("untracked\n")
    return root


def snapshot(root: Path, git: Git) -> dict[str, object]:
    """Tree, configuration, refs but the branch's own, staged changes, and all that is in the user's folders."""
    home = Path(os.environ["HOME"])
    inside = [path for path in root.rglob("*") if ".git/objects" not in str(path) and ".git/logs" not in str(path)]
    return {
        "tree": git(root, "ls-tree", "-r", "HEAD"),
        "config": (root / ".git/config").read_bytes(),
        "refs": [row for row in git(root, "for-each-ref").splitlines() if not row.endswith("refs/heads/main")],
        "status": git(root, "status", "--porcelain"),
        "staged": git(root, "diff", "--cached"),
        "files": sorted(str(path) for path in inside),
        "home": sorted(str(path) for path in home.rglob("*") if path.name not in ("cache", ".cache")),
    }


def begin(root: Path, memfs: RunMemfs, commit: str = "each") -> None:
    """Make a workspace with one memory, all of it committed, under a policy."""
    memfs(root, "init")
    text, found = re.subn(r'(?m)^commit = "\w+"$', f'commit = "{commit}"', (root / "memfs.toml").read_text())
    assert found == 1
    (root / "memfs.toml").write_text(text)
    memfs(root, "remember", "Deploys happen on Tuesdays", "--id", "deploys")
    memfs(root, "commit")


# -- everything -------------------------------------------------------------------------------------------------------
def test_purge_leaves_everything_as_it_was_before(code: Path, memfs: RunMemfs, git: Git) -> None:
    """Tree, configuration to the byte, refs, staged changes, git folder and caches equal those before ``init`` (D2)."""
    before = snapshot(code, git)
    begin(code, memfs)
    memfs(code, "recall", "deploys")
    memfs(code, "list", "--as-of", "HEAD")
    memfs(code, "agent", "install", "claude-code")
    head = git(code, "rev-parse", "HEAD").strip()
    git(code, "update-ref", "refs/memfs/seen/origin/main", head)
    memfs(code, "deinit", "--purge")
    assert snapshot(code, git) == before
    assert git(code, "log", "--format=%s", f"{head}..").splitlines() == ["Remove memfs and its memory"]


def test_without_purge_the_memory_stays_as_files(code: Path, memfs: RunMemfs, git: Git) -> None:
    """Files and history stay; driver, refs, state and caches go, and the output says both (D2)."""
    config = (code / ".git/config").read_bytes()
    begin(code, memfs)
    memfs(code, "recall", "deploys")
    head = git(code, "rev-parse", "HEAD")
    output = memfs(code, "deinit")
    assert "the files: ContextMemory/ and memfs.toml" in output
    assert (code / ".git/config").read_bytes() == config
    assert not (code / ".git/memfs").exists()
    assert not (Path(os.environ["HOME"]) / ".cache/memfs").exists()
    assert git(code, "rev-parse", "HEAD") == head
    assert "deploys" in git(code, "ls-files")
    assert "Deploys" in memfs(code, "recall", "deploys")


def test_a_dry_run_names_all_and_changes_nothing(code: Path, memfs: RunMemfs, git: Git) -> None:
    """``--dry-run`` lists files and installations; nothing differs afterwards (D2)."""
    begin(code, memfs)
    memfs(code, "agent", "install", "claude-code")
    before = snapshot(code, git)
    found = json.loads(memfs(code, "deinit", "--purge", "--dry-run", "--json"))
    assert found["refused"] == ""
    assert {"memfs.toml", "ContextMemory/.gitattributes"} <= set(found["files"])
    assert found["clients"] == [str(code / ".claude/settings.json")]
    after = snapshot(code, git)
    assert {**after, "files": 0, "home": 0} == {**before, "files": 0, "home": 0}


def test_where_the_person_commits_deletions_wait_for_them(code: Path, memfs: RunMemfs, git: Git) -> None:
    """Under ``history.commit = "manual"`` a purge makes no commit: the deletions are in the working tree (D1)."""
    begin(code, memfs, "manual")
    head = git(code, "rev-parse", "HEAD")
    memfs(code, "deinit", "--purge")
    assert git(code, "rev-parse", "HEAD") == head
    assert " D memfs.toml" in git(code, "status", "--porcelain")
    assert not (code / "ContextMemory").exists()
    assert not (code / ".git/memfs").exists()


def test_the_block_in_agents_md_goes_with_a_purge(code: Path, memfs: RunMemfs, git: Git) -> None:
    """The block is taken out byte for byte, and the file, which memfs never commits, is named (D2)."""
    (code / "AGENTS.md").write_text("# For agents\n")
    git(code, "add", "AGENTS.md")
    git(code, "commit", "-qm", "Tell agents", "--", "AGENTS.md")
    begin(code, memfs)
    memfs(code, "remember", "Use tabs", "--type", "convention", "--id", "tabs")
    memfs(code, "team", "convention", "accept", "tabs")
    memfs(code, "commit")
    memfs(code, "team", "agents-md", "write")
    assert "Use tabs" in (code / "AGENTS.md").read_text()
    assert "AGENTS.md" in memfs(code, "deinit", "--purge")
    assert (code / "AGENTS.md").read_text() == "# For agents\n"


# -- nothing is lost silently -----------------------------------------------------------------------------------------
def test_what_no_commit_has_is_named_and_kept(code: Path, memfs: RunMemfs) -> None:
    """An edit by hand and an invalid file refuse a purge until it is forced; without one nothing is at stake (D2)."""
    begin(code, memfs)
    (code / ITEM).parent.mkdir(parents=True)
    (code / ITEM).write_text("content: by hand\n")
    (code / ITEM).with_name("broken.yaml").write_text("content: [\n")
    output = memfs(code, "deinit", "--purge", code=1)
    assert all(word in output for word in (ITEM, "broken.yaml", "memfs commit", "--force"))
    assert (code / ITEM).exists()
    assert (code / ".git/memfs").exists()
    memfs(code, "deinit", "--purge", "--dry-run", code=1)
    memfs(code, "deinit")
    assert (code / ITEM).exists()
    done = memfs(code, "deinit", "--purge", "--force")
    assert "uncommitted files: " in done
    assert "refused" not in done
    assert not (code / "ContextMemory").exists()


def test_files_that_are_not_memfss_stay(code: Path, memfs: RunMemfs) -> None:
    """A purge leaves a file that memfs does not know where it is, and says so (D2)."""
    begin(code, memfs)
    (code / "ContextMemory/README.md").write_text("about our memory\n")
    assert "ContextMemory/README.md" in memfs(code, "deinit", "--purge")
    assert [path.name for path in (code / "ContextMemory").iterdir()] == ["README.md"]
    assert "holds no memory" in memfs(code, "list", code=1)


def test_contents_set_aside_are_named(code: Path, memfs: RunMemfs) -> None:
    """Bytes that ``memfs restore --displaced`` could bring back keep a deinit from going on (D2)."""
    begin(code, memfs)
    (state,) = (path for path in (code / ".git/memfs").iterdir() if (path / "lock").exists())
    (state / "recovered").mkdir(exist_ok=True)
    (state / "recovered/x-0.kept").write_bytes(json.dumps({"path": ITEM}).encode() + b"\ncontent: x\n")
    assert "memfs restore --displaced" in memfs(code, "deinit", code=1)
    memfs(code, "deinit", "--force")
    assert not (code / ".git/memfs").exists()


def test_a_rescue_ref_that_alone_keeps_commits_is_named(code: Path, memfs: RunMemfs, git: Git) -> None:
    """Commits that only a ref of memfs keeps are named before it goes (D2)."""
    begin(code, memfs)
    tree = git(code, "rev-parse", "HEAD^{tree}").strip()
    only = git(code, "commit-tree", tree, "-p", "HEAD", "-m", "kept").strip()
    git(code, "update-ref", "refs/memfs/rescue/origin/main/1", only)
    assert "refs/memfs/rescue/origin/main/1" in memfs(code, "deinit", code=1)
    git(code, "branch", "saved", only)
    memfs(code, "deinit")
    assert git(code, "for-each-ref", "refs/memfs/") == ""


def test_a_process_that_has_it_open_is_named(code: Path, memfs: RunMemfs) -> None:
    """A running server or watcher of the workspace is named, with its process (D2)."""
    begin(code, memfs)
    words = [sys.executable, "-m", "memfs", "-C", str(code), "admin", "watch", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watcher:
        try:
            state = next(path for path in (code / ".git/memfs").iterdir() if (path / "lock").exists())
            while not list(state.glob("watchers/*.json")):
                assert watcher.poll() is None
            assert f"process {watcher.pid}" in memfs(code, "deinit", code=1)
        finally:
            watcher.terminate()
    memfs(code, "deinit")


def test_writes_that_wait_for_another_branch_are_named(code: Path, memfs: RunMemfs, git: Git) -> None:
    """A write that waits for its commit to a branch that is not checked out now keeps a deinit back (D2)."""
    begin(code, memfs, "session")
    memfs(code, "remember", "Only on main", "--id", "only-on-main")
    git(code, "switch", "-q", "topic")
    assert "wait for their commit to main" in memfs(code, "deinit", code=1)
    assert (code / ".git/memfs").exists()


def test_what_is_beside_git_is_named(code: Path, memfs: RunMemfs) -> None:
    """A checkpoint's payload, which no commit can hold, keeps a purge from going on until it is forced (D2)."""
    begin(code, memfs)
    payload = code / "ContextMemory/checkpoints/ckpt_20260101_0000/state.tar.zst"
    payload.parent.mkdir(parents=True)
    payload.write_bytes(b"payload")
    assert "state.tar.zst" in memfs(code, "deinit", "--purge", code=1)
    memfs(code, "deinit", "--purge", "--force")
    assert not (code / "ContextMemory").exists()


def test_in_the_middle_of_a_merge_nothing_is_done(code: Path, memfs: RunMemfs, git: Git) -> None:
    """While git is busy a deinit is refused (D2)."""
    begin(code, memfs)
    (code / ".git/MERGE_HEAD").write_text(git(code, "rev-parse", "HEAD"))
    assert "merge" in memfs(code, "deinit", "--purge", code=1)
    assert (code / "memfs.toml").exists()


# -- several workspaces -----------------------------------------------------------------------------------------------
def test_another_workspace_of_the_repository_keeps_working(code: Path, memfs: RunMemfs, git: Git) -> None:
    """Only the workspace's own state and caches go; what all share goes with the last one (D2)."""
    for name in ("one", "two"):
        (code / name).mkdir()
        begin(code / name, memfs)
        memfs(code / name, "recall", "deploys")
    output = memfs(code / "one", "deinit", "--purge")
    assert str(code / "two") in output
    assert 'merge "memfs"' in (code / ".git/config").read_text()
    assert "Deploys" in memfs(code / "two", "recall", "deploys")
    assert not (code / "one/memfs.toml").exists()
    assert git(code, "ls-files", "two") != ""
    memfs(code / "two", "deinit", "--purge")
    assert 'merge "memfs"' not in (code / ".git/config").read_text()
    assert not (code / ".git/memfs").exists()


# -- interrupted ------------------------------------------------------------------------------------------------------
class Killed(BaseException):
    """Stands for a process that ended there."""


def _ends(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize(
    "place",
    [(deinit, "take_out"), (own_branch, "update_refs"), (deinit, "drop"), (io, "remove_all")],
    ids=["after-the-files", "before-refs", "before-caches", "before-state"],
)
def test_killed_half_way_it_can_be_run_again(
    code: Path, memfs: RunMemfs, git: Git, monkeypatch: pytest.MonkeyPatch, place: tuple[object, str]
) -> None:
    """Wherever a deinit ends early, the next one ends it (D2)."""
    begin(code, memfs)
    git(code, "update-ref", "refs/memfs/seen/origin/main", git(code, "rev-parse", "HEAD").strip())
    with monkeypatch.context() as patch:
        patch.setattr(*place, _ends)
        with pytest.raises(Killed):
            run(["-C", str(code), "deinit"])
    memfs(code, "deinit")
    assert 'merge "memfs"' not in (code / ".git/config").read_text()
    assert not (code / ".git/memfs").exists()
    assert git(code, "for-each-ref", "refs/memfs") == ""


def test_private_memory_stays_and_is_found_again(code: Path, memfs: RunMemfs) -> None:
    """Without being asked for it, leaving takes no private memory along, nor the key that leads to it (D2, C6)."""
    memfs(code, "init")
    place = find_place(str(code))
    output = memfs(code, "deinit")
    assert f"keeps   your private memory, 0 items in {place.root}" in output
    assert [path.name for path in (code / ".git/memfs").iterdir()] == ["project"]
    assert private.find(private.project_at(code)) == place.root


def test_private_memory_goes_on_request(code: Path, memfs: RunMemfs) -> None:
    """``--private`` names it first, then removes it with its key (D2, C6)."""
    memfs(code, "init")
    place = find_place(str(code))
    planned = json.loads(memfs(code, "deinit", "--private", "--dry-run", "--json"))["private"]
    assert planned == {"folder": str(place.root), "items": 0, "used_by": [], "goes": True}
    assert place.root.is_dir()
    memfs(code, "deinit", "--private")
    assert not place.root.exists()
    assert not (code / ".git/memfs").exists()


def test_private_memory_is_not_lost_without_force(code: Path, memfs: RunMemfs) -> None:
    """Where private memory holds something, ``--private`` alone is refused and names it; ``--force`` goes on (D2)."""
    memfs(code, "init")
    place = find_place(str(code))
    memfs(place.root, "remember", "nobody else has this")
    output = memfs(code, "deinit", "--private", code=1)
    assert f"your private memory, 1 item in {place.root}" in output
    assert "--force" in output
    assert "'memfs export' there writes it out; with --force" in output
    assert place.root.is_dir()
    assert "memfs export" not in memfs(code, "deinit", "--private", "--force")
    assert not place.root.exists()


def test_the_last_events_of_a_session_are_taken_in_first(code: Path, memfs: RunMemfs) -> None:
    """What waits since the end of a session becomes a memory or a suggestion before the workspace goes (D2)."""
    memfs(code, "init")
    with open_workspace(code, watch=False) as workspace:
        fields = {"prompt": "Remember: we always deploy on Tuesdays"}
        spool = Spool(workspace.repository.state)
        spool.append(SessionEvent("UserPromptSubmit", "s1", fields=fields))
        assert spool.waiting()
    assert "waits" not in memfs(code, "deinit")


def test_backups_of_an_earlier_workspace_of_the_name_are_named(code: Path, memfs: RunMemfs) -> None:
    """What was backed up before memfs was taken out and put in again is named the second time, too (D2)."""
    memfs(code, "init")
    memfs(code, "remember", "kept in a backup")
    memfs(code, "commit")
    made = json.loads(memfs(code, "admin", "backup", "create", "--json"))
    memfs(code, "deinit")
    memfs(code, "init")
    assert Path(made["backups"][0]["path"]).name in memfs(code, "deinit", "--purge")


def test_private_memory_that_another_clone_uses_stays(code: Path, tmp_path: Path, memfs: RunMemfs, git: Git) -> None:
    """What a second clone reads and writes is not removed when the first one leaves (D2, C6)."""
    memfs(code, "init")
    place = find_place(str(code))
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(code), str(other))
    private.join(private.project_at(other), place.root)
    assert f"which {other}/.git uses, too" in memfs(code, "deinit", "--private")
    assert private.find(private.project_at(other)) == place.root

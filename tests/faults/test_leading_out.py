"""A repository whose parts lead elsewhere: nothing is written at their end (faults rows 14 and 41)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem, trust
from memfs.errors import RepoUntrusted
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Git = Callable[..., str]


@pytest.fixture
def victim(tmp_path: Path, opened: Opened) -> Path:
    """A repository of this user's own, with a workspace in it, and nobody at work."""
    workspace = opened(tmp_path / "victim")
    workspace.store.put(MemoryItem("mine", "knowledge", id="mine"))
    workspace.store.flush()
    workspace.close()
    return workspace.root


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What came from elsewhere: a folder with memory in it, and a ``.git`` yet to be planted."""
    root = tmp_path / "clone"
    (root / "ContextMemory/memories/knowledge").mkdir(parents=True)
    (root / "ContextMemory/memories/knowledge/x.yaml").write_text("content: planted\n")
    return root


def heads(git: Git, root: Path) -> str:
    return git(root, "for-each-ref")


def linked(victim: Path, clone: Path) -> None:
    (clone / ".git").symlink_to(victim / ".git")


def filed(victim: Path, clone: Path) -> None:
    (clone / ".git").write_text(f"gitdir: {victim}/.git\n")


def common(victim: Path, clone: Path) -> None:
    (clone / ".git").mkdir()
    (clone / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (clone / ".git/commondir").write_text(f"{victim}/.git\n")


def someones_worktree(victim: Path, clone: Path) -> None:
    folder = victim / ".git/worktrees/side"
    folder.mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/side\n")
    (folder / "commondir").write_text("../..\n")
    (folder / "gitdir").write_text(f"{victim.parent}/side/.git\n")
    (clone / ".git").write_text(f"gitdir: {folder}\n")


@pytest.mark.parametrize("plant", [linked, filed, common, someones_worktree])
def test_41_another_working_trees_git_folder_is_not_taken_for_ones_own(
    victim: Path, clone: Path, git: Git, plant: Callable[[Path, Path], None]
) -> None:
    """A planted ``.git`` cannot have memories committed into a repository of this user's own, until they say so."""
    plant(victim, clone)
    before = heads(git, victim)
    with pytest.raises(RepoUntrusted) as refused:
        open_workspace(clone, watch=False)
    assert f"memfs admin trust {clone}" in (refused.value.hint or "")
    assert heads(git, victim) == before
    trust.grant(clone)
    open_workspace(clone, watch=False, settings={"index.engine": "memory"}).close()
    trust.revoke(clone)
    with pytest.raises(RepoUntrusted):
        open_workspace(clone, watch=False)


def test_35_honest_git_files_need_no_trust(tmp_path: Path, victim: Path, git: Git) -> None:
    """A linked working tree, a separate git folder and a submodule know their working tree (faults row 35)."""
    git(victim, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    apart = tmp_path / "apart"
    git(tmp_path, "clone", "-q", "--separate-git-dir", str(tmp_path / "store.git"), str(victim), str(apart))
    git(victim, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(victim), "inner")
    for root in (tmp_path / "side", apart, victim / "inner"):
        open_workspace(root, watch=False, settings={"index.engine": "memory"}).close()


@pytest.mark.parametrize(
    "part",
    [
        "objects",
        "objects/pack",
        "refs",
        "refs/heads",
        "refs/heads/a",
        "logs",
        "logs/HEAD",
        "logs/refs",
        "logs/refs/heads",
        "logs/refs/heads/a",
        "logs/refs/heads/a/b",
    ],
)
def test_14_a_part_of_git_that_leads_out_takes_no_commit(
    tmp_path: Path, victim: Path, git: Git, opened: Opened, part: str
) -> None:
    """Commits wait, writes are kept in files and journal, and nothing appears where the link leads (rows 14 and 41)."""
    git(victim, "config", "core.logAllRefUpdates", "true")
    git(victim, "checkout", "-q", "-b", "a/b")
    git(victim, "commit", "--allow-empty", "-qm", "so that there is a log")
    outside = tmp_path / "outside"
    place = victim / ".git" / part
    assert place.exists()
    shutil.move(place, outside)
    place.symlink_to(outside)
    before = snapshot(outside)
    workspace = opened(victim)
    workspace.store.put(MemoryItem("new", "knowledge", id="new"))
    flushed = workspace.store.flush()
    assert snapshot(outside) == before
    assert (flushed.waiting, "leads out" in flushed.reason) == (1, True)
    found = workspace.store.get("new")
    assert found is not None
    assert found.content == "new"


def test_14_links_among_the_folders_of_objects_are_not_followed(tmp_path: Path, victim: Path, opened: Opened) -> None:
    """Each of the 256 folders could be a link: an object is not written through one (rows 14 and 41)."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for number in range(256):
        place = victim / ".git/objects" / f"{number:02x}"
        if not place.exists():
            place.symlink_to(outside)
    workspace = opened(victim)
    for number in range(4):
        workspace.store.put(MemoryItem(f"new {number}", "knowledge", id=f"new{number}"))
        workspace.store.flush()
    assert list(outside.iterdir()) == []


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file at or below a place."""
    if folder.is_file():
        return {"": folder.read_bytes()}
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

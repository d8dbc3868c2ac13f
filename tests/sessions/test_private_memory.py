"""Whose private memory it is: repositories that are cloned, copied, moved, forked, linked or shared by people."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.faults import Fault, injected
from memfs import private
from memfs.errors import FormatUnsupported, StorageReadOnly
from memfs.fs import io
from memfs.git.layout import discover
from memfs.model import MemoryItem
from memfs.private import claim, clones, find, normalised, project_at
from memfs.sessions.spool import agent_location, find_place, known_place
from memfs.sessions.store import join
from memfs.workspace import open_workspace

Git = Callable[..., str]


@pytest.fixture
def shop(tmp_path: Path, git: Git) -> Path:
    """A repository with code and no memory."""
    root = tmp_path / "shop"
    root.mkdir()
    git(root, "init", "-q")
    (root / "app.py").write_text("pass\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Begin")
    return root


def key_in(root: Path) -> str:
    """The key in a repository's git folder."""
    return (root / ".git" / "memfs" / "project").read_text().strip()


def memory_of(root: Path) -> Path | None:
    """The private memory that a folder has now."""
    return find(project_at(root))


def made(root: Path) -> Path:
    """The private memory of a folder, made where there is none."""
    return find_place(str(root), {}).root


# -- where it is --------------------------------------------------------------------------------------------------
def test_it_is_outside_the_repository_and_is_this_users_alone(shop: Path, own_world: Path, git: Git) -> None:
    """Private memory is a repository of its own in the user's data folder, entered by nobody else (C6)."""
    folder = made(shop)
    assert folder.parent == own_world / ".local/share/memfs/projects"
    assert folder.name == key_in(shop)
    assert folder.stat().st_mode & 0o077 == 0
    assert git(folder, "rev-parse", "--show-toplevel").strip() == str(folder)
    assert git(shop, "status", "--porcelain") == ""
    assert memory_of(shop) == folder


def test_looking_makes_nothing(shop: Path, own_world: Path) -> None:
    """Reading alone leaves no key and no folder (C6)."""
    assert memory_of(shop) is None
    assert known_place(agent_location(str(shop), {})) is None
    assert not (shop / ".git" / "memfs").exists()
    assert not (own_world / ".local").exists()


def test_a_folder_without_git_is_known_by_its_path(tmp_path: Path, git: Git) -> None:
    """Without git the real path counts, through links; once there is git its memory goes on (C6)."""
    notes = tmp_path / "notes"
    notes.mkdir()
    folder = made(notes)
    (tmp_path / "link").symlink_to(notes)
    assert made(tmp_path / "link") == folder
    git(notes, "init", "-q")
    assert made(notes) == folder
    assert key_in(notes) == folder.name


def test_a_folder_that_others_may_write_in_is_not_used(shop: Path) -> None:
    """What somebody else could have planted is not read; the next session closes the folder (C6)."""
    folder = made(shop)
    folder.chmod(0o777)
    with pytest.raises(StorageReadOnly):
        memory_of(shop)
    claim(project_at(shop))
    assert folder.stat().st_mode & 0o077 == 0
    assert memory_of(shop) == folder


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_not_used(shop: Path) -> None:
    """Two people on one machine never see each other's: the owner is looked at (C6)."""
    folder = made(shop)
    os.chown(folder, 12345, 12345)
    with pytest.raises(StorageReadOnly):
        memory_of(shop)
    with pytest.raises(StorageReadOnly):
        claim(project_at(shop))


def test_two_people_in_one_repository_have_a_memory_each(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key may be seen by both; each has a data folder of their own (C6)."""
    first = made(shop)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "bo"))
    assert memory_of(shop) is None
    second = made(shop)
    assert second.name == first.name
    assert second.is_relative_to(tmp_path / "bo")


def test_a_newer_record_is_left_alone(shop: Path) -> None:
    """A record of a newer memfs is refused, and not written over (C6)."""
    record = made(shop) / private.RECORD
    record.write_text(record.read_text().replace('"format": 1', '"format": 9'))
    with pytest.raises(FormatUnsupported):
        memory_of(shop)
    with pytest.raises(FormatUnsupported):
        claim(project_at(shop))


# -- which repository is which project ----------------------------------------------------------------------------
def test_worktrees_are_one_project(shop: Path, tmp_path: Path, git: Git) -> None:
    """All working trees of a repository have one private memory, a bare one's too (C6)."""
    folder = made(shop)
    git(shop, "worktree", "add", "-q", str(tmp_path / "fix"), "-b", "fix")
    assert made(tmp_path / "fix") == folder
    git(tmp_path, "clone", "-q", "--bare", str(shop), str(tmp_path / "hub.git"))
    git(tmp_path / "hub.git", "worktree", "add", "-q", str(tmp_path / "tree"), "main")
    assert made(tmp_path / "tree") == made(tmp_path / "hub.git") != folder


def test_a_copy_has_a_memory_of_its_own(shop: Path, tmp_path: Path) -> None:
    """``cp -r`` carries the key; the copy is distinguished and gets another, the original keeps its own (C6)."""
    folder = made(shop)
    shutil.copytree(shop, tmp_path / "copy")
    assert key_in(tmp_path / "copy") == folder.name
    assert memory_of(tmp_path / "copy") is None
    assert made(tmp_path / "copy") != folder
    assert key_in(tmp_path / "copy") != folder.name
    assert made(shop) == folder


def test_a_copy_that_takes_no_key_is_known_by_its_path(shop: Path, tmp_path: Path) -> None:
    """Where the git folder takes no writes nothing of the original is shown either (C6)."""
    folder = made(shop)
    shutil.copytree(shop, tmp_path / "copy")
    with _no_writes(tmp_path / "copy" / ".git" / "memfs"):
        other = made(tmp_path / "copy")
        assert other != folder
        assert made(tmp_path / "copy") == other


def test_a_repository_that_was_moved_keeps_its_memory(shop: Path, tmp_path: Path) -> None:
    """Moved on one disk it is known by its inode, moved to another by the place that is empty now (C6)."""
    folder = made(shop)
    shop.rename(tmp_path / "moved")
    assert made(tmp_path / "moved") == folder
    shutil.copytree(tmp_path / "moved", tmp_path / "other-disk")
    shutil.rmtree(tmp_path / "moved")
    assert memory_of(tmp_path / "other-disk") == folder
    assert made(tmp_path / "other-disk") == folder
    shutil.copytree(tmp_path / "other-disk", tmp_path / "copy")
    assert made(tmp_path / "copy") != folder
    assert made(tmp_path / "other-disk") == folder


def test_a_template_and_a_fork_share_nothing(shop: Path, tmp_path: Path, git: Git) -> None:
    """A clone has no key of its origin; that of another address is not a clone of the same origin (C6)."""
    git(shop, "remote", "add", "origin", "git@github.com:acme/shop.git")
    folder = made(shop)
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "-q", str(shop), str(fork))
    git(fork, "remote", "set-url", "origin", "https://github.com/bo/shop.git")
    assert made(fork) != folder
    assert clones(project_at(fork)) == []
    begun = tmp_path / "begun"
    shutil.copytree(shop, begun, ignore=shutil.ignore_patterns(".git"))
    git(begun, "init", "-q")
    assert made(begun) != folder
    assert clones(project_at(begun)) == []


def test_a_template_of_gits_carries_no_memory(shop: Path, tmp_path: Path, git: Git) -> None:
    """A key that a clone or a new repository gets from git's template folder is another project's (C6)."""
    folder = made(shop)
    template = tmp_path / "template"
    shutil.copytree(shop / ".git" / "memfs", template / "memfs")
    git(tmp_path, "clone", "-q", f"--template={template}", str(shop), str(tmp_path / "cloned"))
    (tmp_path / "begun").mkdir()
    git(tmp_path / "begun", "init", "-q", f"--template={template}")
    for root in (tmp_path / "cloned", tmp_path / "begun"):
        assert key_in(root) == folder.name
        assert memory_of(root) is None
        assert made(root) != folder
    assert made(shop) == folder


def test_a_project_in_the_place_of_another_shows_nothing_of_it(shop: Path, tmp_path: Path, git: Git) -> None:
    """Whatever is where a repository was is a project of its own; the old one is known where it went (C6)."""
    folder = made(shop)
    shop.rename(tmp_path / "aside")
    shop.mkdir()
    assert memory_of(shop) is None
    git(shop, "init", "-q")
    assert memory_of(shop) is None
    other = made(shop)
    assert other != folder
    assert made(tmp_path / "aside") == folder
    shutil.rmtree(shop)
    shutil.copytree(tmp_path / "aside", shop)
    assert memory_of(shop) not in (folder, other)


def test_clones_that_take_no_key_follow_each_other_in_one_place(shop: Path, git: Git) -> None:
    """Where only the path is known, another origin in the same place is another project (C6)."""
    git(shop, "remote", "add", "origin", "https://example.org/acme/shop.git")
    (shop / ".git" / "memfs").mkdir()
    with _no_writes(shop / ".git" / "memfs"):
        folder = made(shop)
        git(shop, "remote", "set-url", "origin", "https://example.org/acme/store.git")
        assert made(shop) == folder
        shop.rename(shop.with_name("aside"))
        shop.mkdir()
        git(shop, "init", "-q")
        git(shop, "remote", "add", "origin", "https://example.org/bo/blog.git")
        (shop / ".git" / "memfs").mkdir()
        assert memory_of(shop) is None
        other = made(shop)
        assert other != folder
        assert made(shop) == memory_of(shop) == other
        git(shop, "remote", "set-url", "origin", "https://example.org/acme/store.git")
        assert memory_of(shop) == folder


def test_a_worktree_and_a_clone_that_were_moved_keep_theirs(shop: Path, tmp_path: Path, git: Git) -> None:
    """Repository and worktree moved, the worktree repaired or made again: one memory as before (C6)."""
    folder = made(shop)
    git(shop, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert memory_of(tmp_path / "side") == folder
    shop.rename(tmp_path / "moved")
    (tmp_path / "side").rename(tmp_path / "other")
    assert memory_of(tmp_path / "other") is None
    git(tmp_path / "moved", "worktree", "repair", str(tmp_path / "other"))
    assert made(tmp_path / "other") == made(tmp_path / "moved") == folder


@pytest.mark.parametrize("how", [[], ["--depth=1"], ["--single-branch"], ["--bare"]])
def test_a_fresh_clone_starts_empty_and_is_joined_when_asked(
    shop: Path, tmp_path: Path, git: Git, how: list[str]
) -> None:
    """A clone of the same origin is offered the memory of another, and uses it only once somebody said so (C6)."""
    first, second = tmp_path / "first", tmp_path / "second"
    git(tmp_path, "clone", "-q", f"file://{shop}", str(first))
    folder = made(first)
    git(tmp_path, "clone", "-q", *how, f"file://{shop}", str(second))
    assert memory_of(second) is None
    own = made(second)
    assert own != folder
    assert clones(project_at(second)) == [folder]
    join(project_at(second), folder)
    assert made(second) == made(first) == folder
    assert not own.exists()


def test_joining_brings_along_what_the_clone_had(shop: Path, tmp_path: Path, git: Git) -> None:
    """Nothing that a clone remembered is lost when it joins another, and a copy of it is still a copy (C6)."""
    first, second = tmp_path / "first", tmp_path / "second"
    for clone in (first, second):
        git(tmp_path, "clone", "-q", str(shop), str(clone))
    folder, own = made(first), made(second)
    with open_workspace(own, watch=False) as workspace:
        workspace.store.put(MemoryItem("Deploys go to Frankfurt.", "semantic", id="region"))
    assert join(project_at(second), folder) == 1
    with open_workspace(folder, watch=False) as workspace:
        assert workspace.store.get("region") is not None
    shutil.copytree(second, tmp_path / "copy")
    assert made(tmp_path / "copy") != folder
    assert made(second) == made(first) == folder


def test_a_submodule_is_a_project_of_its_own(shop: Path, tmp_path: Path, git: Git) -> None:
    """Its sessions are its own, also where the project around it has memory in its repository (C6)."""
    git(tmp_path, "clone", "-q", str(shop), str(tmp_path / "lib"))
    git(shop, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    open_workspace(shop, create=True, watch=False).close()
    folder = made(shop)
    inner = find_place(str(shop / "lib"), {})
    assert inner.root != folder
    assert (inner.memory, find_place(str(shop), {}).memory) == (None, shop)
    assert inner.root.name.startswith("lib-")


def test_a_git_folder_that_moves_takes_the_memory_along(shop: Path, tmp_path: Path, git: Git) -> None:
    """A repository that becomes a submodule, or whose git folder is put elsewhere, is the same project (C6)."""
    inner = shop / "lib"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "Begin")
    folder = made(inner)
    assert folder != made(shop)
    git(shop, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./lib", "lib")
    git(shop, "submodule", "absorbgitdirs")
    assert (inner / ".git").is_file()
    assert made(inner) == folder
    around = made(shop)
    git(shop, "init", "-q", f"--separate-git-dir={tmp_path / 'elsewhere'}")
    assert made(shop) == around


def test_a_git_file_that_leads_elsewhere_gives_nothing_away(shop: Path, tmp_path: Path) -> None:
    """A folder from somewhere whose ``.git`` names this user's repository is not a working tree of it (C6)."""
    folder = made(shop)
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / ".git").write_text(f"gitdir: {shop}/.git\n")
    assert memory_of(planted) is None
    assert made(planted) != folder


@pytest.mark.parametrize("key", ["../../../etc", "shop", "", "a" * 500, "shop-UPPERCASEUPPERCA", "\n\n"])
def test_a_key_that_leads_nowhere_does_not_count(shop: Path, key: str) -> None:
    """What is in the git folder is not a path; what no memfs wrote there is replaced (C6)."""
    (shop / ".git" / "memfs").mkdir()
    (shop / ".git" / "memfs" / "project").write_text(key)
    assert memory_of(shop) is None
    assert key_in_after(shop) != key.strip()


def key_in_after(root: Path) -> str:
    """The key once there is private memory."""
    assert made(root).parent == private.projects_folder()
    return key_in(root)


@pytest.mark.parametrize(
    "address",
    [
        "git@github.com:acme/shop.git",
        "https://github.com/acme/shop",
        "https://user:token@GitHub.com/acme/shop.git/",
        "ssh://git@github.com:22/acme/shop.git",
        "github.com:acme/shop",
    ],
)
def test_one_origin_has_one_form(address: str) -> None:
    """The same repository is the same in whichever way its address is written, and without the login in it (C6)."""
    assert normalised(address) == "github.com/acme/shop"


def test_other_origins_have_others() -> None:
    """Another host, port, owner or folder is another origin (C6)."""
    addresses = [
        "https://github.com/acme/shop",
        "https://gitlab.com/acme/shop",
        "https://github.com/bo/shop",
        "ssh://git@github.com:2222/acme/shop",
        "/srv/git/shop.git",
        "../shop",
        "",
    ]
    assert len({normalised(address) for address in addresses}) == len(addresses)


# -- made once, by any process, killed anywhere -------------------------------------------------------------------
def test_two_processes_at_once_make_one(shop: Path, forked: Path) -> None:
    """The first events of a session come from several processes at once: they agree on one memory (C6)."""
    code = "import sys; from memfs.sessions.spool import find_place; print(find_place(sys.argv[1], {}).root)"
    running = [subprocess.Popen([str(forked), "-c", code, str(shop)], stdout=subprocess.PIPE) for _ in range(4)]
    found = {process.communicate()[0].decode().strip() for process in running}
    assert found == {str(private.projects_folder() / key_in(shop))}
    assert len(list(private.projects_folder().iterdir())) == 1


def test_killed_anywhere_the_next_one_goes_on(shop: Path, tmp_path: Path, scale: Callable[[int, int], int]) -> None:
    """Whatever operation of the first use is the last, the next use completes one memory (C6)."""
    shutil.copytree(shop, tmp_path / "counted")
    with injected(Fault()) as counted:
        made(tmp_path / "counted")
    number = len(counted.seen)
    points = {*range(1, number + 1, scale(number // 4, 3)), *range(1, 20, scale(9, 1)), number}
    for at in sorted(points):
        root = tmp_path / f"at-{at}"
        shutil.copytree(shop, root)
        _made_until(root, at)
        folder = made(root)
        assert memory_of(root) == folder
        assert folder.name == key_in(root)
        assert git_top(folder) == folder
        assert 'commit = "interval"' in (folder / "memfs.toml").read_text()


def _made_until(root: Path, at: int) -> None:
    """Begin with private memory in a process that is killed at an operation."""
    child = os.fork()
    if not child:
        left = [at]

        def end(*_: object) -> None:
            left[0] -= 1
            if not left[0]:
                os._exit(9)

        io.set_hook(end)
        try:
            made(root)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def git_top(folder: Path) -> Path:
    """The working tree that a folder is in."""
    layout = discover(folder)
    assert layout is not None
    return layout.work_tree


@contextmanager
def _no_writes(folder: Path) -> Iterator[None]:
    """As on a disk that takes none: nothing below a folder may be written."""

    def refuse(name: str, path: str) -> None:
        if name not in ("stat", "read") and str(path).startswith(str(folder)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    before = io.set_hook(refuse)
    try:
        yield
    finally:
        io.set_hook(before)

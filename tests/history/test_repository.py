"""Finding a repository and reading from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memfs.errors import HistoryError, HistoryUnavailable, PathEscape, RepoUnsupported, RepoUntrusted
from memfs.history import layout
from memfs.history.repository import Head, Repository

ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"


def test_importing_the_repository_does_not_import_gitpython():
    """GitPython costs 90 ms and is imported only when a git process is needed."""
    code = "import sys, memfs.history.commits, memfs.history.log; sys.exit('git' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_folder_outside_any_repository_has_none(tmp_path):
    """Nothing found is None, not an error."""
    assert Repository.find(tmp_path) is None


def test_a_made_repository_has_an_unborn_branch(tmp_path, own_world):
    """create() makes a repository on the branch the person's settings name, without templates."""
    (own_world / ".gitconfig").write_text("[init]\n\tdefaultBranch = trunk\n")
    repository = Repository.create(tmp_path)
    assert repository.head() == Head("refs/heads/trunk", None)
    assert not (tmp_path / ".git/hooks").exists()
    assert repository.busy() == ""


def test_the_state_folder_is_private(world):
    """What memfs keeps beside git's own files is the user's alone."""
    state = world.repository.state
    assert state.is_relative_to(world.root / ".git/memfs")
    assert os.stat(state).st_mode & 0o777 == 0o700


def test_a_planted_link_for_the_state_folder_is_refused(world, tmp_path):
    """A repository that came from elsewhere cannot lead our state out of it (row 41)."""
    os.symlink(tmp_path, world.root / ".git/memfs")
    with pytest.raises(Exception, match="link"):
        Repository.find(world.root)


def test_head_is_read_without_a_process(world, monkeypatch):
    """HEAD, loose and packed refs are read from git's files."""
    monkeypatch.setattr(subprocess, "Popen", None)
    repository = Repository.find(world.root)
    monkeypatch.undo()
    loose = repository.head()
    assert loose == Head("refs/heads/main", world.git("rev-parse", "HEAD").strip())
    world.git("pack-refs", "--all")
    assert repository.head() == loose
    world.git("checkout", "-q", "--detach")
    assert repository.head() == Head(None, loose.commit)


def test_an_unreadable_head_is_an_error(world):
    """A damaged HEAD is named, not guessed at."""
    repository = world.repository
    (world.root / ".git/HEAD").write_text("garbage\n")
    with pytest.raises(HistoryError, match="HEAD is unreadable"):
        repository.head()


def test_a_workspace_below_the_top_has_a_prefix(make_world):
    """Paths are relative to the workspace wherever it lies in the working tree."""
    world = make_world(below="docs/team memory")
    repository = world.repository
    assert repository.prefix == "docs/team memory"
    assert list(repository.tree("HEAD")) == [ITEM]
    assert repository.read("HEAD", ITEM) == b"title: first\n"


def test_a_linked_workspace_is_the_place_it_leads_to(world, tmp_path):
    """A workspace reached through a link is the same workspace."""
    os.symlink(world.root, tmp_path / "link")
    assert Repository.find(tmp_path / "link").state == world.repository.state


# -- sorts of repository (row 35) ---------------------------------------------------------------------------------
def test_row_35_a_linked_worktree_works(world, tmp_path):
    """A linked working tree has its own HEAD and state, and shares objects and branches."""
    world.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "other tree"))
    repository = world.open(tmp_path / "other tree")
    assert repository.head().ref == "refs/heads/side"
    assert repository.common_dir == world.repository.common_dir
    assert repository.state != world.repository.state
    assert repository.read("HEAD", ITEM) == b"title: first\n"


def test_row_35_a_submodule_works(world, make_world):
    """A submodule's ``.git`` file leads to its git folder; its working tree is the submodule."""
    outer = make_world("outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.root), "sub")
    repository = outer.open(outer.root / "sub")
    assert repository.work_tree == outer.root / "sub"
    assert repository.read("HEAD", ITEM) == b"title: first\n"


def test_row_35_a_bare_repository_is_refused(tmp_path):
    """A bare repository has no working tree to remember in."""
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    with pytest.raises(RepoUnsupported, match="bare"):
        Repository.find(tmp_path / "bare")


def test_row_35_a_sha256_repository_is_refused(tmp_path):
    """SHA-256 object ids are refused with the reason."""
    subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path], check=True)
    with pytest.raises(RepoUnsupported, match="SHA-256"):
        Repository.find(tmp_path)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("refStorage = reftable", "reftable"), ("frobnicate = true", "frobnicate")],
)
def test_row_35_unknown_formats_are_refused(world, setting, reason):
    """Ref formats and extensions that memfs does not read are refused by name."""
    with open(world.root / ".git/config", "a") as file:
        file.write(f"[core]\n\trepositoryformatversion = 1\n[extensions]\n\t{setting}\n")
    with pytest.raises(RepoUnsupported, match=reason):
        Repository.find(world.root)


def test_row_35_a_git_file_that_leads_nowhere_is_refused(tmp_path):
    """A broken ``.git`` file is named instead of the search going on above it."""
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    with pytest.raises(RepoUnsupported, match="names no repository"):
        Repository.find(tmp_path)


def test_row_41_another_users_repository_is_untrusted(world, monkeypatch):
    """Another owner is refused with the command that declares the folder safe, and accepted after it."""
    monkeypatch.setattr(layout.os, "geteuid", lambda: 12345)
    with pytest.raises(RepoUntrusted, match=r"safe\.directory") as caught:
        Repository.find(world.root)
    monkeypatch.undo()
    assert str(world.root) in caught.value.hint


def test_row_41_a_folder_declared_safe_is_trusted(world, monkeypatch, own_world):
    """The person's own ``safe.directory`` is respected; an empty value forgets the ones before it."""
    monkeypatch.setattr(layout.os, "geteuid", lambda: 12345)
    monkeypatch.setenv("HOME", str(own_world))
    (own_world / ".gitconfig").write_text(f"[safe]\n\tdirectory = /else\n\tdirectory = {world.root}\n")
    assert layout.discover(world.root).foreign is not None
    from memfs.history import repository as module

    assert str(world.root) in module._safe_folders()
    (own_world / ".gitconfig").write_text(f"[safe]\n\tdirectory = {world.root}\n\tdirectory =\n")
    assert module._safe_folders() == frozenset()


# -- revisions ----------------------------------------------------------------------------------------------------
def test_revisions_and_dates_name_commits(world):
    """Branches, tags, ancestors, abbreviations, ISO dates and ages all name a commit."""
    repository = world.repository
    world.git("commit", "--allow-empty", "-qm", "old", GIT_COMMITTER_DATE="2020-05-05T12:00:00Z")
    old = world.git("rev-parse", "HEAD").strip()
    world.git("tag", "-a", "v1", "-m", "tag")
    world.git("commit", "--allow-empty", "-qm", "new")
    new = world.git("rev-parse", "HEAD").strip()
    assert repository.resolve("HEAD~1") == old
    assert repository.resolve("v1") == old
    assert repository.resolve(old[:9]) == old
    assert repository.resolve("main") == repository.resolve("now") == new
    assert repository.resolve("2021-01-01") == repository.resolve("3 years ago") == old
    assert repository.resolve("main@{0}") == new


@pytest.mark.parametrize(
    "text",
    [
        "--output=hacked",
        "-n1",
        "--all",
        "",
        " ",
        "a\nb",
        "HEAD\0",
        "nothing-here",
        "1999-01-01",
        "HEAD --all",
        "x" * 9999,
    ],
)
def test_text_that_names_no_revision_is_refused(world, text):
    """Whatever a person types, git never takes it for an option, and no file appears."""
    with pytest.raises(HistoryUnavailable):
        world.repository.resolve(text)
    assert not list(world.root.rglob("hacked*"))
    assert world.status() == ""


def test_row_42_a_commit_that_is_gone_is_unavailable(world):
    """After history was rewritten and pruned, the old id is unavailable and the rest works."""
    repository = world.repository
    old = repository.head().commit
    assert repository.tree(old)
    world.git("commit", "--amend", "-qm", "other")
    world.git("reflog", "expire", "--expire=now", "--all")
    world.git("gc", "-q", "--prune=now")
    assert repository.head().commit == world.git("rev-parse", "HEAD").strip()
    with pytest.raises(HistoryUnavailable):
        repository.resolve(old)
    assert repository.read("HEAD", ITEM) == b"title: first\n"


# -- content ------------------------------------------------------------------------------------------------------
def test_trees_and_blobs_agree_with_git(world):
    """tree(), blob(), read(), head_blob() and blob_id() give what git gives, loose or packed."""
    repository = world.repository
    blob = world.git("rev-parse", f"HEAD:{ITEM}").strip()
    for _ in range(2):
        assert repository.tree("HEAD") == {ITEM: blob}
        assert repository.head_blob(ITEM) == blob
        assert repository.blob(blob) == b"title: first\n"
        world.git("gc", "-q")
        repository._trees.clear()
    assert repository.blob_id(b"title: first\n") == blob
    assert repository.read("HEAD", "ContextMemory/none.yaml") is None
    assert repository.read("HEAD", "ContextMemory/memories") is None
    assert repository.head_blob("ContextMemory/memories") is None


def test_links_in_history_are_left_out(world):
    """A link that somebody committed is not an item."""
    os.symlink("/etc/passwd", world.root / "ContextMemory/evil.yaml")
    world.git("add", ".")
    world.git("commit", "-qm", "link")
    repository = world.repository
    assert list(repository.tree("HEAD")) == [ITEM]
    assert repository.read("HEAD", "ContextMemory/evil.yaml") is None


def test_row_28_a_damaged_object_is_never_returned(world):
    """One flipped bit in a loose object is an error, not other content."""
    blob = world.git("rev-parse", f"HEAD:{ITEM}").strip()
    path = world.root / ".git/objects" / blob[:2] / blob[2:]
    os.chmod(path, 0o644)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(HistoryUnavailable, match="damaged"):
        world.repository.blob(blob)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "", ".git/config", "a/.GIT/x", "a\0b", "./a"])
def test_paths_that_lead_elsewhere_are_refused(world, path):
    """No path argument can leave the workspace or enter a git folder."""
    with pytest.raises(PathEscape):
        world.repository.read("HEAD", path)


def test_staged_tells_what_the_index_holds(world):
    """staged() shows the index's blob; staged_differently() names the paths that differ from HEAD."""
    repository = world.repository
    world.write("ContextMemory/new.yaml", "title: new\n")
    world.git("add", ".")
    blob = repository.blob_id(b"title: new\n")
    paths = [ITEM, "ContextMemory/new.yaml", "ContextMemory/none.yaml"]
    assert repository.staged(paths) == {paths[0]: repository.head_blob(ITEM), paths[1]: blob, paths[2]: None}
    assert repository.staged_differently(paths) == {paths[1]}
    world.git("rm", "-q", "--cached", ITEM)
    assert repository.staged([ITEM]) == {ITEM: None}
    assert repository.staged_differently([ITEM]) == {ITEM}


def test_a_forked_process_gets_its_own_git(world):
    """A kept git process is never shared with a child, whose answers it would mix up."""
    repository = world.repository
    world.git("gc", "-q")
    blob = repository.head_blob(ITEM)
    assert repository.blob(blob) == b"title: first\n"
    pid = os.fork()
    if pid == 0:
        os._exit(0 if repository.blob(blob) == b"title: first\n" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert repository.blob(blob) == b"title: first\n"


def test_reading_works_without_a_home(world, monkeypatch):
    """A missing HOME, as in a bare container, stops nothing."""
    monkeypatch.delenv("HOME")
    assert world.repository.resolve("HEAD~0") == world.repository.head().commit
    assert world.repository.identity().committer.name == "memfs"


def test_the_layout_is_found_from_deep_inside(world):
    """find() looks upwards from any folder."""
    deep = world.root / Path(ITEM).parent
    assert Repository.find(deep).prefix == str(Path(ITEM).parent)

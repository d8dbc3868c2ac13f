"""Finding a repository and reading from it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memfs.admin.check import attribute_conflicts
from memfs.errors import GitBusy, HistoryUnavailable, MemfsError, PathEscape, RepoUnsupported, RepoUntrusted
from memfs.fs import io
from memfs.git import layout, objects
from memfs.git import repository as repository_module
from memfs.git.commit_object import CommitChange, parse_commit
from memfs.git.commits import commit
from memfs.git.layout import Head
from memfs.git.log import diff, log
from memfs.git.process import GitCommands, surely_merged
from memfs.git.repository import Repository
from memfs.model.item import object_id

ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"


def test_importing_the_repository_does_not_import_gitpython():
    """GitPython costs 90 ms and is imported only when a git process is needed."""
    code = "import sys, memfs.git.commits, memfs.git.log; sys.exit('git' in sys.modules)"
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


def test_a_head_that_did_not_change_is_not_read_again(world, monkeypatch):
    """Where the file system shows edits, and the file was not young when it was read; else it is read each time."""
    with monkeypatch.context() as patched:
        patched.setattr(layout, "detects_edits", lambda _: True)
        patched.setattr(layout, "RACY_NS", 0)
        repository = Repository.find(world.root)
        first = repository.head()
        patched.setattr(layout.io, "read_file", None)
        assert repository.head() == first
    world.git("checkout", "-q", "-b", "other")
    assert repository.head() == Head("refs/heads/other", first.commit)
    world.git("commit", "-q", "--allow-empty", "-m", "more")
    assert repository.head().commit == world.git("rev-parse", "HEAD").strip()


def test_a_workspace_below_the_top_has_a_prefix(make_world):
    """Paths are relative to the workspace wherever it is in the working tree."""
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


@pytest.mark.parametrize("worktree_config", [False, True])
def test_row_35_a_worktree_of_a_bare_repository_may_have_its_branch(world, tmp_path, worktree_config):
    """A bare repository's HEAD checks nothing out: its default branch belongs to the worktree that has it."""
    bare = tmp_path / "bare.git"
    world.git("clone", "-q", "--bare", str(world.root), str(bare))
    if worktree_config:
        world.git("config", "extensions.worktreeConfig", "true", folder=bare)
        world.git("config", "--unset", "core.bare", folder=bare)
        world.git("config", "--file", str(bare / "config.worktree"), "core.bare", "true", folder=bare)
    tree = tmp_path / "tree"
    world.git("worktree", "add", "-q", str(tree), "main", folder=bare)
    repository = world.open(tree)
    assert repository.busy() == ""
    (tree / ITEM).write_bytes(b"title: second\n")
    group = world.group(CommitChange(path=ITEM, data=b"title: second\n"))
    assert len(commit(repository, [group], "refs/heads/main").commits) == 1
    assert world.git("status", "--porcelain", folder=tree) == ""
    other = tmp_path / "other"
    world.git("worktree", "add", "-q", "--force", str(other), "main", folder=bare)
    assert f"main is checked out in {other}" in repository.busy()


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
    """Another owner is refused with the command that trusts it, and accepted when exactly that owner is trusted."""
    monkeypatch.setattr(layout.os, "geteuid", lambda: 12345)
    with pytest.raises(RepoUntrusted) as caught:
        Repository.find(world.root)
    with pytest.raises(RepoUntrusted):
        Repository.find(world.root, trusted=lambda _: (frozenset({54321}), None))
    found = Repository.find(world.root, trusted=lambda place: (frozenset({place.stat().st_uid}), None))
    monkeypatch.undo()
    assert f"memfs admin trust '{world.root}'" in caught.value.hint
    assert found.work_tree == world.root


def test_row_41_a_folder_declared_safe_is_trusted(world, monkeypatch, own_world):
    """The person's own ``safe.directory`` is respected; an empty value forgets the ones before it."""
    monkeypatch.setattr(layout.os, "geteuid", lambda: 12345)
    monkeypatch.setenv("HOME", str(own_world))
    (own_world / ".gitconfig").write_text(f"[safe]\n\tdirectory = /else\n\tdirectory = {world.root}\n")
    assert layout.discover(world.root).foreign
    from memfs.git import repository as module

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


def test_staged_lists_what_the_index_holds(world):
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


# -- damage (rows 28 and 42) --------------------------------------------------------------------------------------
def damaged_head(content):
    def damage(world):
        (world.root / ".git/HEAD").write_bytes(content)

    return damage


def damaged_branch(content):
    def damage(world):
        (world.root / ".git/refs/heads/main").write_bytes(content)

    return damage


def damaged_packed_refs(world):
    world.git("pack-refs", "--all")
    path = world.root / ".git/packed-refs"
    path.write_bytes(path.read_bytes().replace(world.head.encode(), b"\0" * 40))


@pytest.mark.parametrize(
    ("damage", "ref", "words"),
    [
        (damaged_head(b""), None, "HEAD is unreadable"),
        (damaged_head(b"garbage\n"), None, "HEAD is unreadable"),
        (damaged_head(b"\0" * 41), None, "HEAD is unreadable"),
        (damaged_head(b"x" * 10_000), None, "HEAD is unreadable"),
        (damaged_head(b"ref: refs/heads/ma\0\0\0"), None, "HEAD is unreadable"),
        (damaged_head(b"ref: "), None, "HEAD is unreadable"),
        (damaged_head(b"ref: ../../elsewhere\n"), None, "HEAD is unreadable"),
        (damaged_branch(b""), "refs/heads/main", "refs/heads/main is unreadable"),
        (damaged_branch(b"\0" * 41), "refs/heads/main", "refs/heads/main is unreadable"),
        (damaged_branch(b"ref: refs/\0"), "refs/heads/main", "is not a ref"),
        (damaged_branch(b"x" * 10_000), "refs/heads/main", "refs/heads/main' is unreadable"),
        (damaged_packed_refs, "refs/heads/main", "refs/heads/main is unreadable"),
    ],
)
def test_row_28_damaged_refs_are_reported_and_never_taken_for_a_new_branch(world, damage, ref, words):
    """After a power cut HEAD answers what is known of it, commits wait and say why, and what needs history is typed."""
    repository = world.repository
    world.head = world.git("rev-parse", "HEAD").strip()
    group = world.put("ContextMemory/neu.yaml", "1\n")
    damage(world)
    head = repository.head()
    assert (head.ref, head.commit) == (ref, None)
    assert words in head.damage
    assert words in repository.busy()
    with pytest.raises(GitBusy, match=r"unreadable|not a ref"):
        commit(repository, [group], "refs/heads/main")
    for question in (
        lambda: repository.head_blob(ITEM),
        lambda: repository.head_commit(),
        lambda: repository.staged([ITEM]),
        lambda: repository.staged_differently([ITEM]),
        lambda: log(repository),
    ):
        with pytest.raises(HistoryUnavailable):
            question()
    if ref is not None:
        with pytest.raises(HistoryUnavailable):
            repository.ref_commit(ref)
    (world.root / ".git/packed-refs").unlink(missing_ok=True)
    (world.root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (world.root / ".git/refs/heads/main").write_text(world.head + "\n")
    assert repository.head_blob(ITEM)
    assert len(commit(repository, [group], "refs/heads/main").commits) == 1
    world.check()


@pytest.mark.parametrize("what", ["HEAD", "HEAD^{tree}", "HEAD:ContextMemory"])
@pytest.mark.parametrize("content", [None, b""])
def test_row_28_missing_and_emptied_objects_are_unavailable(world, what, content):
    """An object that a power cut emptied, or that is gone, makes head_blob unavailable and leaves HEAD readable."""
    name = world.git("rev-parse", what).strip()
    path = world.root / ".git/objects" / name[:2] / name[2:]
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    repository = world.open()
    assert repository.head() == Head("refs/heads/main", world.git("rev-parse", "HEAD").strip())
    with pytest.raises(HistoryUnavailable):
        repository.head_blob(ITEM)


def test_row_28_a_disk_that_fails_makes_head_blob_unavailable(world):
    """Whatever goes wrong below, anyone who asks for a blob of HEAD needs to know one error only."""

    def fail(name, path):
        raise OSError(5, "Input/output error")

    repository = world.repository
    io.set_hook(fail)
    with pytest.raises(HistoryUnavailable):
        repository.head_blob(ITEM)
    io.set_hook(None)
    assert repository.head_blob(ITEM)


def test_objects_of_another_kind_are_unavailable(world):
    """A blob where a tree or commit should be, and an invalid tree, are typed errors."""
    repository = world.repository
    blob = repository.head_blob(ITEM)
    for ask in (repository.read_tree, repository.root):
        with pytest.raises(HistoryUnavailable, match="is a blob"):
            ask(blob)
    whole, large = b"100644 name\0" + b"1" * 20, 2_000_000  # so large that looking at it again and again hangs
    for data in (b"100644 name", b"100644 name\0", b"\xff x\0" + b"1" * 20, whole + b"x" * large, b"a " * large):
        with pytest.raises(HistoryUnavailable):
            objects.parse_tree(data)
    with pytest.raises(HistoryUnavailable):
        parse_commit(b"author x <x> 1 +0000\n\nno tree")


# -- names (row 13) -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["\ud800", "ContextMemory/\ud800.yaml", "ContextMemory/\udfff/x.yaml"])
def test_row_13_names_that_no_file_can_have_are_refused(world, name):
    """A lone surrogate that represents no byte is a typed error wherever a path or a revision is asked for."""
    repository = world.repository
    for question in (
        lambda: repository.read("HEAD", name),
        lambda: repository.head_blob(name),
        lambda: repository.tree("HEAD", name),
        lambda: repository.staged([name]),
        lambda: repository.staged_differently([name]),
        lambda: log(repository, [name]),
        lambda: diff(repository, "HEAD", None, [name]),
        lambda: attribute_conflicts(repository, [name]),
        lambda: commit(repository, [world.group(CommitChange(path=name, data=b""))], "refs/heads/main"),
    ):
        with pytest.raises(PathEscape):
            question()
    for question in (
        lambda: repository.resolve(name),
        lambda: repository.read(name, ITEM),
        lambda: log(repository, since=name),
        lambda: diff(repository, name),
    ):
        with pytest.raises(HistoryUnavailable):
            question()
    assert repository.ref_commit(f"refs/heads/{name}") is None
    assert Repository.find(Path(name)) is None
    assert Repository.find(Path("a\0b")) is None


def test_row_13_files_and_folders_whose_names_are_not_unicode_have_history(world):
    """A folder named in Latin-1 is committed, read, listed and compared like any other."""
    path = os.fsdecode(b"ContextMemory/memories/caf\xe9/na\xefve.yaml")
    world.commit(world.put(path, "1\n"))
    repository = world.repository
    assert repository.read("HEAD", path) == b"1\n"
    assert path in repository.tree("HEAD")
    assert repository.head_blob(path)
    assert repository.staged_differently([path]) == set()
    (revision,) = log(repository, [path])
    assert revision.paths == (path,)
    assert "caf\\udce9/na\\udcefve.yaml" in diff(repository, "HEAD~1", "HEAD")
    assert attribute_conflicts(repository, [path]) == []
    assert world.status() == ""


def test_row_13_a_workspace_in_a_folder_whose_name_is_not_unicode(make_world):
    """The repository itself may be below such a folder."""
    world = make_world(os.fsdecode(b"caf\xe9"))
    world.commit(world.put(ITEM, "title: second\n"))
    assert world.repository.read("HEAD~1", ITEM) == b"title: first\n"
    assert len(log(world.repository)) == 2
    world.check()


# -- threads ------------------------------------------------------------------------------------------------------
def test_threads_share_the_caches_while_they_are_cleared(world, monkeypatch):
    """Readers never meet a cache that another thread has just emptied, and no cache grows without end."""
    for number in range(12):
        world.commit(world.put(ITEM, f"title: {number}\n"))
    repository = world.open()
    commits = world.git("rev-list", "HEAD").split()[:-1]
    monkeypatch.setattr(repository_module, "_KEPT", 2)
    expected = {one: repository.entry(one, ITEM).id for one in commits}
    wrong = []

    def read():
        for _ in range(25):
            for one in commits:
                try:
                    if repository.entry(one, ITEM).id != expected[one]:
                        wrong.append(one)
                except (KeyError, MemfsError) as error:
                    wrong.append(error)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert wrong == []
    assert len(repository._roots) <= 5
    assert len(repository._trees) <= 5


@pytest.fixture
def without_git(monkeypatch):
    """Anyone who asks a git for an object fails."""
    monkeypatch.setattr(GitCommands, "object", lambda self, name: pytest.fail(f"a git was asked for {name}"))


def _packed(world, *options):
    for number in range(30):  # so much alike that most are kept as differences
        world.write(ITEM, "\n".join(f"line {line} of {number if line == 7 else 0}" for line in range(300)))
        world.git("add", "-A")
        world.git("commit", "-qm", f"Version {number}")
    world.git(*options, "gc", "-q")
    names = world.git("cat-file", "--batch-check", "--batch-all-objects").splitlines()
    return [line.split()[:2] for line in names]


@pytest.mark.parametrize("offsets", ["true", "false"])
def test_packed_objects_are_read_without_git(world, without_git, offsets):
    """Whole ones and differences, whether these name what they differ from by place or by id."""
    held = _packed(world, "-c", f"repack.useDeltaBaseOffset={offsets}")
    assert len(held) > 60
    folder = world.repository.common_dir / "objects"
    for name, kind in held:
        found = objects.read_packed(folder, name)
        assert found is not None
        assert (found.kind, object_id(found.kind, found.data)) == (kind, name)
    assert world.repository.tree("HEAD").keys() >= {ITEM}
    assert objects.read_packed(folder, "1" * 40) is None


def test_a_pack_that_cannot_be_read_is_left_to_git(world):
    """Wherever it is damaged, cut short or of another form: never another object, and git's word where it has one."""
    name = dict(_packed(world))  # by id
    commit = world.git("rev-parse", "HEAD").strip()
    assert name[commit] == "commit"
    folder = world.repository.common_dir / "objects"
    for file in [*folder.glob("pack/*.pack"), *folder.glob("pack/*.idx")]:
        data = file.read_bytes()
        file.chmod(0o644)
        for at in range(0, len(data), max(1, len(data) // 200)):
            for damaged in (data[:at], data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]):
                file.write_bytes(damaged)
                found = objects.read_packed(folder, commit)
                assert found is None or isinstance(found.data, bytes)
        file.write_bytes(data)
    index = next(folder.glob("pack/*.idx"))
    index.chmod(0o644)
    index.write_bytes(b"\0" * 4000)
    with pytest.raises(HistoryUnavailable):
        world.open().object(commit)


def test_an_object_of_a_borrowed_folder_is_read_by_git(world, tmp_path):
    """What another repository lends (``objects/info/alternates``) is found, too."""
    held = _packed(world)
    folder = world.repository.common_dir / "objects"
    (folder / "pack").rename(tmp_path / "pack")
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "alternates").write_text(f"{tmp_path}\n")
    assert world.open().object(held[0][0]).kind == held[0][1]


def test_that_an_index_is_merged_is_seen_without_git(world):
    """An index with one version of each path, and none at all; whatever else it is, git is to be asked."""
    index = world.repository.git_dir / "index"
    assert surely_merged(index)
    world.git("add", "-N", str(world.write("ContextMemory/planned.yaml", "x")))  # which takes the longer form
    assert surely_merged(index)
    for options in (["update-index", "--index-version", "4"], ["update-index", "--split-index"]):
        world.git(*options)
        assert not surely_merged(index)
        world.git("update-index", "--no-split-index", "--index-version", "2")
        assert surely_merged(index)
    data = index.read_bytes()
    for at in range(0, 150, 7):  # within its entries
        index.write_bytes(data[:at])
        assert not surely_merged(index)
    index.unlink()
    assert surely_merged(index)


def test_that_an_index_is_not_merged_is_seen_without_git(world):
    """A path in several versions is found among others."""
    world.git("checkout", "-q", "-b", "other", "HEAD")
    for branch in ("main", "other"):
        world.git("checkout", "-q", branch)
        world.write(ITEM, f"title: {branch}\n")
        world.git("commit", "-qam", branch)
    world.git("merge", "-q", "main", ok=False)
    assert not surely_merged(world.repository.git_dir / "index")

"""Committing beside a person: their staged work, their commands, their locks, their hooks."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from kit.patience import LONG, until
from memfs.errors import GitBusy, HistoryError, HistoryUnavailable, PathEscape
from memfs.fs import io
from memfs.fs.journal import Writer
from memfs.git import commits
from memfs.git.busy import running_git
from memfs.git.commit_object import CommitChange, Group
from memfs.git.commits import commit, maintain, recover
from memfs.git.log import diff, log
from memfs.git.repository import Repository

ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"
NEW = "ContextMemory/memories/semantic/2026-11/neu ü.yaml"
MAIN = "refs/heads/main"


# -- what a commit is ---------------------------------------------------------------------------------------------
def test_a_group_becomes_one_commit_and_status_is_clean(world):
    """New, changed and removed files land in one commit; the working tree and index agree with it."""
    group = world.group(world.change(NEW, "title: new\n"), world.change(ITEM, "title: changed\n"))
    (made,) = world.commit(group)
    assert world.git("rev-parse", "HEAD").strip() == made
    assert world.git("show", "--format=", "--name-status", "-z", "HEAD").count("\0") == 4
    assert world.status() == ""
    world.commit(world.put(NEW, None))
    assert not world.repository.head_blob(NEW)
    assert world.status() == ""
    world.check()


def test_several_groups_are_a_chain_with_one_move_of_the_branch(world):
    """Each group is a commit of its own; the branch moves once and the index is written once."""
    spawned = []
    io.set_hook(lambda name, path: spawned.append(path) if name == "git" else None)
    made = world.commit(world.put(NEW, "1\n"), world.put(NEW, "2\n"), world.put(ITEM, "3\n"))
    assert len(made) == 3
    assert spawned.count("update-ref") == spawned.count("update-index") == 1
    assert world.git("rev-list", "HEAD", "--max-count=3").split() == list(reversed(made))
    assert world.git("show", f"{made[0]}:{NEW}") == "1\n"
    assert len(world.git("reflog", "main").splitlines()) == 3
    assert world.status() == ""


def test_a_group_the_branch_holds_already_makes_no_commit(world):
    """After a crash behind the branch's move the same group is given again and adds nothing."""
    group = world.put(NEW, "1\n")
    assert len(world.commit(group)) == 1
    assert world.commit(group) == ()
    assert world.commit(world.put("ContextMemory/never.yaml", None)) == ()


def test_an_unborn_branch_gets_its_first_commit(tmp_path):
    """The first commit of a new repository works, and removing the last file leaves an empty tree (row 35)."""
    repository = Repository.create(tmp_path)
    group = Group(
        changes=(CommitChange(path="memfs.toml", data=b"x"),), message="m", writers=(), time=datetime.now(UTC)
    )
    (tmp_path / "memfs.toml").write_bytes(b"x")
    ref = repository.head().ref
    (first,) = commit(repository, [group], ref).commits
    assert repository.head().commit == first
    gone = Group(changes=(CommitChange(path="memfs.toml", data=None),), message="m", writers=(), time=datetime.now(UTC))
    os.unlink(tmp_path / "memfs.toml")
    commit(repository, [gone], ref)
    done = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b""
    subprocess.run(["git", "fsck", "--strict"], cwd=tmp_path, capture_output=True, check=True)
    repository.close()


def test_author_is_the_agent_and_committer_the_person(world):
    """The author is the one agent the writers name, the committer the person; trailers name all writers."""
    writers = (
        Writer(agent="claude <code>\n", session="s1", source="hook"),
        Writer(agent="claude <code>\n", session="s2"),
    )
    group = Group(changes=(world.change(NEW, "1\n"),), message="Learn", writers=writers, time=datetime.now(UTC))
    world.commit(group)
    shown = world.git("log", "-1", "--format=%an|%ae|%cn|%ce|%B")
    assert shown.startswith("claude code|claude-code@agent.memfs|Ada Person|ada@example.org|Learn\n\n")
    trailers = world.git("log", "-1", "--format=%(trailers:key=Memfs-Session,valueonly,separator=%x2C)").strip()
    assert trailers == "s1,s2"


def test_two_agents_in_one_group_leave_the_person_as_author(world):
    """Where more than one agent wrote, the person is the author and the trailers name the agents."""
    writers = (Writer(agent="a"), Writer(agent="b"))
    world.commit(Group(changes=(world.change(NEW, "1\n"),), message="m", writers=writers, time=datetime.now(UTC)))
    assert world.git("log", "-1", "--format=%an %(trailers:key=Memfs-Agent,valueonly,separator=+)").strip() == (
        "Ada Person a+b"
    )


def test_the_environments_identity_wins(world, monkeypatch):
    """GIT_AUTHOR_* and GIT_COMMITTER_* are read before the environment is scrubbed."""
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Env Person")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "env@example.org")
    world.commit(world.put(NEW, "1\n"))
    assert (
        world.git("log", "-1", "--format=%an|%ae|%cn|%ce").strip()
        == "Ada Person|env@example.org|Env Person|ada@example.org"
    )


def test_without_any_identity_memfs_signs(world, own_world):
    """Where nobody said who they are, memfs commits under its own name instead of failing."""
    (own_world / ".gitconfig").write_text("")
    world.commit(world.put(NEW, "1\n"))
    assert world.git("log", "-1", "--format=%an <%ae> %cn").strip() == "memfs <memfs@localhost> memfs"


def test_an_executable_file_stays_executable(world):
    """A mode that a person set survives our commits."""
    world.git("update-index", "--chmod=+x", ITEM)
    world.git("commit", "-qm", "mode")
    os.chmod(world.root / ITEM, 0o755)
    world.commit(world.put(ITEM, "title: x\n"))
    assert world.git("ls-tree", "HEAD", ITEM).startswith("100755")
    assert world.status() == ""


def test_many_objects_become_one_pack(world):
    """A large group is one pack; a small one is loose files."""
    changes = [world.change(f"ContextMemory/n{number:03}.yaml", f"{number}\n") for number in range(300)]
    world.commit(world.group(*changes))
    assert len(list((world.root / ".git/objects/pack").glob("*.pack"))) == 1
    assert world.status() == ""
    world.check()


def test_a_damaged_loose_object_is_replaced(world):
    """An object file that a power cut emptied does not stop the same content from being committed."""
    blob = world.repository.blob_id(b"title: new\n")
    place = world.root / ".git/objects" / blob[:2] / blob[2:]
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"")
    world.commit(world.put(NEW, "title: new\n"))
    world.check()


def test_a_workspace_below_the_top_commits_only_its_own(make_world):
    """In a folder of a code repository, paths get the folder's prefix and nothing else is touched."""
    world = make_world(below="docs/team memory")
    world.commit(world.put(NEW, "1\n"))
    assert world.git("show", f"HEAD:docs/team memory/{NEW}") == "1\n"
    assert world.status() == ""
    with pytest.raises(PathEscape):
        commit(world.repository, [world.group(CommitChange(path="../../src/main.c", data=b""))], MAIN)


# -- row 33: what the person has staged ---------------------------------------------------------------------------
def test_row_33_staged_changes_stay_staged(world):
    """Our commit holds only our paths; what the person staged, wholly or in part, is staged as before."""
    world.write("src/main.c", "int staged;\n", world.root)
    world.git("add", "src/main.c")
    world.write("src/main.c", "int staged_and_more;\n", world.root)
    world.write("src/new.c", "new\n", world.root)
    world.git("add", "-N", "src/new.c")
    before = world.git("diff", "--cached"), world.git("diff"), world.status()
    for text in ("1\n", "2\n"):
        world.commit(world.put(NEW, text))
        assert world.git("show", "--format=", "--name-only", "-z", "HEAD").strip("\0") == NEW
        assert (world.git("diff", "--cached"), world.git("diff"), world.status()) == before
    world.git("commit", "-qm", "theirs")
    assert world.git("show", f"HEAD:{NEW}") == "2\n"
    assert world.git("show", "--format=", "--name-only", "HEAD").strip() == "src/main.c"


def test_row_33_an_entry_staged_differently_is_left_and_reported(world):
    """A memory file that the person staged with other content keeps their entry, and we say so."""
    world.write(ITEM, "title: theirs\n")
    world.git("add", ITEM)
    done = commit(world.repository, [world.put(ITEM, "title: ours\n"), world.put(NEW, "1\n")], MAIN)
    assert done.left_staged == (ITEM,)
    assert world.git("show", f":{ITEM}") == "title: theirs\n"
    assert world.git("show", f"HEAD:{ITEM}") == "title: ours\n"
    assert world.repository.staged_differently([ITEM, NEW]) == {ITEM}
    again = commit(world.repository, [world.put(ITEM, "title: ours again\n")], MAIN)
    assert again.left_staged == (ITEM,)


def test_row_33_a_staged_removal_is_left(world):
    """A person's ``git rm --cached`` of a memory stays staged."""
    world.git("rm", "-q", "--cached", ITEM)
    assert commit(world.repository, [world.put(ITEM, "title: ours\n")], MAIN).left_staged == (ITEM,)
    assert f"D  {ITEM}" in world.status()


def test_row_33_the_same_bytes_staged_by_the_person_are_no_difference(world):
    """Somebody who ran ``git add`` on our file sees it committed."""
    group = world.put(NEW, "1\n")
    world.git("add", ".")
    assert commit(world.repository, [group, world.put(NEW, "2\n")], MAIN).left_staged == ()
    assert world.status() == ""


def test_row_33_an_edit_in_the_second_of_the_persons_commit_stays_visible(world):
    """Git sees an edit that changes neither size nor second by the date of its index: ours keeps that date."""
    world.git("config", "core.trustCtime", "false")  # the only date that nobody can set
    file, moment = world.root / "notes.txt", 1_700_000_000
    file.write_text("one\n")
    os.utime(file, (moment, moment))
    world.git("add", "notes.txt")
    world.git("commit", "--quiet", "-m", "notes")
    file.write_text("two\n")
    for path in (file, world.root / ".git/index"):
        os.utime(path, (moment, moment))
    assert world.commit(world.put(NEW, "1\n"))  # long after: by its own date the index would call the file unchanged
    assert world.status() == " M notes.txt\n"


def test_row_33_a_conflicted_entry_is_left(world):
    """Both sides of a stash conflict stay in the index."""
    world.write(ITEM, "title: stashed\n")
    world.git("stash", "-q")
    world.commit(world.put(ITEM, "title: committed\n"))
    world.git("stash", "pop", ok=False)
    assert commit(world.repository, [world.put(ITEM, None)], MAIN).left_staged == (ITEM,)
    assert len(world.git("ls-files", "-u").splitlines()) == 3


def test_the_persons_next_commit_does_not_revert_the_memory(world):
    """With the index in step, a commit of something else keeps what we committed."""
    world.commit(world.put(NEW, "1\n"))
    world.write("src/main.c", "changed\n", world.root)
    world.git("commit", "-qam", "theirs")
    assert world.git("show", f"HEAD:{NEW}") == "1\n"


def test_a_file_edited_since_shows_as_the_persons_change(world):
    """The blob comes from the journal's bytes; a later edit is the person's, unstaged."""
    group = world.put(NEW, "1\n")
    world.write(NEW, "edited\n")
    world.commit(group)
    assert world.git("diff", "--name-only", "-z").strip("\0") == NEW
    assert world.git("diff", "--cached") == ""


# -- row 34: a person in the middle of something ------------------------------------------------------------------
def conflict(world, verb, *arguments):
    world.git("checkout", "-q", "-b", "side")
    world.write("src/main.c", "side\n", world.root)
    world.git("commit", "-qam", "side")
    world.git("checkout", "-q", "main")
    world.write("src/main.c", "main\n", world.root)
    world.git("commit", "-qam", "main")
    world.git(verb, *arguments, ok=False)


@pytest.mark.parametrize(
    ("verb", "arguments", "words", "end"),
    [
        ("merge", ["side"], "merge", ["merge", "--abort"]),
        ("rebase", ["side"], "rebase", ["rebase", "--abort"]),
        ("cherry-pick", ["side"], "cherry-pick", ["cherry-pick", "--abort"]),
        ("revert", ["--no-edit", "HEAD~1"], "revert", ["revert", "--abort"]),
        ("bisect", ["start", "HEAD", "HEAD~2"], "bisect", ["bisect", "reset"]),
    ],
)
def test_row_34_a_state_in_progress_makes_commits_wait(world, verb, arguments, words, end):
    """Merge, rebase, cherry-pick, revert and bisect are named; nothing is committed until they end."""
    if verb == "revert":
        world.write("src/main.c", "1\n", world.root)
        world.git("commit", "-qam", "a")
    conflict(world, verb, *arguments)
    head = world.git("rev-parse", "main")
    group = world.put(NEW, "1\n")
    with pytest.raises(GitBusy, match=words):
        world.commit(group)
    assert words in world.repository.busy()
    assert world.git("rev-parse", "main") == head
    world.git(*end)
    assert len(world.commit(group)) == 1


def test_row_34_am_makes_commits_wait(world):
    """A patch that does not apply leaves ``git am`` in progress."""
    patch = world.git("format-patch", "-1", "--stdout")
    world.git("reset", "-q", "--hard", "HEAD")
    (world.root / "p.mbox").write_text(patch)
    world.git("am", "p.mbox", ok=False)
    assert "git am is in progress" in world.repository.busy()


def test_row_34_a_foreign_index_lock_is_reported_never_removed(world, monkeypatch):
    """A lock of somebody else makes commits wait; its name and age are reported (row 39)."""
    monkeypatch.setattr(commits, "PATIENCE", 0.1)
    lock = world.root / ".git/index.lock"
    lock.write_bytes(b"")
    os.utime(lock, (time.time() - 100, time.time() - 100))
    group = world.put(NEW, "1\n")
    with pytest.raises(GitBusy, match=r"index.lock is 10\d s old and no git process"):
        world.commit(group)
    assert recover(world.repository) == []
    assert lock.exists()
    lock.unlink()
    assert len(world.commit(group)) == 1


def test_row_39_a_foreign_ref_lock_makes_commits_wait(world, monkeypatch):
    """The locks of HEAD and of the branch count as well."""
    monkeypatch.setattr(commits, "PATIENCE", 0.05)
    for name in ("HEAD.lock", "refs/heads/main.lock"):
        lock = world.root / ".git" / name
        lock.write_bytes(b"")
        with pytest.raises(GitBusy, match=r"lock is \d+ s old"):
            world.commit(world.put(NEW, "1\n"))
        lock.unlink()


def test_a_lock_that_goes_away_in_time_is_waited_for(world, monkeypatch):
    """A person's quick command delays a commit; it does not make it fail."""
    monkeypatch.setattr(commits, "PATIENCE", LONG)
    lock = world.root / ".git/index.lock"
    lock.write_bytes(b"")
    remover = subprocess.Popen(["sh", "-c", f"sleep 0.3; rm '{lock}'"])
    assert len(world.commit(world.put(NEW, "1\n"))) == 1
    remover.wait()


def test_row_34b_an_open_editor_makes_commits_wait(world, monkeypatch, tmp_path):
    """While a person's ``git commit`` waits for its editor we do not move HEAD; theirs succeeds, ours follows."""
    monkeypatch.setattr(commits, "PATIENCE", 0.1)
    editor = tmp_path / "editor"
    editor.write_text(
        f"#!/bin/sh\ntouch '{tmp_path}/open'\nwhile [ ! -e '{tmp_path}/done' ]; do sleep 0.02; done\necho m > \"$1\"\n"
    )
    editor.chmod(0o755)
    world.write("src/main.c", "x\n", world.root)
    world.git("add", ".")
    person = subprocess.Popen(
        ["git", "-C", world.root, "commit", "-q"], env=os.environ | {"GIT_EDITOR": str(editor)}, cwd="/"
    )
    while not (tmp_path / "open").exists():
        time.sleep(0.01)
    assert "git commit is running" in world.repository.busy()
    group = world.put(NEW, "1\n")
    with pytest.raises(GitBusy, match="git commit is running"):
        world.commit(group)
    (tmp_path / "done").touch()
    assert person.wait() == 0
    assert len(world.commit(group)) == 1
    assert world.git("log", "-2", "--format=%s").split() == ["Remember", "m"]


def test_our_own_git_processes_are_not_a_person(world):
    """A kept process of ours, whose working folder is our state folder, holds up nobody."""
    world.git("gc", "-q")
    assert world.repository.tree("HEAD")
    assert world.repository.busy() == ""


def test_a_repository_inside_the_tree_is_somebody_elses_business(world, tmp_path):
    """A commit that is open in another repository below ours does not make us wait."""
    inner = world.root / "vendor"
    world.git("init", "-q", "vendor")
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\ntouch '{tmp_path}/open'\nsleep 600\n")
    editor.chmod(0o755)
    command = ["git", "commit", "-q", "--allow-empty"]
    person = subprocess.Popen(command, cwd=inner, env=os.environ | {"GIT_EDITOR": str(editor)}, process_group=0)
    while not (tmp_path / "open").exists():
        time.sleep(0.01)
    assert world.repository.busy() == ""
    os.killpg(person.pid, 15)
    person.wait()


def test_without_proc_busy_still_answers(world, monkeypatch):
    """Where ``/proc`` is missing, a person's live command goes unseen and everything else works."""
    real = os.listdir

    def listdir(path="."):
        if path == "/proc":
            raise FileNotFoundError(path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert world.repository.busy() == ""
    assert len(world.commit(world.put(NEW, "1\n"))) == 1


# -- row 35: sorts of working trees -------------------------------------------------------------------------------
def test_row_35_a_detached_head_waits_unless_allowed(world):
    """Nothing is committed to a detached HEAD unless it is configured; then HEAD itself moves."""
    world.git("checkout", "-q", "--detach")
    group = world.put(NEW, "1\n")
    with pytest.raises(GitBusy, match="detached"):
        world.commit(group)
    allowed = world.open(allow_detached=True)
    (made,) = commit(allowed, [group], "HEAD").commits
    assert world.git("rev-parse", "HEAD").strip() == made
    assert world.git("rev-parse", "main").strip() != made
    assert world.status() == ""


def test_row_35_commits_in_a_linked_worktree_go_to_its_branch(world, tmp_path):
    """In a linked working tree its branch moves, its index stays in step, and the main one is untouched."""
    other = tmp_path / "other tree"
    world.git("worktree", "add", "-q", "-b", "side", str(other))
    repository = world.open(other)
    world.write(NEW, "1\n", other)
    commit(repository, [world.group(CommitChange(path=NEW, data=b"1\n"))], "refs/heads/side")
    assert world.git("status", "--porcelain", folder=other) == ""
    assert world.status() == ""
    assert world.git("show", f"side:{NEW}") == "1\n"
    with pytest.raises(GitBusy, match="side is checked out in"):
        commit(world.repository, [world.group(CommitChange(path=ITEM, data=b"1\n"))], "refs/heads/side")


def test_row_35_commits_in_a_submodule_work(world, make_world):
    """A submodule's index and branch move as any other's."""
    outer = make_world("outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.root), "sub")
    repository = outer.open(outer.root / "sub")
    outer.write(NEW, "1\n", outer.root / "sub")
    commit(repository, [outer.group(CommitChange(path=NEW, data=b"1\n"))], MAIN)
    assert outer.git("status", "--porcelain", folder=outer.root / "sub") == ""


def test_row_35_a_shallow_clone_works(world, tmp_path):
    """A clone of depth one can be read and committed to; what it lacks is unavailable."""
    gone = world.git("rev-parse", "HEAD~1").strip()
    world.git("clone", "-q", "--depth=1", f"file://{world.root}", str(tmp_path / "shallow"))
    repository = world.open(tmp_path / "shallow")
    world.write(NEW, "1\n", tmp_path / "shallow")
    assert len(commit(repository, [world.group(CommitChange(path=NEW, data=b"1\n"))], MAIN).commits) == 1
    assert world.git("status", "--porcelain", folder=tmp_path / "shallow") == ""
    with pytest.raises(HistoryUnavailable):
        repository.read(gone, ITEM)
    maintain(repository)
    world.git("fsck", "--full", folder=tmp_path / "shallow")


@pytest.mark.parametrize(
    "setting", ["core.splitIndex=true", "index.version=4", "core.untrackedCache=true", "feature.manyFiles=true"]
)
def test_special_indexes_stay_what_they_are(world, setting):
    """A split, compressed or cached index takes our entries and stays readable."""
    world.git("config", *setting.split("="))
    world.write("src/main.c", "staged\n", world.root)
    world.git("add", "src/main.c")
    world.git("status")
    for text in ("1\n", "2\n"):
        world.commit(world.put(NEW, text), world.put(ITEM, text))
        assert world.status() == "M  src/main.c\n"
    world.git("commit", "-qm", "theirs")
    assert world.git("show", f"HEAD:{NEW}") == "2\n"


def test_a_sparse_checkout_takes_our_paths(world):
    """Paths outside the sparse cone can be committed all the same."""
    world.git("update-index", "--refresh")
    world.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    world.commit(world.put(NEW, "1\n"))
    assert world.git("show", f"HEAD:{NEW}") == "1\n"
    assert world.git("diff", "--cached", "--name-only") == ""
    assert world.git("ls-files", "-t", ITEM).startswith("S ")


# -- other branches -----------------------------------------------------------------------------------------------
def test_waiting_changes_go_to_the_branch_they_were_made_on(world):
    """With another branch checked out only the recorded branch moves; index and files stay."""
    group = world.put(NEW, "1\n")
    (world.root / NEW).unlink()
    world.git("checkout", "-q", "-b", "side")
    index = (world.root / ".git/index").read_bytes()
    (made,) = world.commit(group)
    assert world.git("rev-parse", "main").strip() == made
    assert world.git("rev-parse", "side").strip() != made
    assert (world.root / ".git/index").read_bytes() == index
    assert world.status() == ""
    world.check()


def test_a_branch_that_is_gone_is_unavailable(world):
    """The caller learns that the recorded branch no longer exists."""
    with pytest.raises(HistoryUnavailable, match="gone is gone"):
        world.commit(world.put(NEW, "1\n"), ref="refs/heads/gone")


@pytest.mark.parametrize(
    "ref", ["main", "refs/heads/../x", "refs/heads/a b", "refs/heads/x.lock", "--stdin", "refs/heads/a\nb", ""]
)
def test_only_branches_are_moved(world, ref):
    """A ref name that is not a branch is refused before git sees it."""
    with pytest.raises(HistoryError):
        world.commit(world.put(NEW, "1\n"), ref=ref)


# -- rows 36, 40, 41, 42 ------------------------------------------------------------------------------------------
def test_row_36_a_branch_that_moves_under_us_is_followed(world, monkeypatch):
    """A person's commit between our look and our swap wins; ours is made again on top, their index kept."""
    world.write("src/main.c", "theirs\n", world.root)
    world.git("add", ".")
    theirs = world.git("commit-tree", "-p", "HEAD", "-m", "theirs", world.git("write-tree").strip()).strip()
    finish, moved = commits.finish, []

    def move_first(*given):
        if not moved:
            moved.append(world.git("update-ref", "refs/heads/main", theirs))
        return finish(*given)

    monkeypatch.setattr(commits, "finish", move_first)
    (made,) = world.commit(world.put(NEW, "1\n"))
    assert world.git("rev-parse", f"{made}~1").strip() == theirs
    assert world.status() == ""
    world.check()


def test_row_36_an_index_that_changes_under_us_is_read_again(world, monkeypatch):
    """What a person stages while the new index is built is in the next one."""
    real, calls = commits._lock, []

    def lock(repository, index):
        if not calls:
            world.write("src/late.c", "late\n", world.root)
            calls.append(world.git("add", "src/late.c"))
        real(repository, index)

    monkeypatch.setattr(commits, "_lock", lock)
    world.commit(world.put(NEW, "1\n"))
    assert world.status() == "A  src/late.c\n"


def test_row_36_a_person_who_loops_commits_loses_nothing(world, monkeypatch, tmp_path):
    """A person's loop of commits and ours run side by side: every acknowledged change of both is in history."""
    monkeypatch.setattr(commits, "PATIENCE", 0.1)
    stop = tmp_path / "stop"
    loop = (
        f"i=0; while [ ! -e '{stop}' ]; do i=$((i+1)); echo $i > src/main.c; "
        "git commit -qam person-$i 2>/dev/null && echo $i >> ../said; sleep 0.05; done"
    )
    person = subprocess.Popen(["sh", "-c", loop], cwd=world.root)
    wanted, waiting = {}, []
    committed = world.root / "../said"
    try:
        while len(wanted) < 8 or not committed.exists():
            path = f"ContextMemory/n{len(wanted)}.yaml"
            waiting.append(world.put(path, path))
            wanted[path] = path
            with suppress(GitBusy):
                world.commit(*waiting)
                waiting = []
            time.sleep(0.05)  # as the person does: each is to have a chance
    finally:
        stop.touch()
        person.wait()
    world.commit(*waiting)
    subjects = set(world.git("log", "--format=%s").split("\n"))
    assert {f"person-{number}" for number in committed.read_text().split()} <= subjects
    assert all(world.git("show", f"HEAD:{path}") == text for path, text in wanted.items())
    world.git("commit", "-qam", "last", ok=False)
    assert world.status() == ""
    world.check()


@pytest.mark.parametrize("new_branch", [False, True])
def test_row_37_a_checkout_that_began_while_the_branch_moved_gets_it_back(world, monkeypatch, tmp_path, new_branch):
    """It may have read the branch before, and would then lay out the old commit under the new one."""
    monkeypatch.setattr(commits, "PATIENCE", 0.1)
    world.git("checkout", "-q", "-b", "other")
    if new_branch:
        world.git("checkout", "-q", "--orphan", "fresh")
    ref = "refs/heads/fresh" if new_branch else MAIN
    before = world.git("for-each-ref")
    group, people, real = world.put(NEW, "new\n"), [], commits.finish
    gate = tmp_path / "gate"
    os.mkfifo(gate)  # git waits at its trace until somebody reads it

    def begin(*arguments):
        if not people:
            command = ["git", "checkout", "-q", "main"]
            people.append(subprocess.Popen(command, cwd=world.root, env={**os.environ, "GIT_TRACE": str(gate)}))
            assert until(lambda: any(one.pid == people[0].pid for one in running_git()))
        return real(*arguments)

    monkeypatch.setattr(commits, "finish", begin)
    try:
        with pytest.raises(GitBusy, match="git checkout is running"):
            world.commit(group, ref=ref)
        assert world.git("for-each-ref") == before
        assert [*(world.root / ".git").glob("*.lock")] == []
    finally:
        gate.read_text()
        people[0].wait()
    (made,) = world.commit(group)
    assert (people[0].returncode, world.git("show", f"{made}:{NEW}")) == (0, "new\n")
    assert world.status() == ""
    world.check()


def test_row_42_what_a_prune_removed_before_the_branch_had_it_is_written_again(world, monkeypatch):
    """git looks at the commit alone when it moves a branch; a missing tree would break all history after it."""
    real, gone = commits.finish, []

    def prune_first(child, orders, timeout):
        if not gone:
            commit = orders.split()[3].decode()
            tree = world.git("rev-parse", f"{commit}^{{tree}}").strip()
            gone.append(world.root / ".git/objects" / tree[:2] / tree[2:])
            gone[0].unlink()
        return real(child, orders, timeout)

    monkeypatch.setattr(commits, "finish", prune_first)
    (made,) = world.commit(world.put(NEW, "new\n"))
    assert (gone[0].exists(), world.git("show", f"{made}:{NEW}")) == (True, "new\n")
    world.check()


@pytest.mark.parametrize("where", ["here", "linked"])
def test_row_42_commits_wait_for_a_prune_in_any_tree_of_the_repository(world, monkeypatch, tmp_path, where):
    """It has read the branches already, and removes what they got since."""
    monkeypatch.setattr(commits, "PATIENCE", 0.1)
    world.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    gate, group = tmp_path / "gate", world.put(NEW, "new\n")
    os.mkfifo(gate)
    folder = world.root if where == "here" else tmp_path / "linked"
    prune = subprocess.Popen(["git", "prune"], cwd=folder, env={**os.environ, "GIT_TRACE": str(gate)})
    try:
        assert until(lambda: any(one.pid == prune.pid for one in running_git()))
        with pytest.raises(GitBusy, match="git prune is running"):
            world.commit(group)
    finally:
        gate.read_text()
        prune.wait()
    world.commit(group)
    world.check()


def test_row_40_a_hooks_environment_does_not_reach_us(world, monkeypatch, tmp_path):
    """Called inside a git hook we use the workspace's own repository and index, never the hook's."""
    (tmp_path / "hook-index").write_bytes(b"theirs")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "hook-index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path))
    world.commit(world.put(NEW, "1\n"))
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.delenv(name)
    assert (tmp_path / "hook-index").read_bytes() == b"theirs"
    assert world.status() == ""
    assert world.git("show", f"HEAD:{NEW}") == "1\n"


HOOKS = (
    "reference-transaction",
    "post-index-change",
    "pre-commit",
    "post-commit",
    "post-checkout",
    "pre-auto-gc",
    "fsmonitor",
)


def test_row_41_nothing_of_a_hostile_repository_runs(world, tmp_path):
    """Hooks, monitors, filters, textconv, external diff, editors and signing programs stay silent."""
    canary = tmp_path / "canary"
    canary.mkdir()
    hooks = world.root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{canary}/{name}'\n")
        (hooks / name).chmod(0o755)
    command = lambda name: f"touch '{canary}/{name}' #"  # noqa: E731
    settings = {
        "core.fsmonitor": str(hooks / "fsmonitor"),
        "core.hooksPath": str(hooks),
        "filter.evil.clean": command("clean"),
        "filter.evil.smudge": command("smudge"),
        "filter.evil.process": command("process"),
        "diff.evil.textconv": command("textconv"),
        "diff.evil.command": command("command"),
        "diff.external": command("external"),
        "core.pager": command("pager"),
        "core.editor": command("editor"),
        "core.sshCommand": command("ssh"),
        "core.askPass": command("askpass"),
        "gpg.program": command("gpg"),
        "log.showSignature": "true",
        "alias.rev-list": f"!{command('alias')}",
        "trailer.x.command": command("trailer"),
        "uploadpack.packObjectsHook": command("packobjects"),
    }
    for name, value in settings.items():
        world.git("-c", "core.fsmonitor=false", "config", name, value)
    (world.root / ".gitattributes").write_text("* filter=evil diff=evil ident text\n")
    repository = world.repository
    world.commit(world.put(NEW, "1\n"), world.put(ITEM, "2\n"))
    repository.busy(), repository.tree("HEAD"), repository.staged([NEW]), repository.resolve("HEAD~1")
    (
        log(repository),
        log(repository, [NEW]),
        diff(repository, "HEAD~1"),
    )
    maintain(repository)
    recover(repository)
    assert os.listdir(canary) == []
    assert world.repository.read("HEAD", NEW) == b"1\n"


def test_row_42_pending_changes_go_on_top_of_rewritten_history(world):
    """After an amend or a reset our next commit has the new tip as its parent."""
    world.commit(world.put(NEW, "1\n"))
    world.git("commit", "--amend", "-qm", "amended")
    amended = world.git("rev-parse", "HEAD").strip()
    (made,) = world.commit(world.put(NEW, "2\n"))
    assert world.git("rev-parse", f"{made}~1").strip() == amended
    world.git("reset", "-q", "--hard", "HEAD~2")
    world.commit(world.put(NEW, "3\n"))
    assert len(world.git("log", "--format=%h").split()) == 3
    assert world.status() == ""


def test_row_37_a_reset_is_followed_by_reading(world):
    """After ``git reset --hard`` HEAD's content is the old one at once."""
    before = world.repository.head_blob(ITEM)
    world.commit(world.put(ITEM, "2\n"))
    world.git("reset", "-q", "--hard", "HEAD~1")
    assert world.repository.head_blob(ITEM) == before


def test_a_removed_object_folder_is_made_again(world):
    """A person's ``git gc`` beside us removes empty object folders; writing makes them again."""
    world.commit(world.put(NEW, "1\n"))
    world.git("gc", "-q")
    for number in range(5):
        world.commit(world.put(NEW, f"{number} again\n"))
        world.git("prune-packed")
    world.check()


# -- what the branch holds already --------------------------------------------------------------------------------
MOMENT = datetime(2026, 11, 1, 12, tzinfo=UTC)


def at_once(world, text):
    """A group as the policy ``each`` makes it: same writer, sentence and second as the others."""
    change = world.change(ITEM, text)
    return Group(changes=(change,), message="Update it", writers=(Writer(agent="a"),), time=MOMENT)


def test_row_21_a_value_that_comes_back_within_a_second_is_committed(world):
    """X, Y, X on one item, each committed by itself: the third is not a replay of the first, and HEAD ends with X."""
    for text in ("X\n", "Y\n", "X\n", "Y\n", "X\n"):
        since = world.repository.head().commit
        made = commit(world.repository, [at_once(world, text)], MAIN, since).commits
        assert len(made) == 1
        assert world.git("show", f"HEAD:{ITEM}") == text
    assert world.status() == ""


def test_row_21_a_replay_after_a_crash_makes_no_commit_however_values_repeat(world):
    """Groups that were committed and not yet forgotten are recognised, each by a commit of its own."""
    since = world.repository.head().commit
    groups = [at_once(world, text) for text in ("X\n", "Y\n", "X\n")]
    assert len(commit(world.repository, groups[:2], MAIN, since).commits) == 2
    assert len(commit(world.repository, groups, MAIN, since).commits) == 1
    assert world.git("show", f"HEAD:{ITEM}") == "X\n"
    assert commit(world.repository, groups, MAIN, since).commits == ()
    assert commit(world.repository, groups, MAIN).commits == ()
    world.write("src/main.c", "person\n")
    world.git("commit", "-qam", "by hand")
    assert commit(world.repository, groups, MAIN, since).commits == ()


def test_row_42_a_replay_is_recognised_on_rewritten_and_on_merged_history(world):
    """Where the known commit was rewritten, recent commits are looked at; where it was merged, both lines are."""
    world.commit(world.put(NEW, "before\n"))
    since = world.repository.head().commit
    groups = [at_once(world, text) for text in ("X\n", "Y\n")]
    commit(world.repository, groups, MAIN, since)
    world.git("branch", "ours")
    world.git("rebase", "-q", "--force-rebase", "HEAD~3", GIT_COMMITTER_DATE="2030-01-01T00:00:00Z")
    assert world.git("merge-base", "HEAD", since).strip() != since
    assert commit(world.repository, groups, MAIN, since).commits == ()
    world.git("reset", "-q", "--hard", "HEAD~3")
    world.write("src/main.c", "theirs\n")
    world.git("commit", "-qam", "theirs")
    world.git("merge", "-q", "--no-edit", "ours")
    assert commit(world.repository, groups, MAIN, since).commits == ()


@pytest.mark.parametrize("since", ["0" * 40, "--all", "main", "\ud800"])
def test_an_invalid_known_commit_is_as_if_none_were_known(world, since):
    """What the caller remembered may be gone or garbled; recent commits are looked at then."""
    group = at_once(world, "X\n")
    assert len(commit(world.repository, [group], MAIN, since).commits) == 1
    assert commit(world.repository, [group], MAIN, since).commits == ()


def test_row_21_recovery_sweeps_what_killed_writers_left(world):
    """Temporary files of dead processes leave the state folder when it is recovered."""
    left = world.repository.state / ".journal.99999999.tmp"
    left.write_bytes(b"half")
    own = world.repository.state / f".journal.{os.getpid()}.tmp"
    own.write_bytes(b"half")
    assert recover(world.repository) == []
    assert not left.exists()
    assert own.exists()


def test_a_commit_makes_the_index_where_there_is_none(world):
    """A person may have deleted the index; the commit's paths are in the one that git then makes."""
    (world.root / ".git/index").unlink()
    world.commit(world.put(NEW, "1\n"))
    assert world.git("ls-files", "-z") == f"{NEW}\0"
    world.check()

"""Commits stopped in the middle: at every operation, by a fault, by Ctrl-C and by death (rows 21, 22, 32, 39)."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kit.copies import copy_workspace
from kit.orphans import die_while, late_git, linger
from memfs.errors import GitBusy, MemfsError
from memfs.fs import io
from memfs.git import busy, commits
from memfs.git import busy as processes
from memfs.git import process as child_lock
from memfs.git.commit_object import CommitChange
from memfs.git.commits import commit, recover, unfinished
from memfs.git.repository import Repository

ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"
NEW = "ContextMemory/new.yaml"
MAIN = "refs/heads/main"


class Stopped(BaseException):
    """Ctrl-C, as it were."""


class Stage:
    """A world with staged work of a person, copied afresh for each attempt at one commit."""

    def __init__(self, world, folder):
        self.world, self.folder = world, folder
        world.write("src/main.c", "int staged;\n", world.root)
        world.git("add", "src/main.c")
        world.write("src/main.c", "int more;\n", world.root)
        self.staged = world.git("diff", "--cached")
        self.groups = [
            world.group(CommitChange(path=NEW, data=b"new\n"), CommitChange(path=ITEM, data=b"title: changed\n")),
            world.group(CommitChange(path=NEW, data=b"newer\n")),
        ]
        world.write(NEW, "newer\n")
        world.write(ITEM, "title: changed\n")

    def fresh(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        copy_workspace(self.world.root, self.folder)
        found = Repository.find(self.folder)
        found.identity()
        return found

    def git(self, *arguments):
        return self.world.git(*arguments, folder=self.folder)

    def verify(self, repository):
        """Nothing is locked, broken or lost; the same groups can be committed; what the person staged is as it was."""
        recover(repository)
        assert unfinished(repository) == []
        assert not list((self.folder / ".git").glob("*.lock"))
        assert not list((self.folder / ".git/refs").rglob("*.lock"))
        staged = self.git("diff", "--cached", "--name-only", "-z").split("\0")
        assert [path for path in staged if path] == ["src/main.c"], (
            "the index agrees with HEAD but for the person's file"
        )
        assert self.git("diff", "--cached") == self.staged
        commit(repository, self.groups, MAIN)
        assert repository.read("HEAD", NEW) == b"newer\n"
        assert self.git("rev-list", "--count", "HEAD").strip() == "4"
        assert self.git("status", "--porcelain") == "MM src/main.c\n"
        self.git("fsck", "--full", "--strict")
        repository.close()


@pytest.fixture
def stage(world, tmp_path):
    """Copies are in memory where there is a place for them: hundreds of them are synced."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:
        yield Stage(world, Path(folder) / "copy of it")


READING = ("open", "read")


def counted(repository, groups, passed_over=()):
    names = []
    io.set_hook(lambda name, path: names.append(name))
    commit(repository, groups, MAIN)
    io.set_hook(None)
    repository.close()
    return sum(name not in passed_over for name in names)


def stopping(number, stop, passed_over=()):
    seen = iter(range(number + 1))

    def hook(name, path):
        if name not in passed_over and next(seen, None) == number:
            stop()

    return hook


def raising(error):
    def stop():
        raise error

    return stop


def test_a_commit_stopped_at_any_operation_is_undone_or_finished(stage, scale):
    """Ctrl-C or a failing disk at the N-th operation leaves no lock and no half step, for every N (of three, here)."""
    total = counted(stage.fresh(), stage.groups, READING)
    for number in range(0, total, scale(3, 1)):
        repository = stage.fresh()
        error = Stopped() if number % 2 else OSError(5, "Input/output error")
        io.set_hook(stopping(number, raising(error), READING))
        # A few failures need no error: an object whose writing cannot be confirmed is written again.
        with suppress(Stopped, MemfsError):
            commit(repository, stage.groups, MAIN)
        io.set_hook(None)
        assert not (stage.folder / ".git/index.lock").exists(), number
        assert unfinished(repository) == []
        if number % scale(9, 3) == 0:
            stage.verify(repository)
        repository.close()


def test_a_process_killed_at_any_operation_is_recovered(stage, scale):
    """After death before any operation that changes the disk, recover() finishes or undoes the step (rows 21, 39)."""
    total = counted(stage.fresh(), stage.groups, READING)
    assert total > 40
    for number in range(0, total, scale(13, 1)):
        repository = stage.fresh()
        pid = os.fork()
        if pid == 0:
            io.set_hook(stopping(number, lambda: os._exit(9), READING))
            commit(repository, stage.groups, MAIN)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
        stage.verify(repository)


def test_a_disk_that_stays_broken_is_recovered_later(stage, scale):
    """When undoing fails as well, the record stays and the next commit begins by ending the old step."""
    total = counted(stage.fresh(), stage.groups)
    for number in range(total - 22, total, scale(5, 2)):
        repository = stage.fresh()
        left = iter(range(number))

        def hook(name, path, left=left):
            if next(left, None) is None:
                raise OSError(28, "No space left on device")

        io.set_hook(hook)
        with pytest.raises(MemfsError):
            commit(repository, stage.groups, MAIN)
        io.set_hook(None)
        commit(repository, stage.groups, MAIN)
        stage.verify(repository)


def die_when(repository, groups, name, ending, branch=MAIN):
    """Run a commit in a child that dies just before the operation of this name on a path that ends so."""
    pid = os.fork()
    if pid == 0:
        io.set_hook(lambda did, path: os._exit(9) if did == name and path.endswith(ending) else None)
        commit(repository, groups, branch)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def test_row_39_our_own_dead_lock_is_removed_and_reported(stage):
    """A lock that is another name of our prepared index is removed by recover(), which says so; busy() ignores it."""
    repository = stage.fresh()
    die_when(repository, stage.groups, "rename", ".git/index")
    assert (stage.folder / ".git/index.lock").exists()
    assert repository.busy() == ""
    (problem,) = recover(repository)
    assert problem.code == "InterruptedCommit"
    assert problem.severity == "warning"
    assert recover(repository) == []
    stage.verify(repository)


def test_row_39_any_workspace_of_the_repository_recovers(stage):
    """The step of a dead process in one workspace is ended by a process in another one."""
    repository = stage.fresh()
    die_when(repository, stage.groups, "rename", ".git/index")
    other = Repository.find(stage.folder / "src")
    assert other.state != repository.state
    assert len(recover(other)) == 1
    other.close()
    stage.verify(repository)


def test_row_39_a_foreign_lock_after_our_death_is_left(stage):
    """If a person removed our dead lock and holds their own, recovery touches neither it nor the index."""
    repository = stage.fresh()
    die_when(repository, stage.groups, "rename", ".git/index")
    lock = stage.folder / ".git/index.lock"
    lock.unlink()
    lock.write_bytes(b"theirs")
    recover(repository)
    assert lock.read_bytes() == b"theirs"
    lock.unlink()
    stage.verify(repository)


def test_row_39_an_index_left_ahead_is_put_back_when_our_lock_was_removed(stage):
    """A person who deletes our dead lock gets an index that agrees with HEAD again."""
    repository = stage.fresh()
    pid = os.fork()
    if pid == 0:
        commits.finish = lambda *arguments: os._exit(9)
        commit(repository, stage.groups, MAIN)
    os.waitpid(pid, 0)
    (stage.folder / ".git/index.lock").unlink()
    assert NEW in stage.git("diff", "--cached", "--name-only")
    recover(repository)
    assert NEW not in stage.git("diff", "--cached", "--name-only")
    stage.verify(repository)


def test_row_12_a_record_that_leads_out_of_the_repository_is_not_a_record(stage):
    """What was unpacked together with a repository puts no index of ours into another one."""
    repository = stage.fresh()
    other = stage.folder.parent / "other.git"
    other.mkdir()
    (other / "index").write_bytes(b"theirs")
    state = repository.state
    state.mkdir(parents=True, exist_ok=True)
    (state / commits.BEFORE).write_bytes(b"ours")
    os.link(other / "index", state / commits.OWN_LINK)
    record = {"ref": MAIN, "old": "1" * 40, "new": "2" * 40, "had_index": True}
    record["git_dir"] = os.path.relpath(other, repository.common_dir)
    (state / commits.RECORD).write_text(json.dumps(record))
    recover(repository)
    assert {one.name: one.read_bytes() for one in other.iterdir()} == {"index": b"theirs"}
    repository.close()


def test_row_39_an_index_left_ahead_waits_for_a_foreign_lock(stage):
    """Where a person's git holds the index by now, it is put back once that has ended, and the lock is theirs."""
    repository = stage.fresh()
    pid = os.fork()
    if pid == 0:
        commits.finish = lambda *arguments: os._exit(9)
        commit(repository, stage.groups, MAIN)
    os.waitpid(pid, 0)
    lock, index = stage.folder / ".git/index.lock", stage.folder / ".git/index"
    lock.unlink()
    lock.write_bytes(b"theirs")
    ahead = index.read_bytes()
    recover(repository)
    assert (lock.read_bytes(), index.read_bytes()) == (b"theirs", ahead)


def test_a_copied_repository_does_not_take_a_copied_lock_for_its_own(stage, tmp_path):
    """In a copy our lock is another file: not provably ours, so it is reported and left."""
    repository = stage.fresh()
    die_when(repository, stage.groups, "rename", ".git/index")
    shutil.copytree(stage.folder, tmp_path / "copied")
    copied = Repository.find(tmp_path / "copied")
    assert recover(copied) == []
    assert "index.lock" in copied.busy()
    recover(repository)
    repository.close()
    copied.close()


def test_recovery_waits_for_the_git_process_of_the_dead(stage, monkeypatch):
    """While a dead process's git still runs nothing is undone under it."""
    repository = stage.fresh()
    die_when(repository, stage.groups, "rename", ".git/index")
    monkeypatch.setattr(child_lock, "CHILD_PATIENCE", 0.05)
    with child_lock.child_lock(repository.state), pytest.raises(MemfsError, match="still runs"):
        recover(repository)
    stage.verify(repository)


def test_47_a_child_forked_beside_a_commit_keeps_nobody_waiting(tmp_path, monkeypatch):
    """A program that forks in one thread while another commits: its child is no git of ours, and may live for long."""
    monkeypatch.setattr(child_lock, "CHILD_PATIENCE", 0.0)
    with child_lock.child_lock(tmp_path):
        end = linger()
    child_lock.wait_for_children(tmp_path)
    end()


def test_row_21_the_git_that_prepares_an_index_ends_before_what_it_left_is_swept(stage, tmp_path):
    """Its index would come after the sweep: left lying there, or in the place of the next step's."""
    repository = stage.fresh()
    die_while(lambda: commit(repository, stage.groups, MAIN), "update-index", late_git(tmp_path, "update-index"))
    recover(repository)
    assert (tmp_path / "ended").exists()
    assert unfinished(repository) == []
    stage.verify(repository)


def test_row_21_so_does_the_git_that_makes_the_first_index(stage, tmp_path):
    """Where there was no index nothing is there until that git has made one: then it would be the next step's."""
    repository = stage.fresh()
    (stage.folder / ".git/index").unlink()
    die_while(lambda: commit(repository, stage.groups, MAIN), "update-index", late_git(tmp_path, "update-index"))
    commit(repository, stage.groups[:1], MAIN)
    assert (tmp_path / "ended").exists()
    assert unfinished(repository) == []
    assert NEW not in stage.git("diff", "--cached", "--name-only")
    repository.close()


def test_row_21_the_git_that_stages_an_outcome_ends_before_the_next(stage, tmp_path):
    """What a killed resolve was to put into the index would come after what was decided then."""
    repository = stage.fresh()
    first, second = ({ITEM: ("100644", data)} for data in (b"first\n", b"second\n"))
    die_while(lambda: commits.stage(repository, first), "update-index", late_git(tmp_path, "update-index"))
    commits.stage(repository, second)
    assert (tmp_path / "ended").exists()
    assert stage.git("show", f":{ITEM}") == "second\n"
    repository.close()


def test_rows_23_39_locks_that_our_git_left_go_with_ours(stage):
    """A power cut leaves the branch's lock with our new commit or nothing in it, and HEAD's empty: both are ours."""
    for left in ("{new}\n", "", "\0\0\0\0"):
        repository = stage.fresh()
        die_when(repository, stage.groups, "rename", ".git/index")
        new = json.loads((repository.state / commits.RECORD).read_text())["new"]
        locks = stage.folder / ".git/refs/heads/main.lock", stage.folder / ".git/HEAD.lock"
        locks[0].write_text(left.format(new=new))
        locks[1].write_bytes(b"")
        recover(repository)
        assert [lock.exists() for lock in locks] == [False, False]
        stage.verify(repository)


@pytest.mark.parametrize("moved", [False, True])
def test_row_39_locks_of_our_git_that_was_killed_alone_go_at_once(stage, monkeypatch, moved):
    """A git that a stuck disk keeps from ending when asked, or that runs out of memory, dies and removes nothing."""
    monkeypatch.setattr(commits, "STANDING_STILL", 0.05)
    repository, feed = stage.fresh(), commits.finish
    locks = stage.folder / ".git/refs/heads/main.lock", stage.folder / ".git/HEAD.lock"

    def die(process, data, timeout):
        if moved:
            feed(process, data, timeout)
        locks[moved].write_bytes(b"")
        process.kill()
        process.wait()
        process.returncode = -signal.SIGKILL
        return process.returncode, b"", ""

    monkeypatch.setattr(commits, "finish", die)
    with nullcontext() if moved else pytest.raises(GitBusy):
        commit(repository, stage.groups, MAIN)
    assert [lock.exists() for lock in locks] == [False, False]
    assert repository.busy() == ""
    assert stage.git("rev-list", "--count", "HEAD").strip() == ("4" if moved else "2")
    monkeypatch.undo()
    commit(repository, [stage.world.group(CommitChange(path=NEW, data=b"later\n"))], MAIN)
    repository.close()


@pytest.mark.parametrize("whose", ["older", "of another commit", "of another branch", "in use", "a link"])
def test_row_39_a_lock_that_may_be_somebody_elses_stays(stage, monkeypatch, whose):
    """What was there before our step, says something else, or is in a directory where git works, is reported only."""
    repository = stage.fresh()
    die_when(repository, stage.groups, "rename", ".git/index")
    lock = stage.folder / ".git/HEAD.lock"
    lock.write_text({"of another commit": "1" * 40, "of another branch": "ref: refs/heads/else"}.get(whose, ""))
    if whose == "older":
        os.utime(lock, (1_000_000_000, 1_000_000_000))
    if whose == "a link":
        lock.rename(stage.folder / ".git/away")
        lock.symlink_to("away")
    if whose == "in use":
        monkeypatch.setattr(commits, "at_work", lambda layout: processes.GitProcess(1, "fetch", str(layout.work_tree)))
    recover(repository)
    assert os.path.lexists(lock)
    assert "HEAD.lock" in repository.busy()
    lock.unlink()
    stage.verify(repository)


@pytest.mark.parametrize("in_use", [False, True])
def test_row_39_a_lock_of_another_working_tree_is_asked_about_there(stage, monkeypatch, in_use):
    """A step of a linked working tree is ended from the main one, and a lock that people's git may hold there stays."""
    repository = stage.fresh()
    place = stage.folder.parent / "linked"
    stage.git("worktree", "add", "--quiet", str(place), "-b", "linked")
    linked = Repository.find(place)
    linked.identity()
    die_when(linked, stage.groups, "rename", "/index", "refs/heads/linked")
    linked.close()
    lock = stage.folder / ".git/worktrees/linked/HEAD.lock"
    lock.write_bytes(b"")
    working = [processes.GitProcess(1, "update-ref", os.path.realpath(place))] if in_use else []
    monkeypatch.setattr(busy, "running_git", lambda: iter(working))
    recover(repository)
    assert (lock.exists(), unfinished(repository)) == (in_use, [])
    repository.close()


def test_row_39_a_lock_whose_owner_ends_in_time_was_not_left(stage, monkeypatch):
    """A lock that changes hands while it is looked at is in use."""
    repository = stage.fresh()
    die_when(repository, stage.groups, "rename", ".git/index")
    lock = stage.folder / ".git/HEAD.lock"
    lock.write_bytes(b"")

    def renewed(layout):
        lock.rename(stage.folder / ".git/kept")
        lock.write_bytes(b"")

    monkeypatch.setattr(commits, "at_work", renewed)
    recover(repository)
    assert lock.exists()
    lock.unlink()
    stage.verify(repository)


def test_row_12_a_pipe_in_the_place_of_the_index_is_reported_and_never_waited_for(world):
    """What is not a file there stops commits with its reason; once it is gone they go on."""
    index = world.root / ".git/index"
    keep = index.read_bytes()
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(GitBusy, match="not a regular file"):
        world.commit(world.put(NEW, "new\n"))
    with pytest.raises(GitBusy, match="not a regular file"):
        commits._copy(index, world.repository.state / "copy")
    assert "not a regular file" in world.repository.busy()
    index.unlink()
    index.write_bytes(keep)
    assert world.commit(world.put(NEW, "newer\n"))
    world.check()


def test_row_39_second_names_of_indexes_are_removed_by_the_next_recovery(world):
    """A process killed before it wrote its record, or after it removed it, leaves nothing forever."""
    state = world.repository.state
    for name in ("index.next", "index.before", "index.put", "index.next.lock"):
        os.link(world.root / ".git/index", state / name)
    assert recover(world.repository) == []
    assert not list(state.glob("index.*"))
    assert world.commit(world.put(NEW, "new\n"))
    world.check()

"""Syncing with a remote: fetch, merge, push, never force; and what is refused, with nothing changed (B3)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from kit.orphans import die_while, late_git
from kit.patience import until
from memfs import MemoryItem, Workspace, open_workspace
from memfs.admin import erase as erasing
from memfs.doors.cli.app import run
from memfs.errors import (
    GitBusy,
    GitFailed,
    HistoryUnavailable,
    LockTimeout,
    MergeRefused,
    PushRefused,
    RemoteInvalid,
    RemoteRewritten,
    RemoteUnreachable,
)
from memfs.git import remote as talking
from memfs.git.process import check
from memfs.git.remote import RemoteConnection, RemoteHistory, protocol_of, remote_of
from memfs.model import Query

Git = Callable[..., str]
Opened = Callable[..., Workspace]


class Site:
    """A bare remote and two clones of it."""

    def __init__(self, root: Path, opened: Opened, git: Git) -> None:
        self.root, self.opened, self.git = root, opened, git
        self.remote = root / "remote.git"
        git(root, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
        self.ada = opened()
        git(self.ada.root, "remote", "add", "origin", str(self.remote))

    def bo(self) -> Workspace:
        self.git(self.root, "clone", "--quiet", "remote.git", "bo")
        return self.opened(self.root / "bo")

    def take_back(self, clone: Workspace) -> None:
        """Force the remote back by one commit, as a person would from a clone."""
        self.git(clone.root, "reset", "--quiet", "--hard", "HEAD~1")
        self.git(clone.root, "push", "--quiet", "--force", "origin", "main")

    def tip(self, folder: Path | None = None) -> str:
        return self.git(folder or self.remote, "rev-parse", "main").strip()


@pytest.fixture
def site(tmp_path: Path, opened: Opened, git: Git) -> Site:
    return Site(tmp_path, opened, git)


def put(workspace: Workspace, name: str, text: str = "text") -> MemoryItem:
    return workspace.store.put(MemoryItem(text, "semantic", id=name))


def sync(workspace: Workspace, *arguments: str, **options: object) -> object:
    return workspace.teams.syncer.sync(*arguments, **options)  # type: ignore[arg-type]


def test_the_first_sync_fills_an_empty_remote(site: Site) -> None:
    """What is here goes to a bare remote that has nothing, waiting writes included (B3)."""
    put(site.ada, "one")
    done = sync(site.ada)
    assert (done.pushed, done.fetched, done.joined) == (True, "", None)
    assert site.tip() == site.tip(site.ada.root)
    assert "one.yaml" in site.git(site.remote, "ls-tree", "-r", "--name-only", "main")


def test_nothing_to_do_talks_once_and_changes_nothing(site: Site) -> None:
    """A sync of what is in sync only asks the remote for its branches."""
    sync(site.ada)
    done = sync(site.ada)
    assert (done.pushed, done.ahead, done.joined, done.rounds) == (False, 0, None, 1)


def test_two_clones_exchange_what_they_have(site: Site) -> None:
    """Both sides' items and edits are at both sides afterwards, and the histories are one (B3)."""
    put(site.ada, "shared", "one\ntwo\nthree")
    sync(site.ada)
    bo = site.bo()
    for side, line in ((site.ada, "one"), (bo, "three")):
        item = side.store.get("shared")
        assert item is not None
        side.store.put(item.replace(content=item.content.replace(line, line.upper())))
    put(site.ada, "from-ada")
    put(bo, "from-bo")
    sync(site.ada)
    sync(bo)
    sync(site.ada)
    assert site.tip() == site.tip(site.ada.root) == site.tip(bo.root)
    for side in (site.ada, bo):
        item = side.store.get("shared")
        assert item is not None
        assert item.content == "ONE\ntwo\nTHREE"
        assert side.store.get("from-ada") is not None
        assert side.store.get("from-bo") is not None
        assert site.git(side.root, "status", "--porcelain") == ""


def test_a_push_that_others_outran_is_merged_and_tried_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody pushes between fetch and push, nothing is forced: it begins again (B3)."""
    sync(site.ada)
    bo = site.bo()
    push = RemoteConnection.push
    raced = []

    def outrun(talk: RemoteConnection, commit: str, branch: str) -> None:
        if not raced:
            raced.append(commit)
            put(bo, "quick")
            sync(bo)
        push(talk, commit, branch)

    monkeypatch.setattr(RemoteConnection, "push", outrun)
    put(site.ada, "slow")
    done = sync(site.ada)
    assert (done.rounds, done.pushed) == (2, True)
    assert site.ada.store.get("quick") is not None
    assert site.git(site.remote, "merge-base", "--is-ancestor", raced[0], "main") == ""


def test_syncs_at_the_same_moment_all_arrive(site: Site) -> None:
    """Clones that push at once lose nothing and end in one line (B3)."""
    sync(site.ada)
    clones = [site.ada]
    for name in ("b", "c"):
        site.git(site.root, "clone", "--quiet", "remote.git", name)
        clones.append(site.opened(site.root / name))
    for number, clone in enumerate(clones):
        put(clone, f"item{number}")
    threads = [threading.Thread(target=sync, args=(clone,)) for clone in clones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = site.git(site.remote, "ls-tree", "-r", "--name-only", "main")
    assert all(f"item{number}.yaml" in names for number in range(3))


def test_a_remote_that_was_force_pushed_is_refused_and_rescued(site: Site) -> None:
    """Nothing here changes, a ref keeps what the remote had, and so it stays until somebody decides (B3, row 42)."""
    put(site.ada, "kept")
    sync(site.ada)
    bo = site.bo()
    put(bo, "lost")
    sync(bo)
    sync(site.ada)
    before = site.tip(site.ada.root)
    site.take_back(bo)
    put(site.ada, "mine")
    for _ in range(2):
        with pytest.raises(RemoteRewritten, match="refs/memfs/rescue/origin/main/"):
            sync(site.ada)
    assert site.tip(site.ada.root) == before
    assert site.ada.store.get("lost") is not None
    rescued = site.git(site.ada.root, "for-each-ref", "--format=%(objectname)", "refs/memfs/rescue").split()
    assert rescued == [before]
    assert site.git(site.ada.root, "rev-parse", "origin/main").strip() == before
    assert site.tip() != before


def test_a_plain_fetch_does_not_hide_a_rewritten_remote(site: Site) -> None:
    """git's own name for the remote's branch follows a force push; memfs remembers what it saw (row 42)."""
    sync(site.ada)
    put(site.ada, "lost")
    sync(site.ada)
    bo = site.bo()
    site.take_back(bo)
    site.git(site.ada.root, "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*")
    with pytest.raises(RemoteRewritten):
        sync(site.ada)


def test_rejoin_brings_back_what_the_remote_dropped(site: Site) -> None:
    """Asked to, memfs merges with what a rewritten remote has: nobody's memory is missing then (B3)."""
    sync(site.ada)
    put(site.ada, "dropped")
    sync(site.ada)
    bo = site.bo()
    site.git(bo.root, "reset", "--quiet", "--hard", "HEAD~1")
    put(bo, "instead")
    bo.store.flush()
    site.git(bo.root, "push", "--quiet", "--force", "origin", "main")
    done = sync(site.ada, rejoin=True)
    assert done.pushed
    assert done.rescued
    names = site.git(site.remote, "ls-tree", "-r", "--name-only", "main")
    assert "dropped.yaml" in names
    assert "instead.yaml" in names
    assert not sync(site.ada).rescued


@pytest.mark.parametrize("named", ["", "main"])
def test_a_branch_that_was_removed_there_is_not_made_again_unasked(site: Site, named: str) -> None:
    """A remote that lost its branch, or was made again, dropped everything: a ref keeps it (B3, row 42)."""
    put(site.ada, "kept")
    sync(site.ada)
    before = site.tip()
    site.git(site.remote, "update-ref", "-d", "refs/heads/main")
    with pytest.raises(RemoteRewritten, match=r"no branch main any more.*refs/memfs/rescue/origin/main/") as refused:
        sync(site.ada, branch=named)
    assert "--rejoin" in (refused.value.hint or "")
    assert site.git(site.remote, "for-each-ref") == ""
    done = sync(site.ada, branch=named, rejoin=True)
    assert (done.pushed, site.git(site.ada.root, "rev-parse", done.rescued).strip()) == (True, before)
    assert sync(site.ada).ahead == 0


def test_a_branch_named_below_one_that_is_gone_is_synced(site: Site) -> None:
    """No ref of memfs's is in the way of another's, whatever branches come and go (B3)."""
    sync(site.ada, branch="team")
    site.git(site.remote, "update-ref", "-d", "refs/heads/team")
    for name in ("a", "b"):
        put(site.ada, name)
        assert sync(site.ada, branch="team/x%").pushed


def test_a_person_who_holds_gits_own_name_of_the_branch_is_not_in_the_way(site: Site) -> None:
    """What memfs needs to know it keeps in refs of its own (B3)."""
    sync(site.ada)
    lock = site.ada.root / ".git/refs/remotes/origin/main.lock"
    lock.touch()
    put(site.ada, "mine")
    assert sync(site.ada).pushed
    lock.unlink()
    assert sync(site.ada).ahead == 0


def test_a_first_sync_killed_before_it_could_remember_is_not_an_erase(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note of what was pushed is written, its ref is not: nothing was rewritten here (B3)."""
    with monkeypatch.context() as patched:
        patched.setattr(RemoteHistory, "_update", lambda *_: None)
        assert sync(site.ada).pushed
    assert site.git(site.ada.root, "for-each-ref", "refs/memfs", "refs/remotes") == ""
    put(site.ada, "after")
    assert sync(site.ada).pushed


def test_39_the_git_of_a_killed_sync_moves_nothing_back(site: Site, tmp_path: Path) -> None:
    """What it was to remember comes after what the next sync saw: then a remote that dropped that is no surprise."""
    seen, root = RemoteHistory(site.ada.repository), site.ada.root
    one, two = (site.git(root, "commit-tree", "-m", text, "HEAD^{tree}").strip() for text in ("one", "two"))
    die_while(lambda: seen.note("origin", "main", one), "update-ref", late_git(tmp_path, "update-ref"))
    seen.note("origin", "main", two)
    assert until((tmp_path / "ended").exists)
    assert seen.tip("origin", "main") == two


def test_what_was_seen_and_is_gone_altogether_was_erased(site: Site) -> None:
    """Where only the note has a commit that is no longer here, history was rewritten (row 50)."""
    sync(site.ada)
    seen = RemoteHistory(site.ada.repository)
    for gone in (site.tip(), "1" * 40):
        (site.ada.repository.state / "seen.json").write_text(f'{{"other/main": ["{gone}"]}}')
        assert seen.rewritten_here("other", "main") == ("" if gone == site.tip() else gone)


@pytest.mark.parametrize("more", [False, True])
def test_what_only_git_has_seen_counts_too(site: Site, more: bool) -> None:
    """A clone that never synced knows by git's names what a remote had; rewording one erases nothing (row 42)."""
    put(site.ada, "one")
    sync(site.ada)
    bo = site.bo()
    if more:
        put(site.ada, "one", "other words")
    site.git(site.ada.root, "add", "-A")
    date = site.git(site.ada.root, "log", "-1", "--format=%cI").strip()
    site.git(site.ada.root, "commit", "-q", "--amend", "-m", "Otherwise", GIT_COMMITTER_DATE=date)
    site.git(site.ada.root, "push", "-q", "--force", "origin", "main")
    with pytest.raises(RemoteRewritten, match="origin/main was rewritten"):
        sync(bo)


def test_what_is_rescued_in_one_second_is_kept_twice(site: Site) -> None:
    """Each commit has a ref of its own, and no second one (row 42)."""
    seen, root = RemoteHistory(site.ada.repository), site.ada.root
    commits = [site.git(root, "commit-tree", "-m", text, "HEAD^{tree}").strip() for text in ("a", "b", "c", "a")]
    refs = [seen.rescue("origin", "main", commit) for commit in commits]
    assert [site.git(root, "rev-parse", ref).strip() for ref in refs] == commits
    assert len(set(refs)) == len(set(commits))


def test_a_sync_of_another_working_tree_is_not_an_erase(site: Site) -> None:
    """Linked working trees share the refs by which memfs remembers, and each syncs as it likes (B3)."""
    put(site.ada, "one")
    sync(site.ada)
    site.git(site.ada.root, "worktree", "add", "--quiet", "-b", "side", str(site.root / "side"))
    side = site.opened(site.root / "side")
    for number, workspace in enumerate((side, site.ada, side, site.ada)):
        put(workspace, f"item{number}")
        assert sync(workspace, branch="main").pushed
    assert site.ada.store.get("item2") is not None


def test_a_remote_that_is_locked_is_not_called_busy(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a push fails and nobody has pushed, the remote's own reason is reported (B3)."""
    monkeypatch.setattr("memfs.team.sync._LONGEST_PAUSE", 0.01)
    sync(site.ada)
    put(site.ada, "mine")
    lock = site.remote / "refs/heads/main.lock"
    lock.touch()
    with pytest.raises(PushRefused, match=r"took none of 20 pushes.*main\.lock"):
        sync(site.ada)
    lock.unlink()
    assert sync(site.ada).pushed


def test_a_hook_that_refuses_a_push_is_quoted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server says of its rules reaches the person; hooks of a folder on this machine do not run otherwise."""
    monkeypatch.setattr(talking, "_PLAIN_RECEIVER", ())
    hook = site.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'memory goes through a pull request' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(PushRefused, match=r"pre-receive hook declined.*memory goes through a pull request"):
        sync(site.ada)


def test_unpublished_work_beside_memory_is_not_pushed(site: Site, git: Git) -> None:
    """In a repository that holds code, memfs publishes memory; a person's commits wait for their own push (B3)."""
    code = site.root / "code"
    git(site.root, "init", "--quiet", "--initial-branch=main", "code")
    git(code, "remote", "add", "origin", str(site.remote))
    (code / "main.py").write_text("x = 1\n")
    git(code, "add", ".")
    git(code, "commit", "--quiet", "-m", "code")
    workspace = site.opened(code / "memory")
    assert sync(workspace).pushed
    (code / "main.py").write_text("x = unfinished\n")
    git(code, "commit", "--quiet", "-a", "-m", "unfinished")
    put(workspace, "one")
    before = site.tip()
    for dry_run in (True, False):
        with pytest.raises(PushRefused, match=r"files that are not memory: main.py") as refused:
            sync(workspace, dry_run=dry_run)
    assert "git push" in (refused.value.hint or "")
    assert site.tip() == before
    assert not sync(workspace, push=False).pushed
    git(code, "push", "--quiet", "origin", "main")
    put(workspace, "two")
    assert sync(workspace).pushed


def test_what_was_merged_is_named_before_the_push_is_refused(
    site: Site, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whose value was set aside is said, and what was deleted and edited, though the push is refused then (B3)."""
    ttl, lunch = put(site.ada, "ttl", "seconds: 60"), put(site.ada, "lunch", "at noon")
    sync(site.ada)
    bo = site.bo()
    for side, value in ((site.ada, "90"), (bo, "30")):
        side.store.put(ttl.replace(content=f"seconds: {value}"))
    site.ada.store.put(lunch.replace(content="at one"))
    bo.store.delete("lunch")
    sync(bo)
    (site.ada.root / "app.py").write_text("x = 1\n")
    git(site.ada.root, "add", "app.py")
    git(site.ada.root, "commit", "--quiet", "-m", "code")
    site.ada.store.flush()
    for dry_run in (["--dry-run"], []):
        assert run(["-C", str(site.ada.root), "sync", *dry_run]) == 1
        captured = capsys.readouterr()
        assert ("Would merge" if dry_run else "Merged") in captured.out
        assert "Both sides changed content in " in captured.out
        assert "lunch.yaml" in captured.out
        assert "would get files that are not memory: app.py" in captured.err
        assert "Would push" not in captured.out
    done = sync(site.ada, push=False)
    assert (done.joined, done.refused) == (None, None)


def test_git_left_over_from_a_killed_sync_does_not_answer_another(site: Site) -> None:
    """A fetch outlives the sync that was killed; what it still writes is nobody's answer (B3)."""
    sync(site.ada)
    remote = remote_of(site.ada.repository, "origin")
    old, talk = RemoteConnection(site.ada.repository, remote), RemoteConnection(site.ada.repository, remote)
    old.fetch("main", ())
    assert old._folder != talk._folder
    talk.fetch("main", ())
    assert not old._folder.exists()
    talk.close()
    assert not (site.ada.repository.state / talking.FOLDER).exists()


def test_a_clone_that_followed_the_rewriting_by_hand_goes_on(site: Site) -> None:
    """Where nothing here could bring the dropped commits back, there is nothing to refuse (row 42)."""
    sync(site.ada)
    put(site.ada, "lost")
    sync(site.ada)
    bo = site.bo()
    site.take_back(bo)
    site.git(site.ada.root, "fetch", "--quiet", "origin")
    site.git(site.ada.root, "reset", "--quiet", "--hard", site.tip())
    put(site.ada, "after")
    assert sync(site.ada).pushed


def test_what_was_erased_here_does_not_come_back(site: Site, git: Git) -> None:
    """After an erase a remote with the old history is refused, even to be rejoined, and not even fetched (row 50)."""
    put(site.ada, "secret", "the old password was swordfish")
    put(site.ada, "other")
    sync(site.ada)
    site.ada.eraser.erase("secret", rewrite_shared=True)
    for rejoin in (False, True):
        with pytest.raises(RemoteRewritten, match="rewritten here") as refused:
            sync(site.ada, rejoin=rejoin)
    assert "git push --force-with-lease=main:" in (refused.value.hint or "")
    objects = git(site.ada.root, "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    blobs = [line.split()[0] for line in objects if " blob " in line]
    assert not any("swordfish" in git(site.ada.root, "cat-file", "blob", blob) for blob in blobs)
    git(site.ada.root, "push", "--quiet", "--force", "origin", "HEAD:main")
    put(site.ada, "after")
    assert sync(site.ada).pushed


@pytest.mark.parametrize("by", ["sync", "push", "fetch"])
def test_what_was_erased_after_an_earlier_sync_does_not_come_back(site: Site, git: Git, by: str) -> None:
    """Where the remote had a state before that lacked it, and got it by a sync, by git's push, or from another clone
    and fetched by git, it is refused all the same, and not fetched (B3, row 50).
    """
    put(site.ada, "other")
    sync(site.ada)
    if by == "fetch":
        bo = site.bo()
        put(bo, "secret", "the old password was swordfish")
        sync(bo)
        git(site.ada.root, "pull", "--quiet", "--ff-only", "origin", "main")
    else:
        put(site.ada, "secret", "the old password was swordfish")
        site.ada.commit("Say it")
        sync(site.ada) if by == "sync" else git(site.ada.root, "push", "--quiet", "origin", "HEAD:main")
    site.ada.eraser.erase("secret", rewrite_shared=True)
    for rejoin in (False, True):
        with pytest.raises(RemoteRewritten, match="rewritten here"):
            sync(site.ada, rejoin=rejoin)
    objects = git(site.ada.root, "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    blobs = [line.split()[0] for line in objects if " blob " in line]
    assert not any("swordfish" in git(site.ada.root, "cat-file", "blob", blob) for blob in blobs)
    put(site.ada, "secret", "of another kind, the password hunter3hunter3")
    site.ada.commit("Say it again")
    site.ada.eraser.erase("secret", rewrite_shared=True)
    with pytest.raises(RemoteRewritten, match="rewritten here"):
        sync(site.ada)
    git(site.ada.root, "push", "--quiet", "--force", "origin", "HEAD:main")
    put(site.ada, "after")
    assert sync(site.ada).pushed


@pytest.mark.parametrize("by", ["branch", "remote", "rename", "on top"])
def test_what_was_erased_comes_back_by_no_other_way(site: Site, git: Git, by: str) -> None:
    """A branch, or a remote, that this clone never saw, one that is called otherwise by now, and what others pushed on
    top of the old history: what was erased is not merged, and nothing of it stays here (B3, row 50).
    """
    root, remote = site.ada.root, site.git(site.ada.root, "remote", "get-url", "origin").strip()
    put(site.ada, "secret", "the old password was swordfish")
    put(site.ada, "other")
    sync(site.ada)
    bo = site.bo()
    put(bo, "later")
    sync(bo)
    git(bo.root, "push", "--quiet", "origin", "HEAD:feature")
    site.ada.eraser.erase("secret", rewrite_shared=True)
    put(site.ada, "after")
    asked: dict[str, object] = {}
    if by == "branch":
        git(root, "push", "--quiet", "--force", "origin", "HEAD:main")
        asked = {"branch": "feature"}
    elif by == "remote":
        git(root, "push", "--quiet", "--force", "origin", "HEAD:main")
        git(root, "remote", "add", "mirror", remote)
        asked = {"remote": "mirror", "branch": "feature"}
    elif by == "rename":
        git(root, "remote", "rename", "origin", "up")
    for rejoin in (False, True):
        with pytest.raises(RemoteRewritten, match="rewritten here") as refused:
            sync(site.ada, rejoin=rejoin, **asked)
    assert "--force-with-lease=" in (refused.value.hint or "")
    objects = git(root, "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    blobs = [line.split()[0] for line in objects if " blob " in line]
    assert not any("swordfish" in git(root, "cat-file", "blob", blob) for blob in blobs)


def test_what_others_pushed_to_a_cleaned_remote_is_taken(site: Site, git: Git) -> None:
    """Once the old history is replaced at the remote, what a fresh clone adds there is merged like anything (B3)."""
    put(site.ada, "secret", "the old password was swordfish")
    put(site.ada, "other")
    sync(site.ada)
    site.ada.eraser.erase("secret", rewrite_shared=True)
    git(site.ada.root, "push", "--quiet", "--force", "origin", "HEAD:main")
    bo = site.bo()
    put(bo, "fresh")
    sync(bo)
    put(site.ada, "after")
    assert sync(site.ada).pushed
    assert {"fresh", "other", "after"} <= {item.id for item in site.ada.store.select(Query())}
    assert "secret" not in {item.id for item in site.ada.store.select(Query())}
    assert git(site.ada.root, "fsck", "--full", "--strict").strip() == ""


def test_50_nothing_is_erased_while_a_sync_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a sync has begun to fetch would bring the old history back, merge it, and push it."""
    put(site.ada, "secret", "the code is 4711")
    sync(site.ada)
    bo = site.bo()
    put(bo, "other")
    sync(bo)
    eraser, fetch = site.opened(site.ada.root).eraser, RemoteConnection.fetch
    monkeypatch.setattr(erasing, "LOCK_WAIT", 0.0)

    def outrun(talk: RemoteConnection, branch: str, known: Sequence[str], but: Collection[str]) -> str:
        with pytest.raises(LockTimeout, match="sync"):
            eraser.erase("secret", rewrite_shared=True)
        return fetch(talk, branch, known, but)

    monkeypatch.setattr(RemoteConnection, "fetch", outrun)
    assert sync(site.ada).joined is not None
    assert eraser.erase("secret", rewrite_shared=True).proof.hits == ()
    with pytest.raises(RemoteRewritten, match="history was rewritten here"):
        sync(site.ada)


def test_what_was_erased_elsewhere_is_not_brought_back_by_an_old_clone(site: Site) -> None:
    """A clone that has the old history is not taken for one whose remote was reset: no rejoining then (B3, row 50)."""
    put(site.ada, "secret", "the old password was swordfish")
    put(site.ada, "other")
    sync(site.ada)
    bo = site.bo()
    sync(bo)
    put(bo, "bos")
    site.ada.eraser.erase("secret", rewrite_shared=True)
    site.git(site.ada.root, "push", "--quiet", "--force", "origin", "HEAD:main")
    for rejoin in (False, True):
        with pytest.raises(RemoteRewritten, match="something was erased") as refused:
            sync(bo, rejoin=rejoin)
    assert "git clone" in (refused.value.hint or "")
    assert "secret.yaml" not in site.git(site.remote, "ls-tree", "-r", "--name-only", "main")
    site.git(site.remote, "update-ref", "-d", "refs/heads/main")
    assert sync(site.ada).pushed  # made again by the one who erased: there is nothing to bring back


def test_a_dry_run_moves_nothing(site: Site) -> None:
    """What would come and go is reported; no ref here or there has moved."""
    sync(site.ada)
    bo = site.bo()
    put(bo, "theirs")
    sync(bo)
    put(site.ada, "mine")
    site.ada.store.flush()
    refs, there = site.git(site.ada.root, "for-each-ref"), site.tip()
    done = sync(site.ada, dry_run=True)
    assert done.joined is not None
    assert [Path(path).stem for path in done.joined.changed] == ["theirs"]
    assert (done.ahead, done.pushed) == (1, False)
    assert (site.git(site.ada.root, "for-each-ref"), site.tip()) == (refs, there)


def test_without_push_only_what_others_have_comes(site: Site) -> None:
    """``--no-push`` takes, and gives nothing."""
    sync(site.ada)
    bo = site.bo()
    put(bo, "theirs")
    sync(bo)
    put(site.ada, "mine")
    there = site.tip()
    done = sync(site.ada, push=False)
    assert (done.pushed, done.ahead) == (False, 2)
    assert site.ada.store.get("theirs") is not None
    assert site.tip() == there


def test_a_dry_run_announces_what_it_would_push(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """What waits for its commit is pushed, too; with ``--no-push`` nothing would be."""
    sync(site.ada)
    put(site.ada, "mine")
    asked = ["-C", str(site.ada.root), "sync", "--dry-run"]
    assert (run(asked), run([*asked, "--no-push"])) == (0, 0)
    assert capsys.readouterr().out.count("Would push to origin/main: pending writes\n") == 1
    site.ada.store.flush()
    assert (run(asked), run([*asked, "--no-push"])) == (0, 0)
    output = capsys.readouterr().out
    assert output.count("Would push") == output.count("Would push to origin/main: 1 commit\n") == 1


def test_a_branch_is_not_made_beside_others_by_accident(site: Site) -> None:
    """A clone on another branch name is pointed to the branch there is; asked to, memfs makes a second one."""
    sync(site.ada)
    site.git(site.ada.root, "switch", "--quiet", "--create", "mine")
    with pytest.raises(RemoteInvalid, match="has no branch mine, but main"):
        sync(site.ada)
    put(site.ada, "one")
    assert sync(site.ada, branch="mine").pushed
    assert sync(site.ada, branch="main").pushed
    assert site.tip() == site.git(site.remote, "rev-parse", "mine").strip()


def test_committed_conflict_markers_are_not_pushed(site: Site) -> None:
    """A merge's markers that somebody committed stay here until they are resolved (row 43)."""
    item = put(site.ada, "one")
    sync(site.ada)
    there = site.tip()
    (site.ada.root / item.path).write_text("<<<<<<< ours\ncontent: a\n=======\ncontent: b\n>>>>>>> theirs\n")
    site.git(site.ada.root, "commit", "--quiet", "--all", "--message", "Oops")
    with pytest.raises(MergeRefused, match="conflict markers") as refused:
        sync(site.ada)
    assert refused.value.path == item.path
    assert site.tip() == there


def test_a_killed_sync_is_finished_by_the_next(site: Site, tmp_path: Path) -> None:
    """Dead between merge and push, everything is here, and the next sync pushes it (B3)."""
    sync(site.ada)
    bo = site.bo()
    put(bo, "theirs")
    sync(bo)
    put(site.ada, "mine")
    pid = os.fork()
    if pid == 0:
        talking.RemoteConnection.push = lambda *_: os._exit(9)  # type: ignore[method-assign, assignment]
        sync(site.opened(site.ada.root))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    done = sync(site.ada)
    assert done.pushed
    names = site.git(site.remote, "ls-tree", "-r", "--name-only", "main")
    assert "mine.yaml" in names
    assert "theirs.yaml" in names


@pytest.mark.parametrize(
    ("address", "protocol"),
    [
        ("/srv/memory.git", "file"),
        ("../memory.git", "file"),
        ("/srv/a:b/memory.git", "file"),
        ("file:///srv/memory.git", "file"),
        ("https://example.org/memory.git", "https"),
        ("ssh://git@example.org/memory.git", "ssh"),
        ("git@example.org:memory.git", "ssh"),
        ("git://example.org/memory.git", "git"),
    ],
)
def test_an_address_names_its_transport(address: str, protocol: str) -> None:
    """Exactly that way of transport is allowed."""
    assert protocol_of(address) == protocol


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch%20canary",
        "fd::7",
        "foo://x",
        "::x",
        "-oProxyCommand=x",
        "ssh://-oProxyCommand=x/y",
        "",
        "a\nb",
    ],
)
def test_an_address_that_runs_something_is_refused(site: Site, address: str) -> None:
    """No address of a hostile configuration starts a program (row 41)."""
    with pytest.raises(RemoteInvalid):
        protocol_of(address)


def test_a_hostile_configuration_runs_nothing(site: Site, tmp_path: Path) -> None:
    """Neither the repository's settings nor the hooks on either side have a part in a sync (row 41)."""
    canary = tmp_path / "canary"
    script = tmp_path / "run"
    script.write_text(f"#!/bin/sh\necho ran >> {canary}\nexit 0\n")
    script.chmod(0o755)
    for name, value in {
        "core.sshCommand": script,
        "core.gitProxy": script,
        "core.askPass": script,
        "core.fsmonitor": script,
        "core.alternateRefsCommand": script,
        "credential.helper": f"!{script}",
        "remote.origin.uploadpack": script,
        "remote.origin.receivepack": script,
        "remote.origin.vcs": "run",
        "gpg.program": script,
        "push.gpgSign": "true",
        f"url.ext::{script} .insteadOf": str(site.remote),
    }.items():
        site.git(site.ada.root, "config", name, str(value))
    for place in (site.ada.root / ".git", site.remote):
        for hook in ("pre-push", "post-update", "pre-receive", "post-receive", "update", "reference-transaction"):
            (place / "hooks").mkdir(exist_ok=True)
            (place / "hooks" / hook).write_text(script.read_text())
            (place / "hooks" / hook).chmod(0o755)
    for name, value in {"core.fsmonitor": script, "core.alternateRefsCommand": script}.items():
        site.git(site.remote, "config", name, str(value))
    put(site.ada, "one")
    canary.unlink(missing_ok=True)
    assert sync(site.ada).pushed
    assert not sync(site.ada).pushed
    assert not canary.exists()


def test_the_persons_own_settings_hold(site: Site, own_world: Path) -> None:
    """An address that the person's own configuration rewrites leads where it says."""
    with (own_world / ".gitconfig").open("a") as file:
        file.write(f'[url "{site.remote}"]\n\tinsteadOf = https://memory.example.org/team\n')
    site.git(site.ada.root, "remote", "set-url", "origin", "https://memory.example.org/team")
    assert sync(site.ada).pushed


def test_a_password_in_an_address_is_not_shown(site: Site) -> None:
    """Neither answers nor errors have it."""
    site.git(site.ada.root, "remote", "set-url", "origin", "https://me:token123@127.0.0.1:1/x.git")
    with pytest.raises(RemoteUnreachable) as refused:
        sync(site.ada)
    assert "token123" not in str(refused.value)
    assert "token123" not in remote_of(site.ada.repository, "origin").shown
    assert "nothing is lost" in (refused.value.hint or "")


def test_what_lets_git_in_but_not_memfs_is_reported(site: Site) -> None:
    """Where the repository's own configuration has the way in, the message says that it does not count."""
    site.git(site.ada.root, "remote", "set-url", "origin", "http://127.0.0.1:1/x.git")
    site.git(site.ada.root, "config", "http.http://127.0.0.1:1/.extraheader", "AUTHORIZATION: basic token123")
    site.git(site.ada.root, "config", "credential.helper", "store --file=token123")
    site.git(site.ada.root, "config", "url.https://me:token123@example.org/.insteadOf", "https://example.org/")
    site.git(site.ada.root, "config", "credential.https://example.org/{team}.username", "ada")
    with pytest.raises(RemoteUnreachable) as refused:
        sync(site.ada)
    hint = refused.value.hint or ""
    assert "none of this repository's" in hint
    assert "token123" not in str(refused.value) + hint


def test_an_absent_remote_says_so(site: Site) -> None:
    """A wrong name, a wrong address and no remote at all each say what to do."""
    with pytest.raises(RemoteInvalid, match="no remote 'nobody'"):
        sync(site.ada, "nobody")
    with pytest.raises(RemoteInvalid, match="not the name of a branch"):
        sync(site.ada, branch="+main:evil", dry_run=True)
    site.git(site.ada.root, "remote", "set-url", "origin", "/nowhere/at/all.git")
    with pytest.raises(RemoteUnreachable, match="not appear to be a git") as refused:
        sync(site.ada)
    assert "set-url" in (refused.value.hint or "")
    site.git(site.ada.root, "remote", "remove", "origin")
    with pytest.raises(RemoteInvalid, match="has no remote"):
        sync(site.ada)


def test_a_remote_that_never_answers_ends(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Anyone who does not answer is given up after the time limit."""
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    monkeypatch.setattr(talking, "PATIENCE", 0.3)
    site.git(site.ada.root, "remote", "set-url", "origin", "git@example.org:memory.git")
    with pytest.raises(RemoteUnreachable, match="did not answer"):
        sync(site.ada)


def test_a_remote_that_refuses_says_why(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch that is checked out there takes no push, and what was merged stays here."""
    site.git(site.root, "init", "--quiet", "--initial-branch=main", "checkout")
    (site.root / "checkout/.git/HEAD").write_text("ref: refs/heads/main\n")
    site.git(site.ada.root, "remote", "set-url", "origin", str(site.root / "checkout"))
    with pytest.raises(PushRefused, match="checked out"):
        sync(site.ada)


def test_a_shallow_clone_is_refused(site: Site) -> None:
    """History that is not here cannot be merged; the message says how to get it (row 35)."""
    put(site.ada, "one")
    sync(site.ada)
    site.git(site.root, "clone", "--quiet", "--depth=1", f"file://{site.remote}", "shallow")
    with pytest.raises(HistoryUnavailable, match="shallow") as refused:
        sync(site.opened(site.root / "shallow"))
    assert "unshallow" in (refused.value.hint or "")


def test_a_busy_or_detached_checkout_is_refused(site: Site) -> None:
    """In the middle of a person's work, or without a branch, nothing is synced (rows 34, 35)."""
    sync(site.ada)
    (site.ada.root / ".git/MERGE_HEAD").write_text(site.tip() + "\n")
    with pytest.raises(GitBusy, match="merge is in progress"):
        sync(site.ada)
    (site.ada.root / ".git/MERGE_HEAD").unlink()
    site.git(site.ada.root, "switch", "--quiet", "--detach")
    with pytest.raises(GitBusy, match="detached"):
        sync(site.ada)


def test_unrelated_histories_get_an_error_that_says_how_to_join(site: Site) -> None:
    """A remote with a history of its own is refused with git's command for that, which then works (B3)."""
    sync(site.ada)
    open_workspace(site.root / "other", create=True, watch=False).close()  # not copied: with a beginning of its own
    other = site.opened(site.root / "other")
    site.git(other.root, "remote", "add", "origin", str(site.remote))
    with pytest.raises(MergeRefused, match="no history in common"):
        sync(other)
    assert site.git(other.root, "rev-parse", "origin/main").strip() == site.tip()


def test_a_new_repository_takes_what_the_remote_has(site: Site) -> None:
    """An empty repository with a remote becomes what the remote has."""
    put(site.ada, "one")
    sync(site.ada)
    empty = site.root / "empty"
    site.git(site.root, "init", "--quiet", "--initial-branch=main", "empty")
    (empty / "ContextMemory").mkdir()
    (empty / "memfs.toml").write_text("")
    workspace = site.opened(empty)
    (empty / "memfs.toml").unlink()
    site.git(empty, "remote", "add", "origin", str(site.remote))
    done = sync(workspace)
    assert done.joined is not None
    assert done.joined.forward
    assert workspace.store.get("one") is not None
    assert site.git(empty, "status", "--porcelain") == ""


def test_the_verb_reports_what_came_and_went(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """``memfs sync`` says what changed here, what both sides had changed, and what was pushed (B3)."""
    put(site.ada, "shared")
    sync(site.ada)
    bo = site.bo()
    for side, title in ((bo, "Theirs"), (site.ada, "Ours")):
        item = side.store.get("shared")
        assert item is not None
        side.store.put(item.replace(title=title))
        side.store.flush()
    sync(bo)
    capsys.readouterr()
    assert run(("-C", str(site.ada.root), "sync")) == 0
    out = capsys.readouterr().out
    assert "Merged origin/main: 1 file changed" in out
    assert "Both sides changed" in out
    assert "Pushed 2 commits to origin/main" in out
    assert run(("-C", str(site.ada.root), "sync", "--json")) == 0
    assert '"pushed": false' in capsys.readouterr().out
    assert run(("-C", str(site.ada.root), "sync", "nobody")) == 1
    assert "the remotes are: origin" in capsys.readouterr().err


def test_an_address_below_the_persons_home_is_found(site: Site, own_world: Path) -> None:
    """A path that begins with a tilde is theirs."""
    site.git(site.ada.root, "remote", "add", "home", "~/team.git")
    assert remote_of(site.ada.repository, "home").fetch == str(own_world / "team.git")


def test_nothing_is_ever_forced() -> None:
    """The only door to git takes no force, no matter who asks."""
    for argument in ("--force", "--forc"):
        with pytest.raises(GitFailed):
            check(("git", "push", "--no-verify", argument, "origin", "main"))
    with pytest.raises(GitFailed):
        check(("git", "fetch", "origin"))


def test_the_persons_own_settings_hold_and_no_login_is_reported(site: Site, own_world: Path) -> None:
    """What they say of ssh, pushes and tags; a password in what git says goes no further (row 41)."""
    script = own_world / "ssh"
    script.write_text("#!/bin/sh\necho \"fatal: no way to 'https://ada:secret@host/x'\" >&2\nexit 1\n")
    script.chmod(0o755)
    site.git(site.root, "init", "--quiet", "--bare", "--initial-branch=main", "mine.git")
    with (own_world / ".gitconfig").open("a") as file:
        file.write(f"[core]\n\tsshCommand = {script}\n[push]\n\tfollowTags = true\n")
        file.write(f'[url "{site.root}/mine.git"]\n\tpushInsteadOf = {site.remote}\n')
    put(site.ada, "one")
    site.ada.store.flush()
    site.git(site.ada.root, "tag", "-a", "mine", "-m", "mine")
    sync(site.ada)
    assert site.git(site.root / "mine.git", "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    assert site.git(site.remote, "for-each-ref") == ""
    site.git(site.ada.root, "remote", "set-url", "origin", "git@example.org:memory.git")
    with pytest.raises(RemoteUnreachable, match="no way to 'https://host/x'"):
        sync(site.ada)


def test_a_link_in_the_place_of_its_folder_leads_a_sync_nowhere(site: Site, tmp_path: Path) -> None:
    """What came with an unpacked repository is taken away, and what it points to stays (rows 12 and 41)."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    (site.ada.repository.state / talking.FOLDER).symlink_to(elsewhere)
    put(site.ada, "one")
    assert sync(site.ada).pushed
    assert [(one.name, one.read_text()) for one in elsewhere.iterdir()] == [("mine", "mine")]

"""Erasing an item: what goes, what stays, and when it is refused (B6, faults row 50)."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from memfs import EraseRefused, ItemNotFound, MemfsError, MemoryItem
from memfs.admin.backup import Backups, own_folder
from memfs.fs import io
from memfs.fs.lock import FileLock
from memfs.git.rewrite import Rewriter
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]
SECRET = "the gate opens with marten-7781 only"


def put(workspace: Workspace, name: str = "gate", text: str = SECRET, kind: str = "knowledge") -> MemoryItem:
    """Store an item and commit it."""
    item = workspace.store.put(MemoryItem(text, kind, id=name))
    assert workspace.store.flush(adopt=True).reason == ""
    return item


def anywhere(root: Path, needle: bytes) -> list[str]:
    """The files below a folder, caches included, that hold a needle as they are on disk."""
    places = [root, Path(os.environ["XDG_CACHE_HOME"])]
    found = [Path(folder) / name for place in places for folder, _, names in os.walk(place) for name in names]
    return [str(path) for path in found if needle in path.read_bytes()]


def in_objects(root: Path, needle: str) -> bool:
    """Whether any object of the repository holds a needle."""
    command = ["git", "-C", str(root), "cat-file", "--batch-all-objects", "--batch"]
    return needle.encode() in subprocess.run(command, check=True, capture_output=True).stdout


def test_conflicts_of_a_merge_that_wait_are_taken_along(opened: Opened) -> None:
    """What an earlier version kept of a merge's conflicts in the git folder keeps no item's text (B6)."""
    workspace = opened()
    put(workspace)
    folder = workspace.repository.state / "merges"
    folder.mkdir()
    for name, kept in (("told", SECRET), ("other", "one")):
        (folder / f"{name}.json").write_text(json.dumps({"record": {"kept": kept, "lost": "two"}}))
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    assert [path.name for path in folder.iterdir()] == ["other.json"]


def test_all_versions_leave_files_history_index_and_journal(opened: Opened, git: Git) -> None:
    """An item that was updated and moved to another type is found nowhere, and everything else is in order."""
    workspace = opened(index__engine="sqlite")
    put(workspace, "other", "bread is baked at six in the morning")
    put(workspace)
    put(workspace, text=SECRET.replace("7781", "7782"))
    put(workspace, text=SECRET.replace("7781", "7783"), kind="episodic")
    assert workspace.recaller.search("marten gate").hits
    workspace.store.fold()
    done = workspace.eraser.erase("gate")
    assert (done.plan.versions, done.proof.hits, done.plan.shared) == (3, (), False)
    assert len(done.plan.paths) == 2
    assert not in_objects(workspace.root, "marten")
    assert anywhere(workspace.root, b"marten") == []
    assert workspace.store.get("gate") is None
    assert workspace.recaller.search("marten gate").hits == ()
    assert workspace.store.get("other") is not None
    assert git(workspace.root, "status", "--porcelain") == ""
    git(workspace.root, "fsck", "--full", "--strict")
    assert workspace.checker.check() == []
    assert [row.subject for row in workspace.history.log("other")] == ["Remember: bread is baked at six in the morning"]


def test_what_was_forgotten_long_ago_can_be_erased(opened: Opened, git: Git) -> None:
    """An item that only history holds is erased by its id, and writing goes on as before."""
    workspace = opened()
    put(workspace)
    workspace.store.delete("gate")
    workspace.store.flush()
    put(workspace, "other", "bread is baked at six in the morning")
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    assert not in_objects(workspace.root, "marten")
    put(workspace, "third", "the mill stands by the river")
    assert git(workspace.root, "status", "--porcelain") == ""


def test_a_write_that_waits_goes_too(opened: Opened, git: Git) -> None:
    """An item that is in the journal only is gone from there, and other waiting writes are committed."""
    workspace = opened()
    workspace.store.put(MemoryItem(SECRET, "knowledge", id="gate"))
    workspace.store.put(MemoryItem("bread is baked at six", "knowledge", id="other"))
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    assert anywhere(workspace.root, b"marten") == []
    assert not in_objects(workspace.root, "marten")
    assert "other" in git(workspace.root, "ls-tree", "-r", "--name-only", "HEAD")


def test_what_was_set_aside_goes_too(opened: Opened) -> None:
    """A version that a person's change displaced is not left where ``recover`` would find it."""
    workspace = opened()
    item = put(workspace)
    path = workspace.root / item.path
    workspace.store.put(item.replace(content=SECRET + " at night"))
    path.unlink()
    workspace.store.flush()
    assert workspace.recovered.list()
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    assert workspace.recovered.list() == []
    assert anywhere(workspace.root, b"marten") == []


def test_a_backup_that_holds_it_is_replaced(opened: Opened) -> None:
    """Old backups go when a new one, made after the erase, has taken their place."""
    workspace = opened()
    put(workspace)
    put(workspace, "other", "bread is baked at six in the morning")
    old = workspace.backups.make()[0].path
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    kept = workspace.backups.kept()
    assert old not in kept
    assert len(kept) == 1


def test_50_a_backup_that_is_being_made_goes_too(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was begun before the erase, and gets its name after it, holds what was erased."""
    workspace = opened()
    put(workspace)
    workspace.backups.make()
    begun, erased = threading.Event(), threading.Event()
    link, renew = io.link, Backups.renew

    def late(source: str, target: str, dir_fd: int | None = None) -> None:
        if source.endswith("/whole") and not erased.is_set():
            begun.set()
            assert erased.wait(60)
        link(source, target, dir_fd)

    def erase_first(backups: Backups) -> tuple[list[Path], MemfsError | None]:
        erased.set()
        return renew(backups)

    monkeypatch.setattr(io, "link", late)
    monkeypatch.setattr(Backups, "renew", erase_first)
    another = threading.Thread(target=opened(workspace.root).backups.make)
    another.start()
    assert begun.wait(60)
    assert workspace.eraser.erase("gate").backups_left == ()
    another.join()
    assert len(workspace.backups.kept()) == 1


def test_50_what_a_killed_backup_left_goes_too(opened: Opened) -> None:
    """Its temporary files hold what was erased, and there may never be another backup that sweeps them."""
    workspace = opened()
    put(workspace)
    place = own_folder()
    place.mkdir(parents=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = place / f".memfs-workspace-000001.tar.files.{gone.pid}.tmp"
    left.write_text(SECRET)
    assert workspace.eraser.erase("gate").proof.hits == ()
    assert not left.exists()


def test_a_plan_changes_nothing(opened: Opened, git: Git) -> None:
    """What would be erased is reported, with the files that quote it, and nothing is touched."""
    workspace = opened()
    item = put(workspace)
    put(workspace, "quoting", f"somebody said:\n{SECRET}\nand left")
    before = git(workspace.root, "show-ref"), git(workspace.root, "count-objects", "-v")
    plan = workspace.eraser.plan("gate")
    assert plan.paths == (item.path,)
    assert plan.commits == 2
    assert [Path(path).stem for path in plan.quotes] == ["quoting"]
    assert plan.refused == ""
    assert (git(workspace.root, "show-ref"), git(workspace.root, "count-objects", "-v")) == before
    assert workspace.store.get("gate") is not None


def test_a_path_and_a_folder_can_be_erased(opened: Opened, git: Git) -> None:
    """A path means the file, or all files below it; the workspace itself is never meant."""
    workspace = opened()
    item = put(workspace)
    put(workspace, "other", "bread is baked at six in the morning", kind="episodic")
    done = workspace.eraser.erase(item.path.rpartition("/")[0], is_path=True)
    assert done.plan.paths == (item.path,)
    assert workspace.store.get("other") is not None
    assert not in_objects(workspace.root, "marten")
    for path in ("ContextMemory", "memfs.toml", "src/main.c"):
        with pytest.raises(EraseRefused, match="not a memory"):
            workspace.eraser.erase(path, is_path=True)


def test_41_a_file_whose_name_is_not_text_can_be_erased(opened: Opened, git: Git) -> None:
    """What somebody put there under bytes that are not UTF-8 goes like any other file."""
    workspace = opened()
    item = put(workspace)
    odd = item.path.replace("gate.yaml", os.fsdecode(b"g\xe9te.yaml"))
    os.rename(workspace.root / item.path, workspace.root / odd)
    git(workspace.root, "add", "--all")
    git(workspace.root, "commit", "--quiet", "--message", "Rename")
    assert odd in workspace.eraser.erase(odd, is_path=True).plan.paths
    assert not (workspace.root / odd).exists()
    assert not in_objects(workspace.root, "marten")


def test_a_name_that_never_was_is_not_found(opened: Opened, git: Git) -> None:
    """A wrong name changes nothing, and nothing is left in the state folder."""
    workspace = opened()
    put(workspace)
    head = git(workspace.root, "rev-parse", "HEAD")
    with pytest.raises(ItemNotFound):
        workspace.eraser.erase("gates")
    assert git(workspace.root, "rev-parse", "HEAD") == head
    assert not (workspace.repository.state / "erase").exists()


def test_a_former_name_of_the_same_bytes_goes_with_its_other_versions(opened: Opened, git: Git) -> None:
    """A person renamed the item's file: what it was under the old name is the same item."""
    workspace = opened()
    put(workspace, text=SECRET.replace("7781", "7700"))
    item = put(workspace)
    renamed = item.path.replace("gate.yaml", "door.yaml")
    git(workspace.root, "mv", item.path, renamed)
    git(workspace.root, "commit", "-qm", "Rename")
    workspace.store.refresh()
    done = workspace.eraser.erase("door")
    assert set(done.plan.paths) == {item.path, renamed}
    assert not in_objects(workspace.root, "marten")


def test_a_note_that_quotes_it_stays_and_is_named(opened: Opened, git: Git) -> None:
    """Notes are a person's own, under the ids of the commits they were written about."""
    workspace = opened()
    put(workspace)
    git(workspace.root, "notes", "add", "-m", f"He said: {SECRET}", "HEAD")
    about = git(workspace.root, "rev-parse", "HEAD").strip()
    assert workspace.eraser.plan("gate").quotes == (f"git note on {about}",)
    assert workspace.eraser.erase("gate").proof.quotes == (f"git note on {about}",)


def test_changes_of_other_files_stay_as_they_are(opened: Opened, git: Git) -> None:
    """What a person has staged or edited elsewhere is neither committed nor lost."""
    workspace = opened()
    put(workspace)
    notes = workspace.root / "notes.txt"
    notes.write_text("staged\n")
    git(workspace.root, "add", "notes.txt")
    notes.write_text("edited\n")
    workspace.eraser.erase("gate")
    assert git(workspace.root, "status", "--porcelain") == "AM notes.txt\n"
    assert git(workspace.root, "show", ":notes.txt") == "staged\n"
    assert notes.read_text() == "edited\n"


def test_a_file_that_was_never_committed_is_refused_by_name(opened: Opened, git: Git) -> None:
    """Staged or not, no proof is given of what stays where it is."""
    workspace = opened()
    item = put(workspace)
    renamed = item.path.replace("gate.yaml", "door.yaml")
    git(workspace.root, "mv", item.path, renamed)
    workspace.store.refresh()
    with pytest.raises(EraseRefused, match=r"door\.yaml"):
        workspace.eraser.erase("door")
    assert (workspace.root / renamed).exists()


def test_messages_lose_a_short_name_only_where_they_are_about_the_item(opened: Opened, git: Git) -> None:
    """A word that happens to be the item's id stays in commits that have nothing to do with it."""
    workspace = opened()
    put(workspace)
    git(workspace.root, "commit", "-q", "--allow-empty", "-m", "Paint the gate")
    workspace.eraser.erase("gate")
    subjects = git(workspace.root, "log", "--format=%s").splitlines()
    assert subjects[:2] == ["Paint the gate", "Remember: [erased]"]


# -- when it is refused -----------------------------------------------------------------------------------------------
def joined(opened: Opened, git: Git, root: Path) -> Workspace:
    """A workspace in a repository that somebody else made."""
    root.mkdir()
    git(root, "init", "-q")
    (root / "main.c").write_text("int main;\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    workspace = opened(root)
    put(workspace)
    return workspace


def test_a_shared_repository_is_rewritten_only_when_that_is_asked_for(opened: Opened, git: Git, tmp_path: Path) -> None:
    """In a repository that memfs joined, the flag is needed; commits before the item keep their ids."""
    workspace = joined(opened, git, tmp_path / "team")
    first = git(workspace.root, "rev-list", "--max-parents=0", "HEAD")
    with pytest.raises(EraseRefused, match="did not make") as refused:
        workspace.eraser.erase("gate")
    assert "--rewrite-shared-history" in str(refused.value)
    assert in_objects(workspace.root, "marten")
    assert workspace.eraser.erase("gate", rewrite_shared=True).proof.hits == ()
    assert git(workspace.root, "rev-list", "--max-parents=0", "HEAD") == first
    assert (workspace.root / "main.c").read_text() == "int main;\n"


def test_a_workspace_below_the_top_is_shared(opened: Opened, git: Git, tmp_path: Path) -> None:
    """A folder of a repository is never a repository of memfs's own; paths outside stay untouched."""
    root = tmp_path / "team"
    root.mkdir()
    git(root, "init", "-q")
    workspace = opened(root / "tools/memory")
    put(workspace)
    with pytest.raises(EraseRefused, match="did not make"):
        workspace.eraser.erase("gate")
    assert workspace.eraser.erase("gate", rewrite_shared=True).proof.hits == ()
    assert not in_objects(root, "marten")
    assert git(root, "status", "--porcelain") == ""


def staged_copy(root: Path, git: Git) -> None:
    (root / "notes.txt").write_text(SECRET)
    git(root, "add", "notes.txt")


def edited_item(root: Path, git: Git) -> None:
    path = next((root / "ContextMemory").rglob("gate.yaml"))
    path.write_text(path.read_text() + "tags:\n- gate\n")


def edited_and_out_of_the_index(root: Path, git: Git) -> None:
    path = next((root / "ContextMemory").rglob("gate.yaml"))
    git(root, "rm", "-q", "--cached", str(path))
    edited_item(root, git)


def another_staged(root: Path, git: Git) -> None:
    path = next((root / "ContextMemory").rglob("gate.yaml"))
    other = path.parent.parent / "2001-01" / path.name
    other.parent.mkdir()
    other.write_text("content: never committed\n")
    git(root, "add", str(other))


def another_untracked(root: Path, git: Git) -> None:
    another_staged(root, git)
    git(root, "reset", "-q")


def merging(root: Path, git: Git) -> None:
    (root / ".git/MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD"))


def detached(root: Path, git: Git) -> None:
    git(root, "checkout", "-q", "--detach")


def with_worktree(root: Path, git: Git) -> None:
    git(root, "worktree", "add", "-q", str(root.parent / "second"), "-b", "second")


def borrowing(root: Path, git: Git) -> None:
    (root.parent / "lender").mkdir()
    (root / ".git/objects/info").mkdir(exist_ok=True)
    (root / ".git/objects/info/alternates").write_text(f"{root.parent / 'lender'}\n")


def shallow(root: Path, git: Git) -> None:
    (root / ".git/shallow").write_text(git(root, "rev-parse", "HEAD"))


def partial(root: Path, git: Git) -> None:
    git(root, "config", "remote.origin.promisor", "true")


def replaced(root: Path, git: Git) -> None:
    git(root, "replace", "HEAD", "HEAD~1")


def split(root: Path, git: Git) -> None:
    git(root, "update-index", "--split-index")


def damaged(root: Path, git: Git) -> None:
    blob = git(root, "rev-parse", "HEAD:notes.txt").strip()
    path = root / ".git/objects" / blob[:2] / blob[2:]
    path.unlink()


def locked(root: Path, git: Git) -> None:
    (root / ".git/packed-refs.lock").touch()


@pytest.mark.parametrize(
    ("disturb", "reason"),
    [
        (staged_copy, "notes.txt"),
        (edited_item, "gate.yaml"),
        (edited_and_out_of_the_index, "gate.yaml"),
        (another_staged, "2001-01/gate.yaml"),
        (another_untracked, "2001-01/gate.yaml"),
        (merging, "merge"),
        (detached, "detached"),
        (with_worktree, "second"),
        (borrowing, "borrows"),
        (shallow, "shallow"),
        (partial, "partial"),
        (replaced, "replaces"),
        (split, "split"),
        (damaged, "damaged"),
        (locked, "packed-refs.lock"),
    ],
)
def test_it_is_refused_with_the_reason_and_changes_nothing(
    opened: Opened, git: Git, disturb: Callable[[Path, Git], None], reason: str
) -> None:
    """A person at work, or a repository whose objects are not all its own: refused with a way out, nothing changed."""
    workspace = opened()
    put(workspace)
    (workspace.root / "notes.txt").write_text("first\n")
    git(workspace.root, "add", "notes.txt")
    git(workspace.root, "commit", "-qm", "Note")
    disturb(workspace.root, git)
    before = git(workspace.root, "for-each-ref"), (workspace.root / ".git/index").read_bytes()
    with pytest.raises(EraseRefused, match=reason) as refused:
        workspace.eraser.erase("gate")
    assert refused.value.hint
    assert (git(workspace.root, "for-each-ref"), (workspace.root / ".git/index").read_bytes()) == before
    assert next((workspace.root / "ContextMemory").rglob("gate.yaml")).exists()
    assert not (workspace.repository.state / "erase").exists()


@pytest.mark.parametrize(
    "words", [("pack-objects", "-q", "--stdout"), ("fetch", "ext::cat")], ids=lambda words: words[0]
)
def test_50_the_git_of_a_killed_process_ends_first(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """What packs or fetches objects on after memfs's death would bring back what is taken out meanwhile."""
    monkeypatch.setattr("memfs.git.busy._FINISHED", 0.0)
    workspace = opened()
    put(workspace)
    command = ("git", f"--git-dir={workspace.root}/.git", "-c", "protocol.ext.allow=always", *words)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    left = subprocess.Popen(command, cwd=workspace.repository.state, **pipes)
    with left:
        with pytest.raises(EraseRefused, match=f"{words[0]} is running"):
            workspace.eraser.erase("gate")
        left.kill()
    assert workspace.eraser.erase("gate").proof.hits == ()


def test_commits_wait_while_an_erase_is_interrupted_and_opening_ends_it(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is committed on top of a history that is about to be replaced; the next opening finishes and says so."""
    workspace = opened()
    put(workspace)

    def fail(*_: object) -> None:
        raise EraseRefused("stopped here")

    with monkeypatch.context() as patched:
        patched.setattr("memfs.git.rewrite.Rewriter.finish", fail)
        with pytest.raises(EraseRefused, match="stopped here"):
            workspace.eraser.erase("gate")
    workspace.store.put(MemoryItem("bread is baked at six", "knowledge", id="other"))
    flushed = workspace.store.flush(adopt=False)
    assert "erase was interrupted" in flushed.reason
    again = opened(workspace.root)
    assert again.eraser.ended is not None
    assert again.eraser.ended.proof.hits == ()
    assert [note.code for note in again.store.notes] == ["EraseEnded"]
    assert not in_objects(workspace.root, "marten")
    assert workspace.store.flush(adopt=False).reason == ""
    assert "other" in git(workspace.root, "ls-tree", "-r", "--name-only", "HEAD")


def test_a_branch_that_a_person_makes_meanwhile_is_not_lost(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch made on the old history while it is rewritten is rewritten, too: no ref ever names nothing."""
    workspace = opened()
    put(workspace)
    real = Rewriter.locked

    def locked(rewriter: Rewriter) -> AbstractContextManager[None]:
        if "late" not in git(workspace.root, "branch"):
            git(workspace.root, "branch", "late")
        return real(rewriter)

    monkeypatch.setattr(Rewriter, "locked", locked)
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    assert git(workspace.root, "rev-parse", "late") == git(workspace.root, "rev-parse", "HEAD")
    git(workspace.root, "fsck", "--full", "--strict")
    assert not in_objects(workspace.root, "marten")


# -- what keeps it from its work --------------------------------------------------------------------------------------
def test_what_was_set_aside_damaged_goes_without_a_second_look(opened: Opened) -> None:
    """A damaged content that was set aside is removed, and the erase finishes."""
    workspace = opened()
    put(workspace)
    folder = workspace.repository.state / "recovered"
    folder.mkdir(exist_ok=True)
    (folder / "one.damaged").write_text(SECRET)
    done = workspace.eraser.erase("gate")
    assert done.proof.hits == ()
    assert not (folder / "one.damaged").exists()


def test_an_interrupted_erase_that_the_disk_stops_is_a_note_not_an_error(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the operating system says while an interrupted erase is ended, the workspace opens."""
    workspace = opened()
    put(workspace)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr("memfs.admin.erase.purge", fail)
        with pytest.raises(OSError, match="error"):
            workspace.eraser.erase("gate")
        again = opened(workspace.root)
    assert [note.code for note in again.store.notes] == ["EraseUnfinished"]
    assert opened(workspace.root).eraser.ended is not None


def test_opening_does_not_wait_for_a_lock_that_ending_an_erase_needs(
    opened: Opened, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer keeps an interrupted erase for the next opening; this one waits for no lock as an erase would."""
    workspace = opened()
    put(workspace)
    with monkeypatch.context() as patched:
        patched.setattr("memfs.admin.erase.purge", stop)
        with pytest.raises(EraseRefused, match="stopped here"):
            workspace.eraser.erase("gate")
    waited, real = [], FileLock.hold

    def hold(lock: FileLock, what: str, timeout: float, **more: Any) -> AbstractContextManager[Any]:
        if what == "erase":
            waited.append(timeout)
        return real(lock, what, timeout=timeout, **more)

    monkeypatch.setattr(FileLock, "hold", hold)
    assert opened(workspace.root).eraser.ended is not None
    assert len(waited) >= 3
    assert max(waited) < 1


def stop(*_: object) -> None:
    raise EraseRefused("stopped here")


def a_folder(path: Path) -> None:
    path.mkdir()


def a_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def a_large_file(path: Path) -> None:
    path.write_bytes(b"x" * (17 << 20))


@pytest.mark.parametrize("stand", [a_folder, a_link, a_large_file])
def test_what_is_at_a_former_path_and_is_not_a_version_stays(
    opened: Opened, git: Git, stand: Callable[[Path], None]
) -> None:
    """A folder, a link or a file too large for an item does not keep an erase from its end, and is left alone."""
    workspace = opened()
    path = workspace.root / put(workspace).path
    workspace.store.delete("gate")
    workspace.store.flush()
    path.parent.mkdir(parents=True, exist_ok=True)
    stand(path)
    assert workspace.eraser.erase("gate").proof.hits == ()
    assert os.path.lexists(path)
    assert not in_objects(workspace.root, "marten")
    assert not (workspace.repository.state / "erase").exists()


# -- the secondary location -------------------------------------------------------------------------------------------
@contextlib.contextmanager
def sick_disk(spared: Path) -> Iterator[None]:
    """While the block runs only the secondary location takes changes."""

    def refuse(name: str, path: str) -> None:
        if name in {"write", "fsync", "mkdir", "link", "rename", "truncate"} and not path.startswith(str(spared)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = io.set_hook(refuse)
    try:
        yield
    finally:
        io.set_hook(before)


def test_a_secondary_location_that_cannot_be_looked_into_refuses_it(opened: Opened, git: Git, tmp_path: Path) -> None:
    """What nobody can look into may hold the item: no clean proof without it (S17)."""
    disk = tmp_path / "disk"
    disk.mkdir()
    workspace = opened(storage__secondary=str(disk / "secondary"))
    put(workspace)
    disk.rename(tmp_path / "unplugged")
    assert "secondary location" in workspace.eraser.plan("gate").refused
    with pytest.raises(EraseRefused, match="secondary location cannot be read") as refused:
        workspace.eraser.erase("gate")
    assert "mount" in refused.value.hint
    assert in_objects(workspace.root, "marten")
    (tmp_path / "unplugged").rename(disk)
    assert workspace.eraser.plan("gate").refused == ""
    assert workspace.eraser.erase("gate").proof.hits == ()


def test_an_item_that_waits_in_the_secondary_location_is_known(opened: Opened, git: Git, tmp_path: Path) -> None:
    """While its write waits for the workspace's disk the item is found, and the refusal says where it waits (S17)."""
    secondary = tmp_path / "secondary"
    workspace = opened(storage__secondary=str(secondary))
    put(workspace, "other", "bread is baked at six in the morning")
    with sick_disk(secondary):
        workspace.store.put(MemoryItem(SECRET, "knowledge", id="gate"))
        plan = workspace.eraser.plan("gate")
        assert "wait in the secondary location" in plan.refused
        with pytest.raises(MemfsError):
            workspace.eraser.erase("gate")
    assert workspace.eraser.erase("gate").proof.hits == ()
    assert anywhere(secondary, b"marten") == []


# -- a record that nobody here made -----------------------------------------------------------------------------------
RECORD: dict[str, object] = {
    "folder": 1,
    "reference": "gate",
    "is_path": False,
    "paths": [],
    "blobs": [],
    "versions": [],
    "gone": [],
    "names": [],
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RECORD),
        json.dumps({**RECORD, "reference": 5}),
        json.dumps({**RECORD, "is_path": "no"}),
        json.dumps({**RECORD, "paths": [5]}),
        json.dumps({**RECORD, "blobs": ["HEAD"]}),
        json.dumps({**RECORD, "versions": [5]}),
        json.dumps({**RECORD, "names": "gate"}),
        "[]",
        "[" * 100_000,
    ],
)
def test_41_a_planted_record_rewrites_nothing_and_blocks_no_opening(opened: Opened, git: Git, text: str) -> None:
    """A record that came with a copied repository, or is damaged, is reported with its remedy (faults row 41)."""
    workspace = opened()
    put(workspace)
    head = git(workspace.root, "rev-parse", "HEAD")
    record = workspace.repository.state / "erase/record.json"
    record.parent.mkdir()
    record.write_text(text)
    again = opened(workspace.root)
    assert [note.code for note in again.store.notes] == ["EraseUnfinished"]
    assert str(record) in again.store.notes[0].hint
    assert again.store.get("gate") is not None
    assert git(workspace.root, "rev-parse", "HEAD") == head
    record.unlink()
    assert opened(workspace.root).store.notes == []


def test_a_backup_elsewhere_is_named_before_and_after(opened: Opened, git: Git, tmp_path: Path) -> None:
    """What no new backup replaces is listed in the plan and left for a person, apart from the proof."""
    workspace = opened()
    put(workspace)
    put(workspace, "other", "bread is baked at six in the morning")
    regular = workspace.backups.make()[0].path
    elsewhere = workspace.backups.make(tmp_path / "elsewhere")[0].path
    plan = workspace.eraser.plan("gate")
    assert set(plan.backups) == {regular, elsewhere}
    done = workspace.eraser.erase("gate")
    assert (done.proof.hits, done.backups_left) == ((), (elsewhere,))


def test_50_what_mounts_and_comparisons_keep_of_it_goes_too(opened: Opened, tmp_path: Path) -> None:
    """Neither the index of a workspace that mounts this one nor the note of a scan for conflicts names it any more."""
    workspace = opened(index__engine="sqlite")
    put(workspace)
    workspace.conflicts.list(scan=True)
    other = opened(tmp_path / "other", index__engine="sqlite", mounts__home=str(workspace.root))
    assert other.sources.mounts.recall.search("marten").hits
    other.close()
    assert len(anywhere(workspace.root, b"marten")) > 1
    workspace.eraser.erase("gate")
    assert anywhere(workspace.root, b"marten") == []
    assert anywhere(workspace.root, b"gate.yaml") == []

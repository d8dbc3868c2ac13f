"""Backups: one verified file from which a workspace is made again (S21)."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memfs import MemoryItem
from memfs.admin.backup import make, own_folder
from memfs.admin.backup_file import restore, verify
from memfs.errors import BackupInvalid, Conflict, SettingInvalid
from memfs.fs.archive import TreePacker
from memfs.fs.tree import ScanEntry
from memfs.workspace import Workspace, open_workspace

Open = Callable[..., Workspace]
Git = Callable[..., str]


def filled(workspace: Workspace, items: int = 5) -> None:
    """Some committed items, one that waits, one that was changed by hand, one set aside."""
    for number in range(items):
        workspace.store.put(MemoryItem(f"item number {number}", "knowledge", id=f"item-{number}"))
    workspace.store.flush()
    workspace.store.put(MemoryItem("waits for its commit", "knowledge", id="waiting"))
    item = workspace.store.get("item-0")
    assert item is not None
    path = workspace.root / item.path
    path.write_text(path.read_text() + "title: by hand\n")
    aside = workspace.repository.state / "recovered"
    aside.mkdir()
    (aside / "x-0.kept").write_bytes(b'{"path": "ContextMemory/memories/knowledge/gone.yaml"}\ncontent: gone\n')


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a workspace below ContextMemory, and its settings."""
    files = [path for path in (root / "ContextMemory").rglob("*") if path.is_file()] + [root / "memfs.toml"]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def workspace(opened: Open) -> Workspace:
    """A workspace in which something of everything is."""
    made = opened()
    filled(made)
    return made


def test_only_who_makes_the_first_backup_names_them(opened: Open) -> None:
    """A look beside it would choose another name, under which the first one is never found, replaced or erased."""
    workspace = opened()
    record = workspace.repository.state / "backups.json"
    assert (workspace.backups.kept(), record.exists()) == ([], False)
    made = workspace.backups.make()[0].path
    assert workspace.backups.kept() == [made]


def test_a_restored_workspace_is_the_one_that_was_backed_up(
    workspace: Workspace, tmp_path: Path, git: Git, opened: Open
) -> None:
    """Files byte for byte, every commit with its id, waiting writes, what was set aside: all are there again."""
    made = workspace.backups.make(tmp_path / "backups")[0]
    restored = restore(made.path, tmp_path / "again")
    assert contents(restored.root) == contents(workspace.root)
    for words in (["log", "--format=%H %an %cn %aI %s"], ["rev-parse", "HEAD"], ["status", "--short"]):
        assert git(restored.root, *words) == git(workspace.root, *words)
    git(restored.root, "fsck", "--full", "--strict")
    again = opened(restored.root)
    assert again.store.pending().count == workspace.store.pending().count == 1
    assert [row.path for row in again.recovered.list()] == [row.path for row in workspace.recovered.list()]
    assert again.store.flush().reason == ""
    assert "waiting.yaml" in git(restored.root, "log", "-2", "--stat")
    assert [problem.code for problem in again.checker.check()] == ["Recoverable"]


def test_a_backup_can_be_read_without_memfs(workspace: Workspace, tmp_path: Path) -> None:
    """``tar`` gives the files and ``git clone`` the history: nobody depends on memfs to get at their memory."""
    made = workspace.backups.make(tmp_path / "backups")[0]
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    outer.mkdir()
    inner.mkdir()
    subprocess.run(["tar", "xf", str(made.path), "-C", str(outer)], check=True)
    subprocess.run(["tar", "xzf", str(outer / "files.tar.gz"), "-C", str(inner)], check=True)
    assert contents(inner) == contents(workspace.root)
    subprocess.run(["git", "clone", "-q", str(outer / "history.bundle"), str(tmp_path / "clone")], check=True)
    assert (tmp_path / "clone/ContextMemory/memories").is_dir()


def test_the_same_state_makes_the_same_bytes(workspace: Workspace, tmp_path: Path) -> None:
    """Two backups of an unchanged workspace differ in nothing but their time."""
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    object.__setattr__(workspace.parts, "clock", lambda: moment)
    make(workspace.parts, tmp_path / "memfs-one.tar", "12345678")
    make(workspace.parts, tmp_path / "memfs-two.tar", "12345678")
    assert (tmp_path / "memfs-one.tar").read_bytes() == (tmp_path / "memfs-two.tar").read_bytes()


def test_a_backup_is_private_and_leaves_nothing_beside_it(workspace: Workspace, tmp_path: Path) -> None:
    """Nobody else may read it, and no temporary file stays."""
    made = workspace.backups.make(tmp_path / "backups")[0]
    assert made.path.stat().st_mode & 0o077 == 0
    assert list((tmp_path / "backups").iterdir()) == [made.path]


def test_without_a_place_backups_go_to_the_users_own_folder(workspace: Workspace) -> None:
    """With no target configured, the user's data folder takes them."""
    made = workspace.backups.make()[0]
    assert made.path.parent == own_folder()
    assert workspace.backups.kept() == [made.path]


def test_backups_made_elsewhere_are_remembered(workspace: Workspace, tmp_path: Path) -> None:
    """A backup that went to a folder of its own is still one of this workspace's: erase and check must know of it."""
    first = workspace.backups.make(tmp_path / "elsewhere")[0]
    second = workspace.backups.make()[0]
    assert sorted(workspace.backups.kept()) == sorted([first.path, second.path])
    shutil.rmtree(tmp_path / "elsewhere")
    assert workspace.backups.kept() == [second.path]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"origin": 5}', '{"origin": "00000000", "last": {"at": "never"}}'])
def test_a_damaged_record_is_started_over(workspace: Workspace, tmp_path: Path, text: str) -> None:
    """Which backup was the last is reported again after the next one; nothing fails for want of the record."""
    workspace.backups.make(tmp_path / "place")
    (workspace.repository.state / "backups.json").write_text(text)
    assert workspace.backups.state().last is None
    assert not workspace.backups.make(tmp_path / "place")[0].manifest.left_out
    assert workspace.backups.state().last is not None


def test_only_the_newest_copies_are_kept_in_each_place(opened: Open, tmp_path: Path) -> None:
    """``copies`` bounds the number in every target; other files and other workspaces' backups are left alone."""
    places = [tmp_path / "one", tmp_path / "two"]
    workspace = opened(backup__targets=[str(place) for place in places], backup__copies=2)
    places[0].mkdir()
    others = [places[0] / "memfs-workspace-00000000-000001-20200101T000000Z.tar", places[0] / "holiday.tar"]
    for other in others:
        other.write_text("somebody else's")
    made = [workspace.backups.make() for _ in range(4)]
    kept = [one.path for pair in made[2:] for one in pair]
    assert sorted(workspace.backups.kept()) == sorted(kept)
    assert all(other.exists() for other in others)
    assert len(made[-1][0].removed) == 1


def test_a_clock_that_went_wrong_does_not_make_the_new_backup_the_old_one(opened: Open, tmp_path: Path) -> None:
    """A backup from a day when the clock was ten years ahead is the first to go, not the last (faults row 31)."""
    workspace = opened(backup__targets=[str(tmp_path / "place")], backup__copies=1)
    now = datetime.now(UTC)
    for moment in (now + timedelta(days=3650), now):
        object.__setattr__(workspace.parts, "clock", lambda moment=moment: moment)
        made = workspace.backups.make()[0]
    assert workspace.backups.kept() == [made.path]
    assert verify(made.path).created.startswith(f"{now:%Y-%m-%d}")


@pytest.mark.parametrize("inside", ["ContextMemory/backups", ".git", ".git/memfs/x"])
def test_a_place_inside_what_is_backed_up_is_refused(workspace: Workspace, inside: str) -> None:
    """A backup in the workspace would be backed up itself, or be lost with it."""
    with pytest.raises(SettingInvalid, match="inside"):
        workspace.backups.make(workspace.root / inside)
    assert not (workspace.root / "ContextMemory/backups").exists()


def test_a_target_must_be_a_whole_path(opened: Open) -> None:
    """A relative target would depend on where a process happens to run."""
    with pytest.raises(SettingInvalid, match="absolute"):
        opened(backup__targets=["backups"]).backups.make()


def test_one_place_that_fails_does_not_keep_the_others_from_theirs(opened: Open, tmp_path: Path) -> None:
    """A target that cannot be written is an error that names it; the other one has its backup."""
    blocked, good = tmp_path / "blocked", tmp_path / "good"
    blocked.write_text("a file where the folder should be")
    workspace = opened(backup__targets=[str(blocked), str(good)])
    errors: list[str] = []
    workspace.behaviours.on("backup_failed", lambda facts: errors.append(facts["error"]))
    with pytest.raises(Exception, match="blocked"):
        workspace.backups.make()
    assert len(list(good.iterdir())) == 1
    assert "blocked" in errors[0]
    assert "blocked" in workspace.backups.state().error


def test_restore_writes_over_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """A folder that holds anything, a file, and a link are refused and stay as they are; an empty folder is taken."""
    made = workspace.backups.make(tmp_path / "backups")[0]
    full, file, link, empty = (tmp_path / name for name in ("full", "file", "link", "empty"))
    full.mkdir()
    (full / "mine").write_text("mine")
    file.write_text("mine")
    empty.mkdir()
    link.symlink_to(empty)
    for place in (full, file, link, workspace.root):
        with pytest.raises(Conflict):
            restore(made.path, place)
    assert (full / "mine").read_text() == file.read_text() == "mine"
    assert restore(made.path, empty).root == empty
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_backup_made_while_others_write_is_of_one_moment(opened: Open, tmp_path: Path) -> None:
    """Two items always written as a pair, by batches, are equal in every backup made meanwhile."""
    workspace = opened(history__commit="interval", history__interval_seconds=0.02)
    for number in range(30):
        workspace.store.put(MemoryItem("filler " * 50, "knowledge", id=f"filler-{number}"))
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            with workspace.store.batch("Both") as batch:
                batch.put(MemoryItem(f"value {number}", "knowledge", id="a-one"))
                batch.put(MemoryItem(f"value {number}", "knowledge", id="z-two"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [workspace.backups.make(tmp_path / "backups")[0] for _ in range(3)]
    finally:
        ended.set()
        writer.join()
    for number, one in enumerate(made):
        root = restore(one.path, tmp_path / f"again-{number}").root
        with open_workspace(root, watch=False, settings={"index.engine": "memory"}) as again:
            first, second = again.store.get("a-one"), again.store.get("z-two")
            assert (first is None) == (second is None)
            assert first is None or (second is not None and first.content == second.content)
            assert [problem for problem in again.checker.check() if problem.severity == "error"] == []


def test_a_file_that_changes_while_it_is_packed_is_packed_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a person saves in the middle of a backup is in it as it was when the locks were held."""
    path = workspace.root / "ContextMemory/by-hand.md"
    path.write_text("before")
    gone = workspace.root / "ContextMemory/gone.md"
    gone.write_text("soon gone")
    catch_up = TreePacker.catch_up

    def interrupted(packer: TreePacker, entries: Iterable[ScanEntry]) -> Iterator[bytes]:
        path.write_text("after, and longer")
        (workspace.root / "ContextMemory/new.md").write_text("new")
        gone.unlink()
        yield from catch_up(packer, entries)

    monkeypatch.setattr(TreePacker, "catch_up", interrupted)
    made = workspace.backups.make(tmp_path / "backups")[0]
    assert len(made.manifest.outdated) == 2
    root = restore(made.path, tmp_path / "again").root
    assert contents(root) == contents(workspace.root)


def test_what_cannot_be_taken_along_is_named(workspace: Workspace, tmp_path: Path) -> None:
    """Links, pipes and other repositories below ContextMemory are left out, and the backup says so."""
    content = workspace.root / "ContextMemory"
    (content / "link.yaml").symlink_to("/etc/passwd")
    (content / "nested/.git").mkdir(parents=True)
    (content / "nested/.git/config").write_text("[core]\n")
    made = workspace.backups.make(tmp_path / "backups")[0]
    assert [row.partition(":")[0] for row in made.manifest.left_out] == [
        "ContextMemory/link.yaml",
        "ContextMemory/nested/.git/config",
    ]
    assert "passwd" not in json.dumps(list(made.manifest.files))


def test_a_damaged_repository_still_gives_a_backup_of_the_files(opened: Open, tmp_path: Path) -> None:
    """When git cannot read its history the files are saved without it, and no older backup is removed for that."""
    workspace = opened(backup__targets=[str(tmp_path / "place")], backup__copies=1)
    filled(workspace)
    whole = workspace.backups.make()[0]
    shutil.rmtree(workspace.root / ".git/objects")
    (workspace.root / ".git/objects").mkdir()
    made = workspace.backups.make()[0]
    assert [row.partition(":")[0] for row in made.manifest.left_out] == ["history.bundle"]
    assert workspace.backups.kept() == [whole.path, made.path]
    root = restore(made.path, tmp_path / "again").root
    assert contents(root) == contents(workspace.root)


def test_a_workspace_inside_a_larger_repository_comes_back_in_its_place(tmp_path: Path, git: Git, opened: Open) -> None:
    """The whole history is in the backup; the workspace is again where it was in its repository."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "--quiet")
    (project / "code.py").write_text("print()\n")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "code")
    git(project, "tag", "-a", "v1", "-m", "first")
    git(project, "branch", "other")
    workspace = opened(project / "docs/notes")
    filled(workspace)
    made = workspace.backups.make(tmp_path / "backups")[0]
    restored = restore(made.path, tmp_path / "again")
    assert restored.root == tmp_path / "again/docs/notes"
    assert contents(restored.root) == contents(workspace.root)
    show = ("for-each-ref", "--format=%(objectname) %(refname)")
    assert git(tmp_path / "again", *show) == git(project, *show)
    own = [f":(top,exclude)docs/notes/{name}" for name in ("ContextMemory", "memfs.toml")]
    git(tmp_path / "again", "checkout", "HEAD", "--", ":(top)", *own)
    assert restored.others
    assert (tmp_path / "again/code.py").read_text() == "print()\n"
    assert contents(restored.root) == contents(workspace.root)


@pytest.mark.parametrize("situation", ["unborn", "detached", "shallow", "worktree"])
def test_every_sort_of_repository_comes_back(situation: str, tmp_path: Path, git: Git, opened: Open) -> None:
    """No commit yet, a detached HEAD, a shallow clone, a linked working tree: each is backed up and restored."""
    first = opened(tmp_path / "first")
    if situation != "unborn":
        filled(first)
        first.store.flush()
    root = tmp_path / "first"
    if situation == "unborn":
        root = tmp_path / "unborn"
        shutil.copytree(first.root / "ContextMemory", root / "ContextMemory")
        shutil.copy(first.root / "memfs.toml", root)
        git(root, "init", "--quiet")
    elif situation == "detached":
        git(root, "checkout", "--quiet", "--detach")
    elif situation == "shallow":
        root = tmp_path / "shallow"
        git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{first.root}", str(root))
    elif situation == "worktree":
        root = tmp_path / "tree"
        git(first.root, "worktree", "add", "--quiet", "-b", "side", str(root))
    workspace = opened(root)
    made = workspace.backups.make(tmp_path / "backups")[0]
    assert made.manifest.left_out == ()
    restored = restore(made.path, tmp_path / "again")
    assert contents_of_content(restored.root) == contents_of_content(root)
    if situation != "unborn":
        assert git(restored.root, "log", "--format=%H") == git(root, "log", "--format=%H")
        assert git(restored.root, "status", "--short", "ContextMemory") == git(
            root, "status", "--short", "ContextMemory"
        )
    assert opened(restored.root).store.count() == workspace.store.count()


def contents_of_content(root: Path) -> dict[str, bytes]:
    """As ``contents``, for a workspace that may have no settings."""
    files = [path for path in (root / "ContextMemory").rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_writes_in_the_secondary_location_are_in_the_backup(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits elsewhere because the workspace's disk was full comes back with the rest (S17, S21)."""
    import errno

    from memfs.fs import io

    secondary = tmp_path / "secondary"
    monkeypatch.setenv("MEMFS_STORAGE_SECONDARY", str(secondary))
    workspace = opened()
    workspace.store.put(MemoryItem("at home", "knowledge", id="home"))

    def full(name: str, path: str) -> None:
        if name in ("write", "open", "fsync", "fdatasync") and "secondary" not in path and "backups" not in path:
            if name == "open" and not path.endswith(".tmp"):
                return
            raise OSError(errno.ENOSPC, "full")

    before = io.set_hook(full)
    try:
        stored = workspace.store.put(MemoryItem("elsewhere", "knowledge", id="away"))
        assert stored.durability == "fallback"
        manifest = _made_elsewhere(workspace, tmp_path / "backups")
    finally:
        io.set_hook(before)
    monkeypatch.delenv("MEMFS_STORAGE_SECONDARY")
    root = restore(manifest, tmp_path / "again").root
    again = opened(root)
    found = again.store.get("away")
    assert found is not None
    assert found.content == "elsewhere"
    assert (root / found.path).exists()


def _made_elsewhere(workspace: Workspace, folder: Path) -> Path:
    folder.mkdir()
    make(workspace.parts, folder / "memfs-x.tar", "12345678")
    return folder / "memfs-x.tar"


# -- schedule -----------------------------------------------------------------------------------------------------
def test_a_backup_that_is_due_is_made_when_a_writer_closes(opened: Open, tmp_path: Path) -> None:
    """With an interval, closing after a write makes the backup; closing again soon, or without a write, makes none."""
    settings = {"backup__interval_hours": 24, "backup__targets": [str(tmp_path / "place")]}
    first = opened(**settings)
    made: list[str] = []
    first.behaviours.on("backup_made", lambda facts: made.append(facts["path"]))
    first.store.put(MemoryItem("one", "knowledge"))
    assert first.backups.state().due
    first.close()
    assert [str(path) for path in (tmp_path / "place").iterdir()] == made
    second = opened(first.root, **settings)
    assert not second.backups.state().due
    second.store.put(MemoryItem("two", "knowledge"))
    second.close()
    assert len(list((tmp_path / "place").iterdir())) == 1


def test_reading_makes_no_backup(opened: Open, tmp_path: Path) -> None:
    """Asking alone does not wait for a backup."""
    workspace = opened()
    workspace.close()
    reader = opened(workspace.root, backup__interval_hours=1, backup__targets=[str(tmp_path / "place")])
    reader.store.count()
    reader.close()
    assert not (tmp_path / "place").exists()


def test_a_resident_process_makes_the_backup_that_is_due(opened: Open, tmp_path: Path) -> None:
    """The commit window's thread makes the backup, without anybody closing the workspace."""
    place = tmp_path / "place"
    made = threading.Event()
    workspace = opened(
        history__commit="interval",
        history__interval_seconds=0.01,
        backup__interval_hours=24,
        backup__targets=[str(place)],
    )
    workspace.behaviours.on("backup_made", lambda facts: made.set())
    workspace.store.put(MemoryItem("one", "knowledge"))
    assert made.wait(60)
    assert verify(next(place.glob("*.tar"))).files


def test_a_scheduled_backup_that_fails_is_reported_and_fails_nothing_else(opened: Open, tmp_path: Path) -> None:
    """A target that cannot be written: closing works, the occasion is raised, ``status`` knows the reason."""
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    workspace = opened(backup__interval_hours=1, backup__targets=[str(blocked)])
    errors: list[str] = []
    workspace.behaviours.on("backup_failed", lambda facts: errors.append(facts["error"]))
    workspace.store.put(MemoryItem("one", "knowledge"))
    workspace.close()
    assert len(errors) == 1
    state = opened(workspace.root, backup__interval_hours=1).backups.state()
    assert state.due
    assert "blocked" in state.error


def test_age_and_lateness_follow_the_clock(opened: Open, tmp_path: Path) -> None:
    """The age counts from the last backup; it is due once the interval has passed, and when the clock went back."""
    workspace = opened(backup__interval_hours=2, backup__targets=[str(tmp_path / "place")])
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    object.__setattr__(workspace.parts, "clock", lambda: now)
    workspace.backups.make()
    assert [
        (hours, workspace.backups.state().due)
        for hours in (0, 1.9, 2, 30, -1)
        if not object.__setattr__(workspace.parts, "clock", lambda hours=hours: now + timedelta(hours=hours))
    ] == [(0, False), (1.9, False), (2, True), (30, True), (-1, True)]
    object.__setattr__(workspace.parts, "clock", lambda: now + timedelta(hours=3))
    assert workspace.backups.state().age == 3 * 3600


def test_a_backup_setting_of_an_untrusted_workspace_reaches_nowhere(opened: Open, tmp_path: Path) -> None:
    """A cloned ``memfs.toml`` cannot make backups go to a place of its choice, nor have older ones removed (T)."""
    workspace = opened()
    place = tmp_path / "theirs"
    (workspace.root / "memfs.toml").write_text(f'[backup]\ninterval_hours = 1\ncopies = 1\ntargets = ["{place}"]\n')
    workspace.close()
    again = opened(workspace.root)
    again.store.put(MemoryItem("one", "knowledge"))
    assert not again.backups.state().due
    assert again.settings.backup.copies == 7
    again.close()
    assert not place.exists()


# -- hostile and damaged ------------------------------------------------------------------------------------------
def test_the_backup_of_nothing_is_refused_by_name(tmp_path: Path) -> None:
    """A file that is not there, a folder, and a file of another sort are not backups."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("text " * 400)
    (tmp_path / "empty").write_bytes(b"")
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(tmp_path / "text", "text")
    for name in ("missing", "folder", "text", "empty", "other.tar"):
        with pytest.raises(BackupInvalid) as refused:
            restore(tmp_path / name, tmp_path / "again")
        assert name in str(refused.value)
    assert not (tmp_path / "again").exists()

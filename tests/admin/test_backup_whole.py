"""A backup counts as whole only if all of it can be restored, and only whole ones take another's place (S21)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs import MemoryItem
from memfs.admin import backup
from memfs.admin.backup_file import restore, verify
from memfs.doors.cli.app import run
from memfs.errors import BackupInvalid, MemfsError, StorageIO
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
Git = Callable[..., str]


def put(workspace: Workspace, name: str) -> None:
    """Store and commit an item that does not compress."""
    workspace.store.put(MemoryItem(os.urandom(2000).hex(), "knowledge", id=name))
    workspace.store.flush()


def damage_pack(root: Path, git: Git) -> None:
    """Pack everything, then overwrite eight bytes of the pack."""
    git(root, "repack", "-adq")
    pack = next((root / ".git/objects/pack").glob("*.pack"))
    pack.chmod(0o600)
    with pack.open("r+b") as file:
        file.seek(300)
        file.write(b"XXXXXXXX")


@pytest.fixture
def workspace(opened: Open, tmp_path: Path) -> Workspace:
    """A workspace with some history whose backups go to one place; two of them are kept."""
    made = opened(backup__targets=[str(tmp_path / "place")], backup__copies=2)
    for number in range(4):
        put(made, f"item-{number}")
    return made


def test_a_history_that_cannot_be_taken_is_left_out_and_prunes_nothing(
    workspace: Workspace, tmp_path: Path, git: Git
) -> None:
    """With a damaged pack no backup calls itself whole, and the good ones stay however many follow (faults row 26)."""
    good = workspace.backups.make()[0]
    damage_pack(workspace.root, git)
    made = [workspace.backups.make()[0] for _ in range(4)]
    assert not any(one.whole or one.removed for one in made)
    assert made[0].manifest.left_out[0].startswith("history.bundle: ")
    assert "made without history.bundle" in workspace.backups.state().error
    assert good.path in workspace.backups.kept()
    assert verify(good.path).whole
    assert restore(made[-1].path, tmp_path / "files").files == len(made[-1].manifest.files)
    assert [path for path in (tmp_path / "place").iterdir() if path.name.startswith(".")] == []


def test_an_unrestorable_history_is_noticed_and_the_files_can_be_had(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof sees what git wrote wrong; without it a restore does, and says how ``tar`` gives the files."""
    write = backup.write_bundle

    def rotten(repository: Any, history: Any, fd: int, path: str) -> None:
        write(repository, history, fd, path)
        os.pwrite(fd, b"XXXXXXXX", os.fstat(fd).st_size // 2)

    monkeypatch.setattr(backup, "write_bundle", rotten)
    assert not workspace.backups.make()[0].whole
    monkeypatch.setattr(backup, "prove_history", lambda *_: None)
    made = workspace.backups.make()[0]
    assert made.whole
    with pytest.raises(BackupInvalid) as refused:
        restore(made.path, tmp_path / "again")
    assert "tar -xOf BACKUP files.tar.gz | tar -xz" in (refused.value.hint or "")
    (tmp_path / "files").mkdir()
    packed = subprocess.run(["tar", "-xOf", made.path, "files.tar.gz"], capture_output=True, check=True)
    subprocess.run(["tar", "-xz"], input=packed.stdout, cwd=tmp_path / "files", check=True)
    found = sorted(path.name for path in (tmp_path / "files").rglob("item-*.yaml"))
    assert found == [f"item-{n}.yaml" for n in range(4)]


def test_the_command_for_a_backup_that_lacks_something_ends_with_1(
    workspace: Workspace, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    """``memfs admin backup create`` of a damaged history says so in JSON and in its exit code."""
    damage_pack(workspace.root, git)
    assert run(["-C", str(workspace.root), "admin", "backup", "create", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["backups"][0]["whole"] is False


def test_what_is_left_out_on_purpose_does_not_keep_old_backups(workspace: Workspace) -> None:
    """A link is named and left out, and the backup is whole all the same: old ones go as usual."""
    (workspace.root / "ContextMemory/link.yaml").symlink_to("/etc/passwd")
    made = [workspace.backups.make()[0] for _ in range(3)]
    assert made[-1].whole
    assert made[-1].manifest.left_out
    assert len(made[-1].removed) == 1


def test_a_folder_that_cannot_be_read_keeps_old_backups(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup without what the disk would not give removes no complete one (faults row 24)."""
    first, second = (workspace.backups.make()[0] for _ in range(2))

    def refused(*_: object) -> int:
        raise StorageIO("open failed: Input/output error", hint="check the disk")

    monkeypatch.setattr(type(workspace.parts.tree), "read", refused)
    made = workspace.backups.make()[0]
    assert not made.whole
    assert made.removed == ()
    assert {first.path, second.path} < set(workspace.backups.kept())


def test_a_place_that_is_closed_neither_skips_the_commit_nor_leaks(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target whose listing is refused is an error of memfs, and closing commits what waits all the same."""
    place = tmp_path / "place"
    place.mkdir()
    workspace = opened(backup__targets=[str(place)], backup__interval_hours=1)
    workspace.store.put(MemoryItem("waits", "knowledge", id="waits"))
    listdir = os.listdir

    def refused(path: object = ".") -> list[str]:
        if path == place:
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "listdir", refused)
    with pytest.raises(MemfsError):
        workspace.backups.kept(place)
    with pytest.raises(MemfsError):
        workspace.backups.make()
    closed: list[bool] = []
    monkeypatch.setattr(workspace.quota, "maintain", lambda: (_ for _ in ()).throw(PermissionError("closed")))
    monkeypatch.setattr(type(workspace.store), "close", lambda _: closed.append(True))
    workspace.quota.written = True
    with pytest.raises(PermissionError):
        workspace.close()
    assert closed == [True]
    monkeypatch.undo()
    workspace.quota.written = False


def test_a_restore_into_a_closed_folder_is_an_error_of_memfs(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parent that may not be made is reported with its path."""
    made = workspace.backups.make()[0]

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(StorageIO):
        restore(made.path, tmp_path / "closed/again")


def test_a_copied_workspace_has_backups_of_its_own(workspace: Workspace, tmp_path: Path, opened: Open) -> None:
    """``cp -a`` takes the record along, and yet the copy removes no backup of the original; a move changes nothing."""
    kept = [workspace.backups.make()[0].path for _ in range(2)]
    shutil.copytree(workspace.root, tmp_path / "copy", symlinks=True)
    copy = opened(tmp_path / "copy", backup__targets=[str(tmp_path / "place")], backup__copies=1)
    assert copy.backups.state().last is None
    for _ in range(2):
        copy.backups.make()
    assert copy.backups.origin() != workspace.backups.origin()
    assert workspace.backups.kept() == kept
    origin = copy.backups.origin()
    copy.close()
    (tmp_path / "copy").rename(tmp_path / "moved")
    assert opened(tmp_path / "moved").backups.origin() == origin

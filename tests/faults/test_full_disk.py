"""Disks that are really full or read-only, mounted for the test, and what follows (S17, faults rows 24 to 27)."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.faults import Fault, injected
from memfs import MemoryItem
from memfs.errors import StorageFull, StorageIO, StorageReadOnly, StorageUnavailable
from memfs.fs import io
from memfs.model import Query
from memfs.store.recovery import BALLAST, BALLAST_BYTES
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.faults


class Disk:
    """A small disk of the test's own."""

    def __init__(self, folder: Path, options: str) -> None:
        self.folder = folder
        self._filler = folder / "filler"
        folder.mkdir()
        _run("mount", "-t", "tmpfs", "-o", options, "none", str(folder))

    def fill(self, keep: int = 0) -> None:
        """Leave no room, or so many bytes; never more on the way there."""
        with contextlib.suppress(OSError):
            fd = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                if (lacking := keep - _free(self.folder)) > 0:
                    os.ftruncate(fd, max(os.fstat(fd).st_size - lacking, 0))
                while _free(self.folder) > keep:
                    os.write(fd, bytes(4096))
            finally:
                os.close(fd)

    def use_up_names(self) -> None:
        """Leave no inode."""
        self._filler.mkdir()
        with contextlib.suppress(OSError):
            for number in range(100_000):
                (self._filler / str(number)).touch()

    def clear(self) -> None:
        """Make room again."""
        if self._filler.is_dir():
            for name in self._filler.iterdir():
                name.unlink()
            self._filler.rmdir()
        else:
            self._filler.unlink()

    def remount(self, option: str) -> None:
        """Make it ``ro`` or ``rw``."""
        _run("mount", "-o", f"remount,{option}", str(self.folder))


def _run(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{' '.join(words[:3])} is not possible here: {done.stderr.strip()}")


def _free(folder: Path) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 24 MiB."""
    yield from _mounted(tmp_path / "disk", "size=24m,nr_inodes=2000")


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Disk]:
    """Another one, of 2 MiB."""
    yield from _mounted(tmp_path / "other", "size=2m")


def _mounted(folder: Path, options: str) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    made = Disk(folder, options)
    try:
        yield made
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


@contextlib.contextmanager
def opened_on(disk: Disk, secondary: Disk | None = None) -> Iterator[Workspace]:
    """A workspace on a disk."""
    settings = {"index.engine": "memory", "history.commit": "manual"}
    if secondary is not None:
        settings["storage.secondary"] = str(secondary.folder)
    root = disk.folder / "workspace"
    create = not root.exists()
    with open_workspace(root, create=create, watch=False, settings=settings) as workspace:
        yield workspace


def item(name: str, text: str) -> MemoryItem:
    """An item of that id."""
    return MemoryItem(text, "knowledge", id=name)


def contents(workspace: Workspace) -> dict[str, str]:
    """What listing finds, by id."""
    return {found.id: found.content for found in workspace.store.select(Query(limit=100))}


# -- no secondary location ----------------------------------------------------------------------------------------
def test_25_a_full_disk_refuses_reads_and_still_forgets(disk: Disk) -> None:
    """On a full disk a write is refused with what it needs and what is free; the old version stays, reading and
    opening work, and deleting makes room (faults row 25)."""
    with opened_on(disk) as workspace:
        for name in ("kept", "gone", "also-gone"):
            workspace.store.put(item(name, "old"))
        workspace.store.flush()
        disk.fill()
        with pytest.raises(StorageFull, match=r"needs [\d,]+ bytes, free 0 bytes") as caught:
            workspace.store.put(item("kept", "new" * 1000))
        assert caught.value.hint
        assert contents(workspace) == dict.fromkeys(("kept", "gone", "also-gone"), "old")
        with opened_on(disk) as another:
            assert contents(another) == contents(workspace)
            assert another.store.storage().state == "degraded"
        workspace.store.delete("gone")
        assert contents(workspace) == dict.fromkeys(("kept", "also-gone"), "old")
        disk.fill()
        workspace.store.delete("also-gone")
        assert contents(workspace) == {"kept": "old"}
    empty = [path for path in disk.folder.rglob("*.yaml") if path.stat().st_size == 0]
    assert empty == []
    disk.clear()
    with opened_on(disk) as workspace:
        assert workspace.store.put(item("kept", "new")).durability == "file"
        assert workspace.store.storage().state == "ok"
        assert workspace.store.flush().reason == ""


def test_25_no_inode_left(disk: Disk) -> None:
    """A disk without inodes is as full as one without blocks, and the error says which it is (faults row 25)."""
    with opened_on(disk) as workspace:
        workspace.store.put(item("kept", "old"))
        disk.use_up_names()
        with pytest.raises(StorageFull, match="no inodes"):
            workspace.store.put(item("made", "new"))
        assert contents(workspace) == {"kept": "old"}
        workspace.store.delete("kept")
        disk.clear()
        assert workspace.store.put(item("made", "new")).durability == "file"


def test_25_the_ballast_is_given_up_and_made_again(disk: Disk) -> None:
    """One MiB is kept back for deletions, given up on a full disk, and kept back again when there is room (S17)."""
    with opened_on(disk) as workspace:
        workspace.store.put(item("kept", "old"))
        for number in range(30):
            workspace.store.put(item(f"gone-{number}", "old"))
        assert _ballast(workspace).stat().st_size == BALLAST_BYTES
        for number in range(30):
            if _ballast(workspace).exists():  # until then each deletion found room where the one before made it
                disk.fill()
                workspace.store.delete(f"gone-{number}")
        assert not _ballast(workspace).exists()
        disk.clear()
        workspace.store.put(item("kept", "new"))
        assert _ballast(workspace).stat().st_size == BALLAST_BYTES


def test_25_recovery_on_a_full_disk(disk: Disk) -> None:
    """What a killed process left unfinished is finished on a full disk, too (S17, faults row 25)."""
    with opened_on(disk) as workspace:
        workspace.store.put(item("kept", "old"))
        journal = workspace.parts.journal.path

    def stop_before_the_file(name: str, path: str) -> None:
        if name == "open" and path.startswith(".memfs-"):
            raise KeyboardInterrupt

    with opened_on(disk) as workspace:
        before = io.set_hook(stop_before_the_file)
        try:
            with pytest.raises(KeyboardInterrupt):
                workspace.store.put(item("kept", "new"))
        finally:
            io.set_hook(before)
    assert b"new" in journal.read_bytes()
    disk.fill()
    with opened_on(disk) as workspace:
        assert contents(workspace) == {"kept": "new"}


def test_26_a_disk_made_read_only(disk: Disk) -> None:
    """A read-only workspace can be opened, read and asked; a write says so and changes nothing (faults row 26)."""
    with opened_on(disk) as workspace:
        workspace.store.put(item("kept", "old"))
    disk.remount("ro")
    with opened_on(disk) as workspace:
        assert contents(workspace) == {"kept": "old"}
        with pytest.raises(StorageReadOnly):
            workspace.store.put(item("kept", "new"))
        with pytest.raises(StorageReadOnly):
            workspace.store.delete("kept")
        assert "Read-only" in workspace.store.storage().reason
    disk.remount("rw")
    with opened_on(disk) as workspace:
        assert workspace.store.put(item("kept", "new")).durability == "file"


def test_24_degraded_until_a_probe_passes(opened: Iterator[Workspace]) -> None:
    """After a failed fsync the disk counts as degraded; the next write tries it out first, on a file of its own, and is
    refused while that fails (faults row 24)."""
    workspace: Workspace = opened()  # type: ignore[operator]
    workspace.store.put(item("kept", "old"))

    def no_sync(name: str, path: str) -> None:
        del path
        if name in ("fsync", "fdatasync"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = io.set_hook(no_sync)
    try:
        with pytest.raises(StorageIO, match="fdatasync failed: Input/output error"):
            workspace.store.put(item("kept", "new"))
        assert workspace.store.storage().state == "degraded"
        with pytest.raises(StorageIO, match=r"probe.*fsync failed"):
            workspace.store.put(item("kept", "new"))
    finally:
        io.set_hook(before)
    with injected(Fault()) as counted:
        assert workspace.store.put(item("kept", "new")).durability == "file"
    assert any(".memfs-probe" in seen for seen in counted.seen)
    with injected(Fault()) as counted:
        workspace.store.put(item("kept", "newer"))
    assert not any(".memfs-probe" in seen for seen in counted.seen)


# -- with a secondary location ------------------------------------------------------------------------------------
def test_27_a_full_disk_with_another_beside_it(disk: Disk, other_disk: Disk) -> None:
    """Full of blocks, full of inodes or read-only: the write goes to the other disk, readable there as a file, and
    comes home when it can (S17, faults row 27)."""
    with opened_on(disk, other_disk) as workspace:
        workspace.store.put(item("first", "text"))
        for name, fail, heal in (
            ("blocks", disk.fill, disk.clear),
            ("inodes", disk.use_up_names, disk.clear),
            ("read-only", lambda: disk.remount("ro"), lambda: disk.remount("rw")),
        ):
            fail()
            stored = workspace.store.put(item(name, f"no {name}"))
            assert stored.durability == "fallback"
            [copy] = other_disk.folder.glob(f"*/{stored.path}")
            assert f"no {name}" in copy.read_text()
            with opened_on(disk, other_disk) as another:
                assert contents(another)[name] == f"no {name}"
                assert another.store.storage().waiting == 1
            heal()
            assert workspace.store.flush().reason == ""
            assert f"no {name}" in (disk.folder / "workspace" / stored.path).read_text()
            assert list(other_disk.folder.glob("*/ContextMemory/**/*.yaml")) == []
        assert workspace.store.storage().state == "ok"


def test_27_both_disks_full(disk: Disk, other_disk: Disk) -> None:
    """Where both are full the error names both, and what the other disk took before stays (faults row 27)."""
    with opened_on(disk, other_disk) as workspace:
        disk.fill()
        assert workspace.store.put(item("first", "text")).durability == "fallback"
        other_disk.fill()
        with pytest.raises(StorageUnavailable) as caught:
            workspace.store.put(item("second", "text" * 5000))
        assert str(disk.folder) in str(caught.value)
        assert str(other_disk.folder) in str(caught.value)
        assert contents(workspace) == {"first": "text"}
        other_disk.clear()
        assert workspace.store.put(item("second", "text" * 5000)).durability == "fallback"
        disk.clear()
        workspace.store.flush()
        assert contents(workspace) == {"first": "text", "second": "text" * 5000}
        assert workspace.store.storage().waiting == 0


def test_27_little_room_is_not_taken_for_enough(disk: Disk, other_disk: Disk) -> None:
    """While there is room at home for some of what waits, that comes home in order and the rest stays (S17)."""
    with opened_on(disk, other_disk) as workspace:
        disk.fill()
        for number in range(20):
            workspace.store.put(item(f"item-{number:02}", "x" * 20_000))
        disk.fill(keep=300_000)
        workspace.store.refresh()
        waiting = workspace.store.storage().waiting
        assert 0 < waiting < 20
        assert len(contents(workspace)) == 20
        disk.clear()
        workspace.store.refresh()
        assert workspace.store.storage().waiting == 0
        assert len(contents(workspace)) == 20
        assert workspace.recovered.list() == []


def _ballast(workspace: Workspace) -> Path:
    return workspace.repository.state / BALLAST

"""Backup and restore stopped, killed, or on a failing disk at any point: a whole one or none (S21, rows 21-25)."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest.mock import ANY

import pytest

from kit.faults import Fault, Stopped, injected
from memfs import MemoryItem
from memfs.admin import backup as backup_make
from memfs.admin.backup_file import restore, verify
from memfs.errors import BackupInvalid, MemfsError
from memfs.fs import io
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.faults
Scale = Callable[[int, int], int]
Figures = Callable[..., None]
SETTINGS = {"index.engine": "memory", "history.commit": "manual"}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace with history and a waiting write, whose files count as just written however long a test takes.

    A backup looks at such files once more: that an operation has the same number each time must not depend on a clock.
    """
    monkeypatch.setattr("memfs.model.item.RACY_NS", 1 << 62)
    with open_workspace(tmp_path / "workspace", create=True, watch=False, settings=SETTINGS) as made:
        for number in range(3):
            made.store.put(MemoryItem(f"item number {number}", "knowledge", id=f"item-{number}"))
        made.store.flush()
        made.store.put(MemoryItem("waits", "knowledge", id="waiting"))
        yield made


def files(root: Path) -> dict[str, bytes]:
    """Every file of a workspace's memory."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in (root / "ContextMemory").rglob("*")
        if path.is_file()
    }


def whole_ones(folder: Path) -> list[Path]:
    """Files in a folder that somebody would take for a backup; each of them must be one."""
    found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    for path in found:
        verify(path)
    return found


def points(seen: list[str], every: int) -> list[int]:
    """Which operations to try: each that changes something or calls git, and every so many-th of the others."""
    plain = ("open ", "read ", "stat ")
    return [number for number, line in enumerate(seen, 1) if not line.startswith(plain) or number % every == 0]


def some(numbers: list[int], scale: Scale, begin: int) -> list[int]:
    """All of them in the long form; in the short one every second, from the one at ``begin``."""
    return numbers[scale(begin, 0) :: scale(2, 1)]


def backing_up(workspace: Workspace, folder: Path) -> list[str]:
    """The operations of a backup."""
    folder.mkdir()
    with injected(Fault()) as counted:
        backup_make.make(workspace.parts, folder / "memfs-x.tar", "12345678")
    return counted.seen


def test_21_a_backup_stopped_at_any_operation_is_whole_or_not_there(
    workspace: Workspace, tmp_path: Path, scale: Scale, figures: Figures
) -> None:
    """After a stop at each operation in turn: a backup that verifies, or none; the next one works and tidies up."""
    numbers = some(points(backing_up(workspace, tmp_path / "count"), scale(35, 1)), scale, 0)
    assert len(numbers) > 20
    before = files(workspace.root)
    for number in numbers:
        folder = tmp_path / f"to-{number}"
        folder.mkdir()
        fault = Fault(at=number)
        with injected(fault), contextlib.suppress(Stopped):
            backup_make.make(workspace.parts, folder / "memfs-x.tar", "12345678")
        assert len(whole_ones(folder)) <= 1, fault.seen[-1]
        assert files(workspace.root) == before
        shutil.rmtree(folder)
    folder = tmp_path / "after"
    folder.mkdir()
    backup_make.make(workspace.parts, folder / "memfs-x.tar", "12345678")
    assert len(list(folder.iterdir())) == 1
    figures("backup stopped at the N-th operation", points=len(numbers), half=0)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_24_25_a_backup_on_a_failing_disk_is_an_error_or_whole(
    workspace: Workspace, tmp_path: Path, code: int, scale: Scale
) -> None:
    """When any one operation fails, it raises or the backup is whole, and no temporary file stays."""
    numbers = points(backing_up(workspace, tmp_path / "count"), scale(35, 1))
    numbers = some(numbers, scale, int(code == errno.EIO))
    refused = 0
    for number in numbers:
        folder = tmp_path / f"to-{number}"
        folder.mkdir()
        fault = Fault(at=number, error=code)
        try:
            with injected(fault):
                backup_make.make(workspace.parts, folder / "memfs-x.tar", "12345678")
        except MemfsError:
            refused += 1
            left = whole_ones(folder)
            assert left == [] or fault.seen[number - 1].startswith(("open", "fsync", "unlink")), fault.seen[number - 1]
        else:
            assert len(whole_ones(folder)) == 1, fault.seen[number - 1]
        shutil.rmtree(folder)
    assert refused > 4


@pytest.mark.parametrize("code", [None, errno.ENOSPC], ids=["stopped", "ENOSPC"])
def test_21_25_a_restore_that_ends_early_leaves_no_workspace(
    workspace: Workspace, tmp_path: Path, code: int | None, scale: Scale, figures: Figures
) -> None:
    """Stopped, or refused by the disk, at each operation: the folder holds the whole workspace, or is not there."""
    backup = tmp_path / "memfs-x.tar"
    backup_make.make(workspace.parts, backup, "12345678")
    with injected(Fault()) as counted:
        restore(backup, tmp_path / "count")
    expected = files(workspace.root)
    made = 0
    numbers = some(points(counted.seen, scale(35, 1)), scale, int(code is not None))
    for number in numbers:
        place = tmp_path / "places" / str(number)
        fault = Fault(at=number, error=code)
        with injected(fault), contextlib.suppress(Stopped, MemfsError):
            restore(backup, place)
        if place.exists():
            assert files(place) == expected, fault.seen[-1]
            made += 1
        elif code is not None:
            assert list(place.parent.iterdir() if place.parent.exists() else []) == [], fault.seen[number - 1]
        shutil.rmtree(tmp_path / "places", ignore_errors=True)
    assert made < len(numbers) / 2
    figures(f"restore, {'stopped' if code is None else 'ENOSPC'} at the N-th operation", points=len(numbers), half=0)


def killed_while(act: Callable[[], object], after: float) -> bool:
    """Run ``act`` in a child and kill it so many seconds later; whether it was killed before its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


class Moments:
    """When to kill: at random, within what the act was last seen to take. A machine may be slow once and then quick."""

    def __init__(self, act: Callable[[], object], rng: random.Random) -> None:
        began = time.monotonic()
        act()
        self._length, self._rng = time.monotonic() - began, rng

    def kill(self, act: Callable[[], object]) -> bool:
        """Kill the act once; whether that was before its end."""
        after = self._rng.random() * self._length
        killed = killed_while(act, after)
        self._length = self._length if killed else after
        return killed


def test_21_killed_in_the_middle_of_a_backup_or_restore(
    workspace: Workspace, tmp_path: Path, scale: Scale, figures: Figures
) -> None:
    """Killed many times in each: no half backup that verifies, no half workspace, and the next try tidies up."""
    root, rng = workspace.root, random.Random(21)
    expected = files(root)
    workspace.close()
    folder, places, kills = tmp_path / "backups", tmp_path / "places", scale(5, 300)
    folder.mkdir()
    places.mkdir()

    def back_up() -> None:
        with open_workspace(root, watch=False, settings=SETTINGS) as again:
            again.backups.make(folder)

    moments = Moments(back_up, rng)
    killed = sum(moments.kill(back_up) for _ in range(kills))
    whole = whole_ones(folder)
    back_up()
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []
    moments = Moments(lambda: restore(whole[0], places / "first"), rng)
    place = places / "again"
    for _ in range(kills):
        killed += moments.kill(lambda: restore(whole[0], place))
        if place.exists():
            assert files(place) == expected
            shutil.rmtree(place)
    restore(whole[0], place)
    assert files(place) == expected
    assert [path for path in places.iterdir() if path.name.startswith(".")] == []
    assert killed > kills / 2
    figures("kill -9 in a backup or restore", points=2 * kills, killed=killed, half=0)


def test_a_backup_that_does_not_read_back_is_never_named(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that returns other bytes than were written is noticed before the backup gets its name.

    The same check without the reading back, the deliberately broken variant, leaves a backup that does not verify.
    """
    write = io.write_new

    def rotten(path: Path, chunks: Iterable[bytes]) -> None:
        write(path, chunks)
        if path.name == "whole":
            with path.open("r+b") as file:
                os.pwrite(file.fileno(), b"\x00rot", path.stat().st_size // 2)

    monkeypatch.setattr(io, "write_new", rotten)
    with pytest.raises(BackupInvalid):
        backup_make.make(workspace.parts, tmp_path / "memfs-x.tar", "12345678")
    assert [path.name for path in tmp_path.iterdir()] == ["workspace"]

    monkeypatch.setattr(backup_make, "verify", lambda path: ANY)
    backup_make.make(workspace.parts, tmp_path / "memfs-y.tar", "12345678")
    with pytest.raises(BackupInvalid):
        verify(tmp_path / "memfs-y.tar")


def test_the_check_catches_a_backup_that_is_written_under_its_own_name(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken variant that writes straight to the final name leaves half backups, and this suite sees them."""
    folder = tmp_path / "to"
    folder.mkdir()
    target = folder / "memfs-x.tar"

    write = io.write_new

    def straight(path: Path, chunks: Iterable[bytes]) -> None:
        write(target if path.name == "whole" else path, chunks)

    monkeypatch.setattr(io, "write_new", straight)
    monkeypatch.setattr(backup_make, "verify", lambda _: verify(target))
    monkeypatch.setattr(io, "link", lambda source, target: None)
    with injected(Fault()) as counted:
        backup_make.make(workspace.parts, target, "12345678")
    caught = 0
    for number in points(counted.seen, 12)[-20:]:
        target.unlink(missing_ok=True)
        with injected(Fault(at=number)), contextlib.suppress(Stopped):
            backup_make.make(workspace.parts, target, "12345678")
        try:
            whole_ones(folder)
        except BackupInvalid:
            caught += 1
    assert caught > 3

"""Disks that are full or refuse, as the system makes them: tmpfs, immutable files, limits (faults rows 25, 26)."""

from __future__ import annotations

import errno
import itertools
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kit import aftermath, broken, places
from kit.beginning import Beginning, fast_folder, make
from kit.script import EACH_VERB, FIRST, NAMES, Step, after, allowed, carry_out
from memfs import MemoryItem
from memfs.errors import ContentError, MemfsError, StorageFull, StorageIO, StorageReadOnly, WritePending
from memfs.fs import io
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults

WRITES = EACH_VERB[:4]
LARGE = Step("put", {NAMES[8]: ("knowledge", "a large one " * 1500)})
Full = Callable[[Path, int], object]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A small file system; caches are elsewhere."""
    with places.memory_disk(tmp_path / "small", kilobytes=4096, inodes=800) as disk:
        yield disk


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder of a disk: one in memory lets what is open be written although it is immutable."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def beginning(tmp_path: Path) -> Iterator[Beginning]:
    """A workspace to begin with, in which somebody has written here before: it has a journal."""

    def write(workspace: Workspace) -> None:
        workspace.store.put(MemoryItem("passing", "knowledge", id=NAMES[11]))
        workspace.store.delete(NAMES[11])
        workspace.store.flush()

    with fast_folder(tmp_path) as folder:
        yield Beginning(folder, write)


def attempt(workspace: Workspace, step: Step) -> MemfsError | None:
    """Do a step; return the error if it is refused."""
    try:
        carry_out(workspace, step)
    except MemfsError as error:
        return error
    return None


@pytest.mark.parametrize("full", [places.room_left, places.inodes_left], ids=["no room", "no inodes"])
def test_25_a_full_disk_refuses_and_keeps_everything(
    small: Path, full: Full, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """With ever less left, each write is done or StorageFull; all is readable, nothing is emptied (faults row 25)."""
    beginning = Beginning(small)
    refused = tried = 0
    for left in (0, 1, 2, 3, 4, 8, 16, 32)[:: scale(3, 1)]:
        for step in (*WRITES, LARGE):
            root = beginning.fresh()
            with aftermath.reopened(root) as workspace:
                with full(small, left):
                    error = attempt(workspace, step)
                    assert error is None or isinstance(error, StorageFull), error
                    assert aftermath.held(workspace) == (FIRST if error else after(FIRST, [step]))
                    assert empty_files(root) == []
                if error:
                    assert attempt(workspace, step) is None
            refused += error is not None
            if tried % scale(2, 1) == 0:
                aftermath.assert_whole(root, after(FIRST, [step]))
            tried += 1
    assert refused
    figures(
        f"a disk with little left: {'inodes' if full is places.inodes_left else 'room'}", points=tried, reported=refused
    )


def empty_files(root: Path) -> list[str]:
    """Files of the workspace that a failed write emptied."""
    return [str(path) for path in (root / "ContextMemory" / "memories").rglob("*.yaml") if path.stat().st_size == 0]


def test_26_a_read_only_file_system_is_read_and_refused(small: Path) -> None:
    """Everything can be read, each write is StorageReadOnly, and it works again when the disk does (faults row 26)."""
    root = small / "workspace"
    make(root)
    with aftermath.reopened(root) as workspace:
        places.remount(small, "ro")
        for step in WRITES:
            assert isinstance(attempt(workspace, step), StorageReadOnly)
        assert aftermath.held(workspace) == FIRST
        places.remount(small, "rw")
        assert attempt(workspace, WRITES[0]) is None
    places.remount(small, "ro")
    with aftermath.reopened(root) as workspace:
        assert aftermath.held(workspace) == after(FIRST, WRITES[:1])
    places.remount(small, "rw")


@pytest.mark.parametrize("what", ["file", "folder", "journal"])
def test_26_what_is_immutable_is_refused(on_disk: Path, what: str) -> None:
    """chattr +i on a file, its folder or the journal: one typed error, the old version stays (faults row 26)."""
    root = on_disk / "workspace"
    make(root)
    with aftermath.reopened(root) as workspace:
        workspace.store.put(MemoryItem("waits", "knowledge", id=NAMES[5]))
        before = aftermath.held(workspace)
        path = root / workspace.store.locate(NAMES[0])
        held = {"file": path, "folder": path.parent, "journal": workspace.parts.journal.path}[what]
        with places.immutable(held):
            error = attempt(workspace, WRITES[0])
            assert isinstance(error, StorageReadOnly), error
            assert aftermath.held(workspace) == before
        assert attempt(workspace, WRITES[0]) is None
    aftermath.assert_whole(root, after(before, WRITES[:1]))


@contextmanager
def limited(kind: int, value: int) -> Iterator[None]:
    """While the block runs, this process may have only so much of something."""
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


@pytest.mark.parametrize("others", ["hold none", "take the reserve"])
def test_26_too_few_descriptors_is_a_typed_error(
    beginning: Beginning,
    scale: Callable[[int, int], int],
    figures: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    others: str,
) -> None:
    """EMFILE wherever it strikes: a typed error, and nothing lands afterwards, unless the error says that it may."""
    refused = tried = 0
    if others == "take the reserve":
        monkeypatch.setattr(io, "_SPARE", 0)
    for number, step in enumerate(WRITES):
        left = range(0, 24, 3) if others == "hold none" else range(9)
        for descriptors in left[number % scale(2, 1) :: scale(2, 1)]:
            root = beginning.fresh()
            with aftermath.reopened(root) as workspace:
                with limited(resource.RLIMIT_NOFILE, lowest_free_descriptor() + descriptors):
                    error = attempt(workspace, step)
                assert error is None or isinstance(error, StorageIO), error
                found = aftermath.look(root).state
                assert found in allowed(FIRST, [step], 0 if error else 1)
                assert not error or found == FIRST or (isinstance(error, WritePending) and others != "hold none")
                if found == FIRST:
                    assert attempt(workspace, step) is None
            assert aftermath.look(root).state == after(FIRST, [step])
            tried += 1
            refused += error is not None
    assert refused > 4
    figures("too few descriptors", points=tried, reported=refused, lost=0, torn=0)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_24_25_26_what_was_refused_never_lands(
    beginning: Beginning, number: int, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """A disk that fails in the middle of a write and stays so: what was refused is not there when it works again, and
    where memfs could not see to that the error says so (faults rows 24-26).
    """
    pending = tried = 0
    for step in WRITES:
        for at in itertools.count(1 + scale(3 * (number % 7), 0), scale(23, 1)):
            root, done = beginning.fresh(), itertools.count(1)

            def fail(name: str, path: str, at: int = at, done: Iterator[int] = done) -> None:
                if next(done) >= at:
                    raise OSError(number, os.strerror(number))

            with aftermath.reopened(root) as workspace:
                before = io.set_hook(fail)
                try:
                    error = attempt(workspace, step)
                finally:
                    io.set_hook(before)
                found = aftermath.look(root).state
            tried += 1
            if isinstance(error, WritePending):
                pending += 1
                assert found in (FIRST, after(FIRST, [step]))
            else:
                assert found == (FIRST if error else after(FIRST, [step])), (at, error)
            if error is None and next(done) <= at:
                break
    assert pending
    figures(f"a disk that stays broken: {errno.errorcode[number]}", points=tried, pending=pending)


def lowest_free_descriptor() -> int:
    """The number the next descriptor would have."""
    fd = os.dup(0)
    os.close(fd)
    return fd


@pytest.mark.parametrize("size", [0, 50, 500, 5000])
def test_26_a_limit_on_file_sizes_is_a_typed_error(tmp_path: Path, size: int) -> None:
    """EFBIG after a short write: refused, and neither the file nor the journal is torn (faults row 26)."""
    root = tmp_path / "workspace"
    make(root)
    with aftermath.reopened(root) as workspace:
        with limited(resource.RLIMIT_FSIZE, size):
            error = attempt(workspace, LARGE)
        assert isinstance(error, StorageIO), error
        assert aftermath.held(workspace) == FIRST
        assert attempt(workspace, LARGE) is None
    aftermath.assert_whole(root, after(FIRST, [LARGE]))


def test_26_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes seven bytes at a time gets them all; a variant that does not go on is caught (row 26)."""
    root = tmp_path / "workspace"
    make(root)
    write, pwrite = os.write, os.pwrite
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:7], at))
    with aftermath.reopened(root) as workspace:
        for step in WRITES:
            carry_out(workspace, step)
        with broken.in_force("short writes"):
            carry_out(workspace, LARGE)
        with pytest.raises(ContentError):
            aftermath.held(workspace)

"""Places that fail: file systems whose power can be cut, that are full, or that refuse.

They are made, broken and removed here. All need rights that a test may lack: a tier that cannot have its place is
skipped with the reason, and so never passes unseen.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_EXT4_IOC_SHUTDOWN = 0x8004587D
_DROP_EVERYTHING = 2  # NOLOGFLUSH: what has not reached the "disk" yet never will
_PATIENCE = 60.0  # seconds, against a hang only: on a busy machine a git process takes long to notice that it is to end


# -- power --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Disk:
    """A file system in a file, mounted at a folder.

    Attributes:
        options: how it is mounted.
    """

    image: Path
    mounted: Path
    options: str = "loop"

    def format(self, megabytes: int = 48) -> None:
        """Make it empty."""
        self.image.unlink(missing_ok=True)
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        _run("mkfs.ext4", "-q", "-F", str(self.image))

    def mount(self) -> None:
        """Put it at its folder."""
        self.mounted.mkdir(exist_ok=True)
        _run("mount", "-o", self.options, str(self.image), str(self.mounted))

    def unmount(self) -> None:
        """Take it away. Git processes may hold it longer than their dead parent, and with it the power cut."""
        until = time.monotonic() + _PATIENCE
        while os.path.ismount(self.mounted):
            if subprocess.run(["umount", str(self.mounted)], capture_output=True, check=False).returncode:
                assert time.monotonic() < until, f"{self.mounted} is still in use"
                time.sleep(0.02)
        # A process with mounts of its own (unshare -m) may have a copy of ours: mounted again, it would still be dead.
        while self._is_attached():
            assert time.monotonic() < until, f"{self.image} is still mounted somewhere"
            time.sleep(0.02)

    def _is_attached(self) -> bool:
        backing = Path("/sys/block").glob("loop*/loop/backing_file")
        found = []
        for one in backing:
            with contextlib.suppress(OSError):  # detached meanwhile
                found.append(one.read_text().strip())
        return str(self.image) in found

    def leave(self) -> None:
        """Take it away even from those who still use it; it cannot be mounted again."""
        if os.path.ismount(self.mounted):
            _run("umount", "-l", str(self.mounted))

    def sync(self) -> None:
        """Make all of it durable, and nothing of any other file system."""
        _run("sync", "-f", str(self.mounted))

    def cut_power(self) -> None:
        """Lose everything that was not made durable; from here on nothing can be read or written."""
        fd = os.open(self.mounted, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _EXT4_IOC_SHUTDOWN, array.array("I", [_DROP_EVERYTHING]), True)
        finally:
            os.close(fd)


@contextmanager
def disk(folder: Path, options: str = "") -> Iterator[Disk]:
    """An ext4 file system whose power can be cut, or the test is skipped."""
    reason = _why_no_disk(str(folder))
    if reason:
        pytest.skip(reason)
    made = Disk(folder / "disk.img", folder / "disk", f"loop,{options}" if options else "loop")
    try:
        yield made
    finally:
        made.leave()


@functools.cache
def _why_no_disk(folder: str) -> str:
    """Why no file system can be made here, "" if one can."""
    if os.geteuid() != 0:
        return "power cuts need root"
    if shutil.which("mkfs.ext4") is None:
        return "power cuts need mkfs.ext4"
    with tempfile.TemporaryDirectory(dir=folder) as place:
        tried = Disk(Path(place, "tried.img"), Path(place, "tried"))
        try:
            tried.format(8)
            tried.mount()
            tried.cut_power()
        except (OSError, subprocess.CalledProcessError) as error:
            return f"no loop-mounted ext4 here: {error}"
        finally:
            tried.leave()
    return ""


# -- room ---------------------------------------------------------------------------------------------------------
@contextmanager
def memory_disk(folder: Path, kilobytes: int, inodes: int) -> Iterator[Path]:
    """A tmpfs of a given size, or the test is skipped."""
    if os.geteuid() != 0:
        pytest.skip("a file system of a given size needs root")
    folder.mkdir(exist_ok=True)
    made = _try("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,nr_inodes={inodes}", "memfs-test", str(folder))
    if made:
        pytest.skip(f"no tmpfs can be mounted here: {made}")
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


def remount(folder: Path, options: str) -> None:
    """Change how a place is mounted, for example ``ro``."""
    _run("mount", "-o", f"remount,{options}", str(folder))


@contextmanager
def room_left(folder: Path, kilobytes: int) -> Iterator[None]:
    """While the block runs, fill a file system until only so much is free."""
    filler = folder / "filler"
    facts = os.statvfs(folder)
    with open(filler, "wb") as file:
        file.write(b"\1" * max(0, facts.f_bavail * facts.f_frsize - (kilobytes << 10)))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def inodes_left(folder: Path, count: int) -> Iterator[None]:
    """While the block runs, use up the inodes of a file system until so many are free."""
    crowd = folder / "crowd"
    crowd.mkdir()
    for number in range(max(0, os.statvfs(folder).f_favail - count)):
        (crowd / str(number)).touch()
    try:
        yield
    finally:
        shutil.rmtree(crowd)


# -- refusal ------------------------------------------------------------------------------------------------------
@contextmanager
def immutable(path: Path) -> Iterator[None]:
    """While the block runs, not even root may change a file or folder; or the test is skipped."""
    refused = "chattr is missing" if shutil.which("chattr") is None else _try("chattr", "+i", str(path))
    if refused:
        pytest.skip(f"nothing can be made immutable here: {refused}")
    try:
        yield
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            _run("chattr", "-i", str(path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _try(*command: str) -> str:
    """What a command complains about, "" if it does not."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else ""

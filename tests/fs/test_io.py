"""The system calls behind everything: whole files, and what failed writers leave."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.crowd import FAULTS
from kit.faults import Fault, Stopped, injected
from memfs.errors import StorageFull, StorageIO
from memfs.fs import io


def test_22_a_failed_write_of_a_whole_file_leaves_nothing_behind(tmp_path: Path) -> None:
    """Whichever operation meets a full disk, the file is old or new and alone in its folder (faults row 22)."""
    path = tmp_path / "state.json"
    io.write_file(path, b"old")
    with injected(Fault()) as counted:
        io.write_file(path, b"new")
    for number in range(1, len(counted.seen) + 1):
        io.write_file(path, b"old")
        with injected(Fault(at=number, error=errno.ENOSPC)), pytest.raises(StorageFull):
            io.write_file(path, b"new")
        assert path.read_bytes() in (b"old", b"new")
        assert os.listdir(tmp_path) == ["state.json"]


def test_21_what_a_killed_writer_left_is_swept_when_its_process_is_gone(tmp_path: Path) -> None:
    """Only temporary files of dead processes go; those of living ones and everything else stay (faults row 21)."""
    code = (
        "import sys; from pathlib import Path; from memfs.fs import io; from kit.faults import Fault\n"
        "io.set_hook(Fault(at=4)); io.write_file(Path(sys.argv[1]), b'x')"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.json")],
        env={**os.environ, "PYTHONPATH": str(FAULTS)},
        check=False,
        capture_output=True,
    )
    assert b"Stopped" in killed.stderr
    (left,) = os.listdir(tmp_path)
    stay = {f".b.json.{os.getpid()}.tmp", ".b.json.1.tmp", "c.99999999.tmp", ".d.tmp", ".e.x.tmp", "state.json"}
    for name in stay:
        (tmp_path / name).write_bytes(b"")
    assert left.startswith(".a.json.")
    assert io.sweep(tmp_path) == 1
    assert set(os.listdir(tmp_path)) == stay
    assert io.sweep(tmp_path / "nowhere") == 0


def test_a_sweep_that_fails_leaves_the_rest_for_the_next(tmp_path: Path) -> None:
    """Tidying up never fails anybody's work."""
    (tmp_path / ".b.json.99999999.tmp").write_bytes(b"")
    with injected(Fault(at=1, error=errno.EIO)):
        assert io.sweep(tmp_path) == 0
    assert io.sweep(tmp_path) == 1


@pytest.mark.parametrize("change", [lambda path: io.touch(path), lambda path: io.chmod(path, 0o600)])
def test_times_and_modes_pass_the_gate_too(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    """A test can fail or stop them, and their errors are memfs's."""
    path = tmp_path / "x"
    path.write_bytes(b"")
    with injected(Fault(at=1)), pytest.raises(Stopped):
        change(path)
    with pytest.raises(StorageIO):
        change(tmp_path / "nowhere")
    change(path)


@pytest.mark.durable
def test_24_a_whole_file_system_is_made_durable_and_its_refusal_is_an_error(tmp_path: Path) -> None:
    """The system is asked about a folder's own file system (faults row 24)."""
    (tmp_path / "file").touch()
    io.sync_everything(str(tmp_path))
    with pytest.raises(StorageIO, match="sync failed: Not a directory"):
        io.sync_everything(str(tmp_path / "file"))

"""Archives, checkpoints and backups made by earlier versions are still read (S6, S15, S21)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from memfs.admin.backup_file import restore, verify
from memfs.workspace import Workspace

EARLIER = Path(__file__).with_name("earlier")
OUTPUTS = "ContextMemory/iterations/iteration_001/agent_outputs/Ranking%20Agent"


def test_a_backup_an_archive_and_a_checkpoint_of_an_earlier_version(
    opened: Callable[..., Workspace], tmp_path: Path
) -> None:
    """All verify, the backup is restored, the archive read and unpacked, the checkpoint recovered from."""
    backup = EARLIER / "backup.tar"
    assert verify(backup).whole
    workspace = opened(restore(backup, tmp_path / "again").root)
    item = workspace.store.get("earlier")
    assert item is not None
    assert item.content == "kept by an earlier version"
    for name in ("archive", "checkpoints"):
        shutil.rmtree(workspace.root / "ContextMemory" / name, ignore_errors=True)
    archive = workspace.root / "ContextMemory/archive"
    archive.mkdir()
    for path in EARLIER.glob("2020-03.*"):
        shutil.copy(path, archive)
    [checkpoint] = EARLIER.glob("ckpt_*")
    shutil.copytree(checkpoint, workspace.root / "ContextMemory/checkpoints" / checkpoint.name)

    states = workspace.states
    assert list(states.archives.problems()) == []
    [period] = states.archives.periods()
    assert (period.present, period.documents) == (True, 4)
    assert b"ranked 0 of iteration 1" in states.archives.read(f"{OUTPUTS}/task-0.json")
    assert states.archiver.unpack(1).documents == 4
    assert [one.problem for one in states.checkpoints.verify()] == [""]
    state = states.checkpoints.recover()
    assert (state.checkpoint_id, state.completed_work["iterations"]) == (checkpoint.name, [1, 2])
    restored = states.checkpoints.recover(restore=True).data_integrity["restored"]
    assert restored == []
    assert states.checkpoints.list()[0].reason == "earlier"

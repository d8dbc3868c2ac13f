"""What installing takes for its own, and what it leaves to the one who wrote it (C6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memfs.doors.claude_code import installer
from memfs.doors.claude_code.settings_file import SettingsFile
from memfs.errors import StorageFull
from memfs.fs import io


@pytest.mark.parametrize(
    "handler",
    [
        {"type": "command", "command": "memfs", "args": ["recall", "deploys"]},
        {"type": "command", "command": "/opt/py/bin/memfs", "args": ["sync"]},
        {"type": "command", "command": "python", "args": ["-m", "memfs", "status"]},
        {"type": "command", "command": "python", "args": ["-m", "other", "hook", "Stop"]},
        {"type": "http", "command": "memfs", "args": ["hook", "Stop"], "url": "http://localhost"},
        {"type": "command", "command": "memfs hook Stop"},
    ],
)
def test_another_use_of_memfs_is_somebodys_own(handler: dict[str, Any]) -> None:
    """A handler that calls another verb, or in another way, is neither written over nor taken out (C6)."""
    before = {"hooks": {"Stop": [{"hooks": [handler]}]}}
    after = installer.with_hooks(before, installer.handler_groups("memfs"))
    assert after["hooks"]["Stop"][0] == {"hooks": [handler]}
    assert installer.with_hooks(after, {}) == before
    assert installer.with_hooks(before, {}) == before


def test_ours_among_theirs_below_another_matcher_moves_out_alone() -> None:
    """C6: a handler of memfs that somebody put into a group of his own goes; that group keeps its matcher and rest."""
    theirs = {"type": "command", "command": "lint"}
    ours = installer.handler_groups("memfs")["PreToolUse"]
    mixed = {"matcher": "Read", "hooks": [*ours["hooks"], theirs]}
    before = {"hooks": {"PreToolUse": [mixed]}}
    after = installer.with_hooks(before, installer.handler_groups("memfs"))["hooks"]["PreToolUse"]
    assert after == [{"matcher": "Read", "hooks": [theirs]}, ours]


def test_a_write_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    """C6: where the disk takes nothing, not even an empty ``.claude`` is left; a folder of another name stays."""

    def full(name: str, path: str) -> None:
        if name == "write":
            raise OSError(28, "No space left on device")

    file = SettingsFile(path=tmp_path / ".claude/settings.json", within=tmp_path)
    before = io.set_hook(full)
    try:
        with pytest.raises(StorageFull):
            file.rewrite(lambda _: {"a": 1})
    finally:
        io.set_hook(before)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "own").mkdir()
    (tmp_path / "own/x.json").write_text('{"a": 1}')
    SettingsFile(path=tmp_path / "own/x.json", within=tmp_path).rewrite(lambda _: {})
    assert [path.name for path in tmp_path.iterdir()] == ["own"]

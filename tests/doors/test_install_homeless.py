"""Doors on a machine where the user has no home folder, as in some containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.doors.claude_code.hook import Hook
from memfs.doors.claude_code.installer import install
from memfs.doors.claude_code.settings_file import InstallScope
from memfs.errors import StorageIO


@pytest.fixture(autouse=True)
def _homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "MEMFS_WORKSPACE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_a_user_without_a_home_is_reported_the_remedy(tmp_path: Path) -> None:
    """A person's own settings have no place; those of a project do (C6)."""
    with pytest.raises(StorageIO, match="no home folder"):
        install(InstallScope.USER, tmp_path)
    assert (tmp_path / ".claude").exists() is False
    assert install(InstallScope.LOCAL, tmp_path).after


def test_a_hook_without_a_home_says_so_in_one_line(tmp_path: Path) -> None:
    """Nothing can be kept, nothing is printed, and the remark is not a stray error (C6)."""
    printed: list[str] = []
    remarks: list[str] = []
    payload = f'{{"session_id": "s", "cwd": "{tmp_path}", "prompt": "Deploys go to Frankfurt now."}}'
    Hook("UserPromptSubmit", say=printed.append, complain=remarks.append).run(payload.encode())
    assert printed == []
    assert len(remarks) == 1
    assert "HOME" in remarks[0]

"""What all behaviour tests share: a place for the workspace, and the end of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memfs.facades.open_workspaces import close_all


@pytest.fixture
def workspace_path(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh workspace; whatever facades open of it is closed at the end."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", "memory")
    monkeypatch.setenv("MEMFS_HISTORY_COMMIT", "manual")
    monkeypatch.setenv("MEMFS_WATCH_ENABLED", "false")
    workspace = opened()
    workspace.close()
    yield workspace.root
    close_all()

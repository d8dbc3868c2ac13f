"""Facades open workspaces of their own: small ones here, closed after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memfs.facades.open_workspaces import close_all


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without commits and with the engine in memory; whatever a test leaves open is closed."""
    monkeypatch.setenv("MEMFS_INDEX_ENGINE", "memory")
    monkeypatch.setenv("MEMFS_HISTORY_COMMIT", "manual")
    monkeypatch.setenv("MEMFS_WATCH_ENABLED", "false")
    yield
    close_all()

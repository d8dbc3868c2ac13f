"""The SQLite engine keeps the contract of all engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from index_contract import IndexContract

from memfs.search.engine import Index
from memfs.search.sqlite import SqliteIndex


class TestSqliteIndex(IndexContract):
    """SQLite."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Callable[[], Index]:
        folder = tmp_path / 'with ?#%" signs'
        folder.mkdir()
        return lambda: SqliteIndex(folder)

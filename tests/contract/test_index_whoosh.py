"""The Whoosh engine keeps the contract of all engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from index_contract import IndexContract

from memfs.search.engine import Index
from memfs.search.whoosh import WhooshIndex


class TestWhooshIndex(IndexContract):
    """Scoring whole posting blocks."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Callable[[], Index]:
        def opened() -> Index:
            return WhooshIndex(tmp_path / "index")

        return opened

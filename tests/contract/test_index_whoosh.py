"""The Whoosh engine keeps the contract of all engines, by both of its ways to score."""

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
            index = WhooshIndex(tmp_path / "index")
            assert index.block_scoring
            return index

        return opened


class TestWhooshIndexByItsOwnSearch(IndexContract):
    """Scoring by Whoosh's public search, as where its insides are not as expected."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Callable[[], Index]:
        def opened() -> Index:
            index = WhooshIndex(tmp_path / "index")
            index.block_scoring = False
            return index

        return opened

"""The memory engine keeps the contract of all engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from index_contract import IndexContract

from memfs.search.engine import Index, MemoryIndex


class TestMemoryIndex(IndexContract):
    """The reference."""

    stored = False

    @pytest.fixture
    def make(self) -> Callable[[], Index]:
        return MemoryIndex

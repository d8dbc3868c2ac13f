"""The memory engine keeps the contract of all engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.search.engine import Index
from memfs.search.memory import MemoryIndex
from memfs.testing.index_contract import IndexContract


class TestMemoryIndex(IndexContract):
    """The reference."""

    stored = False

    @pytest.fixture
    def make(self) -> Callable[[], Index]:
        return MemoryIndex

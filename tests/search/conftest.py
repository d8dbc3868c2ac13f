"""Indexes for tests of the index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.search.search_index import SearchIndex


@pytest.fixture(params=["whoosh", "sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that keeps files."""
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the index lives."""
    return tmp_path / "cache" / "index"


@pytest.fixture
def opened(folder: Path, engine: str, request: pytest.FixtureRequest) -> Callable[[], SearchIndex]:
    """Opens the index as another process would."""

    def make() -> SearchIndex:
        index = SearchIndex(folder, engine)
        request.addfinalizer(index.close)
        return index

    return make

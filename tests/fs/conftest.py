"""What the tests of files and locks share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memfs.fs.journal import Journal


@pytest.fixture(autouse=True)
def _closed_journals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close each journal that a test made: hundreds of them would use up the process's descriptors."""
    made: list[Journal] = []
    begin = Journal.__init__

    def noted(self: Journal, *given: Any, **more: Any) -> None:
        begin(self, *given, **more)
        made.append(self)

    monkeypatch.setattr(Journal, "__init__", noted)
    yield
    for one in made:
        one.close()

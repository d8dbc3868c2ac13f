"""``memfs status`` costs no more the more there is to tell."""

from __future__ import annotations

from typing import Any

import pytest

from memfs.store.following import Following
from tests.cli.conftest import Memfs


def test_status_looks_at_all_files_three_times_at_most(memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the index, for whether that is fresh, for edits by hand; whatever else is told needs no further look."""
    memfs("remember", "Tokens expire after an hour.")
    looks: list[Any] = []
    look = Following.refresh

    def counted(self: Following, paths: Any = None, progress: Any = None) -> Any:
        looks.extend([paths] if paths is None else [])
        return look(self, paths, progress)

    monkeypatch.setattr(Following, "refresh", counted)
    assert memfs("status").code == 0
    assert 1 <= len(looks) <= 3

"""Hooks of tests have time: on a busy machine, too, what waits becomes memories at once. And a resident."""

from __future__ import annotations

import pytest

from kit.patience import LONG
from kit.residents import ask, resident, root  # noqa: F401  fixtures
from memfs.doors.claude_code import answer
from memfs.doors.claude_code.hook import DRAINS


@pytest.fixture(autouse=True)
def _unhurried_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    """No drain of a hook in this process leaves anything for the next one."""
    for name in DRAINS:
        monkeypatch.setitem(DRAINS, name, LONG)  # type: ignore[arg-type]  # a table that others only read
    monkeypatch.setattr(answer, "LEARNING_SECONDS", LONG)

"""The fault kit says what it did, and what it could not do."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit import figures, places, tracing
from kit.script import FIRST, Step, after, allowed


def test_a_tier_without_its_place_is_skipped_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not being root, or having no strace, is a skip and never a pass."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    places._why_no_disk.cache_clear()
    with pytest.raises(pytest.skip.Exception, match="root"), places.disk(tmp_path):
        pass
    with pytest.raises(pytest.skip.Exception, match="root"), places.memory_disk(tmp_path / "small", 100, 10):
        pass
    places._why_no_disk.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    tracing._why_not.cache_clear()
    with pytest.raises(pytest.skip.Exception, match="strace"):
        tracing.require()
    tracing._why_not.cache_clear()


def test_figures_become_one_table(tmp_path: Path) -> None:
    """Each tier is a row; columns that only some tiers count come last; what was not run is named."""
    reports = [
        SimpleNamespace(user_properties=[(figures.PROPERTY, ("kill -9", {"points": 1000, "lost": 0}))]),
        SimpleNamespace(user_properties=[("other", 1), (figures.PROPERTY, ("cut", {"points": 60, "reported": 2}))]),
    ]
    rows = figures.rows_of(reports)
    assert figures.table(rows).splitlines()[2:] == ["| cut | 60 |  | 2 |", "| kill -9 | 1,000 | 0 |  |"]
    figures.write(tmp_path / "page.md", rows, ["test_power_cuts.py: power cuts need root"])
    assert "not run: test_power_cuts.py: power cuts need root" in (tmp_path / "page.md").read_text()


def test_the_model_allows_the_step_under_way_whole_or_not_at_all() -> None:
    """What may be found after a death: the acknowledged steps, with or without the next one."""
    steps = [Step("put", {"a": ("knowledge", "1")}), Step("batch", {"a": None, "b": ("knowledge", "2")})]
    assert allowed({}, steps, 1) == [{"a": ("knowledge", "1")}, {"b": ("knowledge", "2")}]
    assert allowed({}, steps, 2) == [{"b": ("knowledge", "2")}] * 2
    assert after(FIRST, []) == FIRST

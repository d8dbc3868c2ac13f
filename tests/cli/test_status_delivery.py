"""``memfs status`` says what waits for a decision, and which names of a list need trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.doors.cli import status
from tests.cli.conftest import Memfs


def row(memfs: Memfs, name: str) -> str:
    """What a row of ``status`` says."""
    return next((line[11:] for line in memfs("status", "--all").out.splitlines() if line.startswith(f"{name} ")), "")


def test_p7_status_counts_what_waits_for_a_decision(memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conflicts are counted where that is cheap; with many items nobody waits for it (P7)."""
    memfs("remember", "--type", "preference", "Always squash commits before merging.")
    memfs("remember", "--type", "preference", "Never squash commits before merging.", "--review")
    conflicts = memfs("team", "conflicts", "--scan", "--json").json
    assert len(conflicts["conflicts"]) == 1
    assert row(memfs, "conflicts") == "1 to decide ('memfs team conflicts')"
    monkeypatch.setattr(status, "_FEW_ITEMS", 1)
    assert memfs("status", "--json").json["merges"]["conflicts"] is None


def test_41_status_separates_names_that_need_trust_from_those_that_count(memfs: Memfs, root: Path) -> None:
    """Of a list with a foreign name only that one is ignored, and the row says so (faults row 41)."""
    file = root / "memfs.toml"
    file.write_text(file.read_text() + '[memory]\ntriggered = ["episodic", "sprint:Source"]\n')

    assert row(memfs, "trust").startswith("['sprint:Source'] in memory.triggered ignored: nobody has trusted")

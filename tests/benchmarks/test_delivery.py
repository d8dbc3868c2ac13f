"""The benchmark of delivery measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import checkout, delivery


def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is measured: questions with and without a match, cold and warm, and recording (P1)."""
    monkeypatch.setattr(checkout, "SETTLED_SECONDS", 0.0)
    assert delivery.main(["--sizes", "40", "--rounds", "3", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for row in (delivery.NOTHING, delivery.SOMETHING, delivery.CACHED, delivery.FROM_FILES, delivery.RECORD):
        assert f"| {row} |" in printed

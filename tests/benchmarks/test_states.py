"""The benchmark of state retrieval measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import states


def test_the_cache_answers_most_of_what_a_supervisor_and_its_agents_ask(tmp_path: Path) -> None:
    """More than four of five questions of the access pattern are answered from the cache (S14)."""
    figures = states.pattern(tmp_path / "workspace", hours=0.5)
    assert figures["reads"] > 200
    assert figures["writes"] > 5
    assert figures["rate"] > 0.8


def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every row is measured at every size, with its growth, in time and in steps of the index (S13)."""
    assert states.main(["--iterations", "1,2", "--hours", "0.1", "--rounds", "1", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("full, the present") == 4
    assert "access pattern" in printed

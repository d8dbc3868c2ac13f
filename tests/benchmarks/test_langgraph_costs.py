"""The benchmark of LangGraph's checkpoints measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import langgraph


def test_it_measures_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Puts beside bare writes, the newest, a page and the whole list (B5)."""
    assert langgraph.main(["--steps", "6", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for row in (langgraph.PUT, langgraph.WRITES, langgraph.NEWEST, langgraph.PAGE, langgraph.LIST):
        assert f"| {row} |" in printed

"""The benchmark of the MCP server measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import checkout, mcp


def test_it_measures_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a client waits for at the start, and what a search and a store cost it then (B5)."""
    monkeypatch.setattr(checkout, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(mcp, "compile_all", lambda: None)
    assert mcp.main(["--sizes", "20", "--rounds", "1", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for row in (mcp.INITIALIZE, mcp.TOOLS, mcp.FIRST, mcp.SEARCH, mcp.STORE):
        assert f"| {row} |" in printed

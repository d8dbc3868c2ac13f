"""The benchmark of the MCP server measures what it says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import checkout, mcp


def test_it_measures_every_row(
    tmp_path: Path, forked_python: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a client waits for at the start, and what a search and a store cost it then (B5)."""
    monkeypatch.setattr(checkout, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(mcp, "compile_all", lambda: None)
    monkeypatch.setattr(mcp, "sys", SimpleNamespace(executable=str(forked_python)))
    monkeypatch.setattr(mcp, "memfs_command", lambda: [str(forked_python), "-m", "memfs"])
    assert mcp.main(["--sizes", "20", "--rounds", "1", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for row in (mcp.INITIALIZE, mcp.TOOLS, mcp.FIRST, mcp.SEARCH, mcp.STORE):
        assert f"| {row} |" in printed

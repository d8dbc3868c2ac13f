"""The seeds' worked examples run as they are shown."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("seed_002", "learned: create {variable} login"),
        ("seed_003", "[HIGH] Need to rotate the signing keys"),
        ("seed_004", "add a column to the orders table: success (warned)"),
        ("security_reviewer", "security: 8.0 (it speaks of token, vulnerability)"),
    ],
)
def test_the_example_runs(
    name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An example is a program that ends well, says what it did, and leaves nothing behind (C1, M1)."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert expected in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []

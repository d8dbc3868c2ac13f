"""The agent loop's program says in one line what is wrong with a service (P6)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "agent_loop" / "run.py"


@pytest.mark.parametrize(
    ("endpoint", "code", "message"),
    [("http://127.0.0.1:9/v1", 1, "gave no usable answer"), ("http://models.example.org/v1", 2, "unencrypted")],
)
def test_p6_no_traceback_for_a_service(
    tmp_path: Path, forked_python: Path, endpoint: str, code: int, message: str
) -> None:
    """Anyone who mistypes an address reads a sentence."""
    env = {**os.environ, "OPENAI_API_KEY": "secret", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = (str(forked_python), str(PROGRAM), "--endpoint", endpoint, "--model", "m", "--episodes", "1")
    ran = subprocess.run(words, check=False, capture_output=True, text=True, env=env)
    assert ran.returncode == code
    assert message in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
    assert "secret" not in ran.stderr

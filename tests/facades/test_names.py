"""The public names: each leads somewhere, and none costs anything before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import memfs


def test_every_public_name_leads_somewhere() -> None:
    """Whatever memfs lists can be imported from it, and is what it is called."""
    for name in memfs.__all__:
        value = getattr(memfs, name)
        assert getattr(value, "__name__", name) == name
    assert dir(memfs) == memfs.__all__
    with pytest.raises(AttributeError, match="MemoryCordinator"):
        _ = memfs.MemoryCordinator


def test_importing_memfs_loads_nothing_else() -> None:
    """import memfs loads no part; a class for agents loads no optional package and no search engine."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "import memfs\n"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('memfs')))\n"
        "memfs.MemoryCoordinator, memfs.MemoryContext, memfs.MultiLayeredMemorySystem\n"
        "print(sorted({'httpx', 'numpy', 'onnxruntime', 'whoosh', 'watchdog', 'git', 'asyncio'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['memfs']\n[]\n"

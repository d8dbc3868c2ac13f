"""The public names: each leads somewhere, and none costs anything before it is used."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import pytest

import memfs
from memfs import errors, seeds


def test_every_public_name_leads_somewhere() -> None:
    """Whatever memfs lists can be imported from it, and is what it is called."""
    for name in memfs.__all__:
        value = getattr(memfs, name)
        assert getattr(value, "__name__", name).rpartition(".")[2] == name
    assert dir(memfs) == memfs.__all__
    with pytest.raises(AttributeError, match="MemoryCordinator"):
        _ = memfs.MemoryCordinator


def test_the_entrance_comes_first() -> None:
    """What a person needs at first is listed, and the rest is where the help says: errors, and the seeds' names."""
    assert len(dir(memfs)) < 20
    assert {"open_workspace", "Workspace", "MemoryItem", "Query", "MemfsError", "seeds"} <= set(dir(memfs))
    shown = pydoc.plain(pydoc.render_doc(memfs))
    assert shown.index("open_workspace") < shown.index("remember") < shown.index("PACKAGE CONTENTS")
    verbs = [name for name in vars(memfs.Workspace) if not name.startswith("_")]
    assert {"remember", "recall", "get", "list", "update", "forget", "commit"} <= set(verbs)


def test_the_seeds_names_are_vocabularies_that_memfs_has_too() -> None:
    """Each name of a vocabulary is described there, and is the same thing when it is imported from memfs."""
    for name in seeds.__all__:
        value = getattr(seeds, name)
        assert getattr(value, "__name__", name) == name
        assert getattr(memfs, name) is value
        assert f"``{name}``" in (seeds.__doc__ or "")
    assert dir(seeds) == seeds.__all__
    assert memfs.Conflict is errors.Conflict
    with pytest.raises(AttributeError):
        _ = seeds.Workspace


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

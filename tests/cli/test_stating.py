"""What status and reindex say of a multi-agent system's state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memfs import ContextMemory

from .conftest import Memfs

_CODE = """
import sys
from memfs.doors.cli.app import run
run(sys.argv[1:])
print([name for name in sys.modules if name.startswith(("memfs.state", "memfs.search.state_index"))], file=sys.stderr)
"""


@pytest.mark.parametrize("words", [("status",), ("remember", "a text"), ("recall", "text")])
def test_a_workspace_without_state_is_spared_its_machinery(root: Path, words: tuple[str, ...]) -> None:
    """No command loads what keeps states where there are none, or says anything of them (K4)."""
    command = [sys.executable, "-c", _CODE, "-C", str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "iterations" not in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_status_and_reindex_count_iterations_and_documents(root: Path, memfs: Memfs) -> None:
    """The open iteration and the number of documents are reported, also after the index was made again (S12, S13)."""
    with ContextMemory(root) as memory:
        memory.start_iteration(3)
        memory.store_agent_output({"agent_type": "Ranking", "task_id": "t"})
    expected = {"iterations": 1, "archived": 0, "open": 3, "documents": 2}
    assert memfs("status", "--json").json["states"] == expected
    assert "iterations 1, number 3 is open; 2 documents" in memfs("status").out
    assert memfs("admin", "reindex", "--json").json["state_documents"] == 2
    assert memfs("status", "--json").json["states"] == expected


def test_iterations_that_are_all_archived_are_still_counted(root: Path, memfs: Memfs) -> None:
    """Where no iteration is left in the tree, status goes on counting them (S15)."""
    with ContextMemory(root) as memory:
        memory.start_iteration(1)
        memory.close_iteration(1)
        memory.workspace.states.archiver.run(active_days=0)
    assert not any((root / "ContextMemory" / "iterations").rglob("*.json"))
    assert memfs("status", "--json").json["states"]["archived"] == 1

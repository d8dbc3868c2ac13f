"""Exports and imports that are cut short: by a full disk, by kill -9."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.errors import MemfsError, StorageFull
from memfs.fs import io
from memfs.model import MemoryItem
from memfs.state.transfer import export_query, import_memories
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
FACTS = 12
KILLED = """
import os, signal, sys
from memfs.fs import io
from memfs.state import transfer
from memfs.workspace import open_workspace

root, file, stop = sys.argv[1], sys.argv[2], int(sys.argv[3])
transfer._BATCH = 4
workspace = open_workspace(root, watch=False, settings={"history.commit": "manual", "index.engine": "memory"})
seen = 0

def hook(name, path):
    global seen
    seen += 1
    if seen == stop:
        os.kill(os.getpid(), signal.SIGKILL)

io.set_hook(hook)
transfer.import_memories(workspace.parts, workspace.store, file)
io.set_hook(None)
print(seen)
"""


def fill(workspace: Workspace) -> None:
    """Twelve memories."""
    with workspace.store.batch("Fill") as batch:
        for number in range(FACTS):
            batch.put(MemoryItem(f"Service {number} listens on port {number}.", "knowledge", id=f"fact-{number}"))


def export(workspace: Workspace, target: Path, **more: bool) -> None:
    """All memories, in a file."""
    workspace.states.exporter.export(target, query=export_query(["memory"]), **more)


def documents(workspace: Workspace) -> dict[str, bytes]:
    """The memories of a workspace."""
    top = workspace.root / "ContextMemory/memories"
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*.yaml")}


def test_an_export_is_whole_or_not_there(opened: Open, tmp_path: Path) -> None:
    """Whichever operation the disk refuses, the file under that name is the old one or the whole new one (S19)."""
    workspace = opened()
    fill(workspace)
    target = tmp_path / "out" / "state.jsonl"
    target.parent.mkdir()
    export(workspace, target)
    whole = target.read_bytes()
    stop, tried = 0, 0
    while True:
        stop, seen = stop + 1, 0
        target.write_bytes(b"old")

        def refuse(name: str, path: str, stop: int = stop) -> None:
            nonlocal seen
            if str(target.parent) in path:
                seen += 1
                if seen == stop:
                    raise OSError(errno.ENOSPC, "No space left on device")

        before = io.set_hook(refuse)
        try:
            export(workspace, target, replace=True)
        except StorageFull:
            tried += 1
        finally:
            io.set_hook(before)
        assert target.read_bytes() in (b"old", whole)
        assert os.listdir(target.parent) == ["state.jsonl"]
        if seen < stop:
            break
    assert tried >= 4
    assert target.read_bytes() == whole


def test_leftovers_of_a_killed_export_are_swept(opened: Open, tmp_path: Path) -> None:
    """The next export to the same place removes what a killed one left beside it."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f".state.jsonl.{gone.pid}.tmp"
    left.write_bytes(b"half")
    workspace = opened()
    workspace.states.exporter.export(tmp_path / "state.jsonl")
    assert not left.exists()


@pytest.mark.faults
def test_an_import_killed_anywhere_is_taken_up_again(
    opened: Open, tmp_path: Path, scale: Callable[[int, int], int], forked: Path
) -> None:
    """After kill -9, each batch is there whole or not at all, and importing again stores exactly the rest (S19)."""
    first = opened(tmp_path / "first")
    fill(first)
    file = tmp_path / "state.jsonl"
    export(first, file)
    wanted = documents(first)
    points = scale(2, 40)
    total = 0
    for turn in range(points + 1):
        root = tmp_path / f"second-{turn}"
        opened(root).close()
        stop = turn * total * 9 // (10 * points) if turn else 10**9  # the number of operations varies a little
        command = [str(forked), "-c", KILLED, str(root), str(file), str(max(stop, 1))]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if not turn:
            assert ran.returncode == 0, ran.stderr
            total = int(ran.stdout)
            continue
        assert ran.returncode == -signal.SIGKILL
        again = opened(root)
        there = documents(again)
        assert len(there) in (0, 4, 8, 12)
        assert there.items() <= wanted.items()
        done = import_memories(again.parts, again.store, file)
        assert done.same == len(there)
        assert documents(again) == wanted


def test_an_import_at_a_full_disk_stores_nothing_half(opened: Open, tmp_path: Path) -> None:
    """A refused write is an error that says how to go on; the memories there are whole ones (S19)."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    fill(first)
    file = tmp_path / "state.jsonl"
    export(first, file)
    wanted = documents(first)

    def refuse(name: str, path: str) -> None:
        if name in ("rename", "link"):
            raise OSError(errno.ENOSPC, "No space left on device")

    before = io.set_hook(refuse)
    try:
        with pytest.raises(MemfsError, match="try again"):
            import_memories(second.parts, second.store, file)
    finally:
        io.set_hook(before)
    assert documents(second).items() <= wanted.items()
    import_memories(second.parts, second.store, file)
    assert documents(second) == wanted

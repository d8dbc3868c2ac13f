"""Many writers and a person at once: nothing acknowledged is missing (faults rows 36, 46; design section 8)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryItem
from memfs.workspace import Workspace, open_workspace

pytestmark = pytest.mark.faults
Opened = Callable[..., Workspace]
Git = Callable[..., str]

WRITER = """
import sys
from memfs import MemoryItem, Origin, open_workspace
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = {"history.commit": "interval", "history.interval_seconds": 0.2, "index.engine": "memory"}
with open_workspace(root, watch=False, settings=settings) as workspace:
    for number in range(count):
        item = MemoryItem(f"{name} says {number}", "knowledge", id=f"{name}-{number}", origin=Origin(agent=name))
        stored = workspace.store.put(item)
        print(stored.id, stored.sha256, flush=True)
"""


def start_writer(root: Path, name: str, count: int) -> subprocess.Popen[str]:
    """A process that stores items and prints each only after it was acknowledged."""
    command = [sys.executable, "-c", WRITER, str(root), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def committed(git: Git, root: Path, branches: list[str]) -> dict[str, set[str]]:
    """For each branch, the ids of the items in its tree."""
    return {
        branch: {
            Path(path).stem
            for path in git(root, "ls-tree", "-r", "--name-only", branch, "ContextMemory/memories").split()
        }
        for branch in branches
    }


def test_36_eight_writers_and_a_person_who_commits_and_checks_out(opened: Opened, git: Git, tmp_path: Path) -> None:
    """8 processes x 200 items while a ninth commits and checks out: everything acknowledged is in git afterwards."""
    workspace = opened()
    root = workspace.root
    git(root, "branch", "other")
    writers = [start_writer(root, f"agent{number}", 200) for number in range(8)]
    switches = commits = 0
    while any(writer.poll() is None for writer in writers):
        branch = "other" if switches % 2 == 0 else "main"
        done = subprocess.run(
            ["git", "-C", str(root), "checkout", "-q", branch], capture_output=True, text=True, check=False
        )
        switches += done.returncode == 0
        (root / "notes.txt").write_text(f"{time.time()}\n")
        done = subprocess.run(
            ["git", "-C", str(root), "commit", "-qm", "by a person", "notes.txt"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            subprocess.run(["git", "-C", str(root), "add", "notes.txt"], capture_output=True, check=False)
        commits += done.returncode == 0
        time.sleep(0.05)
    acknowledged = set()
    for writer in writers:
        out, err = writer.communicate()
        assert writer.returncode == 0, err
        acknowledged |= {line.split()[0] for line in out.splitlines()}
    assert len(acknowledged) == 1600
    flushed = workspace.store.flush(adopt=False)
    assert (flushed.waiting, flushed.reason) == (0, "")
    found = committed(git, root, ["main", "other"])
    assert acknowledged - (found["main"] | found["other"]) == set()
    assert switches > 3
    assert commits > 3
    git(root, "fsck", "--full", "--strict")
    ours = [line for line in git(root, "status", "--porcelain").splitlines() if "ContextMemory" in line]
    assert ours == []


def test_46_processes_that_write_one_item_get_one_winner_a_version(opened: Opened) -> None:
    """Two writing the same item get one winner and one Conflict, so that a counter loses nothing."""
    workspace = opened()
    workspace.store.put(MemoryItem("0", "knowledge", id="counter"))
    script = """
import sys
from memfs import Conflict, open_workspace
settings = {"history.commit": "manual", "index.engine": "memory"}
with open_workspace(sys.argv[1], watch=False, settings=settings) as workspace:
    done = 0
    while done < 25:
        item = workspace.store.get("counter")
        try:
            workspace.store.put(item.replace(content=str(int(item.content) + 1)), expected=item.sha256)
            done += 1
        except Conflict:
            pass
"""
    writers = [subprocess.Popen([sys.executable, "-c", script, str(workspace.root)]) for _ in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    item = workspace.store.get("counter")
    assert item is not None
    assert item.content == "100"


def _write_until_killed(root: str, writing: int) -> None:
    settings = {"history.commit": "interval", "history.interval_seconds": 0.01, "index.engine": "memory"}
    workspace = open_workspace(root, watch=False, settings=settings)
    number = 0
    while True:
        number += 1
        name = f"p{os.getpid()}-{number % 7}"
        stored = workspace.store.put(MemoryItem(f"value {number}", "knowledge", id=name))
        os.write(writing, f"{stored.id} {number}\n".encode())


@pytest.mark.parametrize("rounds", [40])
def test_21_killed_at_random_moments_nothing_acknowledged_is_lost(opened: Opened, git: Git, rounds: int) -> None:
    """kill -9 while writing and committing: the last acknowledged version of every item is there (faults row 21)."""
    workspace = opened()
    root = workspace.root
    context = multiprocessing.get_context("fork")
    last: dict[str, int] = {}
    for _ in range(rounds):
        reading, writing = os.pipe()
        process = context.Process(target=_write_until_killed, args=(str(root), writing))
        process.start()
        os.close(writing)
        time.sleep(0.15 + 0.1 * (hash(process.pid) % 100) / 100)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with os.fdopen(reading) as acknowledged:
            for line in acknowledged:
                if line.endswith("\n"):
                    name, number = line.split()
                    last[name] = int(number)
    assert last
    fresh = opened(root)
    for name, number in last.items():
        item = fresh.store.get(name)
        assert item is not None, name
        assert int(item.content.split()[1]) in (number, number + 7), name
    assert fresh.store.flush(adopt=False).reason == ""
    assert git(root, "status", "--porcelain") == ""
    git(root, "fsck", "--full", "--strict")
    assert [path.name for path in root.rglob("*.tmp")] == []

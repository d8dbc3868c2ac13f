"""Interrupted by signals, or for want of memory: no half item, no lock, no lost acknowledgement (faults row 32)."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit import aftermath
from kit.beginning import Beginning, fast_folder
from kit.nursery import Job, Nursery
from kit.script import FIRST, State, allowed, scripted

pytestmark = pytest.mark.faults

CGROUP = Path("/sys/fs/cgroup/memory")
LONGEST_DELAY = 0.02
HOG = """
import sys
from memfs import MemoryItem, open_workspace
with open_workspace(sys.argv[1], watch=False) as workspace:
    kept = []
    for number in range(10000):
        workspace.store.put(MemoryItem(f"before memory ran out {number}", "knowledge", id=f"hog-{number}"))
        print(f"hog-{number}", flush=True)
        kept.append(bytearray(1 << 20))
"""


@pytest.fixture
def beginning(tmp_path: Path) -> Iterator[Beginning]:
    """A workspace to begin with."""
    with fast_folder(tmp_path) as folder:
        yield Beginning(folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_32_asked_to_stop_in_the_middle_of_a_write(
    beginning: Beginning, number: signal.Signals, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """A program that is asked to stop while it writes leaves no lock and no half item, and nothing is lost (row 32)."""
    rng = random.Random(number)
    state: State = FIRST
    rounds = scale(10, 500)
    acknowledged = 0
    with Nursery() as nursery:
        for _ in range(rounds):
            steps = scripted(state, rng, 20)
            writer = nursery.start(Job(root=beginning.root, steps=steps, settings={"history.commit": "each"}))
            writer.wait_until_done(rng.randint(0, 2))
            writer.is_over(LONGEST_DELAY * rng.random())
            writer.kill(number)
            done = writer.bury()
            found = aftermath.look(beginning.root).state
            assert found in allowed(state, steps, done)
            state = found
            acknowledged += done
    aftermath.assert_whole(beginning.root, state)
    figures(f"{number.name} while writing", points=rounds, acknowledged=acknowledged, lost=0, torn=0)


def test_32_killed_for_want_of_memory(beginning: Beginning, figures: Callable[..., None]) -> None:
    """The system kills a writer that has used up its memory: all it acknowledged is there (faults row 32)."""
    root = beginning.root
    with memory_limit(96 << 20) as join:
        hog = subprocess.Popen(
            [sys.executable, "-c", HOG, str(root)], stdout=subprocess.PIPE, text=True, preexec_fn=join
        )
        output, _ = hog.communicate()
    assert hog.returncode == -signal.SIGKILL
    acknowledged = output.split()
    assert acknowledged
    found = aftermath.look(root).state
    assert set(acknowledged) <= set(found)
    aftermath.assert_whole(root, found)
    figures("killed for want of memory", points=1, acknowledged=len(acknowledged), lost=0, torn=0)


@contextlib.contextmanager
def memory_limit(size: int) -> Iterator[Callable[[], None]]:
    """A group of processes that may use so much memory; gives what a new process calls to join it."""
    group = CGROUP / f"memfs-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(size))
    except OSError as error:
        pytest.skip(f"no group with a memory limit can be made: {error}")
    try:
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid())) and None
    finally:
        leave(group)


def leave(group: Path) -> None:
    """Remove a group of processes once its last one has gone."""
    for _ in range(200):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.02)

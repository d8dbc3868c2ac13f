"""memfs opens no socket, and works where there is no network at all (faults row 49)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults

SCRIPT = """
import os, sys
opened = []
ALLOWED = ("socket.gethostname",)  # a name for messages, from the kernel

def note(event, _):
    if event.startswith("socket.") and event not in ALLOWED:
        opened.append(event)

sys.addaudithook(note)
from memfs.doors.cli.app import run
for engine in {engines}:
    os.environ["MEMFS_INDEX_ENGINE"] = engine
    os.mkdir(engine)
    os.chdir(engine)
    for words in {verbs}:
        code = run(words)
        assert code in (0, 1), (engine, words, code)
    os.chdir("..")
assert opened == [], opened
print("silent")
"""
VERBS = [
    ["init", "W"],
    ["-C", "W", "remember", "one memory about parcels", "--id", "one"],
    ["-C", "W", "recall", "parcels"],
    ["-C", "W", "status"],
    ["-C", "W", "log"],
    ["-C", "W", "check"],
    ["-C", "W", "config"],
    ["-C", "W", "commit"],
    ["-C", "W", "forget", "one"],
    ["-C", "W", "restore", "--from", "HEAD~1"],
    ["-C", "W", "admin", "gc"],
    ["-C", "W", "admin", "reindex"],
]


def work(folder: Path, engines: tuple[str, ...], *before: str) -> subprocess.CompletedProcess[str]:
    """Run the verbs with each engine, in a process of their own that notes every socket."""
    command = (*before, sys.executable, "-c", SCRIPT.format(engines=engines, verbs=VERBS))
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=dict(os.environ))


def test_49_no_socket_is_opened(tmp_path: Path) -> None:
    """From init to maintenance Python reports not one use of a socket (faults row 49)."""
    done = work(tmp_path, ("whoosh", "sqlite", "memory"))
    assert (done.returncode, done.stdout.strip().endswith("silent")) == (0, True), done.stdout + done.stderr


def test_49_everything_works_without_a_network(tmp_path: Path) -> None:
    """In a namespace without any network, not even a loopback, the verbs do the same (faults row 49)."""
    unshare = shutil.which("unshare")
    words = () if os.geteuid() == 0 else ("-U", "-r")
    if unshare is None or subprocess.run([unshare, *words, "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces cannot be made here")
    done = work(tmp_path, ("whoosh",), unshare, *words, "-n")
    assert (done.returncode, done.stdout.strip().endswith("silent")) == (0, True), done.stdout + done.stderr

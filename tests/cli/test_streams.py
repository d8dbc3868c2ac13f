"""Streams that are closed or full end a command with a sentence, never with a traceback."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Memfs


def shell(root: Path, rest: str) -> subprocess.CompletedProcess[str]:
    """Run ``memfs -C W`` with the rest of a shell line."""
    line = f"{shlex.quote(sys.executable)} -m memfs -C {shlex.quote(str(root))} {rest}"
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("verb", ["list", "list --json", "status", "show x"])
def test_a_full_disk_under_the_output_is_one_line(root: Path, memfs: Memfs, verb: str) -> None:
    """Output that cannot be written is a refusal that says why."""
    memfs("remember", "a text", "--id", "x")
    done = shell(root, f"{verb} >/dev/full")
    assert done.returncode == 1
    assert "memfs: the output cannot be written: No space left on device" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_closed_output_is_quiet(root: Path, memfs: Memfs) -> None:
    """A closed output is not wanted: the command does its work and says nothing."""
    done = shell(root, "status >&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert shell(root, "remember kept --id kept >&- 2>&-").returncode == 0
    assert memfs("show", "kept", "--json").json["content"] == "kept"


@pytest.mark.parametrize("rest", ["remember - <&-", "import - <&-", "import --from memfs - <&-"])
def test_an_input_that_cannot_be_read_is_one_line(root: Path, rest: str) -> None:
    """A closed standard input is a refusal."""
    done = shell(root, rest)
    assert done.returncode == 1
    assert done.stderr.startswith("memfs: standard input cannot be read: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_closed_input_is_nobody_to_ask(root: Path, tmp_path: Path) -> None:
    """Verbs that would ask a person take a closed input for a script."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    done = shell(root, f"init {shlex.quote(str(tmp_path / 'project'))} <&-")
    assert done.returncode == 0, done.stderr
    assert "Go ahead?" not in done.stderr

"""Tracing: faults injected into the system calls of a running writer, by strace.

The writer is attached to when its workspace is open, so that calls are counted from the beginning of its first step,
not of its process.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.nursery import Writer

CALLS = (
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "mkdirat",
    "renameat",
    "renameat2",
    "linkat",
    "unlinkat",
    "close",
)
_CHANGING = {*CALLS} - {"openat", "close"}
_LINE = re.compile(r"^(?:\d+ +)?(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>.*)$")


@dataclass(frozen=True, slots=True)
class Call:
    """One system call: its name, its arguments as strace shows them (descriptors with their paths), its result."""

    name: str
    arguments: str
    result: str

    @property
    def injected(self) -> bool:
        """Whether the fault was here."""
        return "(INJECTED)" in self.result

    @property
    def reports(self) -> bool:
        """Whether the writer speaks to the test here, which is no business of memfs's."""
        return "<pipe:" in self.target

    @property
    def changes(self) -> bool:
        """Whether the call can change the disk."""
        return self.name in _CHANGING or (self.name == "openat" and "O_CREAT" in self.arguments)

    @property
    def target(self) -> str:
        """The descriptor with its path that the call was given first, as ``7</path>``."""
        return self.arguments.partition(">")[0] + ">"


def require() -> None:
    """Skip the test where strace cannot be used."""
    reason = _why_not()
    if reason:
        pytest.skip(reason)


@functools.cache
def _why_not() -> str:
    if shutil.which("strace") is None:
        return "system calls are injected into with strace, which is not installed"
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with attached(child.pid, Path("/dev/null"), ""):
            child.kill()  # strace ends with what it traces
    except OSError as error:
        return f"strace may not attach to a process here: {error}"
    finally:
        child.kill()
        child.communicate()
    return ""


@contextmanager
def attached(pid: int, log: Path, fault: str) -> Iterator[None]:
    """Trace a process and its threads until it ends; the block runs once strace is in place.

    Args:
        fault: as in ``fsync:error=EIO:when=3`` or ``write:signal=SIGKILL:when=1``; "" only records.

    Raises:
        OSError: strace may not attach.
    """
    words = ["strace", "-f", "-y", "-p", str(pid), "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    if fault:
        words += ["-e", f"inject={fault}"]
    tracer = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    line = tracer.stderr.readline()
    if "attached" not in line:
        tracer.communicate()
        raise OSError(line.strip())
    try:
        yield
    finally:
        tracer.communicate()


def traced(writer: Writer, log: Path, fault: str = "") -> tuple[int, list[Call]]:
    """Let a writer that waits go on under a fault; return how many steps it acknowledged, and its calls."""
    writer.wait_until_opened()
    with attached(writer.pid, log, fault):
        writer.go()
        done = writer.bury(may_be_refused=True)
    return done, calls(log)


def calls(log: Path) -> list[Call]:
    """The calls in a log of strace."""
    found = (_LINE.match(line) for line in log.read_text(encoding="utf-8", errors="replace").splitlines())
    return [Call(**match.groupdict()) for match in found if match]


def numbered(made: list[Call]) -> list[tuple[int, Call]]:
    """Each call, and the how manieth of its name it is: what strace counts by."""
    seen: Counter[str] = Counter()
    rows = []
    for call in made:
        seen[call.name] += 1
        rows.append((seen[call.name], call))
    return rows

"""Swapping: a folder and a link trade places, atomically, for as long as memfs works in it.

The attacker is another process, which makes the kernel call.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_EXCHANGE = 2
_ATTACK = """
import ctypes, os, sys
exchange = ctypes.CDLL(None, use_errno=True).renameat2
one, other = (os.fsencode(path) for path in sys.argv[1:])
print("ready", flush=True)
while True:
    exchange(-100, one, -100, other, 2)
    if os.getppid() == 1:
        break
"""


def can_exchange(folder: Path) -> bool:
    """Whether names can be exchanged in one step here."""
    one, other = folder / "one", folder / "other"
    one.mkdir()
    other.mkdir()
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
        return exchange(-100, os.fsencode(one), -100, os.fsencode(other), _EXCHANGE) == 0
    except AttributeError:
        return False
    finally:
        one.rmdir()
        other.rmdir()


@contextmanager
def swapping(folder: Path, link: Path) -> Iterator[None]:
    """While the block runs, a folder and a link to elsewhere trade places as fast as another process can."""
    command = (sys.executable, "-c", _ATTACK, str(folder), str(link))
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == b"ready\n"
        yield
    finally:
        os.kill(attacker.pid, signal.SIGKILL)
        attacker.wait()
        if attacker.stdout is not None:
            attacker.stdout.close()

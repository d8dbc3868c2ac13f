"""Orphans: the git of a process that was killed, still at work; and children that a program forks beside memfs.

A git that is late, a process that dies right after it has started one, and a child that lives on.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memfs.git import process as git


def late_git(folder: Path, verb: str) -> str:
    """A git that begins one verb late, as on a busy machine, and makes the file ``ended`` in ``folder`` afterwards."""
    program = folder / "late" / "git"
    program.parent.mkdir()
    ended = shlex.quote(str(folder / "ended"))
    late = f'if [ "$1" = {verb} ]; then sleep 0.3; trap ": > {ended}" EXIT; fi'
    program.write_text(f'#!/bin/sh\n{late}\n{git.git_program()} "$@"\n')
    program.chmod(0o755)
    return str(program)


def die_while(act: Callable[[], object], verb: str, program: str) -> None:
    """Do something in a child that dies as soon as it has given that git command all its input."""
    child = os.fork()
    if child == 0:
        finish = git.finish

        def die(process: subprocess.Popen[bytes], data: bytes, timeout: float) -> tuple[int, bytes, str]:
            if verb not in process.args:  # type: ignore[operator]
                return finish(process, data, timeout)
            assert process.stdin is not None
            process.stdin.write(data)
            process.stdin.close()
            os._exit(9)

        git.finish = die
        git.git_program = lambda: program  # type: ignore[assignment]
        with suppress(BaseException):
            act()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9, f"it never ran git {verb}"


def linger() -> Callable[[], None]:
    """Fork a child, as another thread of a program may at any moment; it lives until what is returned is called."""
    begun, end = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(begun[1], b".")
        os.close(end[1])  # so that it ends with us at the latest
        os.read(end[0], 1)
        os._exit(0)
    os.read(begun[0], 1)

    def ended() -> None:
        os.write(end[1], b".")
        for fd in (*begun, *end):
            os.close(fd)
        os.waitpid(child, 0)

    return ended

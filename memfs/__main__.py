"""``python -m memfs`` and the console script: hands over to the command line."""

from __future__ import annotations

import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

_HELP = frozenset({"-h", "--help"})
_INTERRUPTED = 130
_GARBAGE = 400_000
"""How many objects are made between two looks for garbage: most of what a command makes stays until it ends."""


def run() -> int:
    """Run the command line and return its exit code."""
    from memfs.doors.cli.app import run as command

    return command()


def _drive_merge(words: list[str]) -> int | None:
    """The exit code of a call of git's to the merge driver; None where it is not in git's form."""
    from memfs.doors.cli import merge_driver

    call = merge_driver.parse_call(words)
    try:
        return None if call is None else merge_driver.answer(call)
    except KeyboardInterrupt:  # as the command line has it
        return _INTERRUPTED


def main() -> None:
    """Run the command line and end the process with its exit code.

    The events of an agent's session, and git's calls to the merge driver, go straight to their doors: someone waits
    for each of them.
    """
    gc.set_threshold(_GARBAGE)
    if _HELP.isdisjoint(sys.argv):
        from memfs.doors.resident import client

        if (code := client.run_in_resident(sys.argv[1:])) is not None:
            sys.stderr.flush()
            os._exit(code)  # the resident's child printed everything
        from memfs.startup import import_sparingly

        import_sparingly()
    words = sys.argv[2 if sys.argv[1:3] == ["agent", "hook"] else 1 :]
    if words[:1] == ["hook"] and not any(word.startswith("-") and not word.startswith("--into=") for word in words):
        from memfs.doors.claude_code.hook import main as hook

        hook(words[1:])
    code = _drive_merge(words[1:]) if words[:1] == ["merge-driver"] else None
    if code is None:
        code = run()
    _end(0 if words[:1] == ["hook"] and not _HELP & set(words) else code)


def _end(code: int) -> NoReturn:
    """End the process at once: to take down the interpreter takes as long as to start it."""
    if _is_program() and ("threading" not in sys.modules or sys.modules["threading"].active_count() == 1):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    gc.freeze()  # an ending process needs no last look for garbage
    sys.exit(code)


def _is_program() -> bool:
    """Whether the interpreter was started as ``memfs`` or ``python -m memfs``, so that nothing runs after it."""
    frame: FrameType | None = sys._getframe(3)
    started = frame is not None and frame.f_code.co_filename
    if started != __file__ and os.path.basename(started or "") != "memfs":
        return False
    while frame is not None:
        if frame.f_code.co_name != "<module>" and frame.f_globals.get("__name__") != "runpy":
            return False
        frame = frame.f_back
    return True


if __name__ == "__main__":
    main()

"""Patience: limits of time that a busy machine does not decide.

A test waits here for what is meant to be in time, while what hangs is late for good. The hook of an agent's program
gets so much time that only what hangs is ever ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from concurrent import futures

import pytest

from memfs.recall import foreign

LONG = 60.0
"""So many seconds are nowhere needed: what takes them hangs."""
_PROGRAM = f"""
import sys
if "hook" in sys.argv:
    from memfs.doors.claude_code import hook
    hook._PATIENCE_SECONDS = {LONG}  # for its report
    for table in (hook.LIMITS, hook.DRAINS) if UNHURRIED else ():
        table.update(dict.fromkeys(table, {LONG}))
sys.argv[0] = "memfs"
from memfs.__main__ import main
main()
"""
UNHURRIED = (sys.executable, "-c", f"UNHURRIED = True{_PROGRAM}")
"""The command ``memfs``, for which a hook never is too late."""
IN_TIME = (sys.executable, "-c", f"UNHURRIED = False{_PROGRAM}")
"""The same with the limits of a hook, which is only given time to say that it took too long."""


def until(condition: Callable[[], object], seconds: float = LONG) -> bool:
    """Wait for a condition; whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def without_patience(patch: pytest.MonkeyPatch, *hanging: str) -> list[float]:
    """Let sources and reviewers answer whenever they like, but for those that hang, which are late at once.

    Returns:
        The limits for which callers would have waited, one for each time that they waited.
    """
    limits: list[float] = []

    def wait(calls: Mapping[str, futures.Future[object]], seconds: float) -> None:
        limits.append(seconds)
        late = futures.wait([call for name, call in calls.items() if name not in hanging], LONG)
        assert not late.not_done

    patch.setattr(foreign, "wait", wait)
    return limits

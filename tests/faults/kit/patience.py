"""Patience: limits of time that a busy machine does not decide.

Owns how a test waits for what is meant to be in time, while what hangs is late for good, and the hook of an agent's
program with so much time that only what hangs is ever ended.
"""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait as wait_for
from types import SimpleNamespace
from typing import Any

import pytest

from memfs.context import isolation
from memfs.context.isolation import ForeignCall
from memfs.recall import review

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
UNHURRIED_PROGRAM = f"UNHURRIED = True{_PROGRAM}"
UNHURRIED = (sys.executable, "-c", UNHURRIED_PROGRAM)
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


def hear_out(patch: pytest.MonkeyPatch, *hanging: str) -> list[float]:
    """Let foreign sources answer whenever they like, but for those that hang, which are late at once.

    Returns:
        The limits for which callers would have waited, one for each time that they waited.
    """
    limits: list[float] = []

    def wait(calls: Sequence[ForeignCall], seconds: float) -> None:
        limits.append(seconds)
        awaited = [call.future for call in calls if call.future and call.name not in hanging]
        assert not wait_for(awaited, LONG).not_done

    patch.setattr(isolation, "wait", wait)
    return limits


def hear_first(patch: pytest.MonkeyPatch, count: int) -> None:
    """Let so many reviewers answer whenever they like; for the others the limit holds."""

    class Told(queue.SimpleQueue[Any]):
        heard = 0

        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            self.heard += 1
            return super().get(block, LONG if self.heard <= count else timeout)

    patch.setattr(review, "queue", SimpleNamespace(SimpleQueue=Told, Empty=queue.Empty))

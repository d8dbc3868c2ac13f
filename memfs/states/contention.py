"""Contention: a write that others may outdate, tried again until it holds.

Owns for how long, and with which pauses. What is read and written at each try, it does not know.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import random
from typing import TypeVar

from memfs.errors import Conflict

_PATIENCE = 30.0
_PAUSE = 0.004
_LONGEST_PAUSE = 0.1

Result = TypeVar("Result")


def settled(attempt: Callable[[], Result], patience: float = _PATIENCE) -> Result:
    """What an attempt gives that was not outdated by others.

    Args:
        attempt: reads what is there anew each time, and raises ``Conflict`` where somebody was quicker.
        patience: the seconds for which it is tried again, with growing random pauses in between.

    Raises:
        Conflict: others never stopped changing the document.
    """
    until = time.monotonic() + patience
    tries = 0
    while True:
        try:
            return attempt()
        except Conflict as error:
            if time.monotonic() >= until:
                message = f"others keep changing the document: {error.message}"
                raise Conflict(message, path=error.path, hint="try again") from error
        tries += 1
        time.sleep(random() * min(_PAUSE * tries, _LONGEST_PAUSE))  # noqa: S311  no secret depends on it

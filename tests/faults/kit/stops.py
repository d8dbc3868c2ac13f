"""A fork that ends without a word before one of its disk operations, as a process that is killed there."""

from __future__ import annotations

import os
from collections.abc import Callable

from memfs.fs import io

_KILLED = 9


def killed_before(operation: int, act: Callable[[], object]) -> bool:
    """Carry something out in a fork that dies before its disk operation of this number, from 0; whether it died there.

    False says that it came to its end.
    """
    process = os.fork()
    if process == 0:
        left = iter(range(operation))

        def hook(name: str, path: object) -> None:
            if next(left, None) is None:
                os._exit(_KILLED)

        io.set_hook(hook)
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, _KILLED)
    return code == _KILLED

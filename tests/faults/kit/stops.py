"""Stops: where an act is stopped, and a fork that ends before one of its disk operations, as one that is killed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from memfs.fs import io

_KILLED = 9


def far_apart(total: int) -> Iterator[int]:
    """The numbers from 1 to ``total``, each once, and the next always far from those before.

    Anyone who tries them until one shows a fault finds it soon, wherever in the act the faulty ones are.
    """
    bits = total.bit_length()
    for number in range(1 << bits):
        mirrored = int(f"{number:0{bits}b}"[::-1], 2)
        if 1 <= mirrored <= total:
            yield mirrored


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

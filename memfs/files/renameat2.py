"""A system call that Python does not offer: swapping two names.

Owns the foreign function call, and which errors mean that it cannot be done here.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any

CANNOT = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM})
_EXCHANGE = 2


@cache
def _call() -> Any:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def swap(source: str, target: str, folder: int) -> None:
    """Swap two names in the folder behind a descriptor.

    Raises:
        OSError: the system's reason; ``ENOSYS`` where it has no such call.
    """
    call = _call()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, os.fsencode(source), folder, os.fsencode(target), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)

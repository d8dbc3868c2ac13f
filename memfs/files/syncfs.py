"""A system call that Python does not offer: making one whole file system durable, and hearing whether it is.

Owns the foreign function call. ``os.sync`` waits for every disk there is, and never says that one of them refused.
"""

from __future__ import annotations

import os


def sync(folder: str) -> None:
    """Make durable all that was written so far to the file system of a folder.

    Raises:
        OSError: the system's reason. Where it has no such call, ``os.sync`` is made, which gives none.
    """
    import ctypes  # only a large batch needs it

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        os.sync()
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if call(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), folder)
    finally:
        os.close(fd)


def one_of_each(folders: set[str]) -> list[str]:
    """Of folders, some of which may be mounted from elsewhere, one on each file system; none of those that are gone."""
    found: dict[int, str] = {}
    for folder in sorted(folders):
        try:
            found.setdefault(os.stat(folder).st_dev, folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return list(found.values())

"""Out files: the file that an export makes, whole or not at all.

Owns where such a file may lie, and that it gets its name only when all of it is on the disk. Knows nothing of what it
holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memfs.errors import Conflict, MemfsError
from memfs.files import io
from memfs.store.parts import CONTENT

_HELD = 1 << 20


class Out:
    """Takes bytes and passes them on in large pieces."""

    def __init__(self, put: Callable[[bytes], object]) -> None:
        self._put = put
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes, /) -> None:
        """Take the next bytes."""
        self._held.append(data)
        self._size += len(data)
        if self._size >= _HELD:
            self.flush()

    def flush(self) -> None:
        """Pass on what was taken."""
        data, self._held, self._size = b"".join(self._held), [], 0
        if data:
            self._put(data)


@contextmanager
def out_file(root: str | os.PathLike[str], target: Path, replace: bool) -> Iterator[Out]:
    """A file to write into; after an error, and after a kill, what lay under its name is as it was.

    Args:
        root: the workspace, among whose documents it must not lie.
        replace: whether it may take the place of another file.

    Raises:
        Conflict: something is there, or it is no place for it.
        StorageIO: it cannot be written.
    """
    _require_place(root, target, replace)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    io.sweep(target.parent, f".{target.name}.")
    io.unlink(temporary, missing_ok=True)
    with io.operation("open", target):
        fd = io.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        out = Out(lambda data: io.write_all(fd, data, str(target)))
        yield out
        out.flush()
        io.fsync(fd, str(target))
        _require_place(root, target, replace)
        io.rename(str(temporary), str(target))
    finally:
        os.close(fd)
        with suppress(MemfsError):
            io.unlink(temporary, missing_ok=True)
    io.sync_folder(target.parent)


def _require_place(root: str | os.PathLike[str], target: Path, replace: bool) -> None:
    if target.resolve().is_relative_to((Path(root) / CONTENT).resolve()):
        raise Conflict(
            "an export must not lie among the documents", path=str(target), hint=f"name a file outside {CONTENT}/"
        )
    if os.path.lexists(target) and (not replace or not target.is_file()):
        hint = "choose another name, or replace it on purpose (--replace)" if target.is_file() else "name a file"
        raise Conflict("something is there already", path=str(target), hint=hint)

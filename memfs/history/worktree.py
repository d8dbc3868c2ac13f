"""What the working files of a workspace hold, as git blob ids, for comparison with history.

Owns reading working files safely: folders are walked by descriptor, links never followed, nothing but regular files
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from memfs.errors import ItemTooLarge, NotRegularFile
from memfs.files import io
from memfs.history.repository import Repository

LARGEST = 1 << 26


def working_files(repository: Repository, paths: tuple[str, ...]) -> dict[str, bytes]:
    """The content of every regular file at or below some workspace paths."""
    top = os.open(repository.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return dict(found for path in paths for found in _below(top, path))
    finally:
        os.close(top)


def _below(top: int, path: str) -> Iterator[tuple[str, bytes]]:
    *folders, name = path.split("/")
    fd = os.dup(top)
    try:
        for folder in folders:
            inner = io.open_file(folder, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = inner
        content = _read(fd, name, path)
        if content is not None:
            yield path, content
            return
        for folder, _, names, folder_fd in os.fwalk(name, dir_fd=fd, follow_symlinks=False):
            where = path + folder.removeprefix(name)
            for entry in sorted(names):
                content = _read(folder_fd, entry, f"{where}/{entry}")
                if content is not None:
                    yield f"{where}/{entry}", content
    except (FileNotFoundError, NotRegularFile):
        return
    finally:
        os.close(fd)


def _read(folder: int, name: str, path: str) -> bytes | None:
    try:
        fd = io.open_file(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
    except (FileNotFoundError, NotRegularFile):
        return None
    try:
        return io.read_regular(fd, path, LARGEST)
    except (NotRegularFile, ItemTooLarge):
        return None
    finally:
        os.close(fd)

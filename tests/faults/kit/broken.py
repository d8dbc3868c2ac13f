"""Broken variants: memfs with one of its safeguards taken out.

Each variant is a patch that lasts as long as a ``with`` block. A tier proves nothing unless it catches the variants
made for it, so each tier is run against them first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

from memfs.fs import io
from memfs.fs.journal import Journal, Operation
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.model import Stamp
from memfs.store import write
from memfs.store.write import FileWriter

Patches = Callable[[], list[Any]]


def _no_fsync() -> list[Any]:
    """Nothing is ever made durable."""
    return [mock.patch.object(io, name, return_value=None) for name in ("fsync", "fdatasync", "sync_everything")]


def _journal_only() -> list[Any]:
    """The journal is made durable, files and git objects are not."""
    return [mock.patch.object(io, "fsync", return_value=None)]


def _no_journal() -> list[Any]:
    """Writes are remembered in memory only, until their commit."""

    def append(self: Journal, operations: Sequence[Operation], came: bool = False) -> None:
        del came
        self._ready()
        for operation in operations:
            self._add(operation)

    return [mock.patch.object(Journal, "append", append)]


def _early_ack() -> list[Any]:
    """The store says done before it has begun: each write is carried out when the next one comes."""
    real = FileWriter.carry_out
    waiting: list[Callable[[], object]] = []

    def carry_out(self: FileWriter, *arguments: Any, **named: Any) -> dict[str, Stamp]:
        while waiting:
            waiting.pop()()
        waiting.append(lambda: real(self, *arguments, **named))
        return {}

    return [mock.patch.object(FileWriter, "carry_out", carry_out)]


def _in_place() -> list[Any]:
    """Files are overwritten in place, without a temporary name."""

    def write(self: Tree, path: str, data: bytes, *, durable: bool = True, over: str | None = None) -> Stamp:
        self.make_folders(path.rpartition("/")[0])
        with self._folder_of(path) as (folder, name):
            fd = io.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=folder)
            try:
                io.write_all(fd, data, path)
            finally:
                os.close(fd)
        return self.read(path, 1 << 30).stamp

    return [mock.patch.object(Tree, "write", write)]


def _no_recovery() -> list[Any]:
    """What a dead process left half done stays as it is."""
    places = ((FileWriter, "recover"), (write, "redo_all"))
    return [mock.patch.object(owner, name, return_value=[]) for owner, name in places]


def _errors_swallowed() -> list[Any]:
    """A disk that refuses to make things durable is not believed."""

    def fsync(fd: int, path: str) -> None:
        with suppress(OSError):
            os.fsync(fd)

    return [mock.patch.object(io, name, fsync) for name in ("fsync", "fdatasync")]


def _short_writes() -> list[Any]:
    """A write that stopped early is taken for a whole one."""

    def write_all(fd: int, data: bytes, path: str) -> None:
        with io.operation("write", path):
            os.write(fd, data)

    return [mock.patch.object(io, "write_all", write_all)]


def _no_lock() -> list[Any]:
    """Nobody waits for anybody."""

    @contextmanager
    def hold(self: FileLock, purpose: str, timeout: float = 30.0) -> Iterator[None]:
        yield

    return [mock.patch.object(FileLock, "hold", hold)]


VARIANTS: Mapping[str, Patches] = {
    "no fsync": _no_fsync,
    "only the journal synced": _journal_only,
    "no journal": _no_journal,
    "early acknowledgement": _early_ack,
    "written in place": _in_place,
    "no recovery": _no_recovery,
    "errors swallowed": _errors_swallowed,
    "short writes": _short_writes,
    "no lock": _no_lock,
}


@contextmanager
def in_force(name: str) -> Iterator[None]:
    """Run a block with one safeguard taken out; with "" memfs is as it is."""
    patches = VARIANTS[name]() if name else []
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()

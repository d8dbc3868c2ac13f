"""Known types: which classes a checkpoint's file may bring to life.

Owns this user's list of the types that their own graphs have saved. LangGraph imports and calls whatever a checkpoint
names; checkpoints lie in files, which come with a repository from anywhere. So only types are brought back that
LangGraph itself calls safe, or that a graph of this user has saved before. The list lies in the user's configuration
folder, where no clone reaches. What a serializer of the caller's own brings back is the caller's decision.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from memfs.errors import ContentError, MemfsError
from memfs.files import io
from memfs.trust import list_path

FILE = "langgraph-types.txt"
_MOST = 1 << 20
_LONGEST = 500
Name = tuple[str, str]
"""A module, and the name of a class in it."""

SAFE: frozenset[Name] = frozenset(
    [(one[0], one[1]) for one in SAFE_MSGPACK_TYPES] + [(one[0], one[1]) for one in SAFE_MSGPACK_METHODS]
)


class KnownTypes:
    """The types that this user's graphs have saved. May be used from several threads and processes."""

    def __init__(self, place: Callable[[], Path] = list_path) -> None:
        """``place``: names a file in the folder where the list lies."""
        self._place = place
        self._guard = threading.Lock()
        self._names: frozenset[Name] = frozenset()
        self._serde = JsonPlusSerializer(allowed_msgpack_modules=None)

    def note(self, names: Collection[Name]) -> None:
        """Remember types that a graph is about to save; a list that cannot be written counts for this process alone."""
        fresh = sorted(name for name in names if not self._knows(name))
        if not fresh:
            return
        lines = "".join(f"{module} {name}\n" for module, name in fresh if _is_sound(module, name))
        with suppress(MemfsError, OSError):
            self._append(lines)
        self._learn(frozenset(fresh))

    def serde_for(self, names: Collection[Name]) -> JsonPlusSerializer:
        """What brings values of these types to life.

        Raises:
            ContentError: one of them was never saved by this user; with how to allow it.
        """
        strange = [name for name in names if not self._knows(name)]
        if strange:
            self._learn(self._read())
            strange = [name for name in strange if not self._knows(name)]
        for module, name in strange:
            raise ContentError(
                f"the checkpoint holds an object of {module[:_LONGEST]}.{name[:_LONGEST]}, "
                "which no graph of this user has saved",
                hint="if you trust where the file comes from: MemfsSaver(path, serde=JsonPlusSerializer("
                f"allowed_msgpack_modules=[({module[:_LONGEST]!r}, {name[:_LONGEST]!r})]))",
            )
        return self._serde

    # -- internal -----------------------------------------------------------------------------------------------
    def _knows(self, name: Name) -> bool:
        return name in SAFE or name in self._names

    def _learn(self, names: frozenset[Name]) -> None:
        with self._guard:
            if names <= self._names:
                return
            self._names |= names
            self._serde = JsonPlusSerializer(allowed_msgpack_modules=tuple(self._names))

    def _append(self, lines: str) -> None:
        path = self._place().parent / FILE
        io.make_private_folder(path.parent)
        fd = io.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            io.write_all(fd, f"\n{lines}".encode(), str(path))  # the line before may have been cut
            io.fdatasync(fd, str(path))
        finally:
            os.close(fd)
        io.sync_folder(path.parent)

    def _read(self) -> frozenset[Name]:
        with suppress(MemfsError, OSError):
            return frozenset(_names(io.read_file(self._place().parent / FILE, _MOST)))
        return frozenset()


def _names(data: bytes) -> Iterator[Name]:
    for line in data.decode("utf-8", "replace").splitlines():
        module, _, name = line.partition(" ")
        if module and _is_sound(module, name):
            yield module, name


def _is_sound(module: str, name: str) -> bool:
    return all(part.isidentifier() for part in (*module.split("."), *name.split(".")))

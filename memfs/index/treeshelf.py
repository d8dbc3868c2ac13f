"""TreeShelf: the parts of the trees asked last, on disk.

Owns which of them are kept, and that one is believed only whole. It is a cache: where it cannot be read or written,
parts are made again.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io
from memfs.index.treepart import TreePart

KEPT = 4
_SUFFIX = ".tree"
_LARGEST = 1 << 30
_YOUNG_NS = 3600 * 10**9
_FEW = 200
_SHARE = 0.1


class TreeShelf:
    """The kept parts of one repository. Shared by processes; not safe for several threads at once."""

    def __init__(self, folder: Path | None, made_by: str) -> None:
        """
        Args:
            folder: the repository's own in the user's cache; None keeps them in memory alone.
            made_by: names the rules by which they are made; others' are not found.
        """
        self._folder = folder
        self._made_by = made_by
        self._open: OrderedDict[str, TreePart] = OrderedDict()

    def exact(self, tree: str) -> TreePart | None:
        """The part that was kept for this tree."""
        return self._opened(self._name(tree))

    def near(self, files: Mapping[str, str], moment: int) -> TreePart | None:
        """A part that holds most of these files (path to mark); None where none holds nearly all.

        What a part of another tree lacks is made anew with each question: beyond some hundred files, or a tenth, a part
        of its own is the cheaper.
        """
        allowed = max(_FEW, int(len(files) * _SHARE))
        best, least = "", allowed + 1
        for name in self._names():
            part = self._opened(name)
            if part is not None:
                apart = len(files) + len(part) - 2 * len(part.numbers_in(files, moment))
                if apart < least:
                    best, least = name, apart
        return self._opened(best) if best else None

    def keep(self, tree: str, part: TreePart) -> None:
        """Keep a part; of those on disk the four that were asked last stay."""
        name = self._name(tree)
        self._remember(name, part)
        if self._folder is None:
            return
        with suppress(MemfsError, OSError):
            io.make_private_folder(self._folder)
            io.write_file(self._folder / name, part.pack(), durable=False)
            for old in (*self._listed()[KEPT:], *self._interrupted(self._folder)):
                io.unlink(self._folder / old, missing_ok=True)

    def _name(self, tree: str) -> str:
        return sha256(f"{self._made_by}\0{tree}".encode()).hexdigest()[:40] + _SUFFIX

    def _names(self) -> Iterator[str]:
        yield from dict.fromkeys([*self._open, *self._listed()[:KEPT]])

    def _listed(self) -> list[str]:
        """The names on disk, the one asked last first."""
        if self._folder is None:
            return []
        try:
            with os.scandir(self._folder) as entries:
                found = sorted((-_time(entry), entry.name) for entry in entries if entry.name.endswith(_SUFFIX))
        except OSError:
            return []
        return [name for _, name in found]

    @staticmethod
    def _interrupted(folder: Path) -> list[str]:
        """What a process that was killed has left of a part."""
        young = time.time_ns() - _YOUNG_NS
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name.startswith(".") and _time(entry) < young]

    def _opened(self, name: str) -> TreePart | None:
        part = self._open.get(name)
        if part is None and self._folder is not None:
            part = self._read(self._folder / name)
        if part is not None:
            self._remember(name, part)
        return part

    def _read(self, path: Path) -> TreePart | None:
        try:
            part = TreePart.unpack(io.read_file(path, _LARGEST))
            io.touch(path)
        except FileNotFoundError:
            return None
        except (MemfsError, OSError, ValueError, LookupError):
            with suppress(MemfsError, OSError):
                io.unlink(path, missing_ok=True)
            return None
        return part

    def _remember(self, name: str, part: TreePart) -> None:
        self._open[name] = part
        self._open.move_to_end(name)
        while len(self._open) > KEPT:
            self._open.popitem(last=False)


def _time(entry: os.DirEntry[str]) -> int:
    return entry.stat(follow_symlinks=False).st_mtime_ns

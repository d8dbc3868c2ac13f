"""Glancing: what changed in a folder since it was last listed, told from names and inodes alone.

Owns how long such a glance stands for a whole listing, and for which folders: those in which this process wrote a
moment ago, so that a question after each write need not ask for the facts about thousands of files. What a changed name
means, ``looking`` says.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io
from memfs.index.states import Folder

_SECONDS = 10.0
_MOST_FOLDERS = 64
_FINE_NS = 20_000_000
_COARSE_NS = 2_000_000_000


def settled(folder: Folder) -> bool:
    """Whether a folder was old enough when it was looked into that a later change shows in its times."""
    age = folder.checked - max(folder.mtime_ns, folder.ctime_ns)
    return age > (_FINE_NS if folder.mtime_ns % 1_000_000 else _COARSE_NS)


@dataclass(slots=True)
class _Listed:
    names: Mapping[str, int]
    facts: Folder
    until: float
    own: bool = False


class Glances:
    """The folders that one process listed lately. Its caller lets one thread in at a time."""

    def __init__(self, root: Path) -> None:
        """``root``: the workspace's."""
        self._root = root
        self._listed: OrderedDict[str, _Listed] = OrderedDict()

    def listed(self, folder: str, names: Mapping[str, int], facts: Folder) -> None:
        """Note what a whole listing found: the inodes by name; ``facts`` are from before it."""
        self._listed[folder] = _Listed(names, facts, time.monotonic() + _SECONDS)
        self._listed.move_to_end(folder)
        while len(self._listed) > _MOST_FOLDERS:
            self._listed.popitem(last=False)

    def wrote(self, folder: str) -> None:
        """Note that this process wrote in a folder: its times change, and nobody else need have been there."""
        if (kept := self._listed.get(folder)) is not None:
            kept.own = True

    def changed(self, folder: str, now: Folder) -> set[str] | None:
        """The names that came, went or lead to another file since the last look; None where only a listing tells.

        A file that was removed and made again may have the same inode: so a glance does for some seconds only.
        """
        kept = self._listed.get(folder)
        if kept is None or not kept.own or time.monotonic() > kept.until:
            return None
        if kept.facts[:3] == now[:3] and settled(kept.facts):
            return set()
        names: dict[str, int] = {}
        try:
            with io.operation("scan", folder), os.scandir(self._root / folder) as found:
                for entry in found:
                    name, inode = entry.name, entry.inode()
                    if name.startswith("."):
                        continue
                    if kept.names.get(name) != inode and entry.is_dir(follow_symlinks=False):
                        return None
                    names[name] = inode
        except MemfsError:
            return None
        different = {name for name, _ in names.items() ^ kept.names.items()}
        kept.names, kept.facts = names, now
        return different

"""FolderEvents: what changed below a folder, asked of Linux without a thread.

The kernel queues an event within the call that changes a file: whoever asks after a change finds it.
"""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memfs.fs import io
from memfs.fs.io import UNTOLD_TYPES, file_system

_MODIFY, _ATTRIB, _FROM, _TO, _CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 2, 4, 64, 128, 256, 512, 1024, 2048
_OVERFLOW, _IGNORED, _UNMOUNT = 0x4000, 0x8000, 0x2000
_OF_FOLDER = 0x40000000
_FOLDERS_CHANGED = _OVERFLOW | _IGNORED | _UNMOUNT | _DELETE_SELF | _MOVE_SELF | _OF_FOLDER
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_WANTED = _MODIFY | _ATTRIB | _FROM | _TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS | _NO_LINKS
_HEAD = struct.Struct("iIII")
_MOST = 1 << 16


class FolderEvents:
    """Events of all that lies below one folder, from now on.

    Attributes:
        doubt: why what is heard may not be all, "" where it can be relied on.
    """

    def __init__(self, top: Path) -> None:
        self._top = top
        self._fd = -1
        self._folders: dict[int, str] = {}
        self.doubt = ""
        self.begin()

    def fileno(self) -> int:
        """What to wait for; -1 where nothing will come."""
        return self._fd

    def begin(self) -> None:
        """Watch every folder that there is now; whoever looks at the files after this misses nothing."""
        self.close()
        kind = file_system(str(self._top))
        try:
            if kind in UNTOLD_TYPES:
                raise OSError(0, f"this file system ({kind}) does not tell what others change")
            self._fd = io.watch_descriptor()
            for folder in _folders(str(self._top)):
                with suppress(FileNotFoundError, NotADirectoryError):  # gone meanwhile: its parent's events say so
                    self._folders[io.add_watch(self._fd, folder, _WANTED)] = folder
            self.doubt = "" if self._folders else "there is no such folder"
        except OSError as error:
            self.doubt = error.strerror or str(error)
            self.close()

    def waiting(self) -> bool:
        """Whether there are events that nobody has read; costs one call of the system."""
        if self._fd < 0:
            return False
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def read(self) -> set[str] | None:
        """The paths of what changed since the last call; None where any file may have changed.

        After None the folders are watched as they are now.
        """
        paths: set[str] = set()
        whole = not self.doubt
        while self.waiting():
            for watch, mask, name in _parsed(os.read(self._fd, _MOST)):
                folder = self._folders.get(watch)
                if mask & _FOLDERS_CHANGED or folder is None:
                    whole = False
                elif name:
                    paths.add(os.path.join(folder, name))
        if whole:
            return paths
        self.begin()
        return None

    def close(self) -> None:
        """Stop listening. May be repeated."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._folders = -1, {}


def _parsed(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size + length
        yield watch, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))


def _folders(top: str) -> Iterator[str]:
    """The folder and all below it, each before what it holds is read; links are not followed."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        yield folder
        with suppress(OSError), os.scandir(folder) as entries:
            waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]

"""Places: reading the files of somebody else's store, whatever lies there.

Owns what is read at all: regular files of a bearable size, no link within a folder, and UTF-8. What a file means is the
business of the module of its format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from memfs.errors import ContentError, ItemSyntaxError, MemfsError, StorageIO
from memfs.files import io
from memfs.model.kinds import ITEM_LIMIT
from memfs.pipeline.arriving import Arrival

LARGEST = 64 << 20
_MOST_FILES = 10_000
_DEEPEST = 16
_PASSED_OVER = frozenset({"node_modules", "vendor", "__pycache__", "ContextMemory"})


@dataclass(frozen=True, slots=True)
class Skipped:
    """What is not taken in: where it stands, why, and whether a person had named it and should know."""

    where: str
    reason: str
    refused: bool = False


@dataclass(slots=True)
class Taken:
    """What a source holds: the memories found in it, and what was passed over.

    Attributes:
        whole: files, as the memories' facts name them, that were read from beginning to end.
        is_missing: whether a file that was there once is no longer.
    """

    arrivals: list[Arrival] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    is_missing: Callable[[str], bool] = lambda _: False

    def covers(self, file: str) -> bool:
        """Whether all that a file holds is among the memories: what is not, is there no longer."""
        return file in self.whole or self.is_missing(file)

    def skip(self, where: str, reason: str) -> None:
        """Note that something is not taken in."""
        self.skipped.append(Skipped(where, reason))

    def refuse(self, where: str, reason: str) -> None:
        """Note that something cannot be taken in that a person named."""
        self.skipped.append(Skipped(where, reason, refused=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A text file of a source: its name below what was named, "/" separated, its text, and when it was changed."""

    name: str
    path: Path
    text: str
    changed: datetime

    @property
    def stem(self) -> str:
        """The file's name without folder and ending."""
        return self.path.stem


def named(path: Path, limit: int = LARGEST) -> bytes:
    """The bytes of a file that a person named; a link is followed, as the person named it.

    Raises:
        StorageIO: it is not there, or cannot be read. NotRegularFile, ItemTooLarge.
    """
    try:
        return io.read_file(path, limit)
    except FileNotFoundError as error:
        raise StorageIO("cannot be read: it is not there", path=str(path), hint="name a file") from error


def decoded(data: bytes, name: str) -> str:
    """UTF-8 bytes as text with plain newlines.

    Raises:
        ItemSyntaxError: naming the line that is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ItemSyntaxError("not UTF-8 text", path=name, line=line, hint="save it as UTF-8") from error


def page(path: Path, name: str = "") -> Page:
    """A text file that a person named; or, with a name, one that was found in a folder: that is no link.

    Raises:
        StorageIO, NotRegularFile, ItemTooLarge, ItemSyntaxError.
    """
    data = _found(path) if name else named(path, ITEM_LIMIT)
    changed = datetime.fromtimestamp(int(io.facts(path).st_mtime), UTC)
    return Page(name=name or path.name, path=path, text=decoded(data, str(path)), changed=changed)


def _found(path: Path) -> bytes:
    fd = io.open_file(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        return io.read_regular(fd, str(path), ITEM_LIMIT)
    finally:
        os.close(fd)


def pages(folder: Path, wanted: Callable[[str], bool], taken: Taken) -> Iterator[Page]:
    """The text files of a folder whose name below it is wanted, in order; what cannot be read is noted as skipped.

    Links are not followed, nor is hidden, vendored or memfs's own looked into, but for ``.claude`` and ``.github``.

    Raises:
        ContentError: there are too many. StorageIO: the folder cannot be listed.
    """
    found = sorted(_files(folder, "", taken))
    chosen = [name for name in found if wanted(name)]
    if len(chosen) > _MOST_FILES:
        raise ContentError(f"{len(chosen):,} files, limit {_MOST_FILES:,}", path=str(folder), hint="import parts of it")
    for name in chosen:
        try:
            yield page(folder / name, name)
        except FileNotFoundError:
            taken.skip(name, "somebody took it away meanwhile")
        except MemfsError as error:
            where = f"{name}:{error.line}" if error.line else name
            taken.skip(where, error.message)


def _files(folder: Path, beneath: str, taken: Taken, depth: int = 0) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        if not depth:
            raise StorageIO(f"cannot be listed: {error.strerror}", path=str(folder), hint="name a folder") from error
        taken.skip(beneath, f"cannot be listed: {error.strerror}")
        return
    for entry in entries:
        name = f"{beneath}{entry.name}"
        if entry.is_symlink():
            if name.endswith(".md"):
                taken.skip(name, "a link; name the file itself to import it")
        elif name.endswith(".md") and not entry.is_dir(follow_symlinks=False) and not entry.is_file():
            taken.skip(name, "not a regular file")
        elif entry.is_dir(follow_symlinks=False):
            if not _is_passed_over(entry.name) and depth < _DEEPEST:
                yield from _files(folder / entry.name, f"{name}/", taken, depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield name


def _is_passed_over(name: str) -> bool:
    return name in _PASSED_OVER or (name.startswith(".") and name not in (".claude", ".github"))

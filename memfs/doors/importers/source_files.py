"""Read the files of another store, whatever they hold.

Only regular files of a bounded size in UTF-8 are read, and no link within a folder is followed; what is skipped is
reported.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memfs.dataclass import dataclass, field, replace
from memfs.errors import ContentError, ItemSyntaxError, MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.workspace_location import home
from memfs.intake.import_service import Arrival
from memfs.model import MemoryItem, Origin, Trust
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.time import parse_time

OWN_FILE = "CLAUDE.local.md"
FILES = ("AGENTS.md", "CLAUDE.md", OWN_FILE, "GEMINI.md", "copilot-instructions.md")
"""Files that agents read on their own."""
_RULES = re.compile(r"(?:^|/)\.claude/rules/.+\.md$")
_MOST_FILES = 10_000
_DEEPEST = 16
_PASSED_OVER = frozenset({"node_modules", "vendor", "__pycache__", "ContextMemory"})


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """What is not taken in.

    Attributes:
        where: its file, and its line or name there.
        reason: why.
        refused: whether a person had named it, and should know.
    """

    where: str
    reason: str
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """A text file of a source: its name below what was named, "/" separated, its text, and when it was changed."""

    name: str
    path: Path
    text: str
    changed: datetime

    @property
    def stem(self) -> str:
        """The file's name without folder and ending."""
        return self.path.stem


@dataclass(slots=True)
class SourceContent:
    """What a source holds: the memories found in it, and what was passed over.

    Attributes:
        tool: the name of its format.
        trust: that of what it holds.
    """

    tool: str = ""
    trust: Trust = Trust.HUMAN
    arrivals: list[Arrival] = field(default_factory=list)
    skipped: list[SkippedSource] = field(default_factory=list)

    def take(
        self,
        content: str,
        kind: str,
        *,
        where: str,
        key: str,
        name: str,
        facts: Mapping[str, Any],
        links: Iterable[tuple[str, str]] = (),
        origin: Origin = Origin(),  # noqa: B008  a frozen value
        **fields: Any,
    ) -> None:
        """Take a memory in, with those of its facts that say something; ``fields`` are further ones of the item."""
        told = {fact: value for fact, value in facts.items() if value}
        signed = replace(origin, tool=self.tool)
        item = MemoryItem(content, kind, origin=signed, trust=self.trust.value, **fields)
        self.arrivals.append(Arrival(key=key, name=name, item=item, where=where, links=tuple(links), facts=told))

    def pages(self, path: Path, wanted: Callable[[str], bool] = lambda name: name.endswith(".md")) -> list[SourcePage]:
        """The file that a person named, or what is wanted of a folder, see ``pages``."""
        return list(pages(path, wanted, self)) if path.is_dir() else [page(path)]

    def skip(self, where: str, reason: str, *, refused: bool = False) -> None:
        """Note that something is not taken in."""
        self.skipped.append(SkippedSource(where, reason, refused))


def page(path: Path, name: str = "") -> SourcePage:
    """A text file that a person named; or, with a name, one that was found in a folder: that is no link.

    Raises:
        FileNotFoundError: one that was found is gone.
        StorageIO, NotRegularFile, ItemTooLarge, ItemSyntaxError.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if name else 0)
    try:
        with io.descriptor(io.open_file(path, flags)) as fd:
            data = io.read_regular(fd, str(path), ITEM_LIMIT)
    except FileNotFoundError as error:
        if name:
            raise
        raise StorageIO("cannot be read: it is not there", path=str(path), hint="name a file") from error
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ItemSyntaxError("not UTF-8 text", path=str(path), line=line, hint="save it as UTF-8") from error
    changed = datetime.fromtimestamp(int(io.facts(path).st_mtime), UTC)
    return SourcePage(name=name or path.name, path=path, text=text, changed=changed)


def is_file_name(name: str) -> bool:
    """Whether a file of that name is one that agents read on their own."""
    return posixpath.basename(name) in FILES or bool(_RULES.search(name))


def refuse_whole(folder: Path) -> None:
    """Refuse a folder that is somebody's notes least of all: the whole file system, or a whole home.

    Raises:
        ContentError: it is one of these.
    """
    if folder.resolve() in (Path("/"), home().resolve()):
        what = "the whole file system" if folder.resolve() == Path("/") else "your whole home folder"
        hint = "name the folder of the notes, or single files; --dry-run shows what would be stored"
        raise ContentError(f"this is {what}", path=str(folder), hint=hint)


def pages(folder: Path, wanted: Callable[[str], bool], taken: SourceContent) -> Iterator[SourcePage]:
    """The text files of a folder whose name below it is wanted, in order; what cannot be read is noted as skipped.

    Links are not followed, nor is hidden, vendored or memfs's own looked into, but for ``.claude`` and ``.github``.

    Raises:
        ContentError: there are too many. StorageIO: the folder cannot be listed.
    """
    chosen = [name for name in sorted(_files(folder, "", taken)) if wanted(name)]
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


def _files(folder: Path, beneath: str, taken: SourceContent, depth: int = 0) -> Iterator[str]:
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


_LONGEST_TAG = 100
_MOST_TAGS = 50


def line_of(value: Any) -> str:
    """A value as one line of text; "" where it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).split())


def tags_of(values: Any) -> tuple[str, ...]:
    """A list, or one text, as tags."""
    parts = values if isinstance(values, list) else [values]
    return tuple(dict.fromkeys(tag for part in parts if (tag := line_of(part)[:_LONGEST_TAG])))[:_MOST_TAGS]


def moment(value: Any) -> Any:
    """A time that another store wrote, None where it cannot be understood."""
    try:
        return parse_time(value) if isinstance(value, str) and value else None
    except (ValueError, OverflowError):
        return None

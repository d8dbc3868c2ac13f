"""Change values in a JSON settings file of an agent's program.

Other values keep their place and what they say; the file keeps its indentation, line ends, encoding and byte order
mark. Links are followed to the real file, and the files of other users are left alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import ContentError, MemfsError, PathEscape, StorageIO, StorageReadOnly
from memfs.format import json_text
from memfs.fs import atomic_replace, io
from memfs.fs.workspace_location import home
from memfs.startup import Any

_BOM = b"\xef\xbb\xbf"
_FOLDER = ".claude"
Values = dict[str, Any]
Change = Callable[[Values], Values]
"""Makes the values that a file is to have of those it has, which it leaves as they are; without any the file goes."""


class InstallScope(StrEnum):
    """For whom something is installed."""

    PROJECT = "project"
    LOCAL = "local"
    USER = "user"


class FileResult(StrEnum):
    """What became of a file, or would."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """A file before and after a change.

    Attributes:
        path: where it is.
        before, after: its bytes; None where there is no file.
    """

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def done(self) -> FileResult:
        """What became of it, or would."""
        if self.before == self.after:
            return FileResult.SAME
        if self.before is None:
            return FileResult.CREATED
        return FileResult.DELETED if self.after is None else FileResult.CHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """One JSON settings file.

    Attributes:
        path: as a person names it.
        within: a link may lead no further than this folder; None for the person's own files, which may be anywhere.
    """

    path: Path
    within: Path | None = None

    def preview(self, change: Change) -> SettingsChange:
        """What a change would do; nothing is written.

        Raises:
            ContentError: it is no JSON object in UTF-8. PathEscape, NotRegularFile, ItemTooLarge, StorageIO.
            what the change raises.
        """
        place = self._place()
        data = atomic_replace.read(place) if place.parent.is_dir() else None
        return SettingsChange(path=self.path, before=data, after=self._after(data, change))

    def rewrite(self, change: Change) -> SettingsChange:
        """Change it in one step; what somebody else saves meanwhile is kept, and changed in its turn.

        Its folder is made where it is wanted, and goes with the file where nothing else is in it.

        Raises:
            StorageReadOnly: it is write-protected, or another user's.
            Conflict: somebody keeps saving it.
            what ``preview`` raises; then nothing was changed.
        """
        expected = self.preview(change)
        if expected.done is FileResult.SAME:
            return expected
        folder = self._place().parent
        made = _make(folder)
        try:
            changed = atomic_replace.rewrite(self._place, lambda data, place: self._planned(data, place, change))
        except BaseException:
            if made:
                _remove_if_empty(folder)
            raise
        if changed.done is FileResult.DELETED and folder.name == _FOLDER:
            _remove_if_empty(folder)
        return changed

    def _planned(self, data: bytes | None, place: Path, change: Change) -> tuple[bytes | None, SettingsChange]:
        after = self._after(data, change)
        if data is not None and after != data:
            found = io.facts(place)
            if found.st_uid != os.geteuid():
                raise StorageReadOnly("it belongs to another user", path=str(self.path), hint="install as that user")
            if not found.st_mode & stat.S_IWUSR:
                hint = "make it writable, or add the hooks where it is made; --dry-run shows them"
                raise StorageReadOnly("it is write-protected", path=str(self.path), hint=hint)
        return after, SettingsChange(path=self.path, before=data, after=after)

    def _after(self, data: bytes | None, change: Change) -> bytes | None:
        try:
            before = _values(data)
            after = change(before)
        except MemfsError as error:
            raise error.located(str(self.path)) from None
        if after == before:
            return data
        return _written(after, data) if after else None

    def _place(self) -> Path:
        """Where it really is.

        Raises:
            PathEscape: a link in a project leads out of it.
        """
        try:
            real = Path(os.path.realpath(self.path))
            inside = self.within is None or real.is_relative_to(os.path.realpath(self.within))
        except (ValueError, OSError):
            inside = False
        if not inside:
            hint = "make it a file of the project, or install with --user"
            raise PathEscape("a link leads out of the project", path=str(self.path), hint=hint)
        return real


def _values(data: bytes | None) -> Values:
    """What a file says; nothing where it is blank, or there is none."""
    try:
        text = (data or b"").removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ContentError("this is not UTF-8 text", line=line, hint="save it so") from None
    values = json_text.load(text, None) if text.strip(" \t\r\n") else {}
    if not isinstance(values, dict):
        raise ContentError("this is to be an object", line=1, hint="correct it, or remove it")
    return values


def _written(values: Values, like: bytes | None) -> bytes:
    """Values as a file has them, in the manner of what was in it."""
    before = (like or b"\n").decode()
    text = json_text.document(values, json_text.indentation(before))
    text = text if before.endswith("\n") else text.removesuffix("\n")
    mark = _BOM if before.startswith("\ufeff") else b""
    lines = text.replace("\n", "\r\n") if "\r\n" in before else text
    return mark + lines.encode(errors="backslashreplace")  # half a character is an escape in JSON, too


def _make(folder: Path) -> bool:
    """Make a file's folder, if only that is missing; whether that was needed.

    Raises:
        StorageIO: the folder above is not there, either.
    """
    if folder.is_dir():
        return False
    if not folder.parent.is_dir():
        hint = "start the program once, which makes it; or make the folder"
        raise StorageIO("its folder is not there", path=str(folder), hint=hint)
    made = io.mkdir(folder)
    io.sync_folder(folder.parent)
    return made


def _remove_if_empty(folder: Path) -> None:
    with suppress(MemfsError):  # something is in it, or somebody else looks after it
        io.rmdir(folder)


def user_folder() -> Path:
    """The folder in which Claude Code keeps what is a person's own."""
    named = os.environ.get("CLAUDE_CONFIG_DIR", "")
    return Path(named).expanduser() if named else home() / _FOLDER

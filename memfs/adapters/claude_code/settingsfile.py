"""Settings file: one JSON file of an agent's program on disk, as text.

Owns which file a scope means, where it really lies, its encoding and byte order mark, the folder it may need, and that
files of others are left alone. What stands in it, it does not know.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memfs.errors import ContentError, MemfsError, PathEscape, StorageIO, StorageReadOnly
from memfs.files import io, sharedfile
from memfs.home import home

_BOM = b"\xef\xbb\xbf"
_FOLDER = ".claude"
_FOLDERS = frozenset({_FOLDER, ".cursor", ".gemini", ".vscode"})
Change = Callable[[str | None], str | None]


class Scope(StrEnum):
    """For whom something is installed."""

    PROJECT = "project"
    LOCAL = "local"
    USER = "user"


class Done(StrEnum):
    """What became of a file, or would."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file before and after a change; None where there is none."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def done(self) -> Done:
        """What that amounts to."""
        if self.before == self.after:
            return Done.SAME
        if self.before is None:
            return Done.CREATED
        return Done.DELETED if self.after is None else Done.CHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """One such file.

    Attributes:
        path: as a person names it.
        within: a link may lead no further than this folder; None for the person's own files, which may lie anywhere.
    """

    path: Path
    within: Path | None = None

    def read(self) -> str | None:
        """Its text, None where there is none.

        Raises:
            ContentError: it is no UTF-8. PathEscape, NotRegularFile, ItemTooLarge, StorageIO.
        """
        data = self._bytes(self._place())
        return None if data is None else self._text(data)

    def preview(self, change: Change) -> Changed:
        """What a change would do; nothing is written.

        Raises:
            what ``read`` and the change raise.
        """
        data = self._bytes(self._place())
        return Changed(path=self.path, before=data, after=self._after(data, change))

    def refuse_protected(self) -> None:
        """Refuse to write a file that its owner keeps from being written.

        Raises:
            StorageReadOnly: it is write-protected, or another user's.
        """
        with suppress(FileNotFoundError):
            self._refuse_protected(self._place())

    def rewrite(self, change: Change) -> Changed:
        """Change it in one step; what somebody else saves meanwhile is kept, and changed in its turn.

        Its folder is made where it is wanted, and goes with the file where nothing else lies in it.

        Raises:
            StorageReadOnly: it is write-protected, or another user's.
            Conflict: somebody keeps saving it.
            what ``read`` and the change raise; then nothing was changed.
        """
        expected = self.preview(change)
        if expected.done is Done.SAME:
            return expected
        folder = self._place().parent
        made = self._make(folder)
        try:
            changed = sharedfile.rewrite(self._place, lambda data, place: self._planned(data, place, change))
        except BaseException:
            if made:
                _remove_if_empty(folder)
            raise
        if changed.done is Done.DELETED and folder.name in _FOLDERS:
            _remove_if_empty(folder)
        return changed

    # -- inner ----------------------------------------------------------------------------------------------------
    def _planned(self, data: bytes | None, place: Path, change: Change) -> tuple[bytes | None, Changed]:
        after = self._after(data, change)
        if data is not None and after != data:
            self._refuse_protected(place)
        return after, Changed(path=self.path, before=data, after=after)

    def _after(self, data: bytes | None, change: Change) -> bytes | None:
        try:
            after = change(None if data is None else self._text(data))
        except MemfsError as error:
            raise error.located(str(self.path)) from None
        if after is None:
            return None
        mark = _BOM if data is not None and data.startswith(_BOM) else b""
        return mark + after.encode()

    def _place(self) -> Path:
        """Where it really lies.

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

    @staticmethod
    def _bytes(place: Path) -> bytes | None:
        return sharedfile.read(place) if place.parent.is_dir() else None

    def _text(self, data: bytes) -> str:
        try:
            return data.removeprefix(_BOM).decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ContentError("this is no UTF-8 text", path=str(self.path), line=line, hint="save it so") from None

    def _refuse_protected(self, place: Path) -> None:
        found = io.facts(place)
        if found.st_uid != os.geteuid():
            raise StorageReadOnly("it belongs to another user", path=str(self.path), hint="install as that user")
        if not found.st_mode & stat.S_IWUSR:
            hint = "make it writable, or add the hooks where it is made; --dry-run shows them"
            raise StorageReadOnly("it is write-protected", path=str(self.path), hint=hint)

    @staticmethod
    def _make(folder: Path) -> bool:
        """Make its folder, if only that is missing; whether that was needed.

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


def carry_out(plan: Sequence[tuple[SettingsFile, Change]], dry: bool) -> tuple[Changed, ...]:
    """Change several files; all are looked at before the first is written.

    Raises:
        what ``SettingsFile.rewrite`` raises.
    """
    seen = [file.preview(change) for file, change in plan]
    if dry:
        return tuple(seen)
    for (file, _), one in zip(plan, seen, strict=True):
        if one.done is not Done.SAME:
            file.refuse_protected()
    return tuple(file.rewrite(change) for file, change in plan)


def _remove_if_empty(folder: Path) -> None:
    with suppress(MemfsError):  # something lies in it, or somebody else looks after it
        io.rmdir(folder)


# -- which file ---------------------------------------------------------------------------------------------------
def settings_file(scope: Scope, project: Path, environ: Mapping[str, str] | None = None) -> SettingsFile:
    """The settings of a scope: the project's, which its team shares; a person's own there; a person's own everywhere.

    Args:
        project: its folder.
        environ: the environment; ``CLAUDE_CONFIG_DIR`` names the folder of a person's own.
    """
    if scope is Scope.USER:
        return SettingsFile(path=user_folder(environ) / "settings.json")
    name = "settings.json" if scope is Scope.PROJECT else "settings.local.json"
    return SettingsFile(path=project / _FOLDER / name, within=project)


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder in which Claude Code keeps what is a person's own."""
    named = (os.environ if environ is None else environ).get("CLAUDE_CONFIG_DIR", "")
    return Path(named).expanduser() if named else home() / _FOLDER


def servers_file(project: Path) -> SettingsFile:
    """The file in which a project names its servers."""
    return SettingsFile(path=project / ".mcp.json", within=project)

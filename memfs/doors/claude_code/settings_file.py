"""Change values in the JSON settings files of an agent's program.

Other values in a file stay byte for byte, its encoding and byte order mark included. Links are followed to the real
file, and the files of other users are left alone.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import ContentError, MemfsError, PathEscape, StorageIO, StorageReadOnly
from memfs.format import json_text, plain
from memfs.format.plain import Node
from memfs.fs import atomic_replace, io
from memfs.fs.workspace_location import home
from memfs.startup import Any

_BOM = b"\xef\xbb\xbf"
_FOLDER = ".claude"
_FOLDERS = frozenset({_FOLDER, ".cursor", ".gemini", ".vscode"})
Change = Callable[[str | None], str | None]


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

    def read(self) -> str | None:
        """Its text, None where there is none.

        Raises:
            ContentError: it is no UTF-8. PathEscape, NotRegularFile, ItemTooLarge, StorageIO.
        """
        data = self._bytes(self._place())
        return None if data is None else self._text(data)

    def preview(self, change: Change) -> SettingsChange:
        """What a change would do; nothing is written.

        Raises:
            what ``read`` and the change raise.
        """
        data = self._bytes(self._place())
        return SettingsChange(path=self.path, before=data, after=self._after(data, change))

    def refuse_protected(self) -> None:
        """Refuse to write a file that its owner keeps from being written.

        Raises:
            StorageReadOnly: it is write-protected, or another user's.
        """
        with suppress(FileNotFoundError):
            self._refuse_protected(self._place())

    def rewrite(self, change: Change) -> SettingsChange:
        """Change it in one step; what somebody else saves meanwhile is kept, and changed in its turn.

        Its folder is made where it is wanted, and goes with the file where nothing else is in it.

        Raises:
            StorageReadOnly: it is write-protected, or another user's.
            Conflict: somebody keeps saving it.
            what ``read`` and the change raise; then nothing was changed.
        """
        expected = self.preview(change)
        if expected.done is FileResult.SAME:
            return expected
        folder = self._place().parent
        made = self._make(folder)
        try:
            changed = atomic_replace.rewrite(self._place, lambda data, place: self._planned(data, place, change))
        except BaseException:
            if made:
                _remove_if_empty(folder)
            raise
        if changed.done is FileResult.DELETED and folder.name in _FOLDERS:
            _remove_if_empty(folder)
        return changed

    # -- inner ----------------------------------------------------------------------------------------------------
    def _planned(self, data: bytes | None, place: Path, change: Change) -> tuple[bytes | None, SettingsChange]:
        after = self._after(data, change)
        if data is not None and after != data:
            self._refuse_protected(place)
        return after, SettingsChange(path=self.path, before=data, after=after)

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

    @staticmethod
    def _bytes(place: Path) -> bytes | None:
        return atomic_replace.read(place) if place.parent.is_dir() else None

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


def carry_out(plan: Sequence[tuple[SettingsFile, Change]], dry: bool) -> tuple[SettingsChange, ...]:
    """Change several files; all are looked at before the first is written.

    Raises:
        what ``SettingsFile.rewrite`` raises.
    """
    seen = [file.preview(change) for file, change in plan]
    if dry:
        return tuple(seen)
    for (file, _), one in zip(plan, seen, strict=True):
        if one.done is not FileResult.SAME:
            file.refuse_protected()
    return tuple(file.rewrite(change) for file, change in plan)


def _remove_if_empty(folder: Path) -> None:
    with suppress(MemfsError):  # something is in it, or somebody else looks after it
        io.rmdir(folder)


def user_folder() -> Path:
    """The folder in which Claude Code keeps what is a person's own."""
    named = os.environ.get("CLAUDE_CONFIG_DIR", "")
    return Path(named).expanduser() if named else home() / _FOLDER


JsonPath = tuple[str, ...]
_BLANK = " \t\r\n"


def is_blank(text: str) -> bool:
    """Whether a text says nothing at all."""
    return not text.strip(_BLANK)


def put(text: str | None, path: JsonPath, value: Any) -> str:
    """The text with a value below a path of keys: in the place of what is there, else at the end of its object.

    All else stays as it is written; what is put in is indented and ended as the lines around it.

    Args:
        text: JSON; None, or blanks alone, where there is nothing yet.

    Raises:
        ItemSyntaxError, DuplicateKey, ItemTooDeep: the text cannot be read, with line and remedy.
        ContentError: it cannot be changed safely.
    """
    if text is None or is_blank(text):
        text = "{}\n"
    node = json_text.tree(text)
    newline, found = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n", json_text.indentation(text)
    unit = found if isinstance(found, str) else " " * found
    for depth, key in enumerate(path):
        entry = node.entry(key)
        if entry is None:
            added = value
            for inner in reversed(path[depth + 1 :]):
                added = {inner: added}
            return _proved(text, _appended(text, node, key, added, newline, unit), path, value)
        node = entry.value
    shown = _rendered(value, newline, unit, _indent(text, node.start))
    return _proved(text, text[: node.start] + shown + text[node.end :], path, value)


def take(text: str, path: JsonPath) -> str | None:
    """The text without the value below a path, and without the objects that hold nothing else; None if that is all.

    Raises:
        what ``put`` raises; KeyError: nothing is there.
    """
    node, entry = json_text.tree(text), None
    cut: tuple[int, int] | None = None
    for key in path:
        entry = node.entry(key)
        if entry is None:
            raise KeyError(path)
        at, siblings = node.entries.index(entry), node.entries
        if at:
            cut = siblings[at - 1].value.end, entry.value.end
        elif len(siblings) > 1:
            cut = entry.start, siblings[1].start
        node = entry.value
    return None if cut is None else _proved(text, text[: cut[0]] + text[cut[1] :], path, None)


def _appended(text: str, node: Node, key: str, value: Any, newline: str, unit: str) -> str:
    """The text with one more key at the end of an object."""
    outer = _indent(text, node.start)
    indent = outer + unit
    last = node.entries[-1] if node.entries else None
    if last is not None and not (before := _before(text, last.start)).strip(" \t"):
        indent = before
    shown = f"{newline}{indent}{json.dumps(key, ensure_ascii=False)}: {_rendered(value, newline, unit, indent)}"
    if last is not None:
        return f"{text[: last.value.end]},{shown}{text[last.value.end :]}"
    return f"{text[: node.start + 1]}{shown}{newline}{outer}{text[node.end - 1 :]}"


def _rendered(value: Any, newline: str, unit: str, indent: str) -> str:
    return (newline + indent).join(json.dumps(value, ensure_ascii=False, indent=unit).split("\n"))


def _before(text: str, at: int) -> str:
    """What precedes a position in its line."""
    return text[text.rfind("\n", 0, at) + 1 : at]


def _indent(text: str, at: int) -> str:
    """The blanks with which the line of a position begins."""
    before = _before(text, at)
    return before[: len(before) - len(before.lstrip(" \t"))]


def _proved(before: str, after: str, path: JsonPath, value: Any) -> str:
    """The changed text, which says what it said before but for what is below the path.

    Raises:
        ContentError: it does not.
    """
    expected = parsed_settings(before)
    _set(expected, path, value)
    if parsed_settings(after) != expected:
        raise ContentError("memfs cannot change this file safely", hint="write or remove what is memfs's by hand")
    return after


def _set(values: dict[str, Any], path: JsonPath, value: Any) -> None:
    """Set what is below a path; None takes it away, and with it what holds nothing else."""
    key, *inner = path
    if inner:
        _set(values.setdefault(key, {}), tuple(inner), value)
    elif value is not None:
        values[key] = value
    if value is None and (not inner or not values[key]):
        del values[key]


# -- what a text says ---------------------------------------------------------------------------------------------
def parsed_settings(text: str | None) -> dict[str, Any]:
    """All that a text says; nothing where it is blank, or there is none."""
    value: dict[str, Any] = {} if text is None or is_blank(text) else json_text.load(text, None)
    return value


def below(text: str, key: str) -> dict[str, Any]:
    """The object below a key of the text's object; an empty one where nothing is there.

    Raises:
        ContentError: the text, or what is there, is no object; or it cannot be read.
    """
    if is_blank(text):
        return {}
    if json_text.tree(text).kind != "map":
        raise misshapen(text, (), "an object")
    found = parsed_settings(text).get(key, {})
    if not isinstance(found, dict):
        raise misshapen(text, (key,), "an object")
    return found


def misshapen(text: str, path: JsonPath, expected: str) -> ContentError:
    """What is wrong with a value that is of another sort than a program expects there."""
    where = plain.place(json_text.tree(text), text, path)
    message = f"this is to be {expected}"
    return ContentError(
        message, line=where.line, column=where.column, field=".".join(path) or None, hint="correct it, or remove it"
    )

"""Reads ``memfs.toml`` as text: its tables, the line of a key, the format version; and changes one key.

A change leaves every other line as it is. An error names the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from memfs.config_names import SETTINGS_FILE as FILE
from memfs.errors import FormatUnsupported, SettingInvalid
from memfs.format.text import has_markers
from memfs.fs import io
from memfs.startup import Any, regex

FORMAT = "format_version"
"""The key above all tables that says which version of the format on disk the workspace is in."""
FORMAT_VERSION = 2
_LIMIT = 1 << 20
_DIGITS = 18
_HEADER = regex(r"[ \t]*\[[ \t]*([^\[\]]+?)[ \t]*\][ \t]*(?:#.*)?$")
_VALUE = regex(r"""([^=]*=[ \t]*)(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\[\]]*\]|[-+.\w]+)([ \t]*(?:#.*)?)$""")
_AT_LINE = regex(r"\(at line (\d+), column (\d+)\)")


def read(root: Path, name: str = FILE) -> str:
    """The text of a workspace's file, or of another in a folder; "" where there is none.

    Raises:
        SettingInvalid: it is not UTF-8.
        NotRegularFile, ItemTooLarge, StorageIO: it cannot be read as a file.
    """
    try:
        return io.read_file(root / name, _LIMIT).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise SettingInvalid("not UTF-8 text", path=name, hint="save it as UTF-8") from error


def parse(text: str) -> dict[str, Any]:
    """The tables of the file.

    Raises:
        SettingInvalid: it is not TOML, with line and column.
    """
    plain = _plain(text)
    if plain is not None:
        return plain
    import tomllib  # few files have more than plain lines

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise SettingInvalid("nested too deeply", path=FILE, hint="settings are plain values in tables") from error
    except ValueError as error:  # also what no TOML error is made of, such as a number of 5,000 digits
        place = _AT_LINE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (None, None)
        reason = _AT_LINE.sub("", str(error)).strip()
        reason = f"not TOML: {reason[:1].lower()}{reason[1:]}"
        hint = 'write settings like: engine = "sqlite"'
        if "twice" in reason or "overwrite" in reason:
            hint = "name each table and each setting once; the lines of a table stand together below its name"
        if has_markers(text.encode()):
            reason = "a merge left conflict markers in it"
            hint = f"keep what is right, delete the marker lines, and 'git add {FILE}'"
        raise SettingInvalid(reason, path=FILE, line=line, column=column, hint=hint) from error


def _plain(text: str) -> dict[str, Any] | None:
    """The tables of a file that gives names a text, a whole number, true or false; None where there is more in it.

    It accepts nothing that ``tomllib`` reads otherwise, and spares nearly every command the import of that.
    """
    tables: dict[str, Any] = {}
    table = tables
    for line in text.split("\n"):
        if not line.isprintable():
            return None
        line = line.strip()
        name, _, value = line.partition(" = ")
        if line[:1] in ("", "#"):
            continue
        if line[0] == "[" and line[-1] == "]":
            name, table = line[1:-1], tables
        if name in table or not (name.isascii() and name.isidentifier()):
            return None
        if line[0] == "[":
            table = tables[name] = {}
        elif value in ("true", "false"):
            table[name] = value == "true"
        elif value.isascii() and value.isdigit() and len(value) < _DIGITS and (value[0] != "0" or value == "0"):
            table[name] = int(value)
        elif value[:1] == value[-1:] == '"' and value.count('"') == 2 and "\\" not in value:
            table[name] = value[1:-1]
        else:
            return None
    return tables


def is_toml(data: bytes) -> bool:
    """Whether the bytes of a file are TOML."""
    import tomllib

    try:
        tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return True


def line_of(text: str, table: str, name: str | None = None) -> int | None:
    """The line that names a table or a key in it; None where it is written in a way this does not look for."""
    wanted = table if name is None else f"{table}.{name}"
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if header:
            full = current = header[1].replace('"', "").replace(" ", "")
        else:
            key = line.partition("=")[0].replace('"', "").strip()
            full = f"{current}.{key}" if current else key
        if full == wanted or (name is None and full.startswith(f"{wanted}.")):
            return number
    return None


def format_version(tables: Mapping[str, Any], text: str = "") -> int | None:
    """The version of the format on disk that the file names; None where it names none.

    Raises:
        SettingInvalid: it is no version.
    """
    version = tables.get(FORMAT)
    if version is None or (isinstance(version, int) and not isinstance(version, bool) and version >= 1):
        return version
    line, hint = line_of(text, FORMAT), f"this memfs writes {FORMAT} = {FORMAT_VERSION}"
    raise SettingInvalid("a version is a whole number from 1", path=FILE, line=line, field=FORMAT, hint=hint)


def require_known_format(version: int | None, path: str = FILE) -> None:
    """Refuse a workspace that a newer memfs wrote.

    Raises:
        FormatUnsupported: naming both versions.
    """
    if version is not None and version > FORMAT_VERSION:
        raise FormatUnsupported(
            f"the workspace is of format {version}, this memfs knows up to {FORMAT_VERSION}",
            path=path,
            field=FORMAT,
            hint="use a newer memfs",
        )


def with_format_version(text: str) -> str:
    """The file with the present version of the format, above all tables; every other line stays as it is."""
    line = f"{FORMAT} = {FORMAT_VERSION}"
    number = line_of(text, FORMAT)
    lines = text.splitlines(keepends=True)
    if number is not None:
        lines[number - 1] = f"{line}{lines[number - 1][len(lines[number - 1].rstrip()) :]}"
        return "".join(lines)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    remarks = 0
    while remarks < len(lines) and lines[remarks].startswith("#"):
        remarks += 1
    rest = lines[remarks:]
    gap = "\n" if rest and rest[0].strip() else ""
    return "".join([*lines[:remarks], f"{line}\n{gap}", *rest])


def with_value(text: str, table: str, name: str, value: Any) -> str:
    """The file with one setting changed or added; every other line, comments included, stays as it is.

    A new one follows the comment that shows its default, or its table's head, or is in a table at the end.

    Args:
        text: what the file says, which is valid.
        table, name: the setting's table, such as ``memory.episodic``, and its name in it.
        value: a text, a number, true or false, or texts.

    Raises:
        SettingInvalid: the file is written in a way that this cannot change.
    """
    old = parse(text)
    value = list(value) if isinstance(value, tuple) else value
    end = "\r\n" if "\r\n" in text else "\n"
    written = f"{name} = {_written(value)}"
    lines = text.splitlines(keepends=True)
    if name in _inner(old, table):
        at = (line_of(text, table, name) or 0) - 1
        found = _VALUE.match(lines[at].rstrip("\r\n")) if at >= 0 else None
        if found:
            lines[at] = f"{found[1]}{_written(value)}{found[2]}{end}"
    elif (head := _head(lines, table)) is not None:
        shown = (
            at for at in range(head + 1, _next_head(lines, head)) if re.match(rf"[ \t]*#[ \t]*{name}\b", lines[at])
        )
        lines.insert(next(shown, head) + 1, written + end)
        if not lines[-2].endswith("\n"):
            lines[-2] += end
    else:
        last = "" if not text or text.endswith("\n") else end
        lines.append(f"{last}{end if text or lines else ''}[{table}]{end}{written}{end}")
    changed = "".join(lines)
    return _proved(changed, _replaced(old, table, {**_inner(old, table), name: value}), table, name, written)


def without(text: str, table: str, name: str) -> str:
    """The file without one setting: what ``with_value`` added is gone, with the table that it made.

    Raises:
        SettingInvalid: as ``with_value``.
    """
    old = parse(text)
    if name not in _inner(old, table):
        return text
    rest = {key: value for key, value in _inner(old, table).items() if key != name}
    lines = text.splitlines(keepends=True)
    at = (line_of(text, table, name) or 0) - 1
    if at >= 0:
        del lines[at]
    head = _head(lines, table)
    if head is not None and not "".join(lines[head + 1 : _next_head(lines, head)]).strip():
        del lines[head]
        if head and not lines[head - 1].strip():
            del lines[head - 1]
    return _proved("".join(lines), _replaced(old, table, rest), table, name, f"take {name} out")


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _inner(tables: Mapping[str, Any], table: str) -> Mapping[str, Any]:
    """What a table holds, nothing where there is none."""
    for part in table.split("."):
        found = tables.get(part)
        tables = found if isinstance(found, dict) else {}
    return tables


def _replaced(tables: Mapping[str, Any], table: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with other entries in one of them; one without entries is not there."""
    first, _, rest = table.partition(".")
    inner = _replaced(_inner(tables, first), rest, entries) if rest else dict(entries)
    return {**tables, first: inner} if inner else {key: value for key, value in tables.items() if key != first}


def _filled(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables without those that hold nothing."""
    inner = {key: _filled(value) if isinstance(value, dict) else value for key, value in tables.items()}
    return {key: value for key, value in inner.items() if value != {}}


def _head(lines: list[str], table: str) -> int | None:
    """Where a table's head is."""
    for number, line in enumerate(lines):
        head = _HEADER.match(line.rstrip("\r\n"))
        if head and head[1] == table:
            return number
    return None


def _next_head(lines: list[str], head: int) -> int:
    """Where the next table begins, or the file ends."""
    return next((at for at in range(head + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))


def _proved(text: str, wanted: dict[str, Any], table: str, name: str, remedy: str) -> str:
    """The text, if it says what it should.

    Raises:
        SettingInvalid: it does not.
    """
    with suppress(SettingInvalid):
        if _filled(parse(text)) == _filled(wanted):
            return text
    raise SettingInvalid(
        f"the way {FILE} is written leaves no room to change {table}.{name} safely",
        path=FILE,
        field=f"{table}.{name}",
        hint=f"change it by hand: below [{table}], {remedy}",
    )

"""Reads ``memfs.toml`` as text: its tables, the line of a key, the format version; and changes one key.

A change leaves every other line as it is. An error names the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_BLANK_END = regex(r"(\r?\n)(?:\r?\n)+\Z")
_AT_LINE = regex(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


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
        line = int(place[1] or len(text.splitlines())) if place else None
        column = int(place[2]) if place and place[2] else None
        reason = f"not TOML: {str(error)[:1].lower()}{_AT_LINE.sub('', str(error)[1:]).rstrip()}"
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
    dotted = table if name is None else f"{table}.{name}"
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if header:
            full = current = header[1].replace('"', "").replace(" ", "")
        else:
            key = line.partition("=")[0].replace('"', "").strip()
            full = f"{current}.{key}" if current else key
        if full == dotted or (name is None and full.startswith(f"{dotted}.")):
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
    if number is None:
        return f"{line}\n\n{text}" if text.strip() else f"{line}\n"
    lines = text.splitlines(keepends=True)
    old = lines[number - 1]
    lines[number - 1] = line + old[len(old.rstrip()) :]
    return "".join(lines)


def with_value(text: str, table: str, name: str, value: Any) -> str:
    """The file with one setting changed, added or taken out; every other line, comments included, stays as it is.

    Args:
        text: what the file says.
        table, name: the setting's table, such as ``memory.episodic``, and its name in it.
        value: a text, a number, true or false, or texts; None takes the setting out, and a table in which nothing is
            left.

    Raises:
        SettingInvalid: the file is not TOML, or is written in a way that this cannot change.
    """
    import tomlkit  # few commands change a setting

    parse(text)  # says what is wrong, and in which line
    document = tomlkit.parse(text)
    tables: list[Any] = [document]
    parts = table.split(".")
    for part in parts:
        tables.append(tables[-1].setdefault(part, tomlkit.table()))
    if value is not None:
        tables[-1][name] = list(value) if isinstance(value, tuple) else value
    elif name in tables[-1]:
        del tables[-1][name]
        for part, holder in reversed([*zip(parts, tables, strict=False)]):
            if not holder[part].as_string().strip():
                del holder[part]
    else:
        return text
    made = _BLANK_END.sub(r"\1", document.as_string())
    if parse(made) != document.unwrap():
        hint = f"change it by hand: {name}, below [{table}]"
        raise SettingInvalid("the file cannot be changed safely", path=FILE, field=f"{table}.{name}", hint=hint)
    return made

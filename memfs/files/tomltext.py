"""Reads ``memfs.toml`` as text: its tables, the line that names a key, and the version of the format on disk.

Owns what is wrong with the file as TOML. Knows nothing of which settings there are.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memfs.errors import FormatUnsupported, SettingInvalid
from memfs.files import io
from memfs.files.markers import has_markers

FILE = "memfs.toml"
FORMAT = "format_version"
"""The key above all tables that says which version of the format on disk the workspace is in."""
FORMAT_VERSION = 2
_LIMIT = 1 << 20
_AT_LINE = re.compile(r"\(at line (\d+), column (\d+)\)")


def read(root: Path) -> str:
    """The text of a workspace's file, "" where there is none.

    Raises:
        SettingInvalid: it is not UTF-8.
        NotRegularFile, ItemTooLarge, StorageIO: it cannot be read as a file.
    """
    try:
        return io.read_file(root / FILE, _LIMIT).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise SettingInvalid("not UTF-8 text", path=FILE, hint="save it as UTF-8") from error


def parse(text: str) -> dict[str, Any]:
    """The tables of the file.

    Raises:
        SettingInvalid: it is not TOML, with line and column.
    """
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
            hint = "'memfs resolve' shows both values and joins them, or keep what is right and take the markers out"
        raise SettingInvalid(reason, path=FILE, line=line, column=column, hint=hint) from error


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
    hint = f"this memfs writes {FORMAT} = {FORMAT_VERSION}"
    raise SettingInvalid("a version is a whole number from 1", path=FILE, line=_line(text), field=FORMAT, hint=hint)


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
    number = _line(text)
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


def _line(text: str) -> int | None:
    """The line that names the version."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            return None
        if line.partition("=")[0].strip().strip('"') == FORMAT:
            return number
    return None

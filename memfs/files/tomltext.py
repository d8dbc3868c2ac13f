"""Reads ``memfs.toml`` as text: its tables, and the line that names a key.

Owns what is wrong with the file as TOML. Knows nothing of which settings there are.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from memfs.errors import SettingInvalid
from memfs.files import io
from memfs.files.markers import has_markers

FILE = "memfs.toml"
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

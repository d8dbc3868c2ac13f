"""Columns: a document as one row of a table, and back.

Owns the names of columns (dotted, with an escape for what would be read differently), what a cell says of its value's
type, and how many columns there may be. Knows nothing of files or of what documents mean.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from memfs.errors import ItemSyntaxError

MOST_COLUMNS = 1_000
FIXED = ("path", "type", "iteration", "sha256")
"""What stands in front of each row: where the document lies, what it is, and the digest of its file."""
REST = "more"
"""The last column of a CSV file: JSON of the values whose names have no column."""
TEXT = "text"
DOCUMENT = "document"
RESERVED = frozenset({*FIXED, REST, TEXT, DOCUMENT})

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_MOMENT = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z")
_CONSTANTS = frozenset({"null", "true", "false"})
_QUOTED_START = '"[{=+-@\t\r\n '  # JSON's own, what a spreadsheet runs as a formula, and blanks that some readers drop
_SEGMENT_START = "=+-@"
_DEEPEST = 64


# -- names --------------------------------------------------------------------------------------------------------
def column_name(path: Iterable[str]) -> str:
    """The column of a value that lies under these keys: joined by dots; a dot or backslash in a key has a backslash
    before it, and so has a name that is one of ``RESERVED`` or would begin a formula.
    """
    name = ".".join(key.replace("\\", "\\\\").replace(".", "\\.") for key in path)
    return "\\" + name if name in RESERVED or name.startswith(tuple(_SEGMENT_START)) else name


def column_path(name: str) -> tuple[str, ...]:
    """The keys that a column's name stands for."""
    keys, key, escaped = [], [], False
    for character in name:
        if escaped or character not in "\\.":
            key.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            keys.append("".join(key))
            key = []
    return (*keys, "".join(key))


# -- rows ---------------------------------------------------------------------------------------------------------
def flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a document by column; lists, and mappings without keys, are values."""
    return dict(_leaves(document, ()))


def _leaves(mapping: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for key, value in mapping.items():
        inner = (*path, key)
        if isinstance(value, Mapping) and value and len(inner) < _DEEPEST:
            yield from _leaves(value, inner)
        else:
            yield column_name(inner), value


def nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a row.

    Raises:
        ItemSyntaxError: one column's name goes on below what another has a value for.
    """
    document: dict[str, Any] = {}
    for name, value in row.items():
        *folders, last = column_path(name)
        place = document
        for key in folders:
            inner = place.setdefault(key, {})
            if not isinstance(inner, dict):
                raise _clash(name)
            place = inner
        if last in place:
            raise _clash(name)
        place[last] = value
    return document


def _clash(name: str) -> ItemSyntaxError:
    return ItemSyntaxError(
        "another column has a value for the same place", field=name, hint="leave one of the two cells empty"
    )


# -- cells --------------------------------------------------------------------------------------------------------
def cell(value: Any) -> str:
    """A value as a CSV cell: text as it is unless it would be read as something else; that, and all others, as JSON."""
    if isinstance(value, str) and not _misread(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _misread(text: str) -> bool:
    """Whether a text has to be in quotes: empty, a number to some reader, a constant, JSON, a formula."""
    if not text or text[0] in _QUOTED_START or text[-1].isspace() or text.lower() in _CONSTANTS or "\0" in text:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def value_of(written: str, load: Callable[[str], Any] = json.loads) -> Any:
    """The value of a cell that is not empty.

    Raises:
        ValueError: it begins as JSON and is none.
    """
    if written[0] in '"[{' or written in _CONSTANTS or _NUMBER.fullmatch(written):
        return load(written)
    return written


# -- which columns ------------------------------------------------------------------------------------------------
class Columns:
    """The columns that documents need, and the sort of value each holds.

    Each document's keys stand in the order in which it has them, as far as documents agree on one.
    ``sorts`` maps a name to ``int``, ``float``, ``bool``, ``moment``, ``text``, or ``json`` where values differ.
    """

    def __init__(self, most: int = MOST_COLUMNS) -> None:
        self._names: list[str] = []
        self._sorts: dict[str, str] = {}
        self._most = most

    def learn(self, row: Mapping[str, Any]) -> None:
        """Look at a flat document."""
        if len(self._names) < self._most and not row.keys() <= self._sorts.keys():
            self._join(list(row))
        for name, value in row.items():
            if (known := self._sorts.get(name)) is not None:
                self._sorts[name] = _joined(known, _sort(value))

    def _join(self, names: list[str]) -> None:
        """Put new names behind the one they follow, or before the first known one."""
        at = min((self._names.index(name) for name in names if name in self._sorts), default=len(self._names))
        for name in names:
            if name in self._sorts:
                at = self._names.index(name) + 1
            elif len(self._names) < self._most:
                self._names.insert(at, name)
                self._sorts[name] = ""
                at += 1

    @property
    def names(self) -> tuple[str, ...]:
        """In their order."""
        return tuple(self._names)

    @property
    def sorts(self) -> dict[str, str]:
        """The sort of each column's values; text where there is none."""
        return {name: self._sorts[name] or "text" for name in self._names}


def _sort(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "moment" if _MOMENT.fullmatch(value) else "text"
    return "" if value is None else "json"


def _joined(known: str, found: str) -> str:
    if not known or not found or known == found:
        return known or found
    for wider, both in (("float", {"int", "float"}), ("text", {"moment", "text"})):
        if {known, found} == both:
            return wider
    return "json"


def fitting(value: Any, sort: str) -> Any:
    """A value for a typed column; None where the column cannot hold it, though JSON columns hold everything."""
    if value is None:
        return None
    if sort == "json":
        return json.dumps(value, ensure_ascii=False)
    if sort == "moment":
        return _moment(value)
    found = _sort(value)
    if sort == "float" and found in ("int", "float"):
        return float(value) if math.isfinite(value) else None
    if sort == "text" and isinstance(value, str):
        return value
    return value if found == sort else None


def _moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) and _MOMENT.fullmatch(value) else None
    except ValueError:
        return None

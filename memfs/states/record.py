"""Record: one document as exports have it.

Owns what a record says of its document, and JSON Lines, the form that holds all of it. Knows nothing of where documents
come from or go to.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn, Protocol

from memfs.errors import ContentError, DuplicateKey, ItemSyntaxError, ItemTooDeep, ItemTooLarge
from memfs.states.columns import DOCUMENT, FIXED, TEXT

MEMORY = "memory"
"""The type of records that hold an item."""
LONGEST = 1 << 28
"""Bytes of the largest record."""
_KEYS = frozenset({*FIXED, DOCUMENT, TEXT})
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HINT = "write one object per line, as 'memfs export' does"
_PATHLESS = "'memfs state store' takes documents without a path"


class Sink(Protocol):
    """What an export is written to: an open binary file, or anything that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""


class Writer(Protocol):
    """What writes records in one format."""

    def write(self, record: Record) -> None:
        """Write the next record."""

    def close(self) -> None:
        """Write what belongs at the end; the sink stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One document.

    Attributes:
        path: below the workspace.
        type: as ``memfs.model.statepaths.document_kind`` names it, or ``memory``.
        iteration: the iteration it belongs to, None for none.
        sha256: of its file.
        document: what it says.
        text: the file's very text, for a memory, whose comments and format are part of it.
        place: where an import found it: a line or row, from 1.
    """

    path: str
    type: str
    iteration: int | None
    sha256: str
    document: Mapping[str, Any]
    text: str = ""
    place: int | None = None

    def fixed(self) -> dict[str, Any]:
        """The values of the columns in front."""
        return {name: getattr(self, name) for name in FIXED}


# -- JSON Lines ---------------------------------------------------------------------------------------------------
def json_line(record: Record) -> bytes:
    """A record as one line."""
    told = {**record.fixed(), DOCUMENT: record.document} | ({TEXT: record.text} if record.text else {})
    return _text_of(told).encode() + b"\n"


def _text_of(value: Any) -> str:
    """JSON with characters as they are, but for what UTF-8 cannot hold and what some readers take for a line's end."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[\ud800-\udfff\u0085\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


class JsonLines:
    """Writes records as JSON Lines."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, record: Record) -> None:
        """Write one line."""
        self._sink.write(json_line(record))

    def close(self) -> None:
        """Nothing belongs at the end."""


def read_json_lines(source: BinaryIO) -> Iterator[Record]:
    """The records of JSON Lines; blank lines are passed over.

    Raises:
        ContentError: a line is no record; ``line`` says which.
    """
    number = 0
    while line := source.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise ItemTooLarge(f"a line of more than {LONGEST:,} bytes", line=number, hint=_HINT)
        if text := decoded(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, number).strip():
            yield record_of(load(text, number), number)


def decoded(data: bytes, number: int) -> str:
    """UTF-8 bytes as text.

    Raises:
        ItemSyntaxError: naming the line.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ItemSyntaxError("not UTF-8 text", line=number, hint="save it as UTF-8") from error


def load(text: str, number: int) -> Any:
    """The value of a JSON text, read strictly.

    Raises:
        ItemSyntaxError, DuplicateKey, ItemTooDeep: naming the line.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except RecursionError as error:
        raise ItemTooDeep("nested too deeply", line=number, hint="flatten it") from error
    except json.JSONDecodeError as error:
        hint = f"{_HINT}; what another memory keeps needs its name: --from"
        raise ItemSyntaxError(f"not JSON: {error.msg}", line=number, column=error.colno, hint=hint) from error
    except ValueError as error:  # a number of thousands of digits
        raise ItemSyntaxError("a number is too long", line=number, hint="put it in quotes") from error
    except ContentError as error:
        error.line = number
        raise


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise DuplicateKey(f"the key {name!r} stands here twice", hint="keep one")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ItemSyntaxError(f"{name} is not JSON", hint="write a finite number")


# -- reading a record ---------------------------------------------------------------------------------------------
def record_of(value: Any, place: int) -> Record:
    """The record that a mapping describes.

    Raises:
        ItemSyntaxError: it describes none; ``line`` is its place.
    """
    if not isinstance(value, dict):
        raise ItemSyntaxError("not a JSON object", line=place, hint=_HINT)
    for key in value:
        if key not in _KEYS:
            raise ItemSyntaxError("a record has no such key", line=place, field=str(key), hint=_HINT)
    for key, fits, expected in _FITTING:
        if not fits(value.get(key)):
            hint = f"{_HINT}; {_PATHLESS}" if key == "path" and key not in value else _HINT
            raise ItemSyntaxError(f"expected {expected}", line=place, field=key, hint=hint)
    return Record(
        path=value["path"],
        type=value["type"],
        iteration=value.get("iteration"),
        sha256=value.get("sha256") or "",
        document=value[DOCUMENT],
        text=value.get(TEXT) or "",
        place=place,
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _is_digest(value: Any) -> bool:
    return value in (None, "") or (isinstance(value, str) and _SHA256.fullmatch(value) is not None)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


_FITTING: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("path", _is_name, "a path below the workspace"),
    ("type", _is_name, "the type of the document"),
    ("iteration", _is_number, "a whole number"),
    ("sha256", _is_digest, "64 hexadecimal digits"),
    (DOCUMENT, lambda value: isinstance(value, dict), "the document's keys and values"),
    (TEXT, _is_text, "text"),
)

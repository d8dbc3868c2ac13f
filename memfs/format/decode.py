"""Decodes a file's bytes to text.

Accepts UTF-8 only. A byte order mark and CRLF are accepted and remembered; merge conflict markers and characters on
which YAML and JSON readers disagree are refused.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from memfs.errors import ItemSyntaxError

BOM = "\ufeff"
_CONFLICT = re.compile(r"^(?:<{7,}|>{7,}|\|{7,})(?:[ \r\n]|\Z)", re.MULTILINE)
# not printable in YAML, or a line break to some readers and text to others
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_FORBIDDEN_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Text(NamedTuple):
    """A decoded file: its text without byte order mark, and what was remarkable about it."""

    text: str
    bom: bool = False
    crlf: bool = False

    @property
    def newline(self) -> str:
        """The line ending the file uses."""
        return "\r\n" if self.crlf else "\n"

    def encode(self, text: str) -> bytes:
        """Another text as bytes, with the byte order mark this one had.

        Raises:
            ItemSyntaxError: the text holds a lone surrogate.
        """
        try:
            return ((BOM if self.bom else "") + text).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ItemSyntaxError(
                f"not valid Unicode: lone surrogate U+{ord(text[error.start - self.bom]):04X}", hint="remove it"
            ) from error


def decode(data: bytes) -> Text:
    """Read bytes as a text file.

    Raises:
        ItemSyntaxError: not UTF-8, forbidden control characters, an empty file, merge conflict markers; with the line.
    """
    text = utf8(data)
    bom = text.startswith(BOM)
    if bom:
        text = text[1:]
    bad = (_FORBIDDEN_ASCII if text.isascii() else _FORBIDDEN).search(text)
    if bad:
        raise _forbidden(text, bad.start(), bom)
    if not text.strip():
        raise ItemSyntaxError("the file is empty", line=1, hint="write at least 'content: ...', or delete the file")
    _refuse_conflict(text)
    return Text(text, bom=bom, crlf="\r\n" in text)


def position(text: str, offset: int) -> tuple[int, int]:
    """The 1-based line and column of an offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def _refuse_conflict(text: str) -> None:
    """Only markers at the very beginning of a line count: a memory may quote them in an indented text."""
    if "<<<<<<<" not in text and ">>>>>>>" not in text:
        return
    marker = _CONFLICT.search(text)
    if marker:
        line, _ = position(text, marker.start())
        raise ItemSyntaxError(
            f"merge conflict markers at line {line}",
            line=line,
            column=1,
            hint="keep what is right and delete the marker lines, or run 'memfs team conflicts resolve'",
        )


def utf8(data: bytes, first: int = 1) -> str:
    """Bytes as text, whatever its characters; a byte order mark stays.

    Args:
        first: the line of the file at which the bytes begin, for errors.

    Raises:
        ItemSyntaxError: not UTF-8; with the place.
    """
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(mark):
            raise ItemSyntaxError("the file is UTF-16, not UTF-8", line=first, hint="save it as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + first
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise ItemSyntaxError(
            f"byte 0x{data[error.start]:02X} at offset {error.start} is not UTF-8",
            line=line,
            column=column,
            hint="save the file as UTF-8",
        ) from error


def _forbidden(text: str, offset: int, bom: bool) -> ItemSyntaxError:
    code = ord(text[offset])
    line, column = position(text, offset)
    at = len(text[:offset].encode("utf-8")) + (3 if bom else 0)
    what = "NUL byte" if code == 0 else f"character U+{code:04X}"
    hint = f'remove it, or write it as an escape in double quotes, such as "\\u{code:04x}"' if code else "remove it"
    if code == 0 and text[:64].count("\0") > 4:
        hint = "the file may be UTF-16; save it as UTF-8"
    return ItemSyntaxError(f"{what} at offset {at}", line=line, column=column, hint=hint)

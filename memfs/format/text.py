"""Texts as files and people have them: decoded bytes, invisible characters, and merge conflict markers.

A file is UTF-8; a byte order mark and CRLF are accepted and remembered. Conflict markers and characters on which YAML
and JSON readers disagree are refused.

Of unseen characters those are refused that carry text which a person does not see and a model reads: tag characters
outside emoji flags, bidirectional controls, runs of variation selectors; NUL and lone surrogates, too. Warned about:
zero-width characters and direction marks, which occur in honest text and in emoji. Every door prints through ``shown``
or ``shown_line``.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence

from memfs.dataclass import NamedTuple
from memfs.errors import ItemSyntaxError
from memfs.startup import regex

BOM = "\ufeff"
_CONFLICT = regex(r"^(?:<{7,}|>{7,}|\|{7,})(?:[ \r\n]|\Z)", re.MULTILINE)
# not printable in YAML, or a line break to some readers and text to others
_FORBIDDEN = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_FORBIDDEN_ASCII = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Text(NamedTuple):
    """A decoded file: its text without byte order mark, and what was remarkable about it."""

    text: str
    bom: bool = False
    crlf: bool = False

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
        code, offset = ord(bad[0]), bad.start()
        line, column = position(text, offset)
        at = len(text[:offset].encode("utf-8")) + (3 if bom else 0)
        what = "NUL byte" if code == 0 else f"character U+{code:04X}"
        hint = f'remove it, or write it as an escape in double quotes, such as "\\u{code:04x}"' if code else "remove it"
        if code == 0 and text[:64].count("\0") > 4:
            hint = "the file may be UTF-16; save it as UTF-8"
        raise ItemSyntaxError(f"{what} at offset {at}", line=line, column=column, hint=hint)
    if not text.strip():
        raise ItemSyntaxError("the file is empty", line=1, hint="write at least 'content: ...', or delete the file")
    # Only markers at the very beginning of a line count: a memory may quote them in an indented text.
    if ("<<<<<<<" in text or ">>>>>>>" in text) and (marker := _CONFLICT.search(text)):
        line, _ = position(text, marker.start())
        raise ItemSyntaxError(
            f"merge conflict markers at line {line}",
            line=line,
            column=1,
            hint="keep what is right and delete the marker lines, or run 'memfs team conflicts resolve'",
        )
    return Text(text, bom=bom, crlf="\r\n" in text)


def position(text: str, offset: int) -> tuple[int, int]:
    """The 1-based line and column of an offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


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


_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_HIDING = (
    "[\U000e0000-\U000e007f]+|[\u202a-\u202e\u2066-\u2069]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}|[\ufff9-\ufffb]"
)
_IMPOSSIBLE = "[\x00\ud800-\udfff]"
_UNSEEN = "[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2064\u3164\ufeff\uffa0]"
_SUSPECT = regex(
    "[\x00\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
)
# joiners are shown as they are between letters and signs that need them: in Persian, in emoji
UNSHOWN = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
    "|(?<![^\x00-\x7f\u2000-\u206f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u2000-\u206f])"
)
"""A character that a terminal would obey or a reader not see; tabs and newlines are none."""


class HiddenCharacter(NamedTuple):
    """A character, or a run of them, that a reader cannot see: where it begins and whether it is refused."""

    offset: int
    text: str
    refused: bool
    impossible: bool = False

    @property
    def codes(self) -> str:
        """Its first code points, such as ``U+202E``, and how many more there are."""
        codes = " ".join(f"U+{ord(character):04X}" for character in self.text[:4])
        return codes if len(self.text) <= 4 else f"{codes} and {len(self.text) - 4} more"


def findings(text: str) -> Iterator[HiddenCharacter]:
    """Every unseen character of the text, in order of kind; nothing for ordinary text, at the cost of one scan."""
    if text.isascii():
        if (nul := text.find("\0")) >= 0:
            yield HiddenCharacter(nul, "\0", refused=True, impossible=True)
        return
    if not _SUSPECT.search(text):
        return
    for match in re.finditer(_IMPOSSIBLE, text):
        yield HiddenCharacter(match.start(), match[0], refused=True, impossible=True)
    without_flags = re.sub(_FLAG, lambda flag: " " * len(flag[0]), text)
    for match in re.finditer(_HIDING, without_flags):
        yield HiddenCharacter(match.start(), match[0], refused=True)
    for match in re.finditer(_UNSEEN, text):
        at = match.start()
        # a joiner inside an emoji is ordinary
        if match[0] != "\u200d" or not 0 < at < len(text) - 1 or min(text[at - 1], text[at + 1]) <= "\u2000":
            yield HiddenCharacter(at, match[0], refused=False)


def shown(text: str) -> str:
    """The text with every unseen or terminal-controlling character written as ``\\u{202E}``; tabs and newlines stay."""
    if text.isascii() and text.isprintable():
        return text
    return UNSHOWN.sub(lambda match: f"\\u{{{ord(match[0]):X}}}", text)


def shortlist(names: Iterable[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if len(listed) > most else "")


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis where it has more than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def shown_line(text: str) -> str:
    """The text as one line, whatever it holds: as ``shown``, with newlines written as ``\\n``."""
    return shown(text).replace("\n", "\\n")


MARKER = 7
_FIRST = regex(rb"^(<{7,}|>{7,})(?=[ \r\n]|\Z)", re.MULTILINE)


def marked(
    ours: Sequence[bytes], theirs: Sequence[bytes], marker_size: int = MARKER, newline: bytes = b"\n"
) -> list[bytes]:
    """The lines of two versions between conflict markers."""
    return [
        b"<" * marker_size + b" ours" + newline,
        *_ended(ours, newline),
        b"=" * marker_size + newline,
        *_ended(theirs, newline),
        b">" * marker_size + b" theirs" + newline,
    ]


def _ended(lines: Sequence[bytes], newline: bytes) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + newline for line in lines]


def whole_marked(ours: bytes, theirs: bytes, marker_size: int = MARKER) -> bytes:
    """Two files between conflict markers, where no part of one can be distinguished from the other."""
    return b"".join(marked((ours,), (theirs,), marker_size))


def has_markers(data: bytes) -> bool:
    """Whether a line begins as the first or the last marker does; of a merge within a merge they are longer."""
    return _FIRST.search(data) is not None


def marker_line(data: bytes) -> int:
    """The 1-based line of the first such marker, 0 where there is none."""
    first = _FIRST.search(data)
    return data.count(b"\n", 0, first.start()) + 1 if first else 0

"""Disguises: the ways in which an order is written so that a person, or a list of wordings, reads over it.

Owns the ways alone, and how each is taken off; what the text behind it says, ``memfs.teams.instructions`` tells.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from urllib.parse import unquote

MARKED = "marks of Markdown"
_MOST_COMMENTS = 50
_LONGEST_LINE = 2_000
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_SPACED = re.compile(r"(?<!\S)(?:\w[ .\-_*]){5,}\w(?!\S)")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{32,4000}={0,2}(?![A-Za-z0-9+/=_-])")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[^%\s]*){3}")
# A list's own marks and lone bars at the beginning of a line, and what sets words in bold, italics or code.
_MARKUP = re.compile(
    r"^[ \t]{0,12}(?:[>#*+|-]{1,6}[ \t]+){1,3}|\*{1,3}|~~|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|"
    r"(?<!\w)`(?=\w+`)|(?<=\w)`(?!\w)",
    re.MULTILINE,
)
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){24,2000}(?![0-9A-Fa-f])")
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_DIGITS = re.compile(
    r"(?<![\w.+/=-])(?=[0-9]{0,4}[A-Za-z])[A-Za-z013457]{0,24}[013457][A-Za-z013457]{0,24}(?![\w+/=-])"
)
"""A word that has letters, and digits that look like some."""
_TWO_OF_THEM = re.compile(rf"{_DIGITS.pattern}\s{{1,4}}{_DIGITS.pattern}")
_SPELLED = str.maketrans("013457", "oieast")
_TURNED = re.compile(
    r"\b(?:vtaber|qvfertneq|sbetrg|cerivbhf|vafgehpgvba|flfgrz|frperg|cnffjbeq|perqragvny|rkrphgr|hfre)f?\b",
    re.IGNORECASE,
)
_BACKWARDS = re.compile(
    r"\b(?:erongi|dragersid|tegrof|suoiverp|s?noitcurtsni|tpmorp|s?terces|s?drowssap|s?laitnederc|etucexe)\b",
    re.IGNORECASE,
)
"""Words of orders in rot13, and backwards."""
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһԛԝАВЕКМНОРСТХІЈЅοαενιτρκυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhqwABEKMHOPCTXIJSoaevitpkuABEZHIKMNOPTYX",
)


def readings(text: str) -> Iterator[tuple[str, str, int]]:
    """The text as models may read it: as it stands, and without each disguise; where what was hidden begins, or -1."""
    bare = _UNSEEN.sub("", text)
    yield (bare, "", -1) if bare == text else (text, "", -1)
    if bare != text:
        yield bare, "characters that nobody sees", -1
    folded = _folded(bare)
    if folded != bare:
        yield folded, "letters of other scripts", -1
    if (unmarked := _MARKUP.sub("", bare)) != bare:
        yield unmarked, MARKED, -1
    if (tag := _TAGS.search(text)) is not None:
        hidden = "".join(chr(ord(letter) - 0xE0000) for run in _TAGS.findall(text) for letter in run)
        yield hidden, "tag characters", tag.start()
    for match in islice(_COMMENT.finditer(text), _MOST_COMMENTS):  # what they say was read with the text, too
        yield match[1], "a comment", match.start()
    yield from ((plain, disguise, -1) for plain, disguise in _respelled(bare))
    for match in _apart(_SPACED.finditer(bare)):
        yield _joined(bare, match), "letters set apart", match.start()
    yield from _decoded(bare)


def _respelled(bare: str) -> Iterator[tuple[str, str]]:
    """The text with other signs for its letters taken back, each way by itself."""
    if "&" in bare and (unescaped := html.unescape(bare)) != bare:
        yield unescaped, "entities"
    if _ESCAPED.search(bare):
        yield _ESCAPED.sub(lambda one: chr(int(one[1] or one[2], 16)), bare), "escapes"
    if _TWO_OF_THEM.search(bare):
        yield _DIGITS.sub(lambda word: word[0].translate(_SPELLED), bare), "digits for letters"
    if _TURNED.search(bare):
        yield codecs.decode(bare, "rot13"), "letters moved by thirteen"
    if _BACKWARDS.search(bare):
        yield "\n".join(line[::-1] for line in bare.split("\n")), "letters written backwards"
    if _PERCENT.search(bare):
        yield unquote(bare, errors="replace"), "percent signs"


def _apart(matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Those of which none lies in the stretch that was looked at with the one before."""
    end = -1
    for match in matches:
        if match.start() >= end:
            line = match.string.find("\n", match.start(), match.start() + _LONGEST_LINE)
            end = line if line >= 0 else match.start() + _LONGEST_LINE
            yield match


def _folded(text: str) -> str:
    """With letters of other scripts that look like Latin ones as those, in words that have Latin ones, too."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return re.sub(r"\w+", lambda word: _latin(word[0]), plain)


def _latin(word: str) -> str:
    if word.isascii():
        return word
    translated = word.translate(_LOOKALIKES)
    return translated if translated.isascii() else word


def _joined(text: str, match: re.Match[str]) -> str:
    """Letters that stand apart, as the words they make: two blanks or more are one, a single sign is none."""
    end = text.find("\n", match.start(), match.start() + _LONGEST_LINE)
    line = text[match.start() : end if end >= 0 else match.start() + _LONGEST_LINE]
    words = re.split(r"\s{2,}|[ ]?[|/][ ]?", line)
    return " ".join(re.sub(r"(?<=\w)[ .\-_*](?=\w)", "", word) for word in words)


def _decoded(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _BASE64.finditer(text):
        if (plain := _readable(_from_base64(match[0]))) is not None:
            yield plain, "base64", match.start()
    for match in _HEX.finditer(text):
        if (plain := _readable(bytes.fromhex(match[0]))) is not None:
            yield plain, "hexadecimal digits", match.start()


def _from_base64(word: str) -> bytes:
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (ValueError, binascii.Error):
        return b""


def _readable(data: bytes) -> str | None:
    """The bytes as text where they are one that a person could have written."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if " " in text and all(letter.isprintable() or letter in "\n\t\r" for letter in text) else None

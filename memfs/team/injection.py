"""Finds hidden instructions: texts that give orders to the model that reads them, where a memory should state a fact.

Works offline, and removes disguises first: letters of other scripts, invisible characters, Markdown,
entities, text in base64. It is precise rather than greedy: a convention may order people and agents about ("never
use tabs", "always run the tests"); what it may not do is set itself above other instructions, hide from the person,
send things away, or pass for the frame in which it is quoted. The wordings are in ``injection.toml``.
"""

from __future__ import annotations

import base64
import html
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from memfs.dataclass import dataclass
from memfs.format.text import shown

MARKED = "marks of Markdown"
_MACRO = re.compile(r"\{([a-z_]+)\}")
_MOST_COMMENTS = 50
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_SPACED = re.compile(r"(?<!\S)(?:\w[ .\-_*]){5,}\w(?!\S)[^\n]{0,2000}")
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
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһԛԝАВЕКМНОРСТХІЈЅοαενιτρκυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeopcyxijsdhqwABEKMHOPCTXIJSoaevitpkuABEZHIKMNOPTYX"
)


def readings(text: str) -> Iterator[tuple[str, str, int]]:
    """The text as models may read it: as it is, and without each disguise; where what was hidden begins, or -1."""
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
    if "&" in bare and (unescaped := html.unescape(bare)) != bare:
        yield unescaped, "entities", -1
    if _ESCAPED.search(bare):
        yield _ESCAPED.sub(lambda one: chr(int(one[1] or one[2], 16)), bare), "escapes", -1
    if _PERCENT.search(bare):
        yield unquote(bare, errors="replace"), "percent signs", -1
    for match in _SPACED.finditer(bare):
        # as the words they spell: two blanks or more are one, a single sign is none
        parts = re.split(r"\s{2,}|[ ]?[|/][ ]?", match[0])
        joined = " ".join(re.sub(r"(?<=\w)[ .\-_*](?=\w)", "", part) for part in parts)
        yield joined, "letters set apart", match.start()
    yield from _decoded(bare)


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


def _decoded(text: str) -> Iterator[tuple[str, str, int]]:
    for pattern, decode, disguise in ((_BASE64, _from_base64, "base64"), (_HEX, bytes.fromhex, "hexadecimal digits")):
        for match in pattern.finditer(text):
            with suppress(ValueError):
                plain = decode(match[0]).decode("utf-8")
                if " " in plain and all(letter.isprintable() or letter in "\n\t\r" for letter in plain):
                    yield plain, disguise, match.start()


def _from_base64(word: str) -> bytes:
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


_LONGEST = 600
"""A longer sentence is looked at in stretches that overlap by half."""
_LOOKED_INTO = 1 << 20
"""As long as a file that is read at all."""
_MOST = 10
_SHOWN = 120
_BEFORE = 60
_OPEN = ("", MARKED)
"""The readings in which quoting counts: who hides an order does not warn of it."""
_QUOTATION = '"\u201c`'
_QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"
_BREAK = re.compile(r"[.!?][\"')\]]{0,2}(?=\s)|[。！？]|\n[ \t]{0,40}(?=\n|[-*#>+|]|\d{1,3}[.)]\s|[\w.-]{1,40}:\s)")

Places = Iterator[tuple[int, int, bool]]
"""Where words that show a sign begin and end, and whether they are only spoken of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionRule:
    """One sign: its name, what it is in words, and the wordings that show it."""

    id: str
    what: str
    patterns: tuple[str, ...]


def _table() -> dict[str, Any]:
    """The wordings, with the macros in them replaced."""
    table = tomllib.loads(Path(__file__).with_name("injection.toml").read_text(encoding="utf-8"))

    def whole(pattern: str) -> str:
        filled = _MACRO.sub(lambda name: table["macros"][name[1]], pattern)
        return filled if filled == pattern else whole(filled)

    table["rules"] = [rule | {"patterns": tuple(map(whole, rule["patterns"]))} for rule in table["rules"]]
    table["traits"] = {name: "|".join(map(whole, patterns)) for name, patterns in table["traits"].items()}
    return table


_TABLE = _table()
RULES = tuple(InjectionRule(**rule) for rule in _TABLE["rules"])
_BY_ID = {rule.id: rule for rule in RULES}
_WORDINGS = tuple(
    (rule, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for rule in RULES for pattern in rule.patterns
)
_TRAITS, _CONTEXT = (
    {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _TABLE[part].items()}
    for part in ("traits", "context")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A place in a text that speaks to a model.

    Attributes:
        rule: which sign it is.
        what: the sign in words.
        line: 1-based line in the text.
        excerpt: the words, on one line, what is hidden in them shown as escapes.
        quoted: the text only speaks of such words: it quotes them, or warns of them.
        disguise: how they were hidden, "" where they are in plain sight.
    """

    rule: str
    what: str
    line: int
    excerpt: str
    quoted: bool = False
    disguise: str = ""


def instructions(text: str) -> list[Instruction]:
    """The places of a text that speak to a model, each sign once, disguised ones too.

    At most ten that give orders, and ten that only speak of such: however many of these there are, they cannot keep one
    of those from being found.
    """
    orders: dict[tuple[str, int], Instruction] = {}
    quoted: dict[tuple[str, int], Instruction] = {}
    for plain, disguise, offset in readings(text[:_LOOKED_INTO]):
        for one in _in_plain(plain, disguise, offset, text):
            (quoted if one.quoted else orders).setdefault((one.rule, one.line), one)
        if len(orders) >= _MOST:
            break
    every = [*list(orders.values())[:_MOST], *(one for key, one in quoted.items() if key not in orders)][: 2 * _MOST]
    return sorted(every, key=lambda one: one.line)


def _in_plain(plain: str, disguise: str, offset: int, text: str) -> Iterator[Instruction]:
    """Of each sign the first place where it is an order, and some before that where it is only spoken of."""
    spoken_of = 0
    for rule, places in _signs(plain):
        for start, end, mentioned in places:
            quoted = disguise in _OPEN and mentioned
            spoken_of += quoted
            if quoted and spoken_of > _MOST:
                continue
            line = plain.count("\n", 0, start) + 1 if offset < 0 else text.count("\n", 0, offset) + 1
            excerpt = shown(" ".join(plain[start : min(end, start + 4 * _SHOWN)].split()))[:_SHOWN]
            yield Instruction(
                rule=rule.id, what=rule.what, line=line, excerpt=excerpt, quoted=quoted, disguise=disguise
            )
            if not quoted:
                break


def _signs(plain: str) -> Iterator[tuple[InjectionRule, Places]]:
    """Each sign with the places that show it: wordings, and sentences with all traits of a sign and no excuse."""
    if _CONTEXT["calls"].search(plain):
        for rule, pattern in _WORDINGS:
            yield rule, _worded(plain, pattern, rule.id)
    flat = plain.replace("\n", " ")
    ends = [*(one.end() for one in _BREAK.finditer(plain)), len(plain)]
    for sign in _TABLE["signs"]:
        yield _BY_ID[sign["rule"]], _sentences(sign, plain, flat, ends)


def _worded(plain: str, pattern: re.Pattern[str], rule: str) -> Places:
    for match in pattern.finditer(plain):
        yield match.start(), match.end(), _is_mentioned(plain, match.start(), match.end(), rule)


def _sentences(sign: Mapping[str, Any], plain: str, flat: str, ends: list[int]) -> Places:
    first, *others = (_TRAITS[trait] for trait in sign["traits"])
    excuses = [_TRAITS[trait] for trait in sign.get("unless", ())]
    seen = -1
    for match in first.finditer(flat):
        if match.start() < seen:
            continue
        start, seen = _sentence(flat, ends, match.start())
        sentence = flat[start:seen]
        if all(one.search(sentence) for one in others) and not any(one.search(sentence) for one in excuses):
            # It reports what is in quotation marks that are open at its sign.
            before = plain[start : match.start()]
            opened = max((before.rfind(mark) for mark in _QUOTATION if before.count(mark) % 2), default=-1)
            quoted = opened >= 0 and bool(_CONTEXT["reporting"].search(before[:opened].rstrip(" ,:(")))
            yield start, seen, quoted or _is_mentioned(plain, match.start(), seen, sign["rule"])


def _sentence(flat: str, ends: list[int], place: int) -> tuple[int, int]:
    """Where the sentence around a place begins and ends; with the next where that continues what this one names."""
    number = bisect_right(ends, place)
    start, end = (ends[number - 1] if number else 0), ends[number]
    if number + 1 < len(ends) and _CONTEXT["goes_on"].match(flat, end):
        end = ends[number + 1]
    return max(start, place - _LONGEST // 2), min(end, place + _LONGEST)


def _is_mentioned(text: str, start: int, end: int, rule: str) -> bool:
    """Whether a text speaks of the words instead of saying them: quotes them as what somebody says, or warns of them.

    What asks to be kept from the person denies by its nature; there the word before it says nothing.
    """
    before = text[max(0, start - _BEFORE) : start]
    if before[-1:] and before[-1] in _QUOTES and any(mark in text[end : end + _BEFORE] for mark in _QUOTES):
        return bool(_CONTEXT["reporting"].search(before.rstrip(_QUOTES + " ,:(")))
    return rule != "secrecy" and bool(_CONTEXT["warning"].search(before))

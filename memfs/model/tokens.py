"""Estimates how many tokens of a model's context a text takes, and chooses the text of an item that is shown.

The rules were fitted on the vocabularies of two models in wide use and err on the high side, so that what is said to
fit a budget fits it. No vocabulary and no network is needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from memfs.model.item import MemoryItem
from memfs.startup import regex

MARGIN = 1.12
"""How much the estimate is raised above the fitted count."""
_WORD = regex(r"[^\W\d_]+")
_DIGITS = regex(r"\d+")
_SIGNS = regex(r"[^\w\s]+|_+")
_TURNS = regex(r"([!-/:-@\[-`{-~])(?!\1)(?=[!-/:-@\[-`{-~])")
_CROWDED = regex(r"(?:[^\w\s]|_){5}")  # line by line, so that parts of a text count no less than the whole
_LINES = regex(r"\n[ \t\n]*")
_GAPS = regex(r"(?<=\S) {2,}(?=\S)")
_BLOB = regex(r"[A-Za-z0-9+/]{40,}")
_BLOB_LENGTH = 40
_LONG = 4_000
_CAPITALS = b"AAAA"
# Letters beyond so many in one word, and what each costs: names of code are long, random text is longer.
_BEYOND = ((6, 0.067), (12, 0.15), (20, 0.35))
_SHORT = _BEYOND[0][0]
_MANY_SIGNS = 4
# What one character costs besides the word it is in, by script; the last row is everything else beyond ASCII.
_SCRIPTS = (
    ("\u00c0-\u024f\u1e00-\u1eff", 0.8),
    ("\u0370-\u06ff", 0.16),
    ("\u0900-\u0dff", 0.113),
    ("\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff", 0.35),
    ("\u10a0-\u10ff", 0.3),
    ("\u3005-\u3007\u3041-\u3096\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff", 0.85),
    ("\u1100-\u11ff\uac00-\ud7ff", 0.7),
    ("\u2010-\u2027", 0.113),
)
_ELSEWHERE = 1.6
_ASTRAL = 2.2


def _table(kept: Callable[[str], bool], shown: Callable[[str], str]) -> bytes:
    """Shows each ASCII character that is kept, and a blank in place of every other."""
    return bytes(ord(shown(chr(code)) if kept(chr(code)) else " ") for code in range(128)).ljust(256)


_TABLES = (
    _table(str.isalpha, str),
    _table(str.isdigit, str),
    _table(lambda one: one.isprintable() and not one.isalnum() and one != " ", str),
)
_CASES = _table(str.isalpha, lambda one: "A" if one.isupper() else "a")


def count_tokens(text: str) -> int:
    """About how many tokens a text is to a language model, more likely too many than too few; 0 for ""."""
    return _remembered(text) if len(text) <= _LONG else _counted(text)


def _counted(text: str) -> int:
    if not text:
        return 0
    words, digits, signs = _runs(text)
    fitted = 0.995 * len(words) + 0.887 * len(signs) + 0.055 * sum(signs)
    fitted += 1.04 * sum([(length + 2) // 3 for length in digits])
    fitted += sum(map(_long, [length for length in words if length > _SHORT]))
    fitted += _shapes(text)
    if max(signs, default=0) > _MANY_SIGNS:
        fitted += 0.4 * sum(len(_TURNS.findall(line)) for line in text.splitlines() if _CROWDED.search(line))
    if not text.isascii():
        fitted += _beyond_ascii(text)
    return max(1, math.ceil(MARGIN * fitted))


# What is found once is often found again.
_remembered = lru_cache(maxsize=4096)(_counted)


def _runs(text: str) -> Sequence[list[int]]:
    """The lengths of the runs of letters, of digits and of signs."""
    if not text.isascii():
        return [list(map(len, pattern.findall(text))) for pattern in (_WORD, _DIGITS, _SIGNS)]
    # five times as quick as searching
    plain = text.encode()
    return [list(map(len, plain.translate(table).split())) for table in _TABLES]


@lru_cache(maxsize=256)
def _long(length: int) -> float:
    return sum(cost * (length - least) for least, cost in _BEYOND if length > least)


def _shapes(text: str) -> float:
    """What lines, gaps, capitals within words, words in capitals and random text cost."""
    cases = text.encode("ascii", "replace").translate(_CASES)
    cost = 0.52 * cases.count(b"aA")
    if _CAPITALS in cases:
        cost += 0.25 * sum([_CAPITALS in word and b"a" not in word for word in cases.split()])
    if "\n" in text:
        cost += 1.15 * len(_LINES.findall(text))
    if "  " in text:
        cost += len(_GAPS.findall(text))
    if max(map(len, text.split()), default=0) >= _BLOB_LENGTH:
        cost += 0.2 * sum(len(run) for run in _BLOB.findall(text) if not run.islower())
    return cost


def _beyond_ascii(text: str) -> float:
    rest = len(text) - len(text.encode("ascii", "ignore"))
    astral = sum(character > "\uffff" for character in text)
    cost, rest = _ASTRAL * astral, rest - astral
    for pattern, each in _scripts():
        found = len(pattern.findall(text))
        cost, rest = cost + each * found, rest - found
    return cost + _ELSEWHERE * rest


@cache
def _scripts() -> list[tuple[re.Pattern[str], float]]:
    return [(re.compile(f"[{characters}]"), cost) for characters, cost in _SCRIPTS]


def whole(item: MemoryItem) -> str:
    """What of an item is shown: its title and its content, a line each."""
    return "\n".join(filter(None, (item.title, item.content)))


def gist(item: MemoryItem) -> str:
    """What an item says: its content, or its title where it has no other words."""
    return item.content if item.content.strip() else item.title

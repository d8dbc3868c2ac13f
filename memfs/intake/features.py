"""Extracts the keywords and names that a text mentions.

Works offline and in bounded time.
"""

from __future__ import annotations

import re

from memfs.search.analyzer import STOP_WORDS, tokens
from memfs.search.terms import COMMON_WORDS

MOST_KEYWORDS = 5
MOST_NAMES = 8
_LOOKED_AT = 5_000
_MORE_EMPTY_WORDS = (
    "we they them he she us was were been being also than into onto out via per whether within without among "
    "however therefore because since while though although dont doesnt didnt wont cant"
)
_EMPTY_WORDS = STOP_WORDS | COMMON_WORDS | frozenset(_MORE_EMPTY_WORDS.split())
_NAME_LENGTH = 60

_NAMES = re.compile(
    r"(?<![\w`./@-])(?:"
    r"`(?P<code>[^`\n]{2,60})`"
    r"|(?P<link>https?://[^\s<>\"')\]]{3,200}[^\s<>\"')\].,;:!?])"
    r"|(?P<mail>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,63}){1,4})"
    r"|(?P<path>~?[\w.-]{0,64}(?:/[\w.-]{1,64}){1,12}/?|[\w-]{1,64}\.(?:py|js|ts|tsx|go|rs|rb|c|h|cpp|java|md|ya?ml|toml|"
    r"json|sh|sql|html|css|txt|cfg|ini|lock|csv|tf|proto)\b)"
    r"|(?P<word>[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[a-z]+[A-Z]\w{0,60}|[A-Z]{2,}[A-Z0-9]*\w{0,8}|[A-Za-z]+\d[\w]{0,30}|"
    r"[A-Za-z]\w{0,40}_\w{1,40})"
    r"|(?P<proper>[A-Z][a-z]+\b(?: (?:(?:of|de|van|von|the) )?[A-Z][a-z]+\b){0,3})"
    r")"
)
_SENTENCE_END = re.compile(r"(?:^|[.!?:\n\u2022*#>-])[\s\"'(\u201c]*$")

_CALENDAR_WORDS = (
    "monday tuesday wednesday thursday friday saturday sunday "
    "january jan february feb march mar april apr may june jun july jul august aug september sept sep october oct "
    "november nov december dec"
)
_NO_KEYWORDS = _EMPTY_WORDS | frozenset(_CALENDAR_WORDS.split())


def keywords(text: str) -> tuple[str, ...]:
    """The words of a text that tell most: often said, long, early; lower case, the best first, at most five."""
    found: dict[str, list[float]] = {}
    for place, (word, stems) in enumerate(tokens(text[:_LOOKED_AT])):
        plain = word.casefold()
        telling = stems and len(plain) > 2 and plain not in _NO_KEYWORDS and not plain.isdigit()
        if telling:
            row = found.setdefault(plain, [0.0, float(place)])
            row[0] += 1.0 + min(len(plain), 12) / 12 + (0.5 if word[1:] != word[1:].lower() else 0.0)
    ranked = sorted(found, key=lambda word: (-found[word][0] + found[word][1] / 200, found[word][1]))
    return tuple(ranked[:MOST_KEYWORDS])


def names(text: str) -> tuple[str, ...]:
    """Names, identifiers, paths, addresses and links a text mentions, as written, in order, at most eight."""
    text = text[:_LOOKED_AT]
    found: dict[str, str] = {}
    for match in _NAMES.finditer(text):
        name = match["code"] or match.group().strip("`")
        if match.lastgroup == "proper":
            name = _named(name, text[max(match.start() - 8, 0) : match.start()])
        if name and (len(name) <= _NAME_LENGTH or match.lastgroup == "link"):
            found.setdefault(name.casefold(), name)
        if len(found) == MOST_NAMES:
            break
    return tuple(found.values())


def _named(words: str, before: str) -> str:
    """The name in words with capitals: without one that merely begins a sentence, unless it may belong to the name."""
    first, _, rest = words.partition(" ")
    if first.casefold() in _NO_KEYWORDS:
        return rest
    if _SENTENCE_END.search(before) and not rest:
        return ""
    return words

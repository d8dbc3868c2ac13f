"""Extracts the keywords, names and dates that a text mentions.

Works offline and in bounded time.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta

from memfs.search.analyzer import STOP_WORDS, tokens
from memfs.search.terms import COMMON_WORDS

MOST_KEYWORDS = 5
MOST_NAMES = 8
MOST_DATES = 8
_LOOKED_AT = 5_000
_MORE_EMPTY_WORDS = (
    "we they them he she us was were been being also than into onto out via per whether within without among "
    "however therefore because since while though although dont doesnt didnt wont cant"
)
_EMPTY_WORDS = STOP_WORDS | COMMON_WORDS | frozenset(_MORE_EMPTY_WORDS.split())
_NAME_LENGTH = 60
_MOST_SPOTS = 32

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

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("January Jan", "February Feb", "March Mar", "April Apr", "May", "June Jun", "July Jul", "August Aug",
         "September Sept Sep", "October Oct", "November Nov", "December Dec"), 1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_NUMBERS |= {"nine": 9, "ten": 10, "couple of": 2, "a couple of": 2}
_NO_KEYWORDS = _EMPTY_WORDS.union(_WEEKDAYS, map(str.casefold, _MONTHS))
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_DATES = (
    re.compile(r"(?<![\d-])(?P<year>\d{4})-(?P<number>\d{2})-(?P<day>\d{2})(?![\d-])"),
    re.compile(rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|:\d)(?:,? (?P<year>\d{{4}})\b)?"),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}})\b)?(?!\w)"),
    re.compile(rf"\b{_MONTH} (?:of )?(?P<year>\d{{4}})\b"),
)
_RELATIVE = re.compile(
    r"\b(?:(?P<named>today|yesterday|tomorrow|tonight|last night)"
    rf"|(?P<which>last|next|this|by|until) (?P<span>week|month|year|{'|'.join(_WEEKDAYS)})"
    rf"|(?P<in>in )?{_COUNT} (?P<unit>day|week|month|year)s?(?P<ago> ago| from now)?)\b",
    re.I,
)
_SHIFTS = {"today": 0, "tonight": 0, "yesterday": -1, "last night": -1, "tomorrow": 1}


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
    if _is_empty(first):
        return rest
    if _SENTENCE_END.search(before) and not rest:
        return ""
    return words


def _is_empty(word: str) -> bool:
    return word in _MONTHS or word.casefold() in _WEEKDAYS or word.casefold() in _EMPTY_WORDS


def dates(text: str, said: date) -> tuple[str, ...]:
    """The dates a text mentions in ISO 8601, in order, at most eight: days, ``2026-03``, ``2026-W11``, ``2026``.

    Args:
        said: the day it was said, from which "yesterday" and a date without a year are counted.
    """
    text = text[:_LOOKED_AT]
    spots: list[tuple[int, int, str]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if len(spots) > _MOST_SPOTS:
                break
            if not any(start < match.end() and match.start() < end for start, end, _ in spots):
                spots += [(match.start(), match.end(), found) for found in _absolute(match, said)]
    for match in _RELATIVE.finditer(text):
        spots += [(match.start(), match.end(), found) for found in _related(match, said)]
    return tuple(dict.fromkeys(found for _, _, found in sorted(spots)))[:MOST_DATES]


def _absolute(match: re.Match[str], said: date) -> Iterator[str]:
    parts = match.groupdict()
    month = int(parts["number"]) if parts.get("number") else _MONTHS[parts["month"]]
    year = int(parts["year"]) if parts.get("year") else None
    if not parts.get("day"):
        if year:
            yield f"{year:04}-{month:02}"
        return
    try:
        day = int(parts["day"])
        years = [year] if year else [said.year - 1, said.year, said.year + 1]
        days = [date(one, month, day) for one in years if 0 < one < 10_000 and day <= monthrange(one, month)[1]]
    except ValueError:
        return
    if days:
        yield min(days, key=lambda one: abs(one - said)).isoformat()


def _related(match: re.Match[str], said: date) -> Iterator[str]:
    try:
        yield from _reckoned(match, said)
    except (OverflowError, ValueError):
        return  # further away than a date can be


def _reckoned(match: re.Match[str], said: date) -> Iterator[str]:
    if match["named"]:
        yield (said + timedelta(days=_SHIFTS[match["named"].lower()])).isoformat()
    elif match["span"]:
        yield from _spanned(match["which"].lower(), match["span"].lower(), said)
    elif bool(match["in"]) != bool(match["ago"]) or match["ago"]:
        word = match["count"].lower()
        sign = -1 if match["ago"] and "ago" in match["ago"].lower() else 1
        yield _shifted(said, sign * (int(word) if word.isdigit() else _NUMBERS[word]), match["unit"].lower())


def _spanned(which: str, span: str, said: date) -> Iterator[str]:
    if span in _WEEKDAYS:
        ahead = (_WEEKDAYS.index(span) - said.weekday()) % 7
        back = which == "last"
        yield (said + timedelta(days=(ahead - 7 if ahead else -7) if back else ahead or 7)).isoformat()
    elif which in ("last", "next"):
        yield _shifted(said, -1 if which == "last" else 1, span, whole=True)


def _shifted(said: date, count: int, unit: str, whole: bool = False) -> str:
    """A date so many units away; ``whole``: the week, month or year itself, as are months and years in any case."""
    if unit == "day":
        return (said + timedelta(days=count)).isoformat()
    if unit == "week":
        then = said + timedelta(weeks=count)
        year, week, _ = then.isocalendar()
        return f"{year:04}-W{week:02}" if whole else then.isoformat()
    if unit == "month":
        months = said.year * 12 + said.month - 1 + count
        return f"{months // 12:04}-{months % 12 + 1:02}"
    return f"{said.year + count:04}"

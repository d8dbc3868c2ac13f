"""Finds the times that a question names: 25.01.2024, 9 May, in May 2023, last spring, two weeks ago.

Dates in figures, and English names of months, seasons and days of the week.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from memfs.dataclass import NamedTuple
from memfs.model.time import MONTHS

_NAMES = {name[:length]: number for number, name in enumerate(MONTHS, 1) for length in (3, 4, len(name))}
_VERBS = frozenset({"march", "may"})
_WEEKDAYS = {name: number for number, name in enumerate(("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))}
_SEASONS = {"spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11), "fall": (9, 10, 11), "winter": (12, 1, 2)}
_UNITS = {"day": 1, "night": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6}
_LAST = frozenset({"last", "past", "previous"})
_IN = frozenset({"in", "this", "during", "since", "of", "early", "late", *_LAST})
_BEFORE, _AFTER = frozenset({"before", "until", "by"}), frozenset({"after", "since", "from"})
_THEN, _ABOUT = 2.0, 1.4
_TOLD = 7
"""So many days after it happened something is told."""
_WIDE, _HALF_YEAR = 10, 182


class NamedDay(NamedTuple):
    """Days that a question names, and what a memory of one of them counts more.

    Attributes:
        day: that all are counted from; in every year, where ``yearly``.
        first, last: how many days after it they begin and end.
    """

    day: date
    first: int
    last: int
    worth: float = _ABOUT
    yearly: bool = False

    def holds(self, moment: date) -> bool:
        """Whether a day is one of them."""
        days = (moment - (self.day.replace(year=moment.year) if self.yearly else self.day)).days
        # the nearest one may lie in the year before or after
        days = (days + _HALF_YEAR) % 365 - _HALF_YEAR if self.yearly else days
        return self.first <= days <= self.last


class NamedTimes(NamedTuple):
    """The times that a question names: days, and the numbers of months and years."""

    days: Sequence[NamedDay] = ()
    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()


def times_in(text: str, words: Sequence[str], now: date, *, brief: bool = True) -> NamedTimes:
    """The times that a question names.

    Args:
        words: of the text, in order, as they are written.
        brief: whether the text is one question: else it is a talk, of whose times months and years alone count.
    """
    low = [word.lower() for word in words]
    months, years = set[int](), set[int]()
    for place, word in enumerate(low):
        if word in MONTHS and (words[place][0].isupper() or word not in _VERBS):  # "may" is seldom the month
            months.add(_NAMES[word])
        elif (
            brief and word in _SEASONS and place and (low[place - 1] in _IN or low[place - 2 : place] == ["in", "the"])
        ):
            months |= {*_SEASONS[word]}
        if len(word) == 4 and word[:2] in ("19", "20") and _is_figure(word):
            years.add(int(word))
        elif brief and place and low[place - 1] in _LAST:
            years |= _last(word, now, months)
    days = list(_days(text, words, low, now)) if brief else ()
    return NamedTimes(days, frozenset(months), frozenset(years))


def _days(text: str, words: Sequence[str], low: Sequence[str], now: date) -> Iterator[NamedDay]:
    for place in range(len(low)):
        if day := _figures(text, words, place) or _day_of_month(words, low, place):
            yield from _around(*day, low[max(0, place - 1)])
        elif span := _counted(low, place, now):
            yield span


def _last(name: str, now: date, months: set[int]) -> set[int]:
    """The year of the last month, season or year of that name; ``months`` gets the last month."""
    if name == "year":
        return {now.year - 1}
    if name == "month":
        month = now.replace(day=1) - timedelta(days=1)
        months.add(month.month)
        return {month.year}
    if name == "winter":
        return {now.year - 1, now.year}
    meant = _SEASONS.get(name) or ((_NAMES[name],) if name in MONTHS else ())
    return {now.year - (now.month <= meant[-1])} if meant else set()


def _around(year: int, month: int, number: int, before: str) -> Iterator[NamedDay]:
    """What the day of a year, 0 for any, stands for: it and the next most, and the days when one tells of it."""
    try:
        day = date(year or 2025, month, number)  # not the day that most years lack
    except ValueError:
        return
    if before in _BEFORE:
        yield NamedDay(day, -_WIDE, 0, yearly=not year)
    elif before in _AFTER:
        yield NamedDay(day, 0, 2 * _WIDE, yearly=not year)
    else:
        yield NamedDay(day, 0, 1, _THEN, yearly=not year)
        yield NamedDay(day, -1, _TOLD, yearly=not year)


def _figures(text: str, words: Sequence[str], place: int) -> tuple[int, int, int] | None:
    """Year, month and day that three figures stand for: 2024-01-25, 25.01.2024, 1/25/2024."""
    parts = words[place : place + 3]
    if len(parts) < 3 or not all(map(_is_figure, parts)):
        return None
    sign = next((sign for sign in "-./" if sign.join(parts) in text), "")
    one, two, three = map(int, parts)
    if sign and len(parts[0]) == 4:
        return one, two, three
    if not sign or len(parts[2]) != 4:
        return None
    return (three, one, two) if sign == "/" and one <= 12 else (three, two, one)


def _day_of_month(words: Sequence[str], low: Sequence[str], place: int) -> tuple[int, int, int] | None:
    """Year, or 0, month and day where a month is named with one: May 9, 2023; 9 May; the 9th of May."""
    month = _NAMES.get(low[place])
    if month is None or not words[place][0].isupper():
        return None
    after = [*low[place + 1 : place + 3], "", ""]
    day = _ordinal(low[place - 2 if low[place - 1] == "of" else place - 1]) if place else 0
    year = after[0] if day else after[1]
    day = day or _ordinal(after[0])
    return (int(year) if len(year) == 4 and _is_figure(year) else 0, month, day) if day else None


def _counted(low: Sequence[str], place: int, now: date) -> NamedDay | None:
    """Days counted from now: yesterday, last week, last Friday, the past two weeks, a month ago."""
    word, rest = low[place], [*low[place + 1 : place + 3], "", ""]
    if word == "yesterday":
        return NamedDay(now, -1, 0)
    if word == "ago" and place > 1 and (length := _length(low[place - 1])):
        ago, about = _count(low[place - 2]) * length, length // 2 + 1
        return NamedDay(now, -ago - about, -ago + about) if ago else None
    if word not in _LAST and word != "this":
        return None
    if (weekday := _WEEKDAYS.get(rest[0].removesuffix("day"))) is not None:
        return NamedDay(now, -((now.weekday() - weekday - 1) % 7) - 1, 0)
    if (number := _count(rest[0])) and (length := _length(rest[1])):
        return NamedDay(now, -number * length, 0)
    length = _length(rest[0])
    return NamedDay(now, -length * (1 if word == "this" else 2), 0) if 0 < length <= 7 else None


def _is_figure(word: str) -> bool:
    return len(word) <= 4 and word.isascii() and word.isdecimal()


def _ordinal(word: str) -> int:
    number = word[:-2] if word.endswith(("st", "nd", "rd", "th")) else word
    return int(number) if len(number) <= 2 and _is_figure(number) else 0


def _length(word: str) -> int:
    return _UNITS.get(word.removesuffix("s"), 0)


def _count(word: str) -> int:
    return int(word) if _is_figure(word) else _COUNTS.get(word, 0)

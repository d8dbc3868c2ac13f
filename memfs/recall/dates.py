"""Finds the times that a question names: 25.01.2024, 9 May, last spring, two weeks ago, the week after the launch.

The words are those of each language in ``memfs/languages/times.json``; the grammar is the same for all. A question
is read as one letter for each word, ``nUF`` for *two weeks after*, and searched for patterns of these.
"""

from __future__ import annotations

import json
import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache, partial
from itertools import product

from memfs.dataclass import NamedTuple
from memfs.model import Anchor, Candidate, MemoryItem
from memfs.model.item import whole
from memfs.resources import times_text
from memfs.search import analyzer, terms
from memfs.search.analyzer import stop_words
from memfs.search.terms import Asked
from memfs.startup import regex

_LETTERS = {
    "happen": "h",
    **dict.fromkeys(("day", "week", "month", "year"), "U"),
    "last": "L",
    "gone": "G",
    "this": "T",
    "ago": "A",
    "back": "K",
    "back_or_before": "V",
    "ago_or_before": "Q",
    "before": "B",
    "after": "F",
    "since": "S",
    "until": "P",
    "by": "p",
    "from": "R",
    "in": "I",
    "of": "o",
    "the": "t",
    "event": "e",
    "ask": "?",
    "first": "1",
    "latest": "9",
}
"""What the words of each list stand for. *gone* follows what it is said of, *back* comes before a count of days."""
_ROWS = {"numbers": "n", "weekdays": "W", "months": "M", "seasons": "s", "yesterday": "E"}
"""Lists in which the place of a word is what it means, from 1; a row may hold several forms."""
_LENGTHS = {"day": 1, "week": 7, "month": 30, "year": 365}
_SEASONS = ((3, 4, 5), (6, 7, 8), (9, 10, 11), (12, 1, 2))
_LONGEST_PHRASE = 5
_TOKEN = regex(
    r"(\d{1,4})(?P<sign>[-./])(\d{1,2})(?P=sign)(\d{1,4})(?![\w])|(?P<unspaced>[\u3041-\u30ff\u3400-\u9fff])|"
    r"(?:(?![\u3041-\u30ff\u3400-\u9fff])\w)+|[.,;:?!\u3001\u3002]"
)
_ORDINAL = regex(r"(\d{1,2})(?:st|nd|rd|th|er?|de|-?го|º|ª)?")
_DAY = r"(?:D|d\|?o*[Mm][o|]*y?|[Mm]o?d\|?y?|(?:yU)?MdU?)"
_COUNT, _SOME = "[nd]{1,4}", "[nd]{0,4}"
"""Numbers before what they count; without a bound, a long run of them would be read again from each."""
_SPOKEN_FOR = rf"(?!{_SOME}o?U|[LT](?:{_SOME}[UW]|M|s)|[KV]{_COUNT}o?U|[Esy]|M(?!o?d))"
"""What follows *before* or *since* and is a time by itself."""
_GRAMMAR = regex(
    rf"(?P<ago>[KV]{_COUNT}o?U|(?<!e){_COUNT}o?U[AQ])|(?P<turned>e?[FQB]e?{_SOME}U)|"
    rf"(?P<relation>e?(?:[LT]?t?{_SOME}o?[UW]o?)?[BVFSPQ][ot]*+{_SPOKEN_FOR}{_DAY}?)|(?P<bound>[pR][ot]*{_DAY})|"
    rf"(?P<last>[LT](?:{_SOME}o?[UW]|M|s)|{_COUNT}[LT]U|{_SOME}[UW]o?G|[Ms]o?G)|(?P<yesterday>E)|"
    rf"(?P<day>{_DAY})|(?P<month>M)|(?P<season>(?<=[ILTUSBFVPo])s|(?<=[ISBFVP]t)s|s(?=o*y))|(?P<year>y)|(?P<order>[19]|(?<=\.)L(?=\.))"
)
_EARLIER = frozenset("BVPpQ")
_OF_ASKING = frozenset("h?TIeotG|")
"""What a question may have beside a time that asks for nothing more."""
_THEN, _NEXT, _ABOUT = 2.0, 1.9, 1.4
_DAYS_AFTER = 7
"""How many days after an event it is still told of."""
_WIDE, _HALF_YEAR = 10, 182
_EVER = 36_500
_EXACT = 2
_FITS = 0.6
"""What share of the words of an event a memory must have, each by how rare it is."""
_READ = 4_000
"""How many characters of a memory are read for the day of an event."""
_SAYS_A_DAY, _ASKS = 1.5, 0.75
_SENTENCE = regex(r"(?<=[.!?])\s|[\u3002\uff01\uff1f\n]")


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
        # the nearest one may be in the year before or after
        days = (days + _HALF_YEAR) % 365 - _HALF_YEAR if self.yearly else days
        return self.first <= days <= self.last


class Distance(NamedTuple):
    """How far something lies from a day: *two weeks after*, *the Sunday before*, *since*.

    Attributes:
        relation: a letter of the grammar.
        number, length: how many times how many days; a number of 0 where none is said, a length of 0 for no unit.
        weekday: 1 for Monday to 7; 0 where none is said.
    """

    relation: str = ""
    number: int = 0
    length: int = 0
    weekday: int = 0

    def days(self, day: date, *, yearly: bool = False) -> Iterator[NamedDay]:
        """The days that are meant, so far from one."""
        sign = -1 if self.relation in _EARLIER else 1
        span = partial(NamedDay, day, yearly=yearly)
        if self.weekday or self.length == 1:
            apart = (sign * (self.weekday - 1 - day.weekday()) - 1) % 7 + 1 if self.weekday else max(1, self.number)
            yield span(first=sign * apart, last=sign * apart + 1, worth=_THEN)
            yield span(first=sign * apart - 1, last=sign * apart + _DAYS_AFTER)
        elif self.length and self.number:
            middle, about = sign * self.number * self.length, self.length // 2 + 1
            yield span(first=middle - about, last=middle + about)
        elif self.length:
            yield span(first=min(0, sign * self.length), last=max(0, sign * self.length))
        elif sign < 0:
            yield span(first=-_WIDE, last=0)
        else:
            yield span(first=0, last=_EVER if self.relation == "S" else 2 * _WIDE)


class NamedTimes(NamedTuple):
    """The times that a question names: days, and the numbers of months and years.

    Attributes:
        event: what memory dates and the question does not, from whose time it counts; "" for nothing.
        distance: how far from it.
        order: -1 where it asks for the first time, 1 for the last one, else 0.
        rest: the question without the words of days; "" where it asks for nothing more than what was then.
        literal: the same days, and how they count from an event, as memories may write them.
        beside: the rest without the words of the event, which is what is asked for where the event has a day.
    """

    days: Sequence[NamedDay] = ()
    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    event: str = ""
    distance: Distance | None = None
    order: int = 0
    rest: str = ""
    literal: Sequence[str] = ()
    beside: str | None = None

    @property
    def dated(self) -> bool:
        """Whether it names any day, month or year."""
        return bool(self.days or self.months or self.years)

    def counted_from(self, day: date) -> NamedTimes:
        """These, where the event was on a day."""
        days = (*self.days, *(self.distance or Distance()).days(day))
        return self._replace(days=days, rest=self.rest if self.beside is None else self.beside)

    def spans(self, now: date) -> list[tuple[date, date]]:
        """The first and the last day of each time, in order; without a year, of this year and the last."""
        lately = (now.year - 1, now.year)
        found: list[tuple[int, int]] = []
        for day in self.days:
            for year in lately if day.yearly else (day.day.year,):
                start = day.day.replace(year=year).toordinal()
                found.append((start + day.first, start + day.last))
        if not self.days:
            years = self.years or (lately if self.months else ())
            for year, month in product(sorted(years), sorted(self.months) or range(1, 13)):
                start = date(year, month, 1).toordinal()
                found.append((start, start + monthrange(year, month)[1] - 1))
        joined: list[tuple[int, int]] = []
        for first, last in sorted(found):
            if joined and first <= joined[-1][1] + 1:
                first, last = joined[-1][0], max(last, joined.pop()[1])
            joined.append((first, last))
        return [(_day(first), _day(last)) for first, last in joined]


class _Word(NamedTuple):
    letter: str
    value: int
    start: int
    end: int
    day: tuple[int, int, int] | None = None
    unspaced: bool = False


def times_in(text: str, now: date, *, brief: bool = True) -> NamedTimes | None:
    """The times that a question names; None where it names none.

    Args:
        brief: whether the text is one question: else it is a talk, of whose times months and years alone count.
    """
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    for language in [name for name in analyzer.text_languages(text) if name in _tables()] or ("en",):
        found = _Sentence(text, language, now, brief=brief).times
        if found.dated or found.event or found.order:
            return found
    return None


class _Sentence:
    """What the words of a text, in one language, say of times."""

    def __init__(self, text: str, language: str, now: date, *, brief: bool) -> None:
        self._text, self._words, self._now = text, _words(text, language), now
        self._tail = re.compile("|".join(_tables()[language].get("tail", ["(?!)"])))
        self._months, self._years = set[int](), set[int]()
        self._event, self._order = "", 0
        self._distance: Distance | None = None
        self._beside = list[int]()
        days: list[NamedDay] = []
        literal: list[str] = []
        rest, asks = text, [self._asks(word, language) for word in self._words]
        letters = "".join(word.letter for word in self._words)
        for match in _GRAMMAR.finditer(letters):
            name, here = match.lastgroup or "", self._words[match.start() : match.end()]
            self._months |= {word.value for word in here if word.letter == "M"}
            self._years |= {word.value for word in here if word.letter == "y"}
            if not brief:
                continue
            count = len(days)
            if name in ("season", "last"):
                self._months |= {month for word in here if word.letter == "s" for month in _SEASONS[word.value - 1]}
            if name in ("relation", "bound", "day") or (name == "turned" and here[0].unspaced):
                days += self._related(here, match.start(), match.end(), letters)
            elif name in ("ago", "last", "yesterday"):
                days += self._from_now(name, here)
            elif name == "order":
                named = here[0].letter != "L" or self._text[here[0].start : here[0].end].lower() == "last"
                self._order = (-1 if here[0].letter == "1" else 1) if named else self._order
            if len(days) > count or name in ("last", "month", "season", "year"):
                asks[match.start() : match.end()] = [True] * len(here)
            start, end = here[0].start, here[-1].end
            if len(days) > count or name == "last":
                rest = rest[:start] + " " * (end - start) + rest[end:]
            if len(days) > count and (day := _day_in(here)):
                written = _date(*day) if day[0] else None
                literal += [text[start:end], *([written.isoformat()] if written else [])]
        left = [place for place, asking in enumerate(asks) if not asking]
        beside = self._without_event(rest, left) if self._beside else None
        if self._beside:
            literal.append(text[self._words[self._beside[0]].start : self._words[self._beside[-1]].end])
        if brief and not (self._event or self._order or left):
            rest = ""
        months, years = frozenset(self._months), frozenset(self._years)
        self.times = NamedTimes(days, months, years, self._event, self._distance, self._order, rest, literal, beside)

    def _without_event(self, rest: str, left: Sequence[int]) -> str:
        """What remains without the words of the event and how far from it; "" where no word but those is ``left``."""
        for word in (self._words[place] for place in self._beside):
            rest = rest[: word.start] + " " * (word.end - word.start) + rest[word.end :]
        return rest if self._order or not {*self._beside}.issuperset(left) else ""

    def _asks(self, word: _Word, language: str) -> bool:
        """Whether a word adds nothing to a time, as those of *what happened*."""
        plain = analyzer.folded(self._text[word.start : word.end]).lower()
        return word.letter in _OF_ASKING or plain in stop_words(language) or plain in terms.COMMON_WORDS

    def _related(self, here: Sequence[_Word], start: int, end: int, letters: str) -> Iterator[NamedDay]:
        """The days that a day, named or not, with what precedes it, means; keeps an event that is to be found."""
        at = next((place for place, word in enumerate(here) if word.letter in "BVFSPQpR"), None)
        relation = here[at].letter if at is not None else ""
        before = here if here[0].letter in "eFQB" else here[:at]
        distance = Distance(relation, _value(before, "nd"), _value(before, "U"), _value(before, "W"))
        named = _day_in(here[at + 1 if at is not None else 0 :])
        if named is not None:
            yield from _around(*named, relation)
            if relation and (distance.length or distance.weekday):
                day, yearly = _date(*named), not named[0]
                yield from distance.days(day, yearly=yearly) if day is not None else ()
        elif relation == "S" or distance.length or distance.weekday:  # *after lunch* seldom says when
            first, last = self._event_beside(start, end, letters, unspaced=any(word.unspaced for word in here))
            event = self._text[self._words[first].start : self._words[last - 1].end] if last > first else ""
            if analyzer.terms(event) and not analyzer.STOP_WORDS.issuperset(analyzer.terms(event)):
                self._event, self._distance = event, distance
                # where it is certain that the time is meant, and where its words end
                certain = distance.number or distance.weekday or here[0 if distance.length else -1].letter == "t"
                self._beside = [*range(min(start, first), max(end, last))] if certain else []

    def _event_beside(self, start: int, end: int, letters: str, *, unspaced: bool) -> tuple[int, int]:
        """The first and last of the words that follow, up to the end of the clause; of those before, where the verb
        comes last.
        """
        if unspaced and start and letters[start - 1] not in "|?I":
            return max(letters.rfind(sign, 0, start) for sign in "|?I") + 1, start
        last = min((place for sign in "|?BFS" if (place := letters.find(sign, end)) >= 0), default=len(letters))
        if last > end + 1 and self._tail.fullmatch(self._text, self._words[last - 1].start, self._words[last - 1].end):
            last -= 1  # the verb of the clause around it
        return end, last

    def _from_now(self, name: str, here: Sequence[_Word]) -> Iterator[NamedDay]:
        """Days counted from now; months and years are kept."""
        number, length, weekday = _value(here, "nd"), _value(here, "U"), _value(here, "W")
        now, this = self._now, any(word.letter == "T" for word in here)
        if name == "yesterday":
            yield NamedDay(now, -here[0].value, -here[0].value, _THEN)
            yield NamedDay(now, -here[0].value, 1 - here[0].value)
        elif name == "ago":
            about = length // 2 + 1
            yield NamedDay(now, -number * length - about, -number * length + about)
        elif weekday and this:
            apart = weekday - 1 - now.weekday()
            yield NamedDay(now, apart, max(apart, 0))
        elif weekday:
            yield NamedDay(now, -((now.weekday() - weekday) % 7) - 1, 0)
        elif number and length:
            yield NamedDay(now, -number * length, 0)
        elif 0 < length <= 7:
            yield NamedDay(now, -length * (1 if this else 2), 0)
        elif length or not this:
            self._last(length, _value(here, "M"), _value(here, "s"), this=this)

    def _last(self, length: int, month: int, season: int, *, this: bool) -> None:
        """Keep the last month, season or year, of that name if it has one, or ``this`` month or year."""
        now = self._now
        if length == _LENGTHS["month"]:
            before = now if this else now.replace(day=1) - timedelta(days=1)
            self._months.add(before.month)
            self._years.add(before.year)
        elif length:
            self._years.add(now.year - (not this))
        else:
            months = _SEASONS[season - 1] if season else (month,)
            self._months |= {*months}
            self._years |= {now.year - 1, now.year} if 12 in months[:-1] else {now.year - (now.month <= months[-1])}


def _value(words: Sequence[_Word], letters: str) -> int:
    return next((word.value for word in reversed(words) if word.letter in letters), 0)


def _day_in(words: Sequence[_Word]) -> tuple[int, int, int] | None:
    """Year, or 0, month and day that some words name."""
    if day := next((word.day for word in words if word.day), None):
        return day
    month, number = _value(words, "Mm"), _value([word for word in words if word.letter == "d"][:1], "d")
    return (_value(words, "y"), month, number) if month and number else None


def _around(year: int, month: int, number: int, relation: str) -> Iterator[NamedDay]:
    """What the day of a year, 0 for any, stands for: it and the next most, and the days when it is told of."""
    day, yearly = _date(year, month, number), not year
    if day is None:
        return
    if relation:
        yield from Distance(relation).days(day, yearly=yearly)
    else:
        yield NamedDay(day, 0, 0, _THEN, yearly)
        yield NamedDay(day, 0, 1, _NEXT, yearly)
        yield NamedDay(day, -1, _DAYS_AFTER, yearly=yearly)


def _day(number: int) -> date:
    return date.fromordinal(min(max(number, 1), date.max.toordinal()))


def _date(year: int, month: int, number: int) -> date | None:
    try:
        return date(year or 2025, month, number)  # not the day that most years lack
    except ValueError:
        return None


# -- events -------------------------------------------------------------------------------------------------------
def anchor_of(event: str, asked: Asked, memories: Iterable[tuple[Candidate, MemoryItem]]) -> Anchor | None:
    """The memory that describes an event best, and the day of it; None where none has enough of its words.

    The day is the one that it names beside the event, or else its own. One that says a day is preferred, one that
    itself counts from an event is none.

    Args:
        asked: the words of the event, and how they are spread over all that is searched.
        memories: what was found for them.
    """
    weights = terms.rare(asked)
    least, best, found = _FITS * sum(weights.values()), 0.0, None
    for one, item in memories:
        share = sum(weights.get(term, 0.0) for term in terms.held_terms(event, item))
        text = whole(item)
        start = analyzer.richest_sentence(text, weights)
        sentence = _SENTENCE.split(text[start : start + _READ], 1)[0]
        times = times_in(sentence, one.timestamp.date())
        if share < least or (times is not None and times.event):
            continue
        day = _one_day(times, one.timestamp) or _one_day(times_in(text[:_READ], one.timestamp.date()), one.timestamp)
        score = share * one.similarity * (_SAYS_A_DAY if day else 1.0) * (_ASKS if one.asks else 1.0)
        if score > best:
            best, found = score, Anchor(id=item.id, day=day or one.timestamp.date(), event=event)
    return found


def _one_day(times: NamedTimes | None, written: datetime) -> date | None:
    """The day that a text written then names first."""
    for day in times.days if times is not None else ():
        if day.last - day.first <= _EXACT:
            near = day.day.replace(year=written.year) if day.yearly else day.day
            return _day(near.toordinal() + (day.first + day.last) // 2)
    return None


# -- words --------------------------------------------------------------------------------------------------------
def _words(text: str, language: str) -> list[_Word]:
    """The words of a text, each with what it stands for, ``.`` for nothing; one of several meanings is several."""
    known, tokens = _lexicon(language), list(_TOKEN.finditer(text))
    forms = [token[0] for token in tokens]
    plain = [analyzer.folded(form).lower() for form in forms]
    found: list[_Word] = []
    place = 0
    while place < len(tokens):
        for length in range(_LONGEST_PHRASE, 0, -1):
            meanings = known.get(" ".join(forms[place : place + length])) or known.get(
                " ".join(plain[place : place + length])
            )
            if meanings and place + length <= len(tokens):
                break
        else:
            meanings = (_figure(tokens[place], plain[place]),)
        last = tokens[place + length - 1].end()
        unspaced = tokens[place]["unspaced"] is not None
        for letter, value in meanings:
            day = _figures(tokens[place]) if letter == "D" else None
            found.append(_Word(letter, value, tokens[place].start(), last, day, unspaced))
        place += length
    return found


def _figure(token: re.Match[str], word: str) -> tuple[str, int]:
    """What a word that no list has stands for: a day, a year, a number, the end of a clause."""
    if token["sign"]:
        return ("D", 0) if _figures(token) else (".", 0)
    if not word[0].isdecimal():
        return ("." if word[0].isalnum() or word[0] == "_" else "|"), 0
    if ordinal := _ORDINAL.fullmatch(word):
        return "d", int(ordinal[1])
    if not word.isdecimal() or len(word) > 4:
        return ".", 0
    return ("y" if len(word) == 4 and word[:2] in ("19", "20") else "n"), int(word)


def _figures(token: re.Match[str]) -> tuple[int, int, int] | None:
    """Year, month and day that three figures stand for: 2024-01-25, 25.01.2024, 1/25/2024."""
    first, second, third = map(int, token.group(1, 3, 4))
    if len(token[1]) == 4:
        return first, second, third
    if len(token[4]) != 4:
        return None
    return (third, first, second) if token["sign"] == "/" and first <= 12 else (third, second, first)


@cache
def _tables() -> Mapping[str, Mapping[str, Sequence[str]]]:
    found: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(times_text())
    return found


@cache
def _lexicon(language: str) -> dict[str, tuple[tuple[str, int], ...]]:
    """What each phrase of a language stands for; one that has a capital is only looked for as it is written."""
    table = _tables()[language]
    named = {name: (letter, _LENGTHS.get(name, 0)) for name, letter in _LETTERS.items()}
    named |= {name: ("s", value) for value, name in enumerate(("spring", "summer", "autumn", "winter"), 1)}
    named["yesterday"] = ("E", 1)
    known: dict[str, tuple[tuple[str, int], ...]] = {}
    for name in _LETTERS:
        known |= {_key(phrase): (named[name],) for phrase in table.get(name, ())}
    for name, letter in _ROWS.items():
        for value, row in enumerate(table.get(name, ()), 1):
            for place, form in enumerate(row.split()):
                short = letter == "M" and place and form[0].isupper()
                known[_key(form)] = (("m" if short else letter, value),)
    for row in table.get("phrases", ()):
        phrase, _, senses = row.partition(": ")
        known[_key(phrase)] = tuple(("n", int(one)) if one.isdecimal() else named[one] for one in senses.split())
    return known


def _key(phrase: str) -> str:
    plain = unicodedata.normalize("NFKC", phrase)
    plain = plain if any(letter.isupper() for letter in plain) else analyzer.folded(plain)
    return " ".join(token[0] for token in _TOKEN.finditer(plain))

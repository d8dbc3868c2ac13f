"""Parses and formats points in time: UTC, ISO 8601.

A time without an offset means UTC in a file, which travels, and local time in what a caller gives. The clock is a
function, so that tests can set it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memfs.startup import Any, regex

MONTHS = tuple(
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_RELATIVE = regex(r"(\d{1,6})\s*(s|m|h|d|w|mo|y)")
_AGO = regex(r"(\d{1,6}|an?)[ ._-]*(second|minute|hour|day|week|month|year)s?[ ._-]+ago")
_DAY = regex(r"\d{4}-\d{2}-\d{2}")
_MONTH = regex(r"(\d{4})-(0[1-9]|1[0-2])")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
EARLIEST = datetime.min.replace(tzinfo=UTC)
_FIRST = EARLIEST.timestamp()
_LAST = datetime.max.replace(tzinfo=UTC).timestamp() - 1
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "mo": 30 * 86400, "y": 365 * 86400}
_UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w", "month": "mo", "year": "y"}


def utc_now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


def from_timestamp_ns(nanoseconds: int) -> datetime:
    """A file's time as a point in time; one that no datetime can hold becomes the nearest that can."""
    return datetime.fromtimestamp(min(max(nanoseconds / 1e9, _FIRST), _LAST), UTC)


def micros(when: datetime) -> int:
    """Microseconds since 1970."""
    return (when - EPOCH) // _MICROSECOND


def moment(time: int) -> datetime:
    """The point in time that is given in microseconds since 1970."""
    return EPOCH + timedelta(0, 0, time)  # by name it takes twice as long


class Moment(datetime):
    """A point in time in UTC, as classes of the seeds hand it out: it also compares with naive datetimes.

    Those mean local time, like what ``datetime.now()`` gives. As a key it is what an equal time with an offset is.
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        return super().__lt__(_aware(other))

    def __le__(self, other: Any) -> bool:
        return super().__le__(_aware(other))

    def __gt__(self, other: Any) -> bool:
        return super().__gt__(_aware(other))

    def __ge__(self, other: Any) -> bool:
        return super().__ge__(_aware(other))

    def __eq__(self, other: object) -> bool:
        return super().__eq__(_aware(other))

    __hash__ = datetime.__hash__

    def __sub__(self, other: Any) -> Any:
        return super().__sub__(_aware(other))

    def __rsub__(self, other: Any) -> Any:
        return -(self - other)

    @classmethod
    def of(cls, moment: datetime) -> Moment:
        """The same point in time, of this class."""
        there = given_time(moment)
        return cls(*there.timetuple()[:6], there.microsecond, UTC)


def _aware(other: Any) -> Any:
    return given_time(other) if isinstance(other, datetime) and other.tzinfo is None else other


def given_time(value: str | datetime) -> datetime:
    """Read a point in time as a caller gives it, in UTC; one without an offset is local time.

    Raises:
        ValueError: the text is not a point in time.
    """
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
    try:
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        if moment.tzinfo is not None:
            raise
        return moment.replace(tzinfo=UTC)  # the first and last days that there are have no local time


def parse_time(value: str | datetime) -> datetime:
    """Read a point in time as a file has it, in UTC: text without an offset means UTC, wherever it is read.

    Args:
        value: ISO 8601 text such as ``2026-03-01``, ``2026-03-01T10:00:00Z``, or a datetime (``given_time``).

    Raises:
        ValueError: the text is not a point in time.
    """
    if isinstance(value, datetime):
        return given_time(value)
    moment = datetime.fromisoformat(value.strip())
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def time_in(value: object) -> datetime | None:
    """What a field says, as a point in time; None where it says none, whatever was written into it."""
    try:
        return parse_time(value) if isinstance(value, str | datetime) else None
    except (ValueError, OverflowError):  # the latter beside the first and last year, with an offset
        return None


def parse_when(value: str, now: datetime) -> datetime:
    """Read a point in time, an age before ``now`` such as ``7d`` or ``2 days ago``, or the beginning of a span of days.

    Spans are ``today``, ``yesterday``, ``monday`` (the latest, today included) and ``last monday`` (before today),
    ``this`` or ``last`` ``week`` (from Monday on), ``month`` or ``year``, and ``2026-11``. They and a point in time
    without an offset are local time: a person enters it, here.

    Raises:
        ValueError, OverflowError: the text is none of them.
    """
    plain = _plain(value)
    if plain == "now":
        return now
    if relative := _RELATIVE.fullmatch(plain):
        return now - timedelta(seconds=int(relative[1]) * _SECONDS[relative[2]])
    if ago := _AGO.fullmatch(plain):
        number = int(ago[1]) if ago[1].isdigit() else 1
        return now - timedelta(seconds=number * _SECONDS[_UNITS[ago[2]]])
    days = _days(plain, now)
    return given_time(days[0] if days else value)


def parse_until(value: str, now: datetime) -> datetime:
    """Read the end of a span as ``parse_when`` does; a day, and a span of days, means the whole of it.

    Raises:
        ValueError, OverflowError: the text is no point in time.
    """
    days = _days(_plain(value), now)
    return given_time(days[1]) if days else parse_when(value, now)


def _plain(value: str) -> str:
    return " ".join(value.lower().replace("_", " ").replace(".", " ").split())


def _days(plain: str, now: datetime) -> tuple[datetime, datetime] | None:
    """The first and last moment, in local time, of the span of days that a text names; None where it names none."""
    today = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    which, _, unit = plain.rpartition(" ")
    last = which == "last"
    if plain in ("today", "yesterday"):
        return _from(today, -(plain == "yesterday"), 1)
    if unit in _WEEKDAYS and which in ("", "last"):
        return _from(today, -((today.weekday() - _WEEKDAYS.index(unit) - last) % 7) - last, 1)
    if which in ("this", "last") and unit in ("week", "month", "year"):
        if unit == "week":
            return _from(today, -today.weekday() - 7 * last, 7)
        month = today.year * 12 + today.month - 1
        return _months(month - last, 1) if unit == "month" else _months((today.year - last) * 12, 12)
    if match := _MONTH.fullmatch(plain):
        return _months(int(match[1]) * 12 + int(match[2]) - 1, 1)
    return _from(datetime.fromisoformat(plain), 0, 1) if _DAY.fullmatch(plain) else None


def _from(today: datetime, days: int, length: int) -> tuple[datetime, datetime]:
    first = today + timedelta(days)
    return first, first + timedelta(length, microseconds=-1)


def _months(first: int, length: int) -> tuple[datetime, datetime]:
    """Months, counted from year 0 on."""
    begin, after = (datetime(number // 12, number % 12 + 1, 1) for number in (first, first + length))  # noqa: DTZ001
    return begin, after - timedelta(microseconds=1)


def format_time(moment: datetime) -> str:
    """Write a point in time in UTC, to the second, millisecond or microsecond: ``2026-03-01T10:00:00Z``."""
    known = moment if moment.tzinfo is UTC else parse_time(moment)
    return known.isoformat().replace("000+00:00", "Z").replace("+00:00", "Z")

"""Parses and formats points in time: UTC, ISO 8601.

A time without an offset means UTC in a file, which travels, and local time in what a caller gives. The clock is a
function, so that tests can set it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memfs.pattern import regex

MONTHS = tuple(
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_RELATIVE = regex(r"(\d{1,6})\s*(s|m|h|d|w|mo|y)")
_AGO = regex(r"(\d{1,6}|an?)[ ._-]*(second|minute|hour|day|week|month|year)s?[ ._-]+ago")
_DAY = regex(r"\d{4}-\d{2}-\d{2}")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
    seconds = min(max(nanoseconds / 1e9, _FIRST), _LAST)
    return datetime.fromtimestamp(seconds, UTC)


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
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def time_in(value: object) -> datetime | None:
    """What a field says, as a point in time; None where it says none, whatever somebody wrote into it."""
    try:
        return parse_time(value) if isinstance(value, str | datetime) else None
    except (ValueError, OverflowError):  # the latter beside the first and last year, with an offset
        return None


def parse_when(value: str, now: datetime) -> datetime:
    """Read a point in time or an age before ``now`` such as ``7d``, ``12h``, ``3mo``, ``2 days ago``, ``yesterday``.

    A point in time without an offset is local time: somebody gives it, here.

    Raises:
        ValueError, OverflowError: the text is neither.
    """
    plain = value.strip().lower()
    if plain in ("now", "today", "yesterday"):
        return now - timedelta(days=1) if plain == "yesterday" else now
    if relative := _RELATIVE.fullmatch(plain):
        return now - timedelta(seconds=int(relative[1]) * _SECONDS[relative[2]])
    if ago := _AGO.fullmatch(plain):
        number = int(ago[1]) if ago[1].isdigit() else 1
        return now - timedelta(seconds=number * _SECONDS[_UNITS[ago[2]]])
    return given_time(value)


def parse_until(value: str, now: datetime) -> datetime:
    """Read the end of a span as ``parse_when`` does; a day without a time means the whole of it.

    Raises:
        ValueError, OverflowError: the text is no point in time.
    """
    if not _DAY.fullmatch(value.strip()):
        return parse_when(value, now)
    return given_time(datetime.fromisoformat(value.strip()) + timedelta(days=1, microseconds=-1))


def format_time(moment: datetime) -> str:
    """Write a point in time in UTC, to the second where it has no fraction: ``2026-03-01T10:00:00Z``."""
    return parse_time(moment).isoformat().replace("+00:00", "Z")

"""Points in time as memfs reads and writes them: UTC, ISO 8601.

Owns parsing and formatting; knows nothing of items or files. The clock is a function so that tests can set it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_RELATIVE = re.compile(r"(\d{1,6})\s*(s|m|h|d|w|mo|y)")
_AGO = re.compile(r"(\d{1,6}|an?)[ ._-]*(second|minute|hour|day|week|month|year)s?[ ._-]+ago")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIRST = datetime.min.replace(tzinfo=UTC).timestamp()
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


def parse_time(value: str | datetime) -> datetime:
    """Read a point in time; a naive one means UTC.

    Args:
        value: a datetime or ISO 8601 text such as ``2026-03-01``, ``2026-03-01T10:00:00Z``.

    Raises:
        ValueError: the text is not a point in time.
    """
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def time_in(value: object) -> datetime | None:
    """What a field says, as a point in time; None where it says none, whatever somebody wrote into it."""
    try:
        return parse_time(value) if isinstance(value, str | datetime) else None
    except (ValueError, OverflowError):  # the latter beside the first and last year, with an offset
        return None


def parse_when(value: str, now: datetime) -> datetime:
    """Read a point in time or an age before ``now`` such as ``7d``, ``12h``, ``3mo``, ``2 days ago``, ``yesterday``.

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
    return parse_time(value)


def parse_until(value: str, now: datetime) -> datetime:
    """Read the end of a span as ``parse_when`` does; a day without a time means the whole of it.

    Raises:
        ValueError, OverflowError: the text is no point in time.
    """
    moment = parse_when(value, now)
    return moment + timedelta(days=1, microseconds=-1) if _DAY.fullmatch(value.strip()) else moment


def format_time(moment: datetime) -> str:
    """Write a point in time in UTC, to the second where it has no fraction: ``2026-03-01T10:00:00Z``."""
    return parse_time(moment).isoformat().replace("+00:00", "Z")

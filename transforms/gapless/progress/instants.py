"""Instants as whole units since 1970-01-01T00:00Z, read from RFC 3339 text and written back, exactly to the nanosecond.

Leap seconds have no place on that line, so that `:60` is refused. Years run from 0000 to 9999.
"""

import re
from functools import lru_cache
from typing import Final

from gapless.errors import PositionError
from gapless.progress.decimals import fraction_units, json_kind, parse_decimal_units, shorten

PRECISIONS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""precision -> decimal places of a second"""

_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?([Zz]|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
_DAY = 86_400
_ERA_DAYS = 146_097
_DAYS_BEFORE_1970 = 719_468
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_rfc3339(text: str, places: int) -> int:
    """Units of 10**-places seconds since 1970. Raises PositionError for naive times and digits that do not fit.

    >>> parse_rfc3339("2026-07-23T21:59:38+05:30", 0) == parse_rfc3339("2026-07-23T16:29:38Z", 0)
    True
    >>> parse_rfc3339("1969-12-31T23:59:59.999999999Z", 9)
    -1
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise PositionError(
            f"{shorten(text)} is no RFC 3339 time",
            remedy="such as 2026-07-23T16:29:38.25Z; or declare `read: {format, zone}`",
        )
    date, hour, minute, second, fraction, offset = match.groups()
    if offset is None:
        raise PositionError(
            f"{shorten(text)} names no offset: which instant it is cannot be known",
            remedy="have the source send Z or an offset, or declare `read: {format, zone}`",
        )
    day, ahead = _date(date), offset_seconds(offset)
    if day is None:
        raise no_date(text)
    if ahead is None:
        raise PositionError(f"{shorten(text)} has an impossible offset")
    seconds = day + time_seconds(int(hour), int(minute), int(second), text) - ahead
    units = seconds * 10**places
    if fraction is not None:
        units += fraction_units(fraction, places, text)
    return require_range(units, places)


def instant_text(units: int, places: int) -> str:
    """RFC 3339 in UTC with all `places` decimals. Raises PositionError outside the years 0000 to 9999.

    >>> instant_text(-1, 3), instant_text(1709164800, 0)
    ('1969-12-31T23:59:59.999Z', '2024-02-29T00:00:00Z')
    """
    require_range(units, places)
    seconds, fraction = divmod(units, 10**places)
    days, rest = divmod(seconds, _DAY)
    year, month, day = _civil_date(days)
    hour, rest = divmod(rest, 3600)
    tail = f".{fraction:0{places}d}" if places else ""
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}{tail}Z"


def parse_unix(raw: object, from_places: int, places: int) -> int:
    """A count of seconds or of its fractions, as integer or decimal text, in units of 10**-places seconds.

    Raises PositionError for floats, and where the value has digits that the precision does not hold.

    >>> parse_unix("1700000000.123", 0, 3), parse_unix(1700000000123456, 6, 9)
    (1700000000123, 1700000000123456000)
    """
    kind = raw.__class__
    if kind is not int and kind is not str:
        remedy = ""
        if kind is float:
            remedy = (
                "a float has lost digits: have the source send an integer (unix_ms, unix_us) or decimal text"
            )
        raise PositionError(f"{shorten(raw)} ({json_kind(raw)}) where a time is expected", remedy=remedy)
    shift = places - from_places
    if kind is str:
        units = parse_decimal_units(raw, max(shift, 0))  # type: ignore[arg-type]
    else:
        units = raw * 10 ** max(shift, 0)
    units, finer = divmod(units, 10 ** max(-shift, 0))
    if finer:
        raise PositionError(
            f"{shorten(raw)} is finer than the declared precision",
            remedy="declare the finer precision: positions are never cut",
        )
    return require_range(units, places)


def date_seconds(year: int, month: int, day: int) -> int | None:
    """Seconds since 1970 at which that day begins in UTC, None where the calendar has no such day.

    >>> date_seconds(1970, 1, 2), date_seconds(2023, 2, 29)
    (86400, None)
    """
    if not 1 <= month <= 12 or not 1 <= day <= month_days(year, month):
        return None
    return _days(year, month, day) * _DAY


def no_date(text: str) -> PositionError:
    """What to raise, showing `text`, where there is no such day."""
    return PositionError(f"{shorten(text)} is no date of the calendar")


def time_seconds(hour: int, minute: int, second: int, text: str) -> int:
    """Seconds since midnight. Raises PositionError, showing `text`, for no time of day and for leap seconds.

    >>> time_seconds(23, 59, 59, "23:59:59")
    86399
    """
    if hour > 23 or minute > 59 or second > 60:
        raise PositionError(f"{shorten(text)} is no time of day")
    if second == 60:
        raise PositionError(
            f"{shorten(text)} is a leap second: it has no place between 23:59:59 and 00:00:00",
            remedy="have the source smear leap seconds, or send unix time",
        )
    return hour * 3600 + minute * 60 + second


@lru_cache(maxsize=256)
def offset_seconds(offset: str) -> int | None:
    """How far clocks with that offset are ahead of UTC; None for an impossible one.

    >>> offset_seconds("Z"), offset_seconds("-05:30"), offset_seconds("+0530"), offset_seconds("+24:00")
    (0, -19800, 19800, None)
    """
    if offset in ("Z", "z"):
        return 0
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (60 if offset[0] == "+" else -60)


def month_days(year: int, month: int) -> int:
    """How many days the month has.

    >>> month_days(2024, 2), month_days(1900, 2), month_days(2000, 2)
    (29, 28, 29)
    """
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_DAYS[month - 1]


def require_range(units: int, places: int) -> int:
    """`units` itself. Raises PositionError outside the years 0000 to 9999."""
    if not _FIRST_SECOND * 10**places <= units < _END_SECOND * 10**places:
        raise PositionError(f"{shorten(units)} lies outside the years 0000 to 9999")
    return units


@lru_cache(maxsize=4096)
def _date(text: str) -> int | None:
    """`date_seconds` of YYYY-MM-DD, kept: the events of a page share few dates."""
    return date_seconds(int(text[:4]), int(text[5:7]), int(text[8:]))


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that the leap day comes last."""
    if month <= 2:
        year -= 1
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _ERA_DAYS + day_of_era - _DAYS_BEFORE_1970


def _civil_date(days: int) -> tuple[int, int, int]:
    """(year, month, day) of a count of days since 1970-01-01; the inverse of `_days`."""
    era, day_of_era = divmod(days + _DAYS_BEFORE_1970, _ERA_DAYS)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


_FIRST_SECOND = _days(0, 1, 1) * _DAY
_END_SECOND = _days(10_000, 1, 1) * _DAY

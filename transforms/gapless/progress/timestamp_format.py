"""Times in a declared format and zone, such as `%m/%d/%Y %H:%M` in America/New_York, read exactly.

A local time that occurs twice or never (where clocks are changed) names no instant and is refused.
"""

import re
from datetime import datetime, tzinfo
from functools import lru_cache

from gapless.errors import ConfigurationError, PositionError
from gapless.progress.decimals import fraction_units, shorten
from gapless.progress.instants import date_seconds, no_date, offset_seconds, require_range, time_seconds

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DIRECTIVES = {
    "Y": r"(?P<Y>[0-9]{4})",
    "m": r"(?P<m>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})",
    "H": r"(?P<H>[0-9]{1,2})",
    "I": r"(?P<I>[0-9]{1,2})",
    "p": r"(?P<p>[AaPp][Mm])",
    "M": r"(?P<M>[0-9]{1,2})",
    "S": r"(?P<S>[0-9]{1,2})",
    "f": r"(?P<f>[0-9]+)",
    "b": rf"(?P<b>{'|'.join(_MONTHS)})",
    "B": rf"(?P<B>{'|'.join(_FULL_MONTHS)})",
    "z": r"(?P<z>[Zz]|[+-][0-9]{2}:?[0-9]{2})",
    "%": "%",
}
_EPOCH = datetime(1970, 1, 1)


def require_format(pattern: str, zone: str | None) -> None:
    """Raises ConfigurationError unless `pattern` names a date fully, and an offset or a known `zone`, but not both."""
    directives = _compiled(pattern).groupindex
    for needed, what in (("Y", "a year (%Y)"), ("d", "a day (%d)")):
        if needed not in directives:
            raise ConfigurationError(f"format {pattern!r} names no instant: it lacks {what}")
    if len({"m", "b", "B"} & directives.keys()) != 1:
        raise ConfigurationError(f"format {pattern!r} needs exactly one month (%m, %b or %B)")
    if {"H", "I"} <= directives.keys() or ("I" in directives) != ("p" in directives):
        raise ConfigurationError(f"format {pattern!r} needs %H, or %I with %p")
    if ("z" in directives) == (zone is not None):
        raise ConfigurationError(
            f"format {pattern!r} needs either an offset (%z) or a zone",
            remedy="such as `zone: America/New_York`",
        )
    if zone is not None:
        _zone(zone)


def parse_formatted(text: str, pattern: str, zone: str | None, places: int) -> int:
    """Units of 10**-places seconds since 1970. Raises PositionError.

    >>> parse_formatted("07/04/2013 12:00", "%m/%d/%Y %H:%M", "America/New_York", 0)
    1372953600
    >>> parse_formatted("2013-11-03 01:30", "%Y-%m-%d %H:%M", "America/New_York", 0)
    Traceback (most recent call last):
    gapless.errors.PositionError: '2013-11-03 01:30' occurs twice in America/New_York: the clocks were set back
    have the source send UTC or an offset
    """
    match = _compiled(pattern).fullmatch(text)
    if match is None:
        raise PositionError(f"{shorten(text)} does not fit the format {pattern!r}")
    found = match.groupdict()
    day = date_seconds(int(found["Y"]), _month(found), int(found["d"]))
    if day is None:
        raise no_date(text)
    seconds = day + time_seconds(_hour(found, text), int(found.get("M") or 0), int(found.get("S") or 0), text)
    if zone is None:
        seconds -= _offset(found["z"], text)
    else:
        seconds -= _zone_offset(seconds, zone, text)
    return require_range(seconds * 10**places + fraction_units(found.get("f") or "", places, text), places)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts, seen, rest = [], set(), iter(pattern)
    for character in rest:
        if character != "%":
            parts.append(re.escape(character))
            continue
        directive = next(rest, "")
        if directive not in _DIRECTIVES:
            raise ConfigurationError(
                f"format {pattern!r}: %{directive} is unknown", remedy=f"known are %{', %'.join(_DIRECTIVES)}"
            )
        if directive in seen:
            raise ConfigurationError(f"format {pattern!r} names %{directive} twice")
        if directive != "%":
            seen.add(directive)
        parts.append(_DIRECTIVES[directive])
    return re.compile("".join(parts), re.ASCII | re.IGNORECASE)


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # only where a zone is declared: it reads the machine's zone data

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise ConfigurationError(
            f"zone {name!r} is not known here",
            remedy="write an IANA name such as America/New_York; or install tzdata",
        ) from error


def _month(found: dict[str, str]) -> int:
    if "m" in found:
        return int(found["m"])
    if "b" in found:
        return _MONTHS.index(found["b"].lower()) + 1
    return _FULL_MONTHS.index(found["B"].lower()) + 1


def _hour(found: dict[str, str], text: str) -> int:
    if "I" not in found:
        return int(found.get("H") or 0)
    hour = int(found["I"])
    if not 1 <= hour <= 12:
        raise PositionError(f"{shorten(text)} is no time of day")
    return hour % 12 + (12 if found["p"].lower() == "pm" else 0)


def _offset(offset: str, text: str) -> int:
    ahead = offset_seconds(offset)
    if ahead is None:
        raise PositionError(f"{shorten(text)} has an impossible offset")
    return ahead


def _zone_offset(local_seconds: int, zone: str, text: str) -> int:
    """How far the zone's clocks were ahead of UTC at that local time."""
    from datetime import timedelta

    try:
        local = (_EPOCH + timedelta(seconds=local_seconds)).replace(tzinfo=_zone(zone))
        early, late = local.utcoffset(), local.replace(fold=1).utcoffset()
    except OverflowError as error:
        raise PositionError(f"{shorten(text)} lies outside the years 0001 to 9999") from error
    if early is None or late is None:
        raise PositionError(f"{shorten(text)}: {zone} says no offset for it")
    if early > late:
        raise PositionError(
            f"{shorten(text)} occurs twice in {zone}: the clocks were set back",
            remedy="have the source send UTC or an offset",
        )
    if early < late:
        raise PositionError(
            f"{shorten(text)} never occurs in {zone}: the clocks were set forward",
            remedy="have the source send UTC or an offset",
        )
    return early // timedelta(seconds=1)

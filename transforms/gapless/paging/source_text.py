"""A position in the source's own notation, as a request has to name it: the inverse of reading it."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from gapless.errors import ConfigurationError, PositionError
from gapless.progress import Domain, Position, TimestampDomain
from gapless.progress.instants import PRECISIONS

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def source_text(domain: Domain, position: Position) -> str:
    """How the source writes `position`: Unix numbers and declared formats as such, else the canonical text.

    Raises ConfigurationError where the declared format cannot name this very position.

    >>> source_text(TimestampDomain("ms", read="unix_s"), 1784824178500)
    '1784824178.5'
    """
    if not isinstance(domain, TimestampDomain) or not isinstance(position, int):
        return domain.text(position)
    if domain.read.startswith("unix_"):
        return _shifted(
            position, PRECISIONS[domain.precision] - PRECISIONS[domain.read.removeprefix("unix_")]
        )
    if domain.format is not None:
        return _formatted(domain, domain.format, position)
    return domain.text(position)


def _shifted(units: int, places: int) -> str:
    """`units` with its decimal point moved `places` to the left, exactly."""
    if places <= 0:
        return str(units * 10**-places)
    whole, rest = divmod(abs(units), 10**places)
    fraction = f"{rest:0{places}d}".rstrip("0")
    return ("-" if units < 0 else "") + (f"{whole}.{fraction}" if fraction else str(whole))


def _formatted(domain: TimestampDomain, pattern: str, position: int) -> str:
    seconds, rest = divmod(position, 10 ** PRECISIONS[domain.precision])
    zone = ZoneInfo(domain.zone) if domain.zone else timezone.utc
    fraction = f"{rest:0{PRECISIONS[domain.precision]}d}" if domain.precision != "s" else "0"
    try:
        moment = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)
        text = moment.strftime(pattern.replace("%f", fraction))
        named = domain.parse(text)
    except (PositionError, ValueError, OverflowError):
        named = None
    if named != position:
        raise ConfigurationError(
            f"{domain.text(position)} cannot be written in the declared format {pattern!r}",
            remedy="the format has to name every position exactly: add seconds, a fraction or an offset to it",
        )
    return text

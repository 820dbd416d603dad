"""Time as a parameter: everything that waits or stamps takes a `Clock`, so that tests own it."""

import time
from datetime import datetime, timezone
from typing import Protocol


def instant_text(moment: datetime) -> str:
    """An instant as documents and messages have it: RFC 3339 in UTC, to the millisecond, cut and not rounded.

    >>> instant_text(datetime(2026, 7, 23, 21, 59, 38, 250999, tzinfo=timezone.utc))
    '2026-07-23T21:59:38.250Z'
    """
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock(Protocol):
    """What gapless asks of time. `monotonic` is in seconds from an arbitrary origin; `now` is aware, in UTC."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

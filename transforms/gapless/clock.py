"""Time as a parameter: everything that waits or stamps takes a `Clock`, so that tests own it."""

import time
from datetime import datetime, timezone
from typing import Protocol


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

"""A clock that stands still until it is told to go on: sleeping on it takes no time."""

from datetime import datetime, timedelta, timezone


class ManualClock:
    """`sleep` moves it forward at once and is written down in `slept` (seconds, in order).

    >>> clock = ManualClock()
    >>> clock.sleep(1.5); clock.advance(10.0)
    >>> clock.monotonic(), clock.slept
    (11.5, [1.5])
    """

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=timezone.utc)) -> None:
        self._start = start
        self._elapsed = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError for a negative span."""
        if seconds < 0:
            raise ValueError(f"time does not go back ({seconds} s)")
        self._elapsed += seconds

"""How often a failing event, page or source is tried again, and when; counted over the calls of one process."""

import threading
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

LONGEST_WAIT = 3600.0
"""Seconds. Whatever asks to be left alone for longer is left to a later run: this one ends, and says so."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` in all; the wait before the n-th repetition doubles from `backoff` to at most `maximum` (seconds).

    >>> [RetryPolicy(5, 1.0, 6.0).delay(n) for n in (1, 2, 3, 4)]
    [1.0, 2.0, 4.0, 6.0]
    """

    attempts: int = 5
    backoff: float = 1.0
    maximum: float = 60.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after so many failures."""
        return float(min(self.maximum, self.backoff * 2 ** min(failures - 1, 62)))


class Failures:
    """What has failed in each chain, and how often since it was got over; over the calls of one process. Thread-safe.

    An event counts by its id, wherever pages are cut, until a page with it is applied. What fails as a whole (a page, a run,
    the source), and restarts after a dead token, count until the chain's next promotion."""

    def __init__(self) -> None:
        self._events: dict[int, Counter[str]] = {}
        self._wholes: Counter[int] = Counter()
        self._restarts: Counter[int] = Counter()
        self._lock = threading.Lock()

    def events_failed(self, chain: int, event_ids: Collection[str]) -> dict[str, int]:
        """Count one more failure of each; how many each has had."""
        with self._lock:
            counted = self._events.setdefault(chain, Counter())
            counted.update(event_ids)
            return {event_id: counted[event_id] for event_id in event_ids}

    def applied(self, chain: int, event_ids: Collection[str]) -> None:
        """These events are in a run: what they failed before is over."""
        if chain not in self._events:
            return
        with self._lock:
            settled = frozenset(event_ids)
            left = {event: count for event, count in self._events[chain].items() if event not in settled}
            if left:
                self._events[chain] = Counter(left)
            else:
                del self._events[chain]

    def failed(self, chain: int) -> int:
        """Count one more failure as a whole; how many there were since the last promotion."""
        with self._lock:
            self._wholes[chain] += 1
            return self._wholes[chain]

    def restarted(self, chain: int) -> int:
        """Count one more restart; how many there were since the last promotion."""
        with self._lock:
            self._restarts[chain] += 1
            return self._restarts[chain]

    def promoted(self, chain: int) -> None:
        with self._lock:
            self._wholes.pop(chain, None)
            self._restarts.pop(chain, None)

"""How often a failing event or effect is tried again, and when; counted over the calls of one process."""

import threading
from dataclasses import dataclass


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


class Retries:
    """Failures of the page that stands first in each chain, over the calls of one process. Thread-safe.

    A page is named by its chain and sequence: whatever is promoted starts counting anew."""

    def __init__(self) -> None:
        self._failures: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def failed(self, chain: int, sequence: int) -> int:
        """Count one more failure; how many that page has had."""
        with self._lock:
            at, count = self._failures.get(chain, (sequence, 0))
            count = count + 1 if at == sequence else 1
            self._failures[chain] = (sequence, count)
            return count

    def forget(self, chain: int) -> None:
        with self._lock:
            self._failures.pop(chain, None)

"""Publishing while reading: the scope's one UPDATE, not more often than is useful, with the cutover that may have become
possible."""

from gapless.clock import Clock, SystemClock
from gapless.plan import cut_over_if_proved
from gapless.store import Store
from gapless.store.records import FrontierRow

PUBLISH_EVERY_SECONDS = 0.5
CUTOVER_EVERY_SECONDS = 2.0
CUTOVER_REST = 20
"""Trying a cutover reads every live chain: it takes at most one part in so many of the time."""


class Publisher:
    """Publishes the frontier of one scope as far as the members' durable rows prove it. Used by one thread.

    The epoch is read with the frontier; a cutover in between makes the UPDATE a no-op and the next one uses the new epoch. Where
    the latest list differs from the epoch and the job lets it, a cutover is tried now and then."""

    def __init__(
        self,
        store: Store,
        scope: str,
        clock: Clock | None = None,
        every: float = PUBLISH_EVERY_SECONDS,
    ) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock or SystemClock()
        self._every = every
        self._kept_back = False
        self._published = self._next_cutover = float("-inf")

    def tick(self) -> FrontierRow | None:
        """Publish when the interval has passed; the row where it moved, else None."""
        now = self._clock.monotonic()
        if now - self._published < self._every:
            self._kept_back = True
            return None
        self._published = now
        return self.publish()

    def flush(self) -> FrontierRow | None:
        """Publish what `tick` has kept back, if anything; the row where it moved, else None."""
        return self.publish() if self._kept_back else None

    def publish(self) -> FrontierRow | None:
        """Publish now, after whatever cutover is proved; the row where it moved, else None."""
        self._kept_back = False
        row = self._store.scope(self._scope)
        if row.changing and self._may_cut_over():
            began = self._clock.monotonic()
            if cut_over_if_proved(self._store, row):
                row = self._store.scope(self._scope)
            ended = self._clock.monotonic()
            self._next_cutover = ended + max(CUTOVER_EVERY_SECONDS, CUTOVER_REST * (ended - began))
        return self._store.publish(self._scope, row.epoch)

    def _may_cut_over(self) -> bool:
        return self._clock.monotonic() >= self._next_cutover

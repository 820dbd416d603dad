"""Promotes what a chain's tracking says may be promoted, and makes durable what it waits for. Knows the store, and no engine."""

from collections.abc import Iterator, Mapping
from typing import Final

from gapless.clock import Clock
from gapless.plan import progress_of
from gapless.progress import ChainState
from gapless.settling.publisher import Publisher
from gapless.store import Store
from gapless.store.records import Blocker, ChainRow
from gapless.tracking.chain_tracking import ChainTracking
from gapless.tracking.explaining import waiting_of
from gapless.tracking.promoting import promotion_of
from gapless.updates import PartitionProgress

MOST_LOST: Final = 8
"""Swaps lost in a row before what is settled is left to the next call: somebody else is promoting this chain."""


class Promoter:
    """Used by one thread. Raises StoreError; then nothing of what failed has changed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._publishers: dict[str, Publisher] = {}
        self.promoted = 0
        self.lost = 0

    def track(self, chain: int) -> ChainTracking:
        """A tracking of the chain as its row stands now."""
        row = self._store.chain(chain)
        return ChainTracking(row, self._receipts(row))

    def reread(self, tracking: ChainTracking) -> None:
        """Go on from the row as it stands now."""
        row = self._store.chain(tracking.row.chain)
        tracking.adopt(row, self._receipts(row))

    def promote(self, tracking: ChainTracking) -> Iterator[PartitionProgress]:
        """Promote all that is settled, then hold the chain where a reader stopped; yields where it stands after each step."""
        lost = 0
        while tracking.head_is_settled() and (run := tracking.promotable()) is not None:
            row = tracking.row
            if row.state is ChainState.HELD:
                row = self._opened(tracking)
                if row.state is not ChainState.OPEN:
                    yield from self._progress(tracking)
                    continue
            task = tracking.task
            assert task is not None, "a page that is open was read for a task"
            promoted = self._store.promote(promotion_of(tracking, run, task.domain))
            if promoted is None:
                self.lost += 1
                lost += 1
                self.reread(tracking)
                yield from self._progress(tracking)
                if lost >= MOST_LOST:
                    break
                continue
            self.promoted += 1
            tracking.promoted(run, promoted)
            self._publish(promoted.scope)
            yield from self._progress(tracking)
        yield from self._stop(tracking)

    def explain(self, tracking: ChainTracking) -> Iterator[PartitionProgress]:
        """Say durably what the chain waits for, with the outcomes there are of its open pages; yields where it stands then.

        Who loses, because the row has moved, leaves it at that: an explanation is no promise."""
        waiting = waiting_of(tracking)
        if waiting is None or tracking.row.state is not ChainState.OPEN:
            return
        row = tracking.row
        if waiting.receipts:
            if not self._store.record_receipts(row, waiting.receipts, waiting.letters):
                return
            row = self._store.chain(row.chain)
            tracking.recorded(waiting.receipts, row)
        if _says(row, waiting.blocker) or not self._store.hold(row, ChainState.OPEN, waiting.blocker):
            return
        tracking.adopt(self._store.chain(row.chain))
        yield from self._progress(tracking)

    def flush(self) -> None:
        """Publish what was kept back since it was published last."""
        for publisher in self._publishers.values():
            publisher.flush()

    def _opened(self, tracking: ChainTracking) -> ChainRow:
        """A twin, or a run before, has held the chain; here are settled pages that lead on: it is opened again."""
        row = tracking.row
        taken = self._store.take(row.chain, row.fencing_token)
        tracking.adopt(self._store.chain(row.chain) if taken is None else taken)
        return tracking.row

    def _stop(self, tracking: ChainTracking) -> Iterator[PartitionProgress]:
        stop = tracking.stop_due()
        if stop is None or stop.stop is None:
            return
        why = stop.stop
        blocker = Blocker(why.code, why.hint, since=self._clock.now(), retry_at=why.retry_at)
        if self._store.hold(tracking.row, why.state, blocker):
            tracking.stopped(stop)
        self.reread(tracking)
        yield from self._progress(tracking)

    def _receipts(self, row: ChainRow) -> Mapping[str, str]:
        # An operator's skip counts the event as a dead letter: without one, and without a blocker, there are no receipts.
        if row.blocker is None and not row.dead_letters:
            return {}
        return self._store.receipts(row.chain)

    def _publish(self, scope: str) -> None:
        publisher = self._publishers.get(scope)
        if publisher is None:
            publisher = self._publishers[scope] = Publisher(self._store, scope, clock=self._clock)
        publisher.tick()

    @staticmethod
    def _progress(tracking: ChainTracking) -> Iterator[PartitionProgress]:
        task = tracking.task
        if task is not None:
            yield progress_of(tracking.row, task.domain, task.epoch, task.members)


def _says(row: ChainRow, blocker: Blocker) -> bool:
    known = row.blocker
    return known is not None and (known.code, known.event_id, known.hint) == (
        blocker.code,
        blocker.event_id,
        blocker.hint,
    )

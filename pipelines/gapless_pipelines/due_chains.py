"""Which chains the next pass reads: those of its share that are due, by the durable rows."""

from datetime import datetime

from gapless.clock import Clock
from gapless.paging.source import Source
from gapless.plan import readable
from gapless.progress import ChainState
from gapless.settling.local_run import LocalRun
from gapless.store import Store
from gapless.store.records import ChainRow


class DueChains:
    """Called before each pass: the chains of a share to read in it, none where there are no more. Waits where what is left is to
    be tried again later. `number` is the run's: whoever a newer one has taken is left alone. Raises StoreError."""

    def __init__(
        self,
        source: Source,
        store: Store,
        number: int,
        run: LocalRun,
        clock: Clock,
        share: frozenset[int] | None = None,
        *,
        anew: bool = True,
    ) -> None:
        self._source = source
        self._store = store
        self._number = number
        self._run = run
        self._clock = clock
        self._share = share
        # Whatever was held before this run is tried once; who goes over what others have left tries nothing anew.
        self._first = anew

    def __call__(self) -> frozenset[int]:
        while not self._run.stopping.is_set():
            rows = self._rows()
            now = self._clock.now()
            due = frozenset(row.chain for row in rows if self._first or self._is_due(row, now))
            self._first = False
            later = [at for row in rows if (at := _retry_at(row)) is not None]
            if due or not later:
                return due
            self._clock.sleep(min(1.0, max(0.0, (min(later) - now).total_seconds())))
        return frozenset()

    def _rows(self) -> list[ChainRow]:
        snapshot = self._store.snapshot(self._source.scope)
        rows = readable(snapshot.scope, snapshot.chains, self._source)
        return [
            row
            for row in rows
            if row.fencing_token <= self._number
            and row.chain not in self._run.caught_up
            and (self._share is None or row.chain in self._share)
        ]

    def _is_due(self, row: ChainRow, now: datetime) -> bool:
        if row.state is ChainState.OPEN:
            return True
        at = _retry_at(row)
        return at is not None and at <= now


def _retry_at(row: ChainRow) -> datetime | None:
    held = row.state is ChainState.HELD and row.blocker is not None
    return row.blocker.retry_at if held and row.blocker else None

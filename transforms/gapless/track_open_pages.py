"""The stateful DoFns of `TrackPartitions`: an event log in keyed state, and in memory what it comes to.

HEAD is small and read with each element: a stamp that is another one with each write, and the weight of LOG. LOG is only
added to. What it comes to is kept in memory beside the stamp under which it was true: where HEAD bears another one
(another worker wrote it, a bundle was repeated over rolled-back state, this process is new), LOG is read again. LOG is written
anew when it has more than twice the weight of what is open, so that state is bounded by what is open, and empty where nothing is.

Promotions go to the store at once or when the bundle ends; on engines that split a bundle wherever an element takes long, also
between two of one key, only at its end: what follows the split would find the state as it was before. State may lag behind the
store: the durable row is the truth, and what it has passed is dropped when it is met.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import apache_beam as beam
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from gapless import metrics
from gapless.clock import Clock, SystemClock
from gapless.emitted_page import EmittedPage
from gapless.page_format import LogEntryCoder, LogHead, LogHeadCoder
from gapless.settling.planned_here import PlannedHere
from gapless.store import Store
from gapless.store_ref import StoreRef
from gapless.tracking.chain_tracking import ChainTracking, Intake
from gapless.tracking.log_entry import LogEntry, weight_of
from gapless.tracking.pace import Pace
from gapless.tracking.promoter import Promoter
from gapless.updates import PartitionProgress

MOST_CHAINS: Final = 4096
"""Chains kept in memory by one worker, those used last; the log of another one is read again when it is met."""
SPARE_WEIGHT: Final = 64
"""A log is written anew when it has more than twice the weight of what is open, and so much more."""
LOOK_SECONDS: Final = 60.0
"""In a stream, how long a page may wait for outcomes before the chain says what it waits for."""

_COUNTED: Final = {
    Intake.REPEATED: metrics.REPEATED,
    Intake.LATE_OUTCOME: metrics.LATE_OUTCOMES,
    Intake.LATE_PAGE: metrics.LATE_PAGES,
    Intake.FENCED: metrics.FENCED_PAGES,
    Intake.STALE_GENERATION: metrics.STALE_GENERATION_PAGES,
}


@dataclass(slots=True)
class _Known:
    """A chain in memory. `stamp` is HEAD's as it was written last, None where it was cleared in bundle `bundle`; `weight` is
    LOG's. `timestamp` is the newest element's."""

    tracking: ChainTracking
    stamp: bytes | None
    weight: int
    bundle: int
    timestamp: Timestamp
    pace: Pace = field(default_factory=Pace)


class _TrackOpenPages(beam.DoFn):
    HEAD = ReadModifyWriteStateSpec("head", LogHeadCoder())
    LOG = BagStateSpec("log", LogEntryCoder())

    def __init__(self, store: StoreRef, clock: Clock | None = None, *, only_at_the_end: bool = False) -> None:
        self._ref = store
        self.only_at_the_end = only_at_the_end
        self._clock = clock or SystemClock()
        self._store: Store | None = None
        self._promoter: Promoter | None = None
        self._planned = PlannedHere()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._touched: set[str] = set()
        self._bundle = 0

    def setup(self) -> None:
        self._forget()
        if self.only_at_the_end:
            # Opening a store takes long, too.
            self._opened()

    def start_bundle(self) -> None:
        self._bundle += 1
        self._touched.clear()

    def _take(
        self, element: tuple[str, LogEntry], head: Any, log: Any, timestamp: Timestamp
    ) -> "tuple[_Known, Iterable[PartitionProgress]]":
        """Take one element in, and write the state; what there is to emit."""
        key, entry = element
        known = self._at_hand(key, entry.chain, head.read(), log, timestamp)
        promoter = self._opened()
        if isinstance(entry.said, EmittedPage) and self._store is not None:
            self._planned.require(entry.said.task, self._store)
        if known.tracking.is_behind(entry.said):
            promoter.reread(known.tracking)
        intake = known.tracking.take(entry.said)
        if intake is Intake.KEPT:
            log.add(entry)
            known.weight += weight_of(entry.said)
        else:
            _COUNTED[intake].inc()
        known.timestamp = max(known.timestamp, timestamp)
        now = self._clock.monotonic()
        due = not self.only_at_the_end and known.pace.due(known.tracking, now)
        moved = self._promote(known) if due else []
        self._write(known, head, log, changed=intake is Intake.KEPT)
        self._keep(key, known)
        return known, moved

    def finish_bundle(self) -> Iterator[WindowedValue]:
        touched, self._touched = self._touched, set()
        for key in sorted(touched):
            known = self._known.pop(key, None)
            if known is None:
                continue
            tracking = known.tracking
            if tracking.open_pages and not tracking.head_is_settled() and not tracking.has_head():
                # Pages, and none that follows what is promoted: somebody else may have promoted, or restarted the chain.
                self._opened().reread(tracking)
            for progress in self._promote(known):
                yield WindowedValue(progress, known.timestamp, (GlobalWindow(),))
            self._known[key] = known
        if self._promoter is not None:
            self._promoter.flush()

    def teardown(self) -> None:
        self._forget()

    def _forget(self) -> None:
        store, self._store, self._promoter = self._store, None, None
        self._known.clear()
        self._touched.clear()
        if store is not None:
            store.close()

    def _opened(self) -> Promoter:
        if self._promoter is None:
            self._store = self._ref.open(patient=True)
            self._promoter = Promoter(self._store, self._clock)
        return self._promoter

    def _at_hand(self, key: str, chain: int, head: LogHead | None, log: Any, timestamp: Timestamp) -> _Known:
        """What the state comes to. Taken out of memory: put back when the state is written, and not where something fails."""
        known = self._known.pop(key, None)
        stamp = None if head is None else head.stamp
        if known is not None and known.stamp == stamp and (stamp is not None or known.bundle == self._bundle):
            return known
        tracking = self._opened().track(chain)
        if head is not None:
            tracking.receive(log.read())
        return _Known(tracking, stamp, 0 if head is None else head.weight, self._bundle, timestamp)

    def _keep(self, key: str, known: _Known) -> None:
        self._known[key] = known
        self._touched.add(key)
        while len(self._known) > MOST_CHAINS and len(self._known) > len(self._touched):
            oldest, value = self._known.popitem(last=False)
            if oldest in self._touched:
                self._known[oldest] = value

    def _promote(self, known: _Known) -> list[PartitionProgress]:
        promoter = self._opened()
        promoted, lost, began = promoter.promoted, promoter.lost, self._clock.monotonic()
        moved = list(promoter.promote(known.tracking))
        known.pace.promoted(known.tracking, began, self._clock.monotonic())
        metrics.PROMOTIONS.inc(promoter.promoted - promoted)
        metrics.LOST_SWAPS.inc(promoter.lost - lost)
        return moved

    def _write(self, known: _Known, head: Any, log: Any, *, changed: bool) -> None:
        weight = known.tracking.weight
        if weight == 0:
            if known.weight:
                log.clear()
                head.clear()
            known.stamp, known.weight, known.bundle = None, 0, self._bundle
            return
        if known.weight > 2 * weight + SPARE_WEIGHT:
            known.tracking.tidy()
            live = list(known.tracking.live())
            log.clear()
            for entry in live:
                log.add(entry)
            known.weight, changed = sum(weight_of(entry.said) for entry in live), True
        if changed:
            known.stamp = os.urandom(12)
            head.write(LogHead(known.stamp, known.weight))

    def _look(
        self, key: str, head: Any, log: Any, timestamp: Timestamp
    ) -> "tuple[_Known | None, Iterable[PartitionProgress]]":
        """Look after a chain that something is open of: promote what is settled, and explain what is not."""
        written = head.read()
        if written is None:
            return None, []
        known = self._at_hand(key, int(key.rsplit("\n", 1)[1]), written, log, timestamp)
        promoter = self._opened()
        promoter.reread(known.tracking)
        moved = self._promote(known)
        moved += promoter.explain(known.tracking)
        known.tracking.tidy()
        self._write(known, head, log, changed=False)
        self._keep(key, known)
        return known, moved


class TrackInBatch(_TrackOpenPages):
    """What is open at the end of the window is explained: only that depends on the timer."""

    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element: tuple[str, LogEntry],
        head: Any = beam.DoFn.StateParam(_TrackOpenPages.HEAD),
        log: Any = beam.DoFn.StateParam(_TrackOpenPages.LOG),
        end: Any = beam.DoFn.TimerParam(END),
        timestamp: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
    ) -> Iterable[PartitionProgress]:
        was_empty = head.read() is None
        known, moved = self._take(element, head, log, timestamp)
        if was_empty and known.weight:
            end.set(window.max_timestamp())
        return moved

    @on_timer(END)
    def at_the_end(
        self,
        key: Any = beam.DoFn.KeyParam,
        head: Any = beam.DoFn.StateParam(_TrackOpenPages.HEAD),
        log: Any = beam.DoFn.StateParam(_TrackOpenPages.LOG),
    ) -> Iterable[PartitionProgress]:
        return self._look(key, head, log, MIN_TIMESTAMP)[1]


class TrackInStream(_TrackOpenPages):
    """A page that waits for long is explained, again and again while it does: only that depends on the timer."""

    LOOK = TimerSpec("look", TimeDomain.REAL_TIME)

    def process(
        self,
        element: tuple[str, LogEntry],
        head: Any = beam.DoFn.StateParam(_TrackOpenPages.HEAD),
        log: Any = beam.DoFn.StateParam(_TrackOpenPages.LOG),
        look: Any = beam.DoFn.TimerParam(LOOK),
        timestamp: Any = beam.DoFn.TimestampParam,
    ) -> Iterable[PartitionProgress]:
        was_empty = head.read() is None
        known, moved = self._take(element, head, log, timestamp)
        if was_empty and known.weight:
            self._look_later(look)
        return moved

    @on_timer(LOOK)
    def look_again(
        self,
        key: Any = beam.DoFn.KeyParam,
        head: Any = beam.DoFn.StateParam(_TrackOpenPages.HEAD),
        log: Any = beam.DoFn.StateParam(_TrackOpenPages.LOG),
        look: Any = beam.DoFn.TimerParam(LOOK),
        timestamp: Any = beam.DoFn.TimestampParam,
    ) -> Iterable[PartitionProgress]:
        known, moved = self._look(key, head, log, timestamp)
        if known is not None and known.weight:
            self._look_later(look)
        return moved

    def _look_later(self, look: Any) -> None:
        now = self._clock.now().timestamp()
        look.set(Timestamp(micros=int((now + LOOK_SECONDS) * 1_000_000)))

"""`SettlePages`: a splittable DoFn that reads chains, one element each, and settles them in place."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import pvalue
from apache_beam.pvalue import PCollection
from apache_beam.typehints.decorators import IOTypeHints
from apache_beam.utils.timestamp import Duration

from gapless.effects.protocol import Effect, Step, no_step
from gapless.page_restriction import Claim
from gapless.paging.readahead import FeedPool
from gapless.paging.source import Source, following
from gapless.plan_partitions import require_same_source
from gapless.polling import Polling
from gapless.reading_dofn import ChainRestrictions, ReadingDoFn
from gapless.settling.heartbeat import beating
from gapless.settling.local_run import LocalRun, current_run
from gapless.settling.open_run import DeadLetterEffect
from gapless.settling.planned_here import PlannedHere
from gapless.settling.publisher import Publisher
from gapless.settling.retrying import Failures, RetryPolicy
from gapless.settling.settle import settle_chain
from gapless.settling.settle_stream import settle_slice
from gapless.settling.shared_feeds import SharedFeeds, shared_feeds
from gapless.settling.stream_calls import slice_among
from gapless.settling.worker import Slice, Tally, Worker
from gapless.store.records import DeadLetter
from gapless.store_ref import StoreRef
from gapless.streaming import (
    Call,
    CertifiedWatermark,
    EventTime,
    StreamRestrictions,
    require_same_kind,
    require_streaming_engine,
    unbounded,
)
from gapless.updates import PartitionProgress, ReadTask

DEAD_LETTERS = "dead_letters"


class Read(NamedTuple):
    """`progress`: where each chain durably stands after each promotion. `dead_letters`: as they became durable."""

    progress: PCollection[PartitionProgress]
    dead_letters: PCollection[DeadLetter]


@dataclass(frozen=True)
class SettleInPlace:
    """What a worker is given to settle with; picklable, without secrets. `on_step` is called at each step of the barrier."""

    source: Source
    effect: Effect
    store: StoreRef
    dead_letters: DeadLetterEffect | None = None
    retry: RetryPolicy = RetryPolicy()
    on_step: Step = no_step

    def worker(self, task: ReadTask, feeds: FeedPool, failures: Failures, *, called_again: bool) -> Worker:
        """Open the rest. Raises ConfigurationError (an unset secret, another source than the plan's) or StoreError."""
        store = self.store.open(patient=True)
        # Before an effect is opened: it may write.
        PlannedHere().require(task, store, self.source)
        return Worker(
            source=self.source,
            effect=self.effect.open(task.scope, task.domain, store.schema_store(task.scope)),
            target_rows=self.effect.target_rows,
            store=store,
            feeds=feeds,
            publisher=Publisher(store, task.scope),
            dead_letters=self.dead_letters.open(task.scope, task.domain) if self.dead_letters else None,
            retry=self.retry,
            called_again=called_again,
            failures=failures,
            on_step=self.on_step,
        )


class SettlePages(beam.PTransform[PCollection[ReadTask], Read]):
    """Reads each chain from its committed page token, applies the effect, and promotes runs of pages.

    Batch: a chain is read to its end in one call and never deferred. On the local runner a call reads a slice. With `polling` a
    stream: a call reads a slice and defers the rest, and goes on trying a source or an effect that fails."""

    def __init__(self, settle: SettleInPlace, polling: Polling | None = None) -> None:
        super().__init__()
        self._settle = settle if polling is None else replace(settle, source=following(settle.source))
        self._polling = polling

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a result that is a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, tasks: PCollection[ReadTask]) -> Read:
        require_same_kind(tasks, self._polling)
        require_same_source(tasks, self._settle.source)
        if self._polling is None:
            reader: beam.DoFn = _SettleChain(self._settle)
        else:
            require_streaming_engine(tasks.pipeline)
            tasks = unbounded(tasks)
            reader = _SettleStream(self._settle, self._polling)
        out = tasks | "Settle" >> beam.ParDo(reader).with_output_types(PartitionProgress).with_outputs(
            DEAD_LETTERS, main="progress"
        )
        dead: PCollection[DeadLetter] = out[DEAD_LETTERS]
        dead.element_type = DeadLetter
        return Read(out.progress, dead)


_RESTRICTIONS = ChainRestrictions()
_STREAM_RESTRICTIONS = StreamRestrictions()
_WATERMARK = CertifiedWatermark()


class _SettleChain(ReadingDoFn):
    """One worker's reader. Opens on the first element, when scope and run are known, and closes with the DoFn."""

    def __init__(self, settle: SettleInPlace) -> None:
        self._settle = settle
        self._planned = PlannedHere()
        self._worker: Worker | None = None
        self._run: LocalRun | None = None

    def process(
        self, element: ReadTask, tracker: Any = beam.DoFn.RestrictionParam(_RESTRICTIONS)
    ) -> Iterator[Any]:
        with self.in_use, beating(self._settle.store, element.run_id):
            worker = self._opened(element)
            tally = Tally()
            for emitted in settle_chain(
                worker, element, lambda: self._may_go_on(tracker), self._limit(), tally
            ):
                if isinstance(emitted, DeadLetter):
                    yield pvalue.TaggedOutput(DEAD_LETTERS, emitted)
                else:
                    if self._run is not None:
                        self._run.progressed(emitted)
                    yield emitted
            if self._run is not None:
                self._run.add(tally)
        tracker.try_claim(Claim.END)

    def _opened(self, task: ReadTask) -> Worker:
        if self._worker is None:
            run = self._run = current_run(task.run_id)
            feeds = run.feeds if run else FeedPool(self._settle.source.open)
            failures = run.failures if run else Failures()
            self._worker = self._settle.worker(task, feeds, failures, called_again=run is not None)
        self._planned.require(task, self._worker.store, self._settle.source)
        return self._worker

    def _may_go_on(self, tracker: Any) -> bool:
        if self.closing or (self._run is not None and self._run.stopping.is_set()):
            return False
        return bool(tracker.try_claim(Claim.PAGE))

    def _limit(self) -> Slice:
        return self._run.limit if self._run is not None else Slice()

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        _close(worker)
        if self._run is None:
            worker.feeds.close()
        worker.store.close()


class _SettleStream(ReadingDoFn):
    """One worker's reader in a stream: a slice of a chain a call, and then the rest is deferred."""

    def __init__(self, settle: SettleInPlace, polling: Polling) -> None:
        self._settle = settle
        self._polling = polling
        self._planned = PlannedHere()
        self._worker: Worker | None = None
        self._shared: SharedFeeds | None = None

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        element: ReadTask,
        tracker: Any = beam.DoFn.RestrictionParam(_STREAM_RESTRICTIONS),
        watermark: Any = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),
    ) -> Iterator[Any]:
        time = EventTime(watermark, element.domain)
        state = tracker.current_restriction()
        with self.in_use, beating(self._settle.store, element.run_id, pause=self._polling.longest):
            worker, claim, limit = self._opened(element), self._claim(tracker), slice_among(self.among())
            call = Call(settle_slice(worker, element, state.idle, claim, self._polling, limit))
            for emitted in call:
                if isinstance(emitted, DeadLetter):
                    stamped = time.stamped(emitted, emitted.position)
                    yield pvalue.TaggedOutput(DEAD_LETTERS, stamped)
                else:
                    yield time.stamped(emitted)
                    time.raise_to(emitted.bound)
        due, idle = call.result
        if due is None:
            tracker.try_claim(Claim.END)
        else:
            tracker.try_claim(replace(state, idle=idle))
            tracker.defer_remainder(Duration(seconds=due))

    def _opened(self, task: ReadTask) -> Worker:
        if self._worker is None:
            self._shared = shared_feeds(task.run_id, self._settle.source)
            self._worker = self._settle.worker(
                task, self._shared.feeds, self._shared.failures, called_again=True
            )
        self._planned.require(task, self._worker.store, self._settle.source)
        return self._worker

    def _claim(self, tracker: Any) -> Callable[[], bool]:
        return lambda: not self.closing and bool(tracker.try_claim(Claim.PAGE))

    def close(self) -> None:
        worker, self._worker = self._worker, None
        shared, self._shared = self._shared, None
        if worker is not None:
            _close(worker)
        if shared is not None:
            shared.give_up()
        if worker is not None:
            worker.store.close()


def _close(worker: Worker) -> None:
    worker.effect.close()
    if worker.dead_letters is not None:
        worker.dead_letters.close()

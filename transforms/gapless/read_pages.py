"""`ReadPages`: a splittable DoFn that reads chains, one element each, and emits their pages for others to settle."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.typehints.decorators import IOTypeHints
from apache_beam.utils.timestamp import Duration

from gapless import page_format  # noqa: F401 - registers the coders of what goes out
from gapless.effects.protocol import Step, no_step
from gapless.emitted_page import EmittedPage
from gapless.errors import ConfigurationError
from gapless.page_restriction import Claim
from gapless.paging.readahead import FeedPool
from gapless.paging.source import Source, following
from gapless.plan_partitions import Planned, require_same_source
from gapless.polling import Polling
from gapless.reading_dofn import ChainRestrictions, ReadingDoFn
from gapless.settling.emit_chain import emit_chain
from gapless.settling.emit_stream import EmittingStream
from gapless.settling.emitting import EmittingWorker, as_planned
from gapless.settling.heartbeat import beating
from gapless.settling.planned_here import PlannedHere
from gapless.settling.retrying import Failures, RetryPolicy
from gapless.settling.shared_feeds import SharedFeeds, shared_feeds
from gapless.settling.stream_calls import slice_among
from gapless.settling.stream_state import StreamState
from gapless.store_ref import StoreRef, store_ref
from gapless.streaming import (
    Call,
    CertifiedWatermark,
    EventTime,
    StreamRestrictions,
    require_same_kind,
    require_streaming_engine,
    unbounded,
)
from gapless.updates import ReadTask

MAX_OPEN_PAGES = 10_000
"""Of one chain in one pass of a batch, whose pages stay open until the pass has ended."""

MAX_OPEN_PAGES_OF_A_STREAM = 256
"""Of one chain; a stream pauses there until some are promoted."""


@dataclass(frozen=True, slots=True)
class EmitPages:
    """What a worker is given to read with; picklable, without secrets. `on_step` is called at each step of the loop."""

    source: Source
    store: StoreRef
    retry: RetryPolicy = RetryPolicy()
    on_step: Step = no_step

    def worker(self, feeds: FeedPool, failures: Failures) -> EmittingWorker:
        """Open the rest. Raises ConfigurationError (an unset secret) or StoreError."""
        return EmittingWorker(
            source=self.source,
            store=self.store.open(patient=True),
            feeds=feeds,
            retry=self.retry,
            failures=failures,
            on_step=self.on_step,
        )


class ReadPages(beam.PTransform[Planned, PCollection[EmittedPage]]):
    """Reads each planned chain from its committed page token and emits its pages; where the chains stand travels along.

    Batch: a chain is read to its end in one call, at most `max_open_pages` pages a chain (10,000): nothing waits for what
    becomes of the pages, and what stays open is read again by the next run. `retry` is for the source: after its attempts the
    chain is held.

    With `polling` a stream: readers poll, and pause while `max_open_pages` pages of their chain (256) are open. Its watermark
    never passes what the chain's emitted pages certify, and it goes on trying a source that fails."""

    def __init__(
        self,
        source: Source,
        store: "str | StoreRef",
        *,
        max_open_pages: int | None = None,
        polling: Polling | None = None,
        retry: RetryPolicy | None = None,
        on_step: Step = no_step,
    ) -> None:
        super().__init__()
        if max_open_pages is not None and max_open_pages < 1:
            raise ValueError(f"max_open_pages is a positive number of pages, not {max_open_pages}")
        self._max_open_pages = max_open_pages
        self._polling = polling
        source = source if polling is None else following(source)
        self._emit = EmitPages(source, store_ref(store), retry or RetryPolicy(), on_step)

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, planned: Planned) -> PCollection[EmittedPage]:
        if not isinstance(planned, tuple) or len(planned) != 2:
            raise ConfigurationError(
                "what is read is a whole plan, with its tasks and its progress",
                where=self.label,
                remedy="pipeline | PlanPartitions(source, store) | ReadPages(source, store)",
            )
        tasks, progress = planned
        require_same_kind(tasks, self._polling)
        require_same_source(tasks, self._emit.source)
        if self._polling is None:
            reader: beam.DoFn = _EmitChain(self._emit, self._max_open_pages or MAX_OPEN_PAGES)
        else:
            require_streaming_engine(tasks.pipeline)
            tasks, progress = unbounded(tasks), unbounded(progress)
            reader = _EmitStream(
                self._emit, self._polling, self._max_open_pages or MAX_OPEN_PAGES_OF_A_STREAM
            )
        pages = tasks | "Emit" >> beam.ParDo(reader).with_output_types(EmittedPage)
        planned_progress = progress | "As planned" >> beam.Map(as_planned).with_output_types(EmittedPage)
        return (pages, planned_progress) | beam.Flatten()


_RESTRICTIONS = ChainRestrictions()
_STREAM_RESTRICTIONS = StreamRestrictions()
_WATERMARK = CertifiedWatermark()


class _EmitChain(ReadingDoFn):
    """One worker's reader. Opens on the first element, closes with the DoFn, and keeps no keyed state: with it, the local
    runner does not read in parallel."""

    def __init__(self, emit: EmitPages, max_open_pages: int) -> None:
        self._emit = emit
        self._max_open_pages = max_open_pages
        self._planned = PlannedHere()
        self._worker: EmittingWorker | None = None

    def process(
        self, element: ReadTask, tracker: Any = beam.DoFn.RestrictionParam(_RESTRICTIONS)
    ) -> Iterator[EmittedPage]:
        with self.in_use, beating(self._emit.store, element.run_id):
            if self._worker is None:
                self._worker = self._emit.worker(FeedPool(self._emit.source.open), Failures())
            self._planned.require(element, self._worker.store, self._emit.source)
            yield from emit_chain(
                self._worker, element, lambda: self._may_go_on(tracker), self._max_open_pages
            )
        tracker.try_claim(Claim.END)

    def _may_go_on(self, tracker: Any) -> bool:
        return not self.closing and bool(tracker.try_claim(Claim.PAGE))

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.feeds.close()
            worker.store.close()


class _EmitStream(ReadingDoFn):
    """One worker's reader in a stream: a slice of a chain a call, and then the rest is deferred."""

    def __init__(self, emit: EmitPages, polling: Polling, max_open_pages: int) -> None:
        self._emit = emit
        self._polling = polling
        self._max_open_pages = max_open_pages
        self._planned = PlannedHere()
        self._stream: EmittingStream | None = None
        self._shared: SharedFeeds | None = None

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        element: ReadTask,
        tracker: Any = beam.DoFn.RestrictionParam(_STREAM_RESTRICTIONS),
        watermark: Any = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),
    ) -> Iterator[Any]:
        time = EventTime(watermark, element.domain)
        with self.in_use, beating(self._emit.store, element.run_id, pause=self._polling.longest):
            state, limit = tracker.current_restriction(), slice_among(self.among())
            call = Call(self._opened(element).poll(element, state, self._claim(tracker), limit))
            for page in call:
                yield time.stamped(page, min(page.positions, default=None))
                # Not the committed bound: what waits for it downstream would keep back the very outcomes that raise it.
                time.raise_to(page.certificate.bound if page.certificate else None)
        if call.result is None:
            tracker.try_claim(Claim.END)
        else:
            tracker.defer_remainder(Duration(seconds=call.result))

    def _claim(self, tracker: Any) -> Callable[[StreamState], bool]:
        return lambda state: not self.closing and bool(tracker.try_claim(state))

    def _opened(self, task: ReadTask) -> EmittingStream:
        if self._stream is None:
            self._shared = shared_feeds(task.run_id, self._emit.source)
            worker = self._emit.worker(self._shared.feeds, self._shared.failures)
            self._stream = EmittingStream(worker, self._polling, self._max_open_pages)
        self._planned.require(task, self._stream.worker.store, self._emit.source)
        return self._stream

    def close(self) -> None:
        stream, self._stream = self._stream, None
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.give_up()
        if stream is not None:
            stream.worker.store.close()

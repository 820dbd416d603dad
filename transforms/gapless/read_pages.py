"""`ReadPages`: a splittable DoFn that reads chains, one element each, and emits their pages for others to settle."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.typehints.decorators import IOTypeHints

from gapless.effects.protocol import Step, no_step
from gapless.emitted_page import EmittedPage
from gapless.page_restriction import Claim
from gapless.paging.readahead import FeedPool
from gapless.paging.source import Source
from gapless.plan_partitions import Planned
from gapless.reading_dofn import ChainRestrictions, ReadingDoFn
from gapless.settling.emit_chain import emit_chain
from gapless.settling.emitting import EmittingWorker, as_planned
from gapless.settling.retrying import RetryPolicy
from gapless.store_ref import StoreRef, store_ref
from gapless.updates import ReadTask

MAX_OPEN_PAGES = 10_000
"""Of one chain in one pass of a batch, whose pages stay open until the pass has ended."""


@dataclass(frozen=True, slots=True)
class EmitPages:
    """What a worker is given to read with; picklable, without secrets. `on_step` is called at each step of the loop."""

    source: Source
    store: StoreRef
    retry: RetryPolicy = RetryPolicy()
    on_step: Step = no_step

    def worker(self) -> EmittingWorker:
        """Open everything. Raises ConfigurationError (an unset secret) or StoreError."""
        return EmittingWorker(
            source=self.source,
            store=self.store.open(patient=True),
            feeds=FeedPool(self.source.open),
            retry=self.retry,
            on_step=self.on_step,
        )


class ReadPages(beam.PTransform[Planned, PCollection[EmittedPage]]):
    """Reads each planned chain from its committed page token and emits its pages; where the chains stand travels along.

    A chain is read to its end in one call, at most `max_open_pages` pages a chain: nothing waits for what becomes of the pages,
    and what stays open is read again by the next run. `retry` is for the source: after its attempts the chain is held."""

    def __init__(
        self,
        source: Source,
        store: "str | StoreRef",
        *,
        max_open_pages: int | None = None,
        retry: RetryPolicy | None = None,
        on_step: Step = no_step,
    ) -> None:
        super().__init__()
        if max_open_pages is not None and max_open_pages < 1:
            raise ValueError(f"max_open_pages is a positive number of pages, not {max_open_pages}")
        self._max_open_pages = max_open_pages
        self._emit = EmitPages(source, store_ref(store), retry or RetryPolicy(), on_step)

    def default_type_hints(self) -> IOTypeHints:
        # Beam reads them from `expand` and warns at a tuple of collections; each has its own type.
        return IOTypeHints.empty()

    def expand(self, planned: Planned) -> PCollection[EmittedPage]:
        tasks, progress = planned
        most = self._max_open_pages or MAX_OPEN_PAGES
        pages = tasks | "Emit" >> beam.ParDo(_EmitChain(self._emit, most)).with_output_types(EmittedPage)
        planned_progress = progress | "As planned" >> beam.Map(as_planned).with_output_types(EmittedPage)
        return (pages, planned_progress) | beam.Flatten()


_RESTRICTIONS = ChainRestrictions()


class _EmitChain(ReadingDoFn):
    """One worker's reader. Opens on the first element, closes with the DoFn, and keeps no keyed state: with it, the local
    runner does not read in parallel."""

    def __init__(self, emit: EmitPages, max_open_pages: int) -> None:
        self._emit = emit
        self._max_open_pages = max_open_pages
        self._worker: EmittingWorker | None = None

    def process(
        self, element: ReadTask, tracker: Any = beam.DoFn.RestrictionParam(_RESTRICTIONS)
    ) -> Iterator[EmittedPage]:
        with self.in_use:
            if self._worker is None:
                self._worker = self._emit.worker()
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
